// The launch of a kernel as a C function. make_launch evaluates a search space's expressions for the tuned problem; the
// C function evaluates them for the sizes of each call.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "generator/emit.h"

namespace roofgen {

struct CParameter {
  std::string type, name;
  std::string note;  ///< for a comment: its role, or its value for the tuned problem
};

/// An argument of the kernel itself.
struct KernelArgument {
  std::string name, type;                   ///< type: ptr i32 i64 f32 struct tensor_map
  std::string code;                         ///< its value: the parameter that is passed on, or an expression
  const expr::Expr* value = nullptr;        ///< set: `code` is this expression
  std::vector<KernelArgument> fields = {};  ///< of a struct
  /// Of a tensor map; `code` is the pointer. What the kernel is compiled for (box, swizzle, fill) is as tuned.
  std::shared_ptr<const TensorMap> map = {};
  std::vector<std::string> dims = {}, stride_bytes = {};
};

struct LaunchCode {
  std::string name;                    ///< of the C functions and of the files
  std::vector<CParameter> parameters;  ///< in the order of the kernel's, then sizes that only the grid needs
  std::vector<std::string> positive;  ///< parameters that must be positive, because other values are computed from them
  std::vector<std::pair<std::string, std::string>> definitions;  ///< name and code, in order of dependence
  std::vector<KernelArgument> arguments;
  std::string grid[3];
  std::vector<std::string> conditions;  ///< under which the compiled source is correct
};

Result<LaunchCode> launch_code(const EmitRequest& request, const EmittedKernel& kernel);

/// The size of a temporary: the sizes that it depends on, and the code.
struct BytesCode {
  std::vector<std::string> sizes;
  std::string code;
};
Result<BytesCode> bytes_code(const EmitRequest& request, const Variant::Temporary& temporary);

}  // namespace roofgen
