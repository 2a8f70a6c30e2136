# roofgen_embed_data(<target> <folder>...): compiles every file below the folders (relative to the project's root) into
# <target>, as the table declared in generator/space/embedded_files.h. Names of the roofline's data begin below roofline/
# ("devices/...").
#
# roofgen_embed_text(<target> <function> <header> <file>): compiles one file, from any location, into <target> as
# `std::string_view roofgen::<function>()`, declared in <header>, with a zero behind it; empty without a file.
#
# Run as a script (cmake -P), this file writes these sources with CMake alone, without xxd or Python. Inputs:
# EMBED_OUTPUT, and either EMBED_ROOT with EMBED_LIST (a file with one relative name per line) or EMBED_FUNCTION,
# EMBED_HEADER and EMBED_FILE.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(ROOFGEN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

  function(roofgen_embed_data target)
    set(names)
    foreach(folder IN LISTS ARGN)
      # CONFIGURE_DEPENDS: the next build notices added and removed files.
      file(GLOB_RECURSE found CONFIGURE_DEPENDS LIST_DIRECTORIES false RELATIVE ${PROJECT_SOURCE_DIR}
        ${PROJECT_SOURCE_DIR}/${folder}/*)
      list(APPEND names ${found})
    endforeach()
    list(FILTER names EXCLUDE REGEX "(^|/)[.#][^/]*$|~$")  # editors' left-overs
    list(FILTER names EXCLUDE REGEX "\\.mutants$")           # of the tests
    list(TRANSFORM names REPLACE "^roofline/" "" OUTPUT_VARIABLE names_in_table)
    list(SORT names_in_table COMPARE STRING)
    set(list_file ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.txt)
    string(JOIN "\n" list_text ${names_in_table})
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

  function(roofgen_embed_text target function header file)
    if(NOT EXISTS "${file}")
      set(file)
    endif()
    string(REPLACE "::" "_" name ${function})
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DEMBED_FUNCTION=${function} -DEMBED_HEADER=${header} -DEMBED_FILE=${file}
        -DEMBED_OUTPUT=${output} -P ${ROOFGEN_EMBED_SCRIPT}
      DEPENDS ${file} ${ROOFGEN_EMBED_SCRIPT}
      COMMENT "Embedding ${function}"
      VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endfunction()
  return()
endif()

# The bytes of a file as rows of an initialiser, and the number of bytes.
function(read_bytes file rows size)
  file(READ ${file} bytes HEX)
  file(SIZE ${file} count)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  set(${rows} "${bytes}" PARENT_SCOPE)
  set(${size} ${count} PARENT_SCOPE)
endfunction()

if(EMBED_FUNCTION)
  set(bytes)
  set(size 0)
  if(EMBED_FILE)
    read_bytes(${EMBED_FILE} bytes size)
  endif()
  file(WRITE ${EMBED_OUTPUT} "// Written by cmake/embed.cmake.
#include \"${EMBED_HEADER}\"

std::string_view roofgen::${EMBED_FUNCTION}() {
  static const unsigned char kBytes[] = {
${bytes}0};
  return {reinterpret_cast<const char*>(kBytes), ${size}};
}
")
  return()
endif()

file(STRINGS ${EMBED_LIST} names ENCODING UTF-8)
set(arrays)
set(rows)
set(index 0)
foreach(name IN LISTS names)
  set(path ${EMBED_ROOT}/${name})
  if(NOT EXISTS ${path})
    set(path ${EMBED_ROOT}/roofline/${name})
  endif()
  read_bytes(${path} bytes size)
  # The trailing zero makes the array of an empty file valid.
  string(APPEND arrays "const unsigned char kFile${index}[] = {\n${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", {reinterpret_cast<const char*>(kFile${index}), ${size}}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${EMBED_OUTPUT} "// Written by cmake/embed.cmake.
#include \"generator/space/embedded_files.h\"

namespace roofgen {
namespace {
${arrays}
const EmbeddedFile kFiles[] = {
${rows}    {{}, {}}};
}  // namespace

std::span<const EmbeddedFile> embedded_files() { return {kFiles, ${index}}; }

}  // namespace roofgen
")
