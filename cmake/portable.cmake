# -DROOFGEN_PORTABLE=ON: a program that runs on other machines of this architecture. Everything but the C
# library is linked in, and bench/check_portable.py holds the C library to an old version.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "ROOFGEN_PORTABLE is for Linux with glibc")
endif()
if(ROOFGEN_TESTS OR ROOFGEN_BENCH OR ROOFGEN_SANITIZE)
  message(FATAL_ERROR "ROOFGEN_PORTABLE is for the program alone: turn ROOFGEN_TESTS, ROOFGEN_BENCH and ROOFGEN_SANITIZE off")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# SQLite, zlib and terminfo are found as archives.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)

# Distributions build fmt shared only, so its headers are used. The name is the one that all targets link.
find_path(ROOFGEN_FMT_INCLUDE fmt/format.h REQUIRED)
add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
target_include_directories(fmt::fmt INTERFACE ${ROOFGEN_FMT_INCLUDE})
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)

# LLVM names libraries that its Support component does not need.
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed)

# roofgen_make_portable(<target>): symbols that old C libraries lack come along; the build fails, and leaves no
# program, where it would not run elsewhere.
function(roofgen_make_portable target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/portable/arc4random.c)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/check_portable.py $<TARGET_FILE:${target}>
    VERBATIM)
endfunction()
