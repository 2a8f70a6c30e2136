# What keeps a build short (docs/start/build.md): -Og where the speed of the program does not depend on it, sources compiled in
# batches, and precompiled headers. -DCMAKE_UNITY_BUILD=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON compiles each file on
# its own; a smaller -DCMAKE_UNITY_BUILD_BATCH_SIZE makes a changed file compile sooner.
string(REPLACE "-O3" "-Og" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 15)
endif()

# Programs are compiled as libraries are, or they could not use the same precompiled header.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
add_compile_options(-fPIC)

# GCC collects garbage later: a batch needs more memory and fewer seconds.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)

# fmt checks a format string for each list of argument types, which takes a tenth of the time of a file. The presets for
# development do it.
add_compile_definitions($<$<CONFIG:Release>:FMT_CONSTEVAL=>)

# roofgen_unity_batches(<target> <n>): a target that is compiled in this many batches, unless the user set their size.
function(roofgen_unity_batches target batches)
  if(NOT CMAKE_UNITY_BUILD_BATCH_SIZE EQUAL 15)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# roofgen_hot(<target>): simulations, references and searches spend their time here. GCC 12 crashes where a precompiled
# header was made with another -O, so these targets share one of their own, which is the first one's.
function(roofgen_hot target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O3>)
  get_property(first GLOBAL PROPERTY ROOFGEN_HOT)
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/base/precompiled.h)
    set_property(GLOBAL PROPERTY ROOFGEN_HOT ${target})
  endif()
endfunction()

# The same for some sources of a target, which have no precompiled header.
function(roofgen_hot_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> SKIP_PRECOMPILE_HEADERS ON
    SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# roofgen_precompile(<folder>): every other C++ target of the folder and below uses the precompiled header of
# roofgen_values.
function(roofgen_precompile folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(sources ${target} SOURCES)
    get_target_property(own ${target} PRECOMPILE_HEADERS)
    get_target_property(others ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    if(type MATCHES "LIBRARY|EXECUTABLE" AND sources MATCHES "\\.cpp" AND NOT own AND NOT others)
      target_precompile_headers(${target} REUSE_FROM roofgen_values)
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    roofgen_precompile(${below})
  endforeach()
endfunction()
