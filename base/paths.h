// Where roofgen keeps files between runs (XDG base directories). Environment is read here and
// nowhere deeper; everything below takes a path.
#pragma once

#include <string>

namespace roofgen {

/// Directory for what can be made again (compiled kernels): $ROOFGEN_CACHE_DIR, else
/// $XDG_CACHE_HOME/roofgen, else ~/.cache/roofgen. Empty when none is set: then nothing is cached.
/// Not created here.
std::string cache_dir();

/// Directory for results worth keeping (the evaluation store): $ROOFGEN_DATA_HOME, else
/// $XDG_DATA_HOME/roofgen, else ~/.local/share/roofgen. Empty when none is set. Not created here.
std::string data_home();

}  // namespace roofgen
