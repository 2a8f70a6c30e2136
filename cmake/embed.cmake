# roofgen_embed_data(<target> <folder>...): compiles every file below the folders (relative to the
# project's root) into <target>, as the table that generator/embedded_files.h declares.
#
# Run as a script (cmake -P) it writes that table: only CMake is needed, no xxd and no Python.
# Inputs then: EMBED_ROOT, EMBED_LIST (a file with one relative name a line), EMBED_OUTPUT.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(ROOFGEN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

  function(roofgen_embed_data target)
    set(names)
    foreach(folder IN LISTS ARGN)
      # CONFIGURE_DEPENDS: a file that is added or removed is seen by the next build.
      file(GLOB_RECURSE found CONFIGURE_DEPENDS LIST_DIRECTORIES false RELATIVE ${PROJECT_SOURCE_DIR}
        ${PROJECT_SOURCE_DIR}/${folder}/*)
      list(APPEND names ${found})
    endforeach()
    list(FILTER names EXCLUDE REGEX "(^|/)[.#][^/]*$|~$")  # editors' left-overs
    list(SORT names COMPARE STRING)
    set(list_file ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.txt)
    string(JOIN "\n" list_text ${names})
    file(GENERATE OUTPUT ${list_file} CONTENT "${list_text}\n")
    set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.cpp)
    list(TRANSFORM names PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DEMBED_ROOT=${PROJECT_SOURCE_DIR} -DEMBED_LIST=${list_file}
        -DEMBED_OUTPUT=${output} -P ${ROOFGEN_EMBED_SCRIPT}
      DEPENDS ${paths} ${list_file} ${ROOFGEN_EMBED_SCRIPT}
      COMMENT "Embedding templates, search spaces and devices"
      VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endfunction()
  return()
endif()

file(STRINGS ${EMBED_LIST} names ENCODING UTF-8)
set(arrays)
set(rows)
set(index 0)
foreach(name IN LISTS names)
  file(READ ${EMBED_ROOT}/${name} bytes HEX)
  file(SIZE ${EMBED_ROOT}/${name} size)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  # The zero at the end keeps the array of an empty file legal.
  string(APPEND arrays "const unsigned char kFile${index}[] = {\n${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", {reinterpret_cast<const char*>(kFile${index}), ${size}}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${EMBED_OUTPUT} "// Written by cmake/embed.cmake.
#include \"generator/embedded_files.h\"

namespace roofgen {
namespace {
${arrays}
const EmbeddedFile kFiles[] = {
${rows}    {{}, {}}};
}  // namespace

std::span<const EmbeddedFile> embedded_files() { return {kFiles, ${index}}; }

}  // namespace roofgen
")
