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
  std::string grid[3];
  Locals launch;                        ///< of arguments and grid
  std::vector<std::string> conditions;  ///< under which the compiled source is correct
  Locals check;                         ///< of the conditions
  /// "chunks == 4, where chunks = roofgen_ceil_div(cols, 1024)".
  std::string explained(const std::string& condition) const;
};

/// The numbers of the user on which an explained condition depends, as tuned: "cols is 4096".
std::string tuned_numbers(const Interface& interface, const std::string& explained, const expr::Map& tuned);

/// Adds the parameters that the kernel needs to `interface`.
Result<LaunchCode> launch_code(Interface& interface, const EmitRequest& request, const EmittedPipeline& pipeline,
                               const EmittedKernel& kernel);

/// The bytes of a temporary.
Result<std::string> bytes_code(Interface& interface, const EmittedPipeline& pipeline,
                               const Variant::Temporary& temporary);

/// Names in the problem's scope that kernels take as arguments.
std::set<std::string> carried_names(const EmitRequest& request);

}  // namespace roofgen
