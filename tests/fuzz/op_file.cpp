// Reads arbitrary bytes as the file of an op, and completes a problem of its op: no crash, and each error has a text.
#include "generator/ops/op_file.h"

#include <cstdlib>

#include "generator/ops/formula_op.h"
#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_op_file {
FUZZ_TARGET(op_file) {
  const auto file = OpFile::parse({reinterpret_cast<const char*>(data), size}, "dots.json");
  if (!file) return file.error().message.empty() ? std::abort(), 1 : 0;
  if (!file->formulas) return 0;
  const auto op = formula_op(*file);
  if (!op) return op.error().message.empty() ? std::abort(), 1 : 0;
  Problem problem{.op = file->op, .dims = {}, .flags = {}, .reals = {}};
  for (const OpFlag& dim : file->of(OpFlagKind::kSize)) problem.dims[dim.name] = 40;
  const auto complete = (*op)->complete(problem);
  if (!complete) return complete.error().message.empty() ? std::abort(), 1 : 0;
  (*op)->buffers(*complete);
  (*op)->patterns(*complete);
  (*op)->reduced(*complete);
  return 0;
}

}  // namespace roofgen::fuzz_op_file
