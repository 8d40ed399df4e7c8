# cadenza_protos(NAME ROOT folder FILES a/b.proto ... [DEPS ...])
# A static library of .proto files, compiled at build time. FILES are paths below ROOT or below the
# folder of the well-known types of the system. DEPS are other such libraries whose files are imported.
find_program(PROTOC_C protoc-c REQUIRED)
find_path(PROTOBUF_WELL_KNOWN google/protobuf/timestamp.proto REQUIRED)

function(cadenza_protos name)
    cmake_parse_arguments(ARG "" "ROOT" "FILES;DEPS" ${ARGN})
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${name})
    set(includes -I${ARG_ROOT} -I${PROTOBUF_WELL_KNOWN})
    foreach(dep ${ARG_DEPS})
        list(APPEND includes -I$<TARGET_PROPERTY:${dep},CADENZA_PROTO_ROOT>)
    endforeach()
    foreach(file ${ARG_FILES})
        string(REGEX REPLACE "\\.proto$" ".pb-c" stem ${file})
        list(APPEND sources ${out}/${stem}.c)
        list(APPEND headers ${out}/${stem}.h)
        if(EXISTS ${ARG_ROOT}/${file})
            list(APPEND inputs ${ARG_ROOT}/${file})
        endif()
    endforeach()
    file(MAKE_DIRECTORY ${out})
    add_custom_command(OUTPUT ${sources} ${headers}
        COMMAND ${PROTOC_C} ${includes} --c_out=${out} ${ARG_FILES}
        DEPENDS ${inputs} COMMENT "protoc-c ${name}" VERBATIM)

    add_library(${name} STATIC ${sources} ${headers})
    target_include_directories(${name} SYSTEM PUBLIC ${out})
    target_link_libraries(${name} PUBLIC PkgConfig::PROTOBUF_C ${ARG_DEPS})
    # Two compiler runs, one for each core of a small machine, instead of thirty. The code is tables
    # and stubs: no warnings, sanitizers, debug information or much optimisation are worth their time.
    target_compile_options(${name} PRIVATE -w -g0 -fno-sanitize=all $<IF:$<CONFIG:Release>,-O1,-O0>)
    list(LENGTH sources count)
    math(EXPR half "(${count} + 1) / 2")
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${half}
        CADENZA_PROTO_ROOT ${ARG_ROOT})
endfunction()
