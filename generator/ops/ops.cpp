// The table of ops: what exists is what is listed here.
#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>

#include "generator/generate.h"
#include "generator/ops/attention.h"
#include "generator/ops/gemm.h"
#include "generator/ops/op.h"
#include "generator/ops/rows.h"

namespace roofgen {

const char* to_string(InputPattern pattern) {
  switch (pattern) {
    case InputPattern::kNormal: return "normal";
    case InputPattern::kZeroQuery: return "zero query";
    case InputPattern::kOneHot: return "one-hot";
    case InputPattern::kIntegers: return "integers";
    case InputPattern::kSpecial: return "special values";
  }
  return "?";
}

Result<std::vector<Variant>> Op::variants(const DataFiles& files, const Problem&) const {
  return load_variants(files, name());
}

const std::vector<const Op*>& ops() {
  static const std::vector<const Op*> all{&attention_op(), &gemm_op(),    &rmsnorm_op(),
                                          &layernorm_op(), &softmax_op(), &map_op()};
  return all;
}

Result<const Op*> find_op(const std::string& name) {
  const Op* nearest = nullptr;
  unsigned distance = 0;
  for (const Op* op : ops()) {
    if (op->name() == name) return op;
    const unsigned d = llvm::StringRef(op->name()).edit_distance(name);
    if (!nearest || d < distance) nearest = op, distance = d;
  }
  std::string message = fmt::format("unknown op '{}'", name);
  // A guess further than half the word away helps nobody: list what there is.
  if (distance * 2 <= nearest->name().size())
    message += fmt::format("; did you mean '{}'?", nearest->name());
  else {
    message += "; known:";
    for (const Op* op : ops()) message += fmt::format(" {}", op->name());
  }
  return Error{Exit::kUsage, message};
}

}  // namespace roofgen
