# Tuned kernels in a CMake project, generated at build time from a manifest in the source tree (docs/use/emit.md):
#
#   roofgen_add_kernel(<target> OP <op> [<size> <number>]... [DTYPE <format>] [ARCHS <arch>...] [NAME <name>]
#                      [MANIFEST <file>] [FLAGS <flag>...] [TUNE_FLAGS <flag>...])
#
# Adds the library <name>::<name> and links <target> with it. The sizes are those of `roofgen emit <op>`, in upper case;
# FLAGS are its other flags that describe the problem, such as --causal. Defaults: NAME <op>, MANIFEST <name>.json in the
# current folder. The target <name>_tune tunes, with TUNE_FLAGS such as --effort full, and writes the manifest.

# The program of this installation; in a project that contains roofgen, the one that it builds.
find_program(ROOFGEN_EXECUTABLE roofgen HINTS ${CMAKE_CURRENT_LIST_DIR}/../../../bin ${CMAKE_CURRENT_LIST_DIR}/../../../../bin
  DOC "the program roofgen")

function(roofgen_add_kernel target)
  set(sizes L D BATCH HEADS KV_HEADS KV_LEN PAGE ROTARY_DIM M N K EXPERTS TOKENS TOPK ROWS COLS DTYPE)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OP;NAME;MANIFEST;${sizes}" "ARCHS;FLAGS;TUNE_FLAGS")
  set(call "roofgen_add_kernel(${target})")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${call}: unknown argument ${arg_UNPARSED_ARGUMENTS}; other flags of roofgen emit go behind FLAGS")
  elseif(NOT arg_OP)
    message(FATAL_ERROR "${call}: OP is missing, as in OP attention L 2048 D 64")
  elseif(NOT TARGET ${target})
    message(FATAL_ERROR "${call}: there is no target ${target}; add it first")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT C IN_LIST languages)
    message(FATAL_ERROR "${call}: the kernels' library is C; enable it, as in project(app LANGUAGES C CXX)")
  endif()
  if(TARGET roofgen)
    set(roofgen roofgen)
    set(shown roofgen)
  elseif(ROOFGEN_EXECUTABLE)
    set(roofgen ${ROOFGEN_EXECUTABLE})
    set(shown ${ROOFGEN_EXECUTABLE})
  else()
    message(FATAL_ERROR "${call}: the program roofgen was not found; give it as -DROOFGEN_EXECUTABLE=<file>")
  endif()
  set(name ${arg_OP})
  if(arg_NAME)
    set(name ${arg_NAME})
  endif()
  set(manifest ${name}.json)
  if(arg_MANIFEST)
    set(manifest ${arg_MANIFEST})
  endif()
  cmake_path(ABSOLUTE_PATH manifest BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)

  set(problem ${arg_OP})
  foreach(size IN LISTS sizes)
    if(DEFINED arg_${size})
      set(flag ${size})
      if(NOT size MATCHES "^[LMNK]$")
        string(TOLOWER ${size} flag)
        string(REPLACE "_" "-" flag ${flag})
      endif()
      list(APPEND problem --${flag} ${arg_${size}})
    endif()
  endforeach()
  list(APPEND problem ${arg_FLAGS})
  if(arg_ARCHS)
    list(JOIN arg_ARCHS "," archs)
    list(APPEND problem --archs ${archs})
  endif()

  set(bundle ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(tuned ${bundle}_tune)
  set(tune emit ${problem} ${arg_TUNE_FLAGS} --name ${name} -o ${tuned} --force)
  if(NOT EXISTS ${manifest})
    set(words "")
    foreach(word IN LISTS tune)
      if(NOT word MATCHES "^[-A-Za-z0-9_./,=]+$")
        set(word "'${word}'")  # an expression, for the shell
      endif()
      string(APPEND words " ${word}")
    endforeach()
    message(FATAL_ERROR "${call}: ${manifest} does not exist. Tune the kernels, and keep it in the source tree:\n"
      "  ${shown}${words} && cp ${tuned}/manifest.json ${manifest}")
  endif()
  add_custom_target(${name}_tune
    COMMAND ${roofgen} ${tune}
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${tuned}/manifest.json ${manifest}
    COMMENT "Tuning ${name}" USES_TERMINAL VERBATIM)

  set(files ${bundle}/${name}.c ${bundle}/${name}.h ${bundle}/${name}_images.h)
  add_custom_command(OUTPUT ${files}
    COMMAND ${roofgen} emit ${problem} --manifest ${manifest} --name ${name} -o ${bundle} --force
    DEPENDS ${manifest} ${roofgen}
    COMMENT "Generating ${name}" VERBATIM)
  add_library(${name} STATIC ${files})
  add_library(${name}::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} PUBLIC ${bundle})
  target_link_libraries(${name} PUBLIC ${CMAKE_DL_LIBS})
  target_link_libraries(${target} PRIVATE ${name})
endfunction()
