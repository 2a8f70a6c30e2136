// Compiles the user's file to PTX.
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
  std::string instance;                ///< mangled name of the instance that --kernel asks for; or empty
  std::optional<Error> asked_error;    ///< why there is no instance
  std::vector<std::string> templates;  ///< names of the kernel templates in the source
  std::vector<LeftOut> left_out;
  /// The user's name for a file of the line table.
  std::function<std::string(const std::string&)> own_name;
};

Result<Compiled> compile(const Request& request);

}  // namespace roofgen::check
