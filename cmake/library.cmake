# The library's targets. Objects are compiled once; brisk (what users link) and brisk_internal (what tests link, with the
# internals in reach) are both made of them.
set(brisk_folders core graph optim backend passes exec train data models checkpoint dist monitor tune)
set(brisk_sources "")
foreach(folder IN LISTS brisk_folders)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp")
  list(APPEND brisk_sources ${sources})
endforeach()

# An optional dependency is a folder and its no_ twin. kernels/ is compiled apart, below.
set(brisk_left_out backend/cpu/kernels backend/cuda backend/no_cuda)
foreach(part IN ITEMS "ONEDNN backend/cpu onednn" "JPEG data jpeg" "PNG data png")
  separate_arguments(part)
  list(GET part 0 found)
  list(GET part 1 layer)
  list(GET part 2 folder)
  if(BRISK_HAVE_${found})
    list(APPEND brisk_left_out ${layer}/no_${folder})
  else()
    list(APPEND brisk_left_out ${layer}/${folder})
  endif()
endforeach()
foreach(folder IN LISTS brisk_left_out)
  list(FILTER brisk_sources EXCLUDE REGEX "/src/${folder}/")
endforeach()

function(brisk_object_library name)
  cmake_parse_arguments(PARSE_ARGV 1 object "" "OPTIMIZE" "SOURCES")
  add_library(${name} OBJECT ${object_SOURCES})
  brisk_own_target(${name} OPTIMIZE ${object_OPTIMIZE})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE brisk_private Threads::Threads)
  target_compile_definitions(${name} PRIVATE BRISK_VERSION="${PROJECT_VERSION}")
endfunction()

brisk_object_library(brisk_objects OPTIMIZE -O2 SOURCES ${brisk_sources})
if(BRISK_HAVE_ONEDNN)
  target_include_directories(brisk_objects SYSTEM PRIVATE "${BRISK_ONEDNN_INCLUDE}")
endif()
if(BRISK_HAVE_JPEG)
  target_include_directories(brisk_objects SYSTEM PRIVATE ${JPEG_INCLUDE_DIRS})
endif()
if(BRISK_HAVE_PNG)
  target_include_directories(brisk_objects SYSTEM PRIVATE ${PNG_INCLUDE_DIRS})
endif()
set(brisk_object_files $<TARGET_OBJECTS:brisk_objects>)

# The CUDA backend is objects of its own: the tests put the one on the emulated runtime in their place.
file(GLOB brisk_no_cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backend/no_cuda/*.cpp")
brisk_object_library(brisk_cuda_objects OPTIMIZE -O2 SOURCES ${brisk_no_cuda_sources})

# Kernels: each file once per instruction set, with BRISK_ISA as the name of the namespace it fills. The backend picks one at
# run time. Narrow ones stand first: where two objects hold the same inline function, the linker keeps the first.
set(brisk_isa_avx2 -mavx2 -mfma -mbmi2 -mf16c)
set(brisk_isa_avx512 ${brisk_isa_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
file(GLOB brisk_kernel_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backend/cpu/kernels/*.cpp")
if(brisk_kernel_sources)
  foreach(isa IN ITEMS avx2 avx512)
    brisk_object_library(brisk_${isa} OPTIMIZE -O3 SOURCES ${brisk_kernel_sources})
    target_compile_options(brisk_${isa} PRIVATE ${brisk_isa_${isa}} -fno-math-errno)
    target_compile_definitions(brisk_${isa} PRIVATE BRISK_ISA=${isa})
    list(APPEND brisk_object_files $<TARGET_OBJECTS:brisk_${isa}>)
  endforeach()
endif()

# Found libraries by path while building and by name once installed, so that the exported targets carry no path and a user
# of the static library needs no find module.
set(brisk_link $<BUILD_INTERFACE:${ZLIB_LIBRARIES}> $<INSTALL_INTERFACE:z> ${CMAKE_DL_LIBS})
if(BRISK_HAVE_ONEDNN)
  list(APPEND brisk_link $<BUILD_INTERFACE:${BRISK_ONEDNN_LIBRARY}> $<INSTALL_INTERFACE:dnnl>)
endif()
if(BRISK_HAVE_JPEG)
  list(APPEND brisk_link $<BUILD_INTERFACE:${JPEG_LIBRARIES}> $<INSTALL_INTERFACE:jpeg>)
endif()
if(BRISK_HAVE_PNG)
  list(APPEND brisk_link $<BUILD_INTERFACE:${PNG_LIBRARIES}> $<INSTALL_INTERFACE:png>)
endif()

function(brisk_library name)
  add_library(${name} ${ARGN} ${brisk_object_files} $<TARGET_OBJECTS:brisk_cuda_objects>)
  brisk_own_target(${name})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${name} PRIVATE ${brisk_link} Threads::Threads)
endfunction()

brisk_library(brisk)
add_library(brisk::brisk ALIAS brisk)
set_target_properties(brisk PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

if(BRISK_TESTS OR BRISK_BENCHMARKS)
  brisk_library(brisk_internal STATIC EXCLUDE_FROM_ALL)
  target_include_directories(brisk_internal PUBLIC "${PROJECT_SOURCE_DIR}/src")
endif()

# CUDA launchers for programs that bring their own tensors. No .cu file is compiled in this release: the target exists so
# that a build file written against it works, and it holds nothing.
add_library(brisk_kernels INTERFACE)
add_library(brisk::kernels ALIAS brisk_kernels)
set_target_properties(brisk_kernels PROPERTIES EXPORT_NAME kernels)
target_compile_features(brisk_kernels INTERFACE cxx_std_20)
target_include_directories(brisk_kernels INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)

file(GLOB brisk_cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cli/*.cpp")
if(BRISK_HAVE_CLI11 AND brisk_cli_sources)
  add_executable(brisk_cli ${brisk_cli_sources})
  brisk_own_target(brisk_cli)
  set_target_properties(brisk_cli PROPERTIES OUTPUT_NAME brisk INSTALL_RPATH "$ORIGIN/../lib")
  target_compile_definitions(brisk_cli PRIVATE BRISK_VERSION="${PROJECT_VERSION}")
  target_include_directories(brisk_cli PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(brisk_cli PRIVATE brisk CLI11::CLI11 brisk_private)
endif()
