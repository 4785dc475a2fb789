# brisk_test(name sources...): one GoogleTest program, bin/<name>_tests, whose cases CTest lists and runs one by one as
# "<name>.<suite>.<case>". It sees the internals (src/, tests/) through brisk_internal.
#   - A suite or case with "Serial" or "Speed" in its name runs alone on the machine: it measures something.
#   - Folders in BRISK_TEST_EVERY_ISA are run a second time with the kernels capped at AVX2, as "<case>_avx2": those that
#     test whole steps. Tests of single kernels (backend, cases) go through the instruction sets themselves.
#   - BRISK_SOURCE_DIR and BRISK_BIN_DIR are defined: where test data and built programs are.
include(GoogleTest)
set(BRISK_TEST_EVERY_ISA exec golden train)
set(BRISK_TEST_TIMEOUT_S 900)

# Flags that every test source shares. Tests are compiled fast (-O1); what takes time in them is the library.
function(brisk_test_target target)
  brisk_own_target(${target} ${ARGN})
  target_compile_definitions(${target} PRIVATE
    BRISK_SOURCE_DIR="${PROJECT_SOURCE_DIR}" BRISK_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
    BRISK_VERSION="${PROJECT_VERSION}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE brisk_internal brisk_private GTest::gtest GTest::gmock Threads::Threads)
  if(TARGET Eigen3::Eigen)
    target_link_libraries(${target} PRIVATE Eigen3::Eigen)
  endif()
endfunction()

# brisk_discover(target name suffix [SHARDED pattern] properties...): SHARDED cases are many and short: they run in four
# processes, "<name>.<pattern without stars>.<number>", instead of one each.
function(brisk_discover target name suffix)
  cmake_parse_arguments(PARSE_ARGV 3 own "" "SHARDED" "")
  # GoogleTest calls it a success when the named case does not exist.
  set(properties TIMEOUT ${BRISK_TEST_TIMEOUT_S} LABELS ${name} FAIL_REGULAR_EXPRESSION "Running 0 tests"
    ${own_UNPARSED_ARGUMENTS})
  foreach(filter IN ITEMS "-*Serial*:*Speed*" "*Serial*:*Speed*")
    if(filter MATCHES "^\\*")
      list(APPEND properties RUN_SERIAL TRUE)
    endif()
    string(MAKE_C_IDENTIFIER "${target}${suffix}${filter}" list)
    if(own_SHARDED AND filter MATCHES "^-")
      string(APPEND filter ":${own_SHARDED}")
    endif()
    gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES TEST_FILTER "${filter}"
      TEST_PREFIX "${name}." TEST_SUFFIX "${suffix}" TEST_LIST ${list} PROPERTIES ${properties})
  endforeach()
  if(own_SHARDED)
    string(REPLACE "*" "" cases "${own_SHARDED}")
    foreach(shard RANGE 3)
      add_test(NAME ${name}.${cases}.${shard} COMMAND ${target} "--gtest_filter=${own_SHARDED}" --gtest_brief=1)
      set_tests_properties(${name}.${cases}.${shard} PROPERTIES TIMEOUT ${BRISK_TEST_TIMEOUT_S} LABELS ${name} COST 500
        FAIL_REGULAR_EXPRESSION "PASSED  \\] 0 tests"
        ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
    endforeach()
  endif()
endfunction()

function(brisk_test name)
  set(target ${name}_tests)
  add_executable(${target} ${ARGN})
  brisk_test_target(${target} OPTIMIZE -O1)
  if(TARGET brisk_test_support)
    target_link_libraries(${target} PRIVATE brisk_test_support)
  endif()
  if(NOT "${ARGN}" MATCHES "/main\\.cpp")
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
  endif()
  brisk_discover(${target} ${name} "")
  if(name IN_LIST BRISK_TEST_EVERY_ISA)
    brisk_discover(${target} ${name} _avx2 ENVIRONMENT BRISK_CPU_ISA=avx2)
  endif()
endfunction()

# brisk_script_test(name command...): a script that is one test case. It finds the tree in BRISK_SOURCE and the programs in
# BRISK_BIN. Exit code 77: skipped. A high cost starts it early: some of them build the library once more.
function(brisk_script_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 1800 LABELS script COST 1000 SKIP_RETURN_CODE 77
    ENVIRONMENT "BRISK_SOURCE=${PROJECT_SOURCE_DIR};BRISK_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()
