// --emit-args: a file of arguments to start from, and the launch that the source states.
#pragma once

#include <string>
#include <vector>

#include "check/check.h"

namespace roofgen::check {

struct Skeleton {
  std::string kernel;  ///< demangled
  std::string json;    ///< the arguments: sizes, contents and values are placeholders
  std::string flags;   ///< "--kernel scale --grid 4 --block 256"
  std::vector<std::string> notes;
};

/// Reads the kernel's signature, and from the source the names of its parameters and its first launch. Errors: like
/// run().
Result<Skeleton> make_skeleton(const Request& request);

/// A launch `kernel<<<grid, block, smem>>>` in a source. A size is empty if it is no constant of the file.
struct SourceLaunch {
  std::string kernel;  ///< without template arguments
  std::string text;    ///< between the angle brackets
  int line = 0;
  std::string grid, block, smem;  ///< "4" or "16,16"
};
std::vector<SourceLaunch> launches_in(const std::string& source);

}  // namespace roofgen::check
