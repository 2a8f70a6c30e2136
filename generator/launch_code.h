// The launch of a kernel as C code. make_launch evaluates a search space's expressions for the tuned problem; the C
// code evaluates them for the sizes of each call.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "generator/emit.h"
#include "generator/interface.h"

namespace roofgen {

/// An argument of the kernel itself.
struct KernelArgument {
  std::string name, type;                   ///< type: ptr i32 i64 f32 struct tensor_map
  std::string code;                         ///< its value
  std::vector<KernelArgument> fields = {};  ///< of a struct
  /// Of a tensor map; `code` is the pointer. What the kernel is compiled for (box, swizzle, fill) is as tuned.
  std::shared_ptr<const TensorMap> map = {};
  std::vector<std::string> dims = {}, stride_bytes = {};
  std::string buffer = {};  ///< of a pointer or a tensor map
};

struct LaunchCode {
  /// What a piece of code uses.
  struct Locals {
    std::vector<std::pair<std::string, std::string>> definitions;  ///< name and code, in order of dependence
    std::vector<std::string> variables;                            ///< parameters with numbers
  };
  std::vector<KernelArgument> arguments;
  /// What the compiled source relies on.
  struct Condition {
    expr::Expr condition;
    std::string code;
    std::string text;                  ///< "chunks == 4, where chunks = roofgen_ceil_div(cols, 1024)"
    std::string refusal;               ///< in names of the user alone: "cols is 4096 in the tuned problem"
    std::vector<std::string> numbers;  ///< of the user, on which it depends
  };
  std::string grid[3];
  Locals launch;  ///< of arguments and grid
  std::vector<Condition> conditions;
  Locals check;  ///< of the conditions
};

/// Adds the parameters that the kernel needs to `interface`.
Result<LaunchCode> launch_code(Interface& interface, const EmitRequest& request, const EmittedPipeline& pipeline,
                               const EmittedKernel& kernel);

/// The same in this process: the launch of a compiled kernel in a call with this scope (Interface::scope_of).
/// Exit::kUnavailable: its sizes and strides are for other kernels; Exit::kUsage: for none.
Result<Launch> launch_in_call(const Variant& variant, const Stage& stage, const Legal& tuned, const Launch& compiled,
                              const std::vector<LaunchCode::Condition>& conditions, const expr::Map& scope);
Error not_served(const std::string& why);

/// The bytes of a temporary.
Result<std::string> bytes_code(Interface& interface, const EmittedPipeline& pipeline,
                               const Variant::Temporary& temporary);

/// Names in the problem's scope that kernels take as arguments.
std::set<std::string> carried_names(const EmitRequest& request);

}  // namespace roofgen
