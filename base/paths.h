// The environment, and the directories for files kept between runs (XDG base directories).
#pragma once

#include <string>

namespace roofgen {

/// The value of a variable; empty if it is not set.
std::string environment(const char* name);

/// Directory for reproducible files (compiled kernels): $ROOFGEN_CACHE_DIR, else $XDG_CACHE_HOME/roofgen, else
/// ~/.cache/roofgen. Empty when none is set, which disables caching. This function does not create it.
std::string cache_dir();

/// Directory for results (the evaluation store): $ROOFGEN_DATA_HOME, else $XDG_DATA_HOME/roofgen, else
/// ~/.local/share/roofgen. Empty when none is set. This function does not create it.
std::string data_home();

/// The file of this code, with its folder: the program, or the shared library that it is a part of.
std::string own_file();

/// The program to start as a worker: this one. Of code in a shared library, whose process is another program: the
/// program roofgen at $ROOFGEN_PROGRAM, beside the library, in ../bin or in the build tree; empty: there is none.
std::string worker_program();

/// The file of worker_program(), for other programs to start: /proc/self/exe would be their own. Empty: there is none.
std::string program_file();

}  // namespace roofgen
