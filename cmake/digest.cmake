# roofgen_source_digest(<variable> <file>...): sets the variable to 16 digits of a digest over the contents of the files,
# as the version of what depends on them. CMake runs again when one of them changes.
function(roofgen_source_digest variable)
  set(digests "")
  foreach(source IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(SHA256 ${source} digest)
    string(APPEND digests ${digest})
  endforeach()
  string(SHA256 version "${digests}")
  string(SUBSTRING ${version} 0 16 version)
  set(${variable} ${version} PARENT_SCOPE)
endfunction()
