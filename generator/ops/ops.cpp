// The table of ops.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/json_text.h"
#include "base/suggest.h"
#include "generator/ops/attention.h"
#include "generator/ops/elements.h"
#include "generator/ops/formula_op.h"
#include "generator/ops/gemm.h"
#include "generator/ops/limits.h"
#include "generator/ops/op.h"
#include "generator/ops/op_file.h"
#include "generator/ops/rows.h"
#include "generator/space/space.h"

namespace roofgen {

const char* to_string(InputPattern pattern) {
  switch (pattern) {
    case InputPattern::kNormal: return "normal";
    case InputPattern::kZeroQuery: return "zero query";
    case InputPattern::kOneHot: return "one-hot";
    case InputPattern::kIntegers: return "integers";
    case InputPattern::kSpecial: return "special values";
    case InputPattern::kExtremes: return "extremes";
    case InputPattern::kGrowing: return "growing scores";
    case InputPattern::kExtremeRows: return "extreme rows";
    case InputPattern::kOneKey: return "one key";
  }
  return "?";
}

Problem other_scalars(Problem problem) {
  for (auto& [name, value] : problem.reals) {
    if (name == "alpha") value = value != 0 ? 1.25 * value : 0.5;
    if (name == "beta") value = value != 0 ? 0.75 * value : -0.5;
    if (name == "scale") value *= 0.625;
    if (name == "eps") value = 0.25;  // beside a variance of 1, the usual 1e-5 could be absent unnoticed
  }
  return problem;
}

std::vector<Op::Thin> shortened(const Problem& problem, const char* dim, int64_t step) {
  std::vector<Op::Thin> out;
  const int64_t whole = problem.dims.at(dim);
  for (int64_t size = step + whole % step; size < whole && out.size() < 64; size += step) {
    out.push_back({problem, fmt::format("{}={}", dim, size)});
    out.back().problem.dims[dim] = size;
  }
  return out;
}

Recipe Op::recipe(const Problem&, const std::string& buffer) const { return {.key = stream_key(buffer)}; }

Result<std::vector<Variant>> Op::variants(const DataFiles& files, const Problem&) const {
  return load_variants(files, name());
}

const std::vector<const Op*>& ops() {
  static const std::vector<const Op*> all{&attention_op(), &gemm_op(),    &grouped_gemm_op(), &rmsnorm_op(),
                                          &layernorm_op(), &softmax_op(), &map_op()};
  return all;
}

namespace {

Result<const Op*> find_op(const std::string& name, const std::vector<std::string>& names) {
  for (const Op* op : ops())
    if (op->name() == name) return op;
  if (name.empty()) return usage(fmt::format("an op was expected: {}", fmt::join(names, ", ")));
  return usage(fmt::format("unknown op \"{}\"{}", name, did_you_mean(name, names)));
}

/// Kept to the end of the program, as the others are: results refer to their op. One for each text of a file.
Result<const Op*> kept_formula_op(const OpFile& file) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Op>> all;
  ROOFGEN_TRY(std::unique_ptr<const Op> op, formula_op(file));
  const std::lock_guard lock(mutex);
  return all.try_emplace(json_line(file.json->root()), std::move(op)).first->second.get();
}

}  // namespace

Result<const Op*> find_op(const std::string& name) {
  std::vector<std::string> names;
  for (const Op* op : ops()) names.push_back(op->name());
  return find_op(name, names);
}

Result<std::vector<std::string>> op_names(const DataFiles& files) {
  std::vector<std::string> out;
  for (const Op* op : ops()) out.push_back(op->name());
  ROOFGEN_TRY(const std::vector<OpFile> all, OpFile::load_all(files));
  for (const OpFile& file : all)
    if (std::ranges::count(out, file.op) == 0 && file.formulas) out.push_back(file.op);
  return out;
}

Result<const Op*> find_op(const DataFiles& files, const std::string& name) {
  ROOFGEN_TRY(const std::vector<std::string> names, op_names(files));
  const bool own = std::ranges::none_of(ops(), [&](const Op* op) { return op->name() == name; });
  if (!own || std::ranges::count(names, name) == 0) return find_op(name, names);
  ROOFGEN_TRY(const OpFile file, OpFile::load(files, name));
  return kept_formula_op(file);
}

}  // namespace roofgen
