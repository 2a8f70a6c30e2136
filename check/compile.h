// From the user's file to PTX.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/check.h"
#include "check/host_code.h"

namespace roofgen::check {

struct Compiled {
  Binary binary;
  std::string compiler;                ///< empty for PTX
  std::string instance;                ///< the kernel that --kernel names with template arguments, mangled; or empty
  std::optional<Error> asked_error;    ///< why there is none
  std::vector<std::string> templates;  ///< of kernels, in the source
  std::vector<LeftOut> left_out;
  /// Names of files as the user has them.
  std::function<std::string(const std::string&)> own_name;
};

Result<Compiled> compile(const Request& request);

}  // namespace roofgen::check
