# -DROOFGEN_PORTABLE=ON builds a program for other machines of this architecture. All libraries except the C library are
# linked statically; bench/check_portable.py limits the required version of the C library.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "ROOFGEN_PORTABLE is for Linux with glibc")
endif()
if(ROOFGEN_TESTS OR ROOFGEN_BENCH OR ROOFGEN_SANITIZE)
  message(FATAL_ERROR "ROOFGEN_PORTABLE is for the program alone: turn ROOFGEN_TESTS, ROOFGEN_BENCH and ROOFGEN_SANITIZE off")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Selects the static archives of SQLite, zlib and terminfo.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)

# Distributions provide fmt only as a shared library, so its headers are used instead, under the target name that all
# targets link.
find_path(ROOFGEN_FMT_INCLUDE fmt/format.h REQUIRED)
add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
target_include_directories(fmt::fmt INTERFACE ${ROOFGEN_FMT_INCLUDE})
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)

# LLVM's Support component lists libraries that it does not need.
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed)

# roofgen_make_portable(<target>): adds symbols that old C libraries lack. The build fails, without leaving a program,
# if the program would not run on older systems. The C source is a target of its own: the precompiled header is C++, and
# CMake would ask for one of each language of the program.
function(roofgen_make_portable target)
  add_library(${target}_portable OBJECT ${PROJECT_SOURCE_DIR}/cmake/portable/arc4random.c)
  target_link_libraries(${target} PRIVATE ${target}_portable)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/check_portable.py $<TARGET_FILE:${target}>
    VERBATIM)
endfunction()
