# What keeps a build short (docs/build.md): -Og where the speed of the program does not depend on it, sources compiled in
# batches, and one precompiled header. -DCMAKE_UNITY_BUILD=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON compiles each file on
# its own.
string(REPLACE "-O3" "-Og" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)

# Programs are compiled as libraries are, or they could not use the same precompiled header.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
add_compile_options(-fPIC)

# GCC collects garbage later: a batch needs up to 0.7 GB with it, and fewer seconds.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)

# roofgen_hot(<target>): simulations, references and searches spend their time here. GCC 12 crashes where a precompiled
# header was made with another -O, so these targets have none.
function(roofgen_hot target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O3>)
  set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endfunction()

# The same for some sources of a target.
function(roofgen_hot_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> SKIP_PRECOMPILE_HEADERS ON
    SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# roofgen_precompile(<folder>): every C++ target of the folder and below uses the precompiled header of roofgen_values.
function(roofgen_precompile folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(sources ${target} SOURCES)
    if(type MATCHES "LIBRARY|EXECUTABLE" AND sources MATCHES "\\.cpp" AND NOT target STREQUAL roofgen_values)
      target_precompile_headers(${target} REUSE_FROM roofgen_values)
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    roofgen_precompile(${below})
  endforeach()
endfunction()
