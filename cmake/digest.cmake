# roofgen_source_digest(<target> <code> <file>...): compiles `code` into the target, in which @digest@ stands for 16
# digits of a digest over the contents of the files: the version of what depends on them. A file of its own, because a
# source with definitions of its own leaves its batch. CMake runs again when one of the files changes.
function(roofgen_source_digest target code)
  set(digests "")
  foreach(source IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(SHA256 ${source} digest)
    string(APPEND digests ${digest})
  endforeach()
  string(SHA256 digest "${digests}")
  string(SUBSTRING ${digest} 0 16 digest)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${target}_version.cpp)
  file(CONFIGURE OUTPUT ${output} CONTENT "${code}\n" @ONLY)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
