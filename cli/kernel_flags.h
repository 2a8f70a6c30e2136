// The flags that name any kernel of the user with one launch of it: check and profile have them.
#pragma once

#include <string>
#include <vector>

#include "check/check.h"
#include "tuner/session/flags.h"

namespace roofgen::cli {

inline constexpr const char* kDefaultArch = "sm_90";

struct KernelFlags {
  std::string file, kernel, grid = "1", block, smem = "0", args, arch = kDefaultArch;
  std::vector<std::string> include_dirs, defines;
  bool fast_math = false;
  void declare(FlagSet app);
};

/// Reads the files that the flags name. `launches`: a launch without --block is an error.
Result<check::Request> kernel_request(const KernelFlags& flags, bool launches);

}  // namespace roofgen::cli
