# brisk_own_target(target [OPTIMIZE level]): the flags of every target compiled from Brisk's sources, all of them private.
# -ffp-contract=off: the same bits from g++ and clang++. A build type of Debug keeps the compiler's own level.
function(brisk_own_target target)
  cmake_parse_arguments(PARSE_ARGV 1 own "" "OPTIMIZE" "")
  if(NOT own_OPTIMIZE)
    set(own_OPTIMIZE -O2)
  endif()
  if(BRISK_SANITIZE)  # what a sanitizer finds does not depend on it, and -O3 takes it minutes
    set(own_OPTIMIZE -O1)
  endif()
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20
    CXX_STANDARD_REQUIRED ON
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    CUDA_VISIBILITY_PRESET hidden
    POSITION_INDEPENDENT_CODE ON)
  set(options
    -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off
    $<$<NOT:$<CONFIG:Debug>>:${own_OPTIMIZE}>
    $<$<BOOL:${BRISK_WERROR}>:-Werror>)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${options}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-O3;-Xcompiler=-Wall,-Wextra,-ffp-contract=off>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${BRISK_WERROR}>>:--Werror=all-warnings>")
  # g++ 12 reports these in std::vector and std::string where nothing is wrong (its bugs 105329, 105651, 107852).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>")
  endif()
  if(BRISK_SANITIZE STREQUAL "address")
    set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  elseif(BRISK_SANITIZE STREQUAL "thread")
    set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
  endif()
  target_compile_options(${target} PRIVATE ${sanitize})
  target_link_options(${target} PRIVATE ${sanitize})
endfunction()
