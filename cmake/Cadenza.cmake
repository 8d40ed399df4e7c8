# What every folder of src/ uses: flags, libraries found once, and four verbs:
#   cadenza_library(NAME SOURCES ... [DEPS ...])       a folder's static library
#   cadenza_test(NAME SOURCES ... [DEPS ...] [LABELS release tsan] [ENV A=b ...] [ARGS ...] [TIMEOUT seconds])
#                                                      a test program beside its source, run by ctest
#   cadenza_storm(NAME SEEDS few many ...)             such a program that samples by seed: few seeds under a sanitizer,
#                                                      many in the release build, where a storm costs a tenth
#   cadenza_fuzzer(NAME SOURCES ... [DEPS ...])        a libFuzzer target; replays its corpus in the tests
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(OPENSSL REQUIRED IMPORTED_TARGET openssl)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(JWT REQUIRED IMPORTED_TARGET libjwt)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
find_library(BOOST_CONTEXT_LIBRARY NAMES libboost_context.a boost_context REQUIRED)

# The libraries that every call runs through are part of a release program: calls between and inside shared libraries
# go through tables, and RocksDB asks for the thread's own memory at every comparison of keys. A tenth of the CPU.
set(shared_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
    set(ROCKSDB_NEEDS stdc++ snappy lz4 zstd bz2 z m dl)
endif()
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
find_library(ROCKSDB_LIBRARY rocksdb REQUIRED)
set(CMAKE_FIND_LIBRARY_SUFFIXES ${shared_suffixes})

add_library(cadenza_flags INTERFACE)
target_include_directories(cadenza_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(cadenza_flags INTERFACE _GNU_SOURCE CADENZA_VERSION="${PROJECT_VERSION}")
target_compile_options(cadenza_flags INTERFACE
    -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -Wno-unused-parameter -Wno-missing-field-initializers -fno-strict-aliasing -fno-omit-frame-pointer -g)
if(CADENZA_FAULT)
    target_compile_definitions(cadenza_flags INTERFACE CADENZA_FAULT_${CADENZA_FAULT}=1)
endif()

# Other inlining makes GCC suspect other things; the plain build has judged the sources.
if(CADENZA_TUNE STREQUAL "learn")
    target_compile_options(cadenza_flags INTERFACE -fprofile-generate -fprofile-update=atomic -w)
    target_link_options(cadenza_flags INTERFACE -fprofile-generate)
elseif(CADENZA_TUNE STREQUAL "use")
    target_compile_options(cadenza_flags INTERFACE -fprofile-use -fprofile-partial-training -w)
endif()

# Sanitizers are given to all targets at once, or the runtime would see half of the program.
if(CADENZA_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
    add_link_options(-fsanitize=address,undefined)
elseif(CADENZA_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread)
    add_link_options(-fsanitize=thread)
endif()
if(CADENZA_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

add_custom_target(tests_release)
add_custom_target(tests_tsan)
add_custom_target(fuzzers)

# A program chooses its ground (fiber_linux or fiber_sim) by linking it, and folders above call into it without
# naming it: so the libraries of a program are searched as one group, in whatever order they come.
set(CMAKE_C_LINK_EXECUTABLE "<CMAKE_C_COMPILER> <FLAGS> <CMAKE_C_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> \
-Wl,--start-group <LINK_LIBRARIES> -Wl,--end-group")

function(cadenza_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC cadenza_flags ${ARG_DEPS})
endfunction()

# LABELS say where a test runs besides the ASan build: release, tsan. tests_<label> builds those alone.
function(cadenza_test name)
    cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS;ENV;ARGS" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE base_test ${ARG_DEPS})
    add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 300)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" ENVIRONMENT "${ARG_ENV}")
    foreach(label ${ARG_LABELS})
        add_dependencies(tests_${label} ${name})
    endforeach()
endfunction()

function(cadenza_storm name)
    cmake_parse_arguments(ARG "" "" "SEEDS;SOURCES;DEPS" ${ARGN})
    list(GET ARG_SEEDS 0 few)
    list(GET ARG_SEEDS 1 seeds)
    if(CADENZA_SANITIZE)
        set(seeds ${few})
    endif()
    cadenza_test(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} LABELS release ARGS --seeds=${seeds} TIMEOUT 900)
    set_tests_properties(${name} PROPERTIES COST ${seeds}) # the long ones begin first
endfunction()

# Without CADENZA_FUZZ the target is a plain program that runs its function over the kept corpus.
function(cadenza_fuzzer name)
    cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
    set(corpus ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
    if(CADENZA_FUZZ)
        add_executable(${name} ${ARG_SOURCES})
        target_link_libraries(${name} PRIVATE ${ARG_DEPS})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
        add_dependencies(fuzzers ${name})
    else()
        add_executable(${name} ${ARG_SOURCES} ${CMAKE_SOURCE_DIR}/src/base/fuzz_replay.c)
        target_link_libraries(${name} PRIVATE base ${ARG_DEPS})
        add_test(NAME ${name} COMMAND ${name} ${corpus})
    endif()
endfunction()
