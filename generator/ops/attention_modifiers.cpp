#include "generator/ops/attention_modifiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/diagnostics.h"
#include "base/memo.h"
#include "generator/ops/attention_cache.h"
#include "generator/ops/attention_prologue.h"
#include "generator/ops/counter_random.h"
#include "generator/ops/declared.h"
#include "generator/ops/elements.h"
#include "generator/ops/formula_reference.h"
#include "generator/ops/limits.h"
#include "generator/ops/problem_part.h"

namespace roofgen::attention {
namespace {

using pointwise::Estimate;
using pointwise::Formula;
using pointwise::Range;
using pointwise::Truth;

const std::vector<std::string> kIndices = {"b", "h", "q", "k"};
constexpr int64_t kMaxLength = int64_t{1} << 24;
constexpr int64_t kMaxSequences = 65535;
/// Boxes to analyse; beyond this number pairs are counted on a sample of the rows.
constexpr int64_t kMaxBoxes = int64_t{1} << 21;

std::string text_of(const Problem& p, const std::string& name) {
  const auto at = p.texts.find(name);
  return at == p.texts.end() ? "" : at->second;
}

bool is_modified(const Problem& p) {
  return p.reals.count("softcap") || !text_of(p, "score").empty() || !text_of(p, "mask").empty() ||
         !text_of(p, "lengths").empty();
}

bool contains(const std::vector<std::string>& list, const std::string& x) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

/// The loop level at which a kernel loads a tensor: "once" per CTA, per "row", "column" or "pair". (The cumulative
/// lengths, which the kernel itself loads, have the level "sequence".)
const char* level_of(const TensorArg& t) {
  const bool q = contains(t.indices, "q"), k = contains(t.indices, "k");
  return q && k ? "pair" : k ? "column" : q ? "row" : "once";
}

/// The offset of its element, row-major over its indices; `heads` and `positions` are names in the kernels.
std::string offset_of(const TensorArg& t) {
  std::string out;
  for (const std::string& index : t.indices) {
    if (out.empty())
      out = t.indices.size() == 1 ? index : fmt::format("static_cast<long long>({})", index);
    else
      out = fmt::format("({}) * {} + {}", out, index == "h" ? "heads" : index == "b" ? "batches" : "positions", index);
  }
  return out.empty() ? "0" : out;
}

}  // namespace

Result<std::vector<int64_t>> parse_lengths(const std::string& name, const std::string& text) {
  const bool packed = name == "lengths";
  const std::string flag = packed ? "--lengths" : "--kv-lengths";
  ROOFGEN_TRY(std::vector<int64_t> out, parse_numbers(flag, text, "length", packed ? 1 : 0, kMaxLength));
  if (static_cast<int64_t>(out.size()) > kMaxSequences)
    return usage(fmt::format("{} has {} sequences; at most {} were expected", flag, out.size(), kMaxSequences));
  return out;
}

Result<std::shared_ptr<const Modifiers>> Modifiers::parse(const Problem& problem) {
  auto out = std::make_shared<Modifiers>();
  const auto& d = problem.dims;
  out->extent_ = {d.at("batch"), d.at("heads"), d.at("kv_len"), d.at("kv_len")};
  out->causal_ = problem.flags.at("causal");
  ROOFGEN_CHECK(out->read_lengths(problem));
  ROOFGEN_CHECK(out->read_expressions(problem));
  out->find_hiding_table(shortest_cache(problem));
  return std::shared_ptr<const Modifiers>(std::move(out));
}

std::shared_ptr<const Modifiers> Modifiers::of(const Problem& problem) {
  if (!is_modified(problem)) return nullptr;
  static Memo<std::string, Modifiers> memo(64);
  const Problem part = part_of(
      problem, {"L", "batch", "heads", "kv_len", "causal", "softcap", "score", "mask", "lengths", "kv_lengths"});
  return memo.get(to_string(part), [&] {
    const auto made = parse(part);
    return made ? *made : nullptr;  // complete() refuses such a problem
  });
}

Result<void> Modifiers::read_lengths(const Problem& problem) {
  const std::string text = text_of(problem, "lengths");
  if (text.empty()) return {};
  ROOFGEN_TRY(lengths_, parse_lengths("lengths", text));
  first_tokens_.assign(1, 0);
  for (int64_t length : lengths_) first_tokens_.push_back(first_tokens_.back() + length);
  if (first_tokens_.back() > std::numeric_limits<int32_t>::max())
    return usage(fmt::format("the lengths add up to {} tokens; at most 2^31-1 were expected", first_tokens_.back()));
  return {};
}

Result<void> Modifiers::read_expressions(const Problem& problem) {
  const std::string score = text_of(problem, "score");
  mask_text_ = text_of(problem, "mask");
  const auto softcap = problem.reals.find("softcap");
  const int64_t lead = shortest_cache(problem) - problem.dims.at("L");
  for (const TensorArg& arg : problem.args) {
    double bytes = size_of(arg.dtype);
    for (const std::string& index : arg.indices) {
      if (!contains(kIndices, index))
        return usage(
            fmt::format("--arg {}: attention has no index {}; b, h, q or k was expected", to_string(arg), index));
      bytes *= static_cast<double>(index == "b" ? extent_.batch : index == "h" ? extent_.heads : extent_.cols);
    }
    if (bytes > kMaxTensorBytes)
      return usage(fmt::format("--arg {}: {:.3g} bytes; at most 2^40 were expected", to_string(arg), bytes));
    if (contains(arg.indices, "q") && lead < 0)
      return usage(fmt::format(
          "--arg {}: with fewer keys than queries q begins at {} (docs/kernels/attention-modifiers.md); a table "
          "over q has no such element",
          to_string(arg), lead));
    for (const char* taken : {"Q", "K", "V", "O", "S", "P", "LSE", "partial_O", "partial_LSE", "arrivals", "cu_seqlens",
                              "kv_lengths", "block_table"})
      if (arg.name == taken)
        return usage(fmt::format("--arg {}: {} is a tensor of attention itself", to_string(arg), taken));
    if (has_prologue(problem))
      for (const char* taken :
           {"K_new", "V_new", "q_scale", "k_scale", "v_scale", "rotary_table", "Q_plain", "K_plain", "V_plain"})
        if (arg.name == taken)
          return usage(fmt::format("--arg {}: {} is a tensor of attention itself", to_string(arg), taken));
  }

  pointwise::Vocabulary words;
  words.source = softcap == problem.reals.end() ? "s" : "raw_score";
  words.indices = kIndices;
  words.tensors = problem.args;
  words.no_reductions = "no kernel of attention holds a row of scores";
  std::vector<pointwise::Definition> definitions;
  std::vector<pointwise::Output> outputs;
  if (softcap != problem.reals.end()) {
    const double cap = softcap->second;
    definitions.push_back({"s", fmt::format("{:#.9g} * tanh(raw_score / {:#.9g})", cap, cap), "--softcap"});
  }
  has_score_ = softcap != problem.reals.end() || !score.empty();
  if (has_score_) {
    definitions.push_back({"score", score.empty() ? "s" : score, "--score"});
    outputs.push_back({"score", "score", DType::kFp32, false});
    ROOFGEN_TRY(score_, Formula::parse(definitions, outputs, words));
    score_text_ = pointwise::Condition::parse(score, "--score");
    ROOFGEN_CHECK(check_int32(score_text_, lead));
  }
  if (!mask_text_.empty()) {
    const pointwise::Definition mask{"mask", mask_text_, "--mask"};
    const pointwise::Output output{"mask", "mask", DType::kFp32, false};
    condition_ = pointwise::Condition::parse(mask_text_, "--mask");
    ROOFGEN_CHECK(condition_.refuse_name(words.source,
                                         "a mask may not depend on the score: it decides which tiles are computed"));
    ROOFGEN_TRY(mask_, Formula::parse({mask}, {output}, words));
    ROOFGEN_CHECK(check_int32(condition_, lead));
    definitions.push_back(mask);
    outputs.push_back(output);
  }
  if (outputs.empty()) {
    if (!problem.args.empty())
      return usage(fmt::format("--arg {}: needs --score or --mask, because no other expression reads tensors",
                               to_string(problem.args[0])));
    return {};
  }
  ROOFGEN_TRY(formula_, Formula::parse(std::move(definitions), std::move(outputs), words));
  for (const TensorArg& arg : problem.args)
    if (!tensor(arg.name))
      return usage(fmt::format("--arg {}: neither --score nor --mask reads {}", to_string(arg), arg.name));
  return {};
}

Result<void> Modifiers::check_int32(const pointwise::Condition& condition, int64_t lead) const {
  const double keys = static_cast<double>(extent_.cols - 1);
  const std::map<std::string, Range> ranges{{"b", {0, static_cast<double>(extent_.batch - 1)}},
                                            {"h", {0, static_cast<double>(extent_.heads - 1)}},
                                            {"q", {static_cast<double>(std::min<int64_t>(lead, 0)), keys}},
                                            {"k", {0, keys}}};
  return condition.check_int32([&](const std::string& name) {
    const auto at = ranges.find(name);
    return at == ranges.end() ? std::nullopt : std::optional(at->second);
  });
}

const TensorArg* Modifiers::tensor(const std::string& name) const {
  if (!formula_) return nullptr;
  for (const TensorArg& t : formula_->tensors())
    if (t.name == name) return &t;
  return nullptr;
}

std::vector<Buffer> Modifiers::buffers() const {
  std::vector<Buffer> out;
  if (!lengths_.empty()) out.push_back({"cu_seqlens", DType::kInt32, first_tokens_.size() * 4, Buffer::Role::kInput});
  if (!formula_) return out;
  for (const TensorArg& t : formula_->tensors()) {
    uint64_t elements = 1;
    for (const std::string& index : t.indices)
      elements *= static_cast<uint64_t>(index == "b" ? extent_.batch : index == "h" ? extent_.heads : extent_.cols);
    out.push_back({t.name, t.dtype, elements * static_cast<uint64_t>(size_of(t.dtype)), Buffer::Role::kInput});
  }
  return out;
}

expr::Map Modifiers::scope(bool score, bool mask) const {
  score = score && has_score_;
  mask = mask && has_mask();
  const std::optional<Formula> none;
  const std::optional<Formula>& formula = score == has_score_ && mask == has_mask() ? formula_
                                          : score                                   ? score_
                                          : mask                                    ? mask_
                                                                                    : none;
  expr::Map out;
  expr::List tensors;
  if (formula) {
    out = formula->scope();
    const expr::List plain = *out.at("tensors").list();
    const auto reads = [&](const char* output, const std::string& name) {
      for (const expr::Value& o : *out.at("outputs").list())
        if (o.map()->at("buffer").str() == output)
          for (const expr::Value& read : *o.map()->at("reads").list())
            if (read.str() == name) return true;
      return false;
    };
    for (size_t i = 0; i < plain.size(); ++i) {
      expr::Map one = *plain[i].map();
      const TensorArg& t = formula->tensors()[i];
      one["level"] = level_of(t);
      one["offset"] = offset_of(t);
      one["used"] = true;
      one["in_score"] = reads("score", t.name);
      one["in_mask"] = reads("mask", t.name);
      tensors.push_back(std::move(one));
    }
  }
  if (!lengths_.empty())
    tensors.push_back(
        expr::Map{{"name", "cu_seqlens"}, {"dtype", "int32"}, {"param", "cu_seqlens"}, {"level", "sequence"}});
  out["tensors"] = std::move(tensors);
  const auto any = [&](const char* index) {
    return formula && std::any_of(formula->tensors().begin(), formula->tensors().end(),
                                  [&](const TensorArg& t) { return contains(t.indices, index); });
  };
  out["by_row"] = any("q");
  out["by_column"] = any("k");
  out["by_head"] = depends_on("h");
  out["has_score"] = score;
  out["has_mask"] = mask;
  if (mask) {
    const std::string text = causal_ ? fmt::format("({}) and k <= q", mask_text_) : mask_text_;
    out["bounds"] =
        pointwise::Condition::parse(text, "--mask").cuda([&](const std::string& name) -> std::optional<std::string> {
          if (name == "q" || name == "k") return name;
          if (name == "b" || name == "h") return fmt::format("at({})", name);
          const TensorArg* t = tensor(name);
          if (t && std::string(level_of(*t)) == "once")
            return fmt::format("{}(e.v_{})", is_integer(t->dtype) ? "at_whole" : "at", name);
          return std::nullopt;
        });
  }
  return out;
}

std::optional<double> Modifiers::special(InputPattern pattern, const TensorArg& t, int64_t position,
                                         int64_t key) const {
  if (pattern != InputPattern::kGrowing || is_integer(t.dtype)) return std::nullopt;
  const bool by_query = contains(t.indices, "q"), by_key = contains(t.indices, "k");
  if (by_query && position % 64 == 23 &&
      (!by_key ||
       key == static_cast<int64_t>(mix(static_cast<uint64_t>(position)) % static_cast<uint64_t>(position + 1))))
    return std::numeric_limits<double>::quiet_NaN();
  if (by_key && t.name == hiding_ && hides(key)) return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

/// The first tiles of a kernel, tiles in the middle, and single keys.
bool Modifiers::hides(int64_t key) const {
  return key < first_hidden_ || (key >= 384 && key < 512) || (key % 64 == 11 && key > first_hidden_);
}

/// Finds a table that hides a key wherever it has -inf, whatever the score and the other tables are, like `s + t[k]`.
/// No mask and no short sequence may leave a row with hidden keys only: the result of such a row is undefined.
void Modifiers::find_hiding_table(int64_t shortest) {
  constexpr int64_t kMostFirst = 128, kLeast = 600;
  if (!score_ || causal_ || !mask_text_.empty() || !lengths_.empty()) return;
  if (shortest < kMostFirst / 2 || (shortest >= 384 && shortest < kLeast)) return;
  for (const TensorArg& table : score_->tensors()) {
    if (is_integer(table.dtype) || table.dtype == DType::kFp8 || !contains(table.indices, "k")) continue;
    bool hides = true;
    for (const double others : {-1.0, 0.0, 1.0}) {
      const std::vector<Estimate> scores{{-300, 0}, {-1, 0}, {0, 0}, {1, 0}, {300, 0}};
      const int64_t row[] = {0, 0, 1};
      const auto values = score_->evaluate(
          scores, row, 0, [&](const TensorArg& t, std::span<const int64_t>, int64_t, std::span<double> out) {
            std::fill(out.begin(), out.end(), t.name == table.name ? -std::numeric_limits<double>::infinity() : others);
          });
      for (const Estimate& e : values[0]) hides &= e.value == -std::numeric_limits<double>::infinity();
    }
    if (!hides) continue;
    hiding_ = table.name;
    first_hidden_ = std::min(kMostFirst, shortest / 2);
    return;
  }
}

pointwise::TensorReader Modifiers::reader(InputPattern pattern) const {
  // Tables of integers hold small integers, so that comparisons of them are true for some elements.
  const auto real =
      contents_reader(kIndices, extent_, pattern == InputPattern::kSpecial ? pattern : InputPattern::kNormal);
  const auto whole = contents_reader(kIndices, extent_, InputPattern::kIntegers);
  return [this, real, whole, pattern](const TensorArg& t, std::span<const int64_t> row, int64_t first,
                                      std::span<double> out) {
    (is_integer(t.dtype) ? whole : real)(t, row, first, out);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = special(pattern, t, row[2], first + static_cast<int64_t>(i)).value_or(out[i]);
  };
}

bool Modifiers::fill(InputPattern pattern, const std::string& buffer, uint64_t offset, std::span<std::byte> out) const {
  if (buffer == "cu_seqlens") {
    for (size_t i = 0; i < out.size(); ++i) {
      const uint64_t byte = offset + i;
      out[i] = static_cast<std::byte>(first_tokens_[byte / 4] >> (8 * (byte % 4)) & 255);
    }
    return true;
  }
  const TensorArg* t = tensor(buffer);
  if (!t) return false;
  const InputPattern own = is_integer(t->dtype)                ? InputPattern::kIntegers
                           : pattern == InputPattern::kSpecial ? pattern
                                                               : InputPattern::kNormal;
  const TensorContents contents{own, t->name, t->dtype};
  if (pattern != InputPattern::kGrowing || (!contains(t->indices, "q") && t->name != hiding_))
    return contents.fill(offset, out), true;
  const auto sizes = [&](const std::string& index) {
    return index == "b" ? extent_.batch : index == "h" ? extent_.heads : extent_.cols;
  };
  fill_values(
      t->dtype,
      [&](uint64_t first, std::span<double> numbers) {
        contents.values(first, numbers);
        for (size_t i = 0; i < numbers.size(); ++i) {
          int64_t element = static_cast<int64_t>(first + i), position = 0, key = 0;
          for (size_t at = t->indices.size(); at-- > 0; element /= sizes(t->indices[at])) {
            const int64_t value = element % sizes(t->indices[at]);
            if (t->indices[at] == "q") position = value;
            if (t->indices[at] == "k") key = value;
          }
          numbers[i] = special(pattern, *t, position, key).value_or(numbers[i]);
        }
      },
      offset, out);
  return true;
}

pointwise::RangeOf Modifiers::box(InputPattern pattern, int64_t batch, int64_t head, Range q, Range k) const {
  return [this, pattern, batch, head, q, k](const std::string& name) -> std::optional<Range> {
    const auto point = [](int64_t x) { return Range{static_cast<double>(x), static_cast<double>(x)}; };
    if (name == "q") return q;
    if (name == "k") return k;
    if (name == "h") return point(head);
    if (name == "b") return point(batch);
    const TensorArg* t = tensor(name);
    if (!t || std::string(level_of(*t)) != "once") return std::nullopt;
    const int64_t row[] = {batch, head, 0};
    double value = 0;
    reader(pattern)(*t, row, 0, {&value, 1});
    return Range{value, value};
  };
}

void Modifiers::score(InputPattern pattern, int64_t batch, int64_t head, int64_t position, int64_t first,
                      std::span<double> s, std::span<double> sigma) const {
  std::vector<Estimate> source(s.size());
  for (size_t i = 0; i < s.size(); ++i) source[i] = {s[i], sigma[i]};
  const int64_t row[] = {batch, head, position};
  const auto values = score_->evaluate(source, row, first, reader(pattern));
  for (size_t i = 0; i < s.size(); ++i) {
    s[i] = values[0][i].value;
    sigma[i] = values[0][i].sigma;
  }
}

void Modifiers::mask(InputPattern pattern, int64_t batch, int64_t head, int64_t position, int64_t first,
                     std::span<char> visible) const {
  const auto range = [](int64_t begin, int64_t count) {
    return Range{static_cast<double>(begin), static_cast<double>(begin + count - 1)};
  };
  const Truth truth = condition_.judge(
      box(pattern, batch, head, range(position, 1), range(first, static_cast<int64_t>(visible.size()))));
  if (truth == Truth::kAlways) return;
  if (truth == Truth::kNever) return std::fill(visible.begin(), visible.end(), char{0});
  const std::vector<Estimate> source(visible.size());
  const int64_t row[] = {batch, head, position};
  const auto values = mask_->evaluate(source, row, first, reader(pattern));
  for (size_t i = 0; i < visible.size(); ++i)
    if (values[0][i].value == 0) visible[i] = 0;
}

bool Modifiers::may_see(InputPattern pattern, int64_t batch, int64_t head, int64_t begin, int64_t end, int64_t first,
                        int64_t count) const {
  if (!has_mask()) return true;
  const Range q{static_cast<double>(begin), static_cast<double>(end - 1)},
      k{static_cast<double>(first), static_cast<double>(first + count - 1)};
  return condition_.judge(box(pattern, batch, head, q, k)) != Truth::kNever;
}

namespace {

/// Counts pairs by halving boxes until each is decided. An undecided single pair counts as visible.
class PairCount {
 public:
  using Judge = std::function<Truth(Range q, Range k)>;
  explicit PairCount(Judge judge) : judge_(std::move(judge)) {}
  /// Positions [q0, q1) and keys [k0, k1).
  double box(int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
    if (q0 >= q1 || k0 >= k1) return 0;
    ++boxes_;
    const double area = static_cast<double>(q1 - q0) * static_cast<double>(k1 - k0);
    const Truth truth = judge_({static_cast<double>(q0), static_cast<double>(q1 - 1)},
                               {static_cast<double>(k0), static_cast<double>(k1 - 1)});
    if (truth != Truth::kUnknown) return truth == Truth::kAlways ? area : 0;
    if (area == 1 || boxes_ > kMaxBoxes) return area;
    if (q1 - q0 >= k1 - k0) {
      const int64_t middle = q0 + (q1 - q0) / 2;
      return box(q0, middle, k0, k1) + box(middle, q1, k0, k1);
    }
    const int64_t middle = k0 + (k1 - k0) / 2;
    return box(q0, q1, k0, middle) + box(q0, q1, middle, k1);
  }
  bool gave_up() const { return boxes_ > kMaxBoxes; }

 private:
  Judge judge_;
  int64_t boxes_ = 0;
};

}  // namespace

double Modifiers::pairs(int64_t batch, int64_t head, int64_t begin, int64_t end, int64_t keys, bool causal) const {
  if (!condition_.reads("b")) batch = 0;
  if (!condition_.reads("h")) head = 0;
  const std::tuple key{batch, head, begin, end, keys, causal};
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = counted_.find(key); at != counted_.end()) return at->second;
  }
  const auto judge = [&](Range q, Range k) {
    const Truth own = has_mask() ? condition_.judge(box(InputPattern::kNormal, batch, head, q, k)) : Truth::kAlways;
    if (!causal || own == Truth::kNever || k.high <= q.low) return own;
    return k.low > q.high ? Truth::kNever : Truth::kUnknown;
  };
  PairCount count(judge);
  double pairs = count.box(begin, end, 0, keys);
  if (count.gave_up()) {
    // A sample of the rows, each counted exactly.
    const int64_t rows = std::clamp<int64_t>(kMaxBoxes / (2 * keys), 1, end - begin);
    double sampled = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = begin + (2 * i + 1) * (end - begin) / (2 * rows);
      sampled += PairCount(judge).box(row, row + 1, 0, keys);
    }
    pairs = sampled * static_cast<double>(end - begin) / static_cast<double>(rows);
  }
  const std::lock_guard lock(mutex_);
  return counted_[key] = pairs;
}

bool Modifiers::depends_on(const std::string& index) const {
  if (!formula_) return false;
  for (const TensorArg& t : formula_->tensors())
    if (contains(t.indices, index)) return true;
  return condition_.reads(index) || score_text_.reads(index);
}

}  // namespace roofgen::attention
