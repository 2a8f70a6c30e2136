#include "generator/ops/attention_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generator/ops/attention.h"
#include "generator/ops/attention_compare.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/float16.h"

namespace roofgen {
namespace {

using attention::Shape;
using attention::Value;

/// Names of buffers between kernels; a user's tensor cannot have them.
std::string buffer_of(Value value) {
  switch (value) {
    case Value::kProducts: return "S(qk)";
    case Value::kScores: return "S(scale)";
    case Value::kMasked: return "S(mask)";
    case Value::kProbabilities: return "P";
    default: return "O";
  }
}

const Value kBetween[] = {Value::kProducts, Value::kScores, Value::kMasked, Value::kProbabilities};

/// Largest finite number of fp16.
constexpr double kFp16Max = 65504;

/// The user's expressions that a stage applies.
const char* formula_name(bool score, bool mask) {
  return score && mask ? "modifiers" : score ? "score" : mask ? "mask" : "none";
}

std::string name_of(const std::vector<std::string>& steps, Part part) {
  std::string out;
  for (size_t i = part.first; i < part.last; ++i) out += (out.empty() ? "" : "+") + steps[i];
  return out;
}

/// (query, key) pairs of all heads, visible or not.
double all_keys(const Shape& s) {
  double pairs = 0;
  for (int64_t b = 0; b < s.batch; ++b) pairs += static_cast<double>(s.rows(b)) * static_cast<double>(s.keys(b));
  return pairs * static_cast<double>(s.heads);
}

/// Why no kernel can compute a part; empty: one can.
std::string illegal_because(const std::vector<std::string>& steps, Part part, int64_t keys) {
  if (part.first > 0 || part.last + 1 != steps.size()) return "";
  return fmt::format(
      "a row reduction across CTAs: softmax needs all {} scores of a row, which the CTAs of qk share by tiles; only a "
      "kernel that computes pv as well does not need whole rows",
      keys);
}

}  // namespace

std::vector<std::string> attention_steps(const Problem& problem) {
  const Shape s(problem);
  if (s.causal || s.has_mask()) return {"qk", "scale", "mask", "softmax", "pv"};
  return {"qk", "scale", "softmax", "pv"};
}

std::string attention_part_name(const Problem& problem, Part part) { return name_of(attention_steps(problem), part); }

std::vector<Partition> attention_partitions(const Problem& problem) {
  const std::vector<std::string> steps = attention_steps(problem);
  std::vector<Partition> out;
  for (uint32_t cuts = 0; cuts < 1u << (steps.size() - 1); ++cuts) {
    Partition p;
    size_t first = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      p.name += steps[i];
      if (i + 1 < steps.size()) p.name += cuts >> i & 1 ? " | " : "+";
      if (i + 1 < steps.size() && !(cuts >> i & 1)) continue;
      p.parts.push_back({first, i + 1});
      if (p.illegal.empty()) p.illegal = illegal_because(steps, p.parts.back(), problem.dims.at("kv_len"));
      first = i + 1;
    }
    out.push_back(std::move(p));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Partition& a, const Partition& b) { return a.parts.size() < b.parts.size(); });
  return out;
}

double attention_value_bytes(const Problem& problem, size_t, Part kernel) {
  const std::vector<std::string> steps = attention_steps(problem);
  const Shape s(problem);
  const bool masked = std::find(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(kernel.last), "mask") !=
                      steps.begin() + static_cast<std::ptrdiff_t>(kernel.last);
  return (masked ? s.all_pairs() : all_keys(s)) * size_of(s.dtype);
}

AttentionParts::AttentionParts(const Problem& whole, std::vector<Part> plan)
    : steps_(attention_steps(whole)),
      masks_at_(static_cast<size_t>(std::find(steps_.begin(), steps_.end(), "mask") - steps_.begin())),
      plan_(std::move(plan)) {}

bool AttentionParts::has(Part part, std::string_view step) const {
  return std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(part.first),
                     steps_.begin() + static_cast<std::ptrdiff_t>(part.last),
                     [&](const std::string& s) { return s == step; });
}

Value AttentionParts::value_before(size_t step) const {
  if (step == 0) return Value::kInputs;
  if (step == steps_.size()) return Value::kOutput;
  const std::string& last = steps_[step - 1];
  return last == "qk"      ? Value::kProducts
         : last == "scale" ? Value::kScores
         : last == "mask"  ? Value::kMasked
                           : Value::kProbabilities;
}

Problem AttentionParts::problem_of(const Problem& whole) const {
  Problem out = whole;
  if (!is_whole(covered())) out.texts["steps"] = name_of(steps_, covered());
  return out;
}

Result<Problem> AttentionParts::complete(Problem problem) const { return attention_op().complete(std::move(problem)); }

std::vector<Buffer> AttentionParts::buffers(const Problem& problem) const {
  const Part all = covered();
  const Shape s(problem);
  const Value before = value_before(all.first), after = value_before(all.last);
  const uint64_t bytes =
      static_cast<uint64_t>(s.batch * s.heads * s.q_len * s.kv_pitch()) * static_cast<uint64_t>(size_of(s.dtype));
  std::vector<Buffer> out;
  if (before != Value::kInputs) out.push_back({buffer_of(before), s.dtype, bytes, Buffer::Role::kInput});
  if (after != Value::kOutput) out.push_back({buffer_of(after), s.dtype, bytes, Buffer::Role::kOutput});
  for (Buffer& b : attention_op().buffers(problem)) {
    const bool used = b.name == "Q" || b.name == "K"   ? all.first == 0
                      : b.name == "V" || b.name == "O" ? after == Value::kOutput
                      : b.name == "LSE"                ? has(all, "softmax")
                                                       : true;
    if (used) out.push_back(std::move(b));
  }
  return out;
}

expr::Map AttentionParts::scope(const Problem& problem) const {
  expr::Map out = attention_op().scope(problem);
  const Shape s(problem);
  expr::Map formulas = *out.at("formulas").map();
  for (bool score : {false, true})
    for (bool mask : {false, true})
      formulas[formula_name(score, mask)] =
          s.modifiers ? expr::Value(s.modifiers->scope(score, mask)) : formulas.at("modifiers");
  out["formulas"] = std::move(formulas);
  return out;
}

Problem AttentionParts::reduced(const Problem& problem) const { return attention_op().reduced(problem); }
Problem AttentionParts::with_pattern(Problem reduced, InputPattern pattern) const {
  return attention_op().with_pattern(std::move(reduced), pattern);
}
Extent AttentionParts::extent(const Problem& problem) const { return attention_op().extent(problem); }
int64_t AttentionParts::least_rows(const Problem& problem, InputPattern pattern) const {
  return attention_op().least_rows(problem, pattern);
}
Op::Slice AttentionParts::slice(const Problem& problem) const { return attention_op().slice(problem); }

std::vector<int64_t> AttentionParts::sampled_heads(const Problem& problem) const {
  return attention_op().sampled_heads(problem);
}

/// Of the generated inputs of a part, products and scores have patterns, where its steps depend on their size. In
/// memory, one-hot products must be large enough to distinguish keys after scaling.
std::vector<InputPattern> AttentionParts::patterns(const Problem& problem) const {
  std::vector<InputPattern> out = attention_op().patterns(problem);
  if (covered().first > 0) {
    std::erase(out, InputPattern::kZeroQuery);
    if (!has(covered(), "softmax")) std::erase(out, InputPattern::kOneHot);
    if (!has(covered(), "softmax") && !has(covered(), "scale")) out.clear();
  }
  if (problem.dtype == DType::kFp16 && (plan_.front().last == 1 || covered().first == 1)) {
    const Shape shape(problem);
    const attention::Inputs inputs(shape, InputPattern::kOneHot);
    if (inputs.largest_product() > kFp16Max) std::erase(out, InputPattern::kOneHot);
    // Half the range is left for the other columns.
    if (attention::kLateHidden / shape.scale > kFp16Max / 2) std::erase(out, InputPattern::kGrowing);
  }
  return out;
}

Result<Stage> AttentionParts::stage(const DataFiles& files, Part part) const {
  const bool scales = has(part, "scale"), masks = has(part, "mask"), reduces = has(part, "softmax"),
             multiplies = has(part, "pv");
  if (is_whole(part)) {
    ROOFGEN_TRY(std::vector<Variant> variants, load_variants(files, name()));
    const auto fused =
        std::find_if(variants.begin(), variants.end(), [](const Variant& v) { return v.name == "fused"; });
    if (fused == variants.end()) return Error{Exit::kFailed, "attention has no variant \"fused\""};
    return fused->stages[0];
  }
  const char* file = part.first == 0         ? "stages/attention_scores.json"
                     : multiplies && reduces ? "stages/attention_softmax_pv.json"
                     : multiplies            ? "stages/attention_pv.json"
                     : reduces               ? "stages/attention_softmax.json"
                                             : "stages/attention_pointwise.json";
  ROOFGEN_TRY(Stage stage, load_stage(files, file));
  const std::string before = buffer_of(value_before(part.first)), after = buffer_of(value_before(part.last));
  stage.name = name_of(steps_, part);
  stage.output = after;
  stage.formula = formula_name(scales, sees_mask(part));
  if (part.first == 0)
    stage.buffers["S"] = after;
  else if (multiplies && !reduces)
    stage.buffers["P"] = before;
  else
    stage.buffers["S"] = before;
  if (part.first > 0 && !multiplies) stage.buffers[reduces ? "P" : "T"] = after;
  std::vector<std::pair<std::string, expr::Expr>> applies;
  for (const auto& [what, does] : {std::pair{"applies_scale", scales}, std::pair{"applies_mask", masks}}) {
    ROOFGEN_TRY(expr::Expr literal, expr::Expr::parse(does ? "true" : "false"));
    applies.emplace_back(what, std::move(literal));
  }
  stage.problem.insert(stage.problem.begin(), applies.begin(), applies.end());
  return stage;
}

Result<std::vector<Variant>> AttentionParts::variants(const DataFiles& files, const Problem&) const {
  Variant v;
  v.op = name();
  v.file = "search_spaces/stages";
  v.fused = plan_.size() == 1;
  v.description = v.fused ? "one kernel" : fmt::format("{} kernels", plan_.size());
  for (const Part& part : plan_) {
    v.name += (v.name.empty() ? "" : " | ") + name_of(steps_, part);
    ROOFGEN_TRY(Stage s, stage(files, part));
    v.stages.push_back(std::move(s));
    if (part == plan_.back()) continue;
    ROOFGEN_TRY(expr::Expr dtype, expr::Expr::parse("dtype"));
    ROOFGEN_TRY(expr::Expr bytes, expr::Expr::parse("batch * heads * L * align_up(kv_len, 8) * esize"));
    v.temporaries.push_back({buffer_of(value_before(part.last)), std::move(dtype), std::move(bytes)});
  }
  // The same kernel as in the variant, with the same results in the store.
  if (v.fused && is_whole(plan_[0])) v.name = "fused";
  return std::vector<Variant>{std::move(v)};
}

std::optional<RequiredWork> AttentionParts::required(const Problem& problem) const {
  const Part all = covered();
  const Shape s(problem);
  RequiredWork out;
  const double products = 2 * (sees_mask(all) ? s.all_pairs() : all_keys(s)) * static_cast<double>(s.d);
  if (all.first == 0) out.mma_flops += products;
  if (has(all, "pv")) out.mma_flops += products;
  if (has(all, "softmax")) out.exps = s.all_pairs();
  for (const Buffer& b : buffers(problem)) out.dram_bytes += distinct_bytes(problem, b);
  return out;
}

void AttentionParts::fill(const Problem& problem, InputPattern pattern, const std::string& buffer, uint64_t offset,
                          std::span<std::byte> out) const {
  const auto value =
      std::find_if(std::begin(kBetween), std::end(kBetween), [&](Value v) { return buffer_of(v) == buffer; });
  if (value == std::end(kBetween)) return attention_op().fill(problem, pattern, buffer, offset, out);
  attention::Inputs(Shape(problem), pattern).fill_given(*value, offset, out);
}

Result<Comparison> AttentionParts::compare(const Problem& problem, InputPattern pattern, const std::string&,
                                           const std::string& stage, const Region& region,
                                           const ElementReader& read) const {
  attention::Path path(value_before(covered().first));
  for (size_t i = 0; i + 1 < plan_.size(); ++i) {
    const Value written = value_before(plan_[i].last);
    path.rounding.products |= written == Value::kProducts;
    path.rounding.scores |= written == Value::kScores || written == Value::kMasked;
    path.rounding.probabilities |= written == Value::kProbabilities;
  }
  for (const Part& part : plan_) {
    if (name_of(steps_, part) != stage && !is_whole(part)) continue;
    const Value value = value_before(part.last);
    return attention::compare(Shape(problem), pattern, {value, buffer_of(value), path, has(part, "softmax")}, region,
                              read);
  }
  return Error{Exit::kFailed, fmt::format("no kernel does {}", stage)};
}

double AttentionParts::distinct_bytes(const Problem& problem, const Buffer& buffer) const {
  Buffer between = buffer;
  if (by_pairs(buffer.name)) between.role = Buffer::Role::kTemporary;
  return attention_op().distinct_bytes(problem, between);
}

bool AttentionParts::by_pairs(const std::string& buffer) const {
  return std::any_of(std::begin(kBetween), std::end(kBetween), [&](Value v) { return buffer_of(v) == buffer; });
}

double AttentionParts::weight(const Problem& problem, const Region& region) const {
  if (sees_mask(covered())) return attention_op().weight(problem, region);
  const Shape s(problem);
  const int64_t end = std::min(region.row_end, s.rows(region.batch));
  return static_cast<double>(std::max<int64_t>(0, end - region.row_begin)) * static_cast<double>(s.keys(region.batch));
}

}  // namespace roofgen
