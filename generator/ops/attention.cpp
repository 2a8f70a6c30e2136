#include "generator/ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "generator/ops/attention_cache_compare.h"
#include "generator/ops/attention_compare.h"
#include "generator/ops/attention_inputs.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/elements.h"
#include "generator/ops/float16.h"
#include "generator/ops/limits.h"

namespace roofgen {
namespace {

using attention::Shape;
using attention::Value;

constexpr int64_t kMaxLength = int64_t{1} << 24;  // indices times d fit int32; counts of keys are exact in fp32
constexpr int64_t kMaxGrid = 65535;               // heads and batch are grid dimensions y and z
constexpr int64_t kMaxPages = int64_t{1} << 26;
/// Rows of a group of heads up to which their number may be part of a kernel (search_spaces/stages, pack_gqa).
constexpr int64_t kFewRows = 512;
constexpr double kMinSoftcap = 1e-3, kMaxSoftcap = 1e6;
constexpr double kMinScale = 1e-6, kMaxScale = 16;  // structured inputs fit fp16

class Attention final : public Op {
 public:
  std::string name() const override { return "attention"; }

  Result<Problem> complete(Problem p) const override {
    ROOFGEN_CHECK(attention::check_packed(p));
    ROOFGEN_CHECK(complete_lengths(p));
    ROOFGEN_CHECK(attention::complete_cache(p));
    for (const char* required : {"L", "d"})
      if (!p.dims.count(required)) return usage(fmt::format("attention needs {}", required));
    const int64_t length = p.dims["L"], d = p.dims["d"];
    ROOFGEN_CHECK(in_range("L", length, 1, kMaxLength));
    ROOFGEN_CHECK(in_range("d", d, 32, 256));
    if (d % 16 != 0) return usage(fmt::format("d is {}; a multiple of 16 from 32 to 256 was expected", d));
    p.dims.emplace("kv_len", length);
    const int64_t kv_len = p.dims["kv_len"];
    ROOFGEN_CHECK(in_range("kv_len", kv_len, 1, kMaxLength));
    // The usual benchmark: 16 k tokens, a model dimension of 2048.
    p.dims.emplace("batch", std::max<int64_t>(1, 16384 / std::max(length, kv_len)));
    p.dims.emplace("heads", std::max<int64_t>(1, 2048 / d));
    const int64_t batch = p.dims["batch"], heads = p.dims["heads"];
    ROOFGEN_CHECK(in_range("batch", batch, 1, kMaxGrid));
    ROOFGEN_CHECK(in_range("heads", heads, 1, kMaxGrid));
    p.dims.emplace("kv_heads", heads);
    const int64_t kv_heads = p.dims["kv_heads"];
    ROOFGEN_CHECK(in_range("kv_heads", kv_heads, 1, heads));
    if (heads % kv_heads != 0)
      return usage(fmt::format("heads ({}) is not a multiple of kv_heads ({})", heads, kv_heads));
    const double bytes = 2.0 * static_cast<double>(batch) * static_cast<double>(heads) *
                         static_cast<double>(std::max(length, kv_len)) * static_cast<double>(d);
    if (bytes > kMaxTensorBytes)
      return usage(fmt::format("one tensor would hold {:.3g} bytes; at most 2^40 were expected", bytes));
    if (p.dims.count("page"))
      ROOFGEN_CHECK(in_range("the number of pages", batch * (kv_len / p.dims["page"]), 0, kMaxPages));
    if (p.dtype != DType::kBf16 && p.dtype != DType::kFp16 && p.dtype != DType::kFp8)
      return usage(fmt::format("attention has no dtype {}; bf16, fp16 or fp8 was expected", to_string(p.dtype)));
    p.flags.emplace("causal", false);
    p.flags.emplace("lse", false);
    p.reals.emplace("scale", 1.0 / std::sqrt(static_cast<double>(d)));
    const double scale = p.reals["scale"];
    if (!(scale >= kMinScale && scale <= kMaxScale))
      return usage(fmt::format("scale is {}; {} to {} was expected", scale, kMinScale, kMaxScale));
    if (const auto cap = p.reals.find("softcap");
        cap != p.reals.end() && !(cap->second >= kMinSoftcap && cap->second <= kMaxSoftcap))
      return usage(fmt::format("softcap is {}; {} to {} was expected", cap->second, kMinSoftcap, kMaxSoftcap));
    ROOFGEN_CHECK(attention::complete_prologue(p));
    ROOFGEN_CHECK(attention::Modifiers::parse(p));
    return p;
  }

  std::vector<Buffer> buffers(const Problem& problem) const override {
    const Shape s(problem);
    const auto bytes = [](const attention::Layout& l, DType dtype) {
      return static_cast<uint64_t>(l.elements * size_of(dtype));
    };
    const Buffer::Role cache = s.append() ? Buffer::Role::kUpdated : Buffer::Role::kInput;
    std::vector<Buffer> out{{"Q", s.q_dtype(), bytes(s.layout_of_q(), s.q_dtype()), Buffer::Role::kInput},
                            {"K", s.kv_dtype(), bytes(s.layout_of_k(), s.kv_dtype()), cache},
                            {"V", s.kv_dtype(), bytes(s.layout_of_v(), s.kv_dtype()), cache},
                            {"O", s.dtype, bytes(s.layout_of_o(), s.dtype), Buffer::Role::kOutput}};
    if (s.lse)
      out.push_back({"LSE", DType::kFp32, static_cast<uint64_t>(s.q_tokens() * s.heads) * 4, Buffer::Role::kOutput});
    if (s.modifiers)
      for (Buffer& b : s.modifiers->buffers()) out.push_back(std::move(b));
    if (s.cache)
      for (Buffer& b : s.cache->buffers()) out.push_back(std::move(b));
    if (s.append())
      for (const char* name : {"K_new", "V_new"})
        out.push_back({name, s.dtype, static_cast<uint64_t>(s.layout_of_new().elements) * 2, Buffer::Role::kInput});
    if (s.prologue)
      for (Buffer& b : s.prologue->buffers()) out.push_back(std::move(b));
    return out;
  }

  expr::Map scope(const Problem& problem) const override {
    expr::Map out;
    for (const auto& [name, value] : problem.dims) out[name] = value;
    for (const auto& [name, value] : problem.flags) out[name] = value;
    for (const auto& [name, value] : problem.reals) out[name] = value;
    out["dtype"] = to_string(problem.dtype);
    out["esize"] = size_of(problem.dtype);
    const Shape s(problem);
    for (const std::string prefix : {"q", "o", "k", "v"}) {
      const attention::Layout layout = prefix == "q"   ? s.layout_of_q()
                                       : prefix == "o" ? s.layout_of_o()
                                       : prefix == "k" ? s.layout_of_k()
                                                       : s.layout_of_v();
      const bool pages = s.paged() && (prefix == "k" || prefix == "v");
      out[prefix + "_batch_stride"] = pages ? 0 : layout.block;  // with lengths, kernels use the cumulative lengths
      if (prefix == "k" || prefix == "v") out[prefix + "_page_stride"] = pages ? layout.block : 0;
      out[prefix + "_row_stride"] = layout.row;
      out[prefix + "_head_stride"] = layout.head;
    }
    for (const std::string prefix : {"k_new", "v_new"}) {
      const attention::Layout layout = s.append() ? s.layout_of_new() : attention::Layout{};
      out[prefix + "_batch_stride"] = layout.block;
      out[prefix + "_row_stride"] = layout.row;
      out[prefix + "_head_stride"] = layout.head;
    }
    out["kv_esize"] = size_of(s.kv_dtype());
    const expr::Map plain{
        {"rotary", ""},          {"rotary_dim", 0}, {"rotary_table", false}, {"rotary_turns", expr::List{}},
        {"rotates_keys", false}, {"append", false}, {"kv_fp8", false},       {"kv_scale_per_head", false},
        {"prologue", false}};
    for (const auto& [name, value] : s.prologue ? s.prologue->scope() : plain) out[name] = value;
    out["few_rows"] = s.q_len <= 16;
    out["packs"] = s.packs();
    out["rows_to_fill"] = s.packs() ? s.q_len * s.group() : s.q_len;
    out["hnd"] = s.hnd;
    out["varlen"] = s.varlen();
    out["tokens"] = s.q_tokens();
    out["ragged"] = s.ragged();
    out["paged"] = s.paged();
    out["page"] = s.cache ? s.cache->page() : 0;
    out["pages_per_sequence"] = s.cache ? s.cache->pages_per_sequence() : 0;
    out["keys_stored"] = s.cache ? s.cache->distinct_keys() / s.batch : s.kv_len;
    out["keys_seen"] = static_cast<int64_t>(s.all_pairs() / static_cast<double>(s.batch * s.heads));
    double all = 0;
    for (int64_t b = 0; b < s.batch; ++b) all += static_cast<double>(s.rows(b)) * static_cast<double>(s.keys(b));
    out["keys_all"] = static_cast<int64_t>(all / static_cast<double>(s.batch));
    out["scored"] = s.has_score();
    out["sparse"] = s.causal || s.has_mask() || s.varlen() || s.ragged();
    out["modified"] = s.has_score() || s.has_mask();
    const expr::Map none{{"tensors", expr::List{}}, {"has_score", false}, {"has_mask", false}};
    out["formulas"] = expr::Map{{"modifiers", s.modifiers ? s.modifiers->scope() : none}};
    return out;
  }

  // One batch and one head of K and V, with two heads of Q if they are shared, so that head strides and groups matter.
  // Slices of the real launch cover the rest of the index maps.
  Problem reduced(const Problem& problem) const override {
    const Shape s(problem);
    Problem out = problem;
    out.dims["batch"] = 1;
    out.dims["kv_heads"] = 1;
    // Few rows: the heads of a group may be the rows of one tile, and all count.
    out.dims["heads"] = s.q_len * s.group() <= kFewRows ? s.group() : std::min<int64_t>(2, s.group());
    // Two sequences may share a page.
    if (s.cache) out.dims["batch"] = std::min<int64_t>(2, s.batch);
    if (s.ragged()) keep_extremes(out, "kv_lengths");
    if (may_be_empty(s, out)) {
      out.texts["kv_lengths"] += ",0";
      ++out.dims["batch"];
    }
    if (!s.modifiers) return out;
    // Two heads or sequences if a table or an expression depends on them.
    if (s.modifiers->depends_on("h") && s.group() == 1)
      out.dims["heads"] = out.dims["kv_heads"] = std::min<int64_t>(2, s.heads);
    if (s.modifiers->depends_on("b")) out.dims["batch"] = std::max(out.dims["batch"], std::min<int64_t>(2, s.batch));
    if (!s.varlen()) return out;
    keep_extremes(out, "lengths");
    out.dims["batch"] = std::min<int64_t>(2, s.batch);
    return out;
  }

  Extent extent(const Problem& problem) const override {
    const Shape s(problem);
    std::vector<int64_t> rows;
    // Rows of caches of other lengths differ in their work.
    if (s.varlen()) rows = s.modifiers->lengths();
    if (s.ragged()) rows.assign(static_cast<size_t>(s.batch), s.q_len);
    return {s.batch, s.heads, s.q_len, 0, rows};
  }

  std::vector<int64_t> sampled_heads(const Problem& problem) const override {
    const Shape s(problem);
    std::vector<int64_t> heads = attention::telling_heads(s.heads, s.kv_heads);
    // The first head of a group answers for the cache.
    const auto first = [&](int64_t h) { return h % s.group() == 0; };
    if (s.append() && std::none_of(heads.begin(), heads.end(), first))
      heads.insert(heads.begin(), s.kv_heads / 2 * s.group());
    return heads;
  }

  // A multiple of the row tiles 16, 32, 48, 64, 96, 128, 192, 256 and 384.
  int64_t least_rows(const Problem&, InputPattern pattern) const override {
    return pattern == InputPattern::kGrowing ? attention::kGrowingRows : pattern == InputPattern::kOneHot ? 64 : 1;
  }
  Slice slice(const Problem&) const override { return {768, 0, 768, true}; }

  /// A score expression of zero has no exact result.
  std::vector<InputPattern> patterns(const Problem& problem) const override {
    if (Shape(problem).has_score()) return {InputPattern::kOneHot, InputPattern::kGrowing};
    return {InputPattern::kZeroQuery, InputPattern::kOneHot, InputPattern::kGrowing};
  }

  std::vector<Thin> thinner(const Problem& problem) const override {
    const Shape s(problem);
    if (s.varlen() || s.ragged()) return {};
    std::vector<Thin> out = shortened(problem, "kv_len", 16);
    // Pages in the middle, and one that two sequences share.
    if (s.paged())
      std::erase_if(out, [&](const Thin& t) { return t.problem.dims.at("kv_len") <= 2 * s.cache->page(); });
    // Every query has a key of its own in a cache, and an element in a table over q.
    std::erase_if(out, [&](const Thin& t) { return !complete(t.problem); });
    return out;
  }
  InputPattern pattern_of_grid(const Problem& problem) const override {
    if (problem.dims.count(attention::kFed)) return InputPattern::kOneKey;
    return Shape(problem).has_score() ? InputPattern::kNormal : InputPattern::kOneHot;
  }
  /// The rows that a prologue writes are no inputs: its kernels run together.
  std::optional<Problem> fed(const Problem& problem) const override {
    if (Shape(problem).prologue) return std::nullopt;
    Problem out = problem;
    out.dims[attention::kFed] = 1;
    return out;
  }

  /// Two heads of K and V and two batches in another layout, so that every stride counts.
  Problem with_pattern(Problem reduced, InputPattern pattern) const override {
    reduced.dims[attention::kSpread] = 1;
    if (reduced.dims.at("kv_heads") == 1) {
      reduced.dims["kv_heads"] = 2;
      reduced.dims["heads"] *= 2;
    }
    const Shape s(reduced);
    if (s.ragged()) keep_extremes(reduced, "kv_lengths");
    if (!s.varlen()) reduced.dims["batch"] = 2;
    if (!s.varlen() && !s.ragged()) return reduced;
    std::string& lengths = reduced.texts[s.ragged() ? "kv_lengths" : "lengths"];
    if (const size_t comma = lengths.find(','); comma == std::string::npos) {
      if (s.ragged()) lengths += "," + lengths;
    } else if (pattern == patterns(reduced).front()) {
      // Once with the shorter sequence after the longer one: the gap follows the last.
      lengths = lengths.substr(comma + 1) + "," + lengths.substr(0, comma);
    }
    return reduced;
  }

  std::function<void(uint64_t, std::span<std::byte>)> filler(const Problem& problem, InputPattern pattern,
                                                             const std::string& buffer) const override {
    const Shape s(problem);
    return [=, inputs = attention::Inputs(s, pattern)](uint64_t offset, std::span<std::byte> out) {
      fill(s, inputs, pattern, buffer, offset, out);
    };
  }

  Recipe recipe(const Problem& problem, const std::string& buffer) const override {
    for (const TensorArg& arg : problem.args)
      if (arg.name == buffer) {
        Recipe out = Op::recipe(problem, buffer);
        out.small = is_integer(arg.dtype);
        return out;
      }
    if (buffer == "rotary_table")
      return {.kind = Recipe::Kind::kAngles, .key = static_cast<uint64_t>(problem.dims.at("rotary_dim"))};
    const bool appended = buffer.ends_with("_new");
    if (buffer.size() > 1 && !appended) return {.kind = Recipe::Kind::kValues};  // lengths, tables, scales
    return attention::Inputs(Shape(problem), InputPattern::kNormal).recipe(tensor_of(buffer), appended);
  }

  Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                             const std::string& stage, const Region& band, const ElementReader& read) const override {
    using attention::Rounding;
    const Shape shape(problem);
    Comparison before;
    if (shape.prologue) {
      ROOFGEN_CHECK(compare_before(shape, pattern, variant, stage, band, read, before));
      if (stage == "prologue") return before;
    }
    attention::Written written{Value::kOutput, "O", variant == "unfused" ? Rounding::kUnfused : Rounding::kFused,
                               variant != "unfused"};
    if (stage == "partial") {
      written.splits = std::stoll(variant.substr(variant.find_first_of("0123456789")));
      written.lse = false;
    }
    if (stage == "scores") written = {Value::kMasked, "S", Rounding::kUnfused};
    if (stage == "softmax") written = {Value::kProbabilities, "P", Rounding::kUnfused, true};
    if (problem.dims.count(attention::kFed))
      written.path = stage == "softmax" ? Value::kMasked : stage == "pv" ? Value::kProbabilities : Value::kInputs;
    ROOFGEN_TRY(Comparison out, attention::compare(shape, pattern, written, band, read));
    out.worst = std::max(out.worst, before.worst);
    if (!before.failure.empty()) out.failure = std::move(before.failure);
    return out;
  }

  double weight(const Problem& problem, const Region& band) const override {
    return Shape(problem).pairs(band.batch, band.head, band.row_begin, band.row_end);
  }

  std::optional<RequiredWork> required(const Problem& problem) const override {
    const Shape s(problem);
    const double pairs = s.all_pairs();
    RequiredWork out{4 * pairs * static_cast<double>(s.d), pairs, 0};
    for (const Buffer& b : buffers(problem)) out.dram_bytes += distinct_bytes(problem, b);
    return out;
  }

  /// Of a cache: visible keys, shared ones once. Of S and P: the keys of each sequence.
  double distinct_bytes(const Problem& problem, const Buffer& buffer) const override {
    const Shape s(problem);
    const auto number = [](int64_t x) { return static_cast<double>(x); };
    if (s.cache && (buffer.name == "K" || buffer.name == "V"))
      return number(s.cache->distinct_keys() * s.kv_heads * s.d * size_of(s.kv_dtype()));
    if (s.cache && buffer.name == "block_table") return number(s.cache->table_entries() * size_of(buffer.dtype));
    if (!s.ragged() || buffer.role != Buffer::Role::kTemporary || buffer.name == "Q_plain")
      return static_cast<double>(buffer.bytes);
    int64_t keys = 0;
    for (int64_t b = 0; b < s.batch; ++b) keys += s.keys(b);
    return static_cast<double>(buffer.bytes) * number(keys) / number(s.batch * s.kv_len);
  }
  bool by_rows(const std::string& buffer) const override {
    return buffer == "Q_plain" || buffer == "K_plain" || buffer == "V_plain";
  }

 private:
  /// What a stage writes before the scores: the temporaries of a prologue, and the cache where keys are appended. The
  /// kernel that reads Q appends them if no prologue does.
  static Result<void> compare_before(const Shape& shape, InputPattern pattern, const std::string& variant,
                                     const std::string& stage, const Region& region, const ElementReader& read,
                                     Comparison& out) {
    Region band = region;
    band.row_end = std::min(band.row_end, shape.rows(band.batch));
    if (band.row_begin >= band.row_end) return {};  // beyond the end of a short sequence
    const bool has_stage = variant.starts_with("prologue") || variant == "unfused";
    if (stage == "prologue") {
      out.rows = static_cast<uint64_t>(band.row_end - band.row_begin);
      ROOFGEN_CHECK(attention::compare_plain(shape, pattern, band, read, out));
    }
    if (has_stage ? stage == "prologue" : stage != "combine")
      return attention::compare_cache(shape, pattern, band, read, out);
    return {};
  }

  /// Of "Q", "K_new", "v_scale".
  static attention::Tensor tensor_of(const std::string& buffer) {
    const int letter = std::toupper(static_cast<unsigned char>(buffer[0]));
    return letter == 'Q' ? attention::Tensor::kQ : letter == 'K' ? attention::Tensor::kK : attention::Tensor::kV;
  }

  static void fill_scale(const attention::Inputs& inputs, attention::Tensor tensor, uint64_t offset,
                         std::span<std::byte> out) {
    for (size_t i = 0; i < out.size(); ++i) {
      const uint64_t byte = offset + i;
      const auto bits =
          std::bit_cast<uint32_t>(static_cast<float>(inputs.fp8_scale(tensor, static_cast<int64_t>(byte / 4))));
      out[i] = static_cast<std::byte>(bits >> (8 * (byte % 4)) & 255);
    }
  }

  static void fill(const Shape& s, const attention::Inputs& inputs, InputPattern pattern, const std::string& buffer,
                   uint64_t offset, std::span<std::byte> out) {
    if (s.modifiers && s.modifiers->fill(pattern, buffer, offset, out)) return;
    if (s.cache && s.cache->fill(buffer, offset, out)) return;
    if (buffer == "S" || buffer == "P")
      return inputs.fill_given(buffer == "S" ? Value::kMasked : Value::kProbabilities, offset, out);
    if (s.prologue && s.prologue->fill(buffer, offset, out)) return;
    const attention::Tensor tensor = tensor_of(buffer);
    if (buffer.ends_with("_scale")) return fill_scale(inputs, tensor, offset, out);
    const bool is_q = buffer == "Q", is_cache = buffer == "K" || buffer == "V", is_new = !is_q && !is_cache;
    const attention::Layout layout = is_q            ? s.layout_of_q()
                                     : is_new        ? s.layout_of_new()
                                     : buffer == "K" ? s.layout_of_k()
                                                     : s.layout_of_v();
    const size_t size = static_cast<size_t>(size_of(is_q ? s.q_dtype() : is_cache ? s.kv_dtype() : s.dtype));
    const bool fp8 = size == 1;
    const int64_t line = s.spread ? layout.row : s.d;  // elements from one row of d elements to the next
    const uint16_t nan = encode16(std::numeric_limits<double>::quiet_NaN(), s.dtype);
    uint16_t row[256];
    uint8_t narrow[256];
    while (!out.empty()) {
      const int64_t element = static_cast<int64_t>(offset / size);
      int64_t sequence = layout.block > 0 ? element / layout.block : 0, left = element - sequence * layout.block;
      const int64_t head = layout.head_major ? left / layout.head : left / s.d % layout.heads;
      left -= layout.head_major ? head * layout.head : 0;
      int64_t place = left / layout.row;
      const int64_t col = left % line;
      bool gap = head >= layout.heads || place >= layout.rows || col >= s.d;
      if (s.varlen() && !gap) {
        const std::vector<int64_t>& first = s.modifiers->first_tokens();
        sequence = std::upper_bound(first.begin(), first.end(), place) - first.begin() - 1;
        place -= first[static_cast<size_t>(sequence)];
      }
      if (s.cache && is_cache && !gap) {
        if (s.paged()) {
          const auto [owner, page] = s.cache->contents(sequence);
          sequence = owner;
          place += page * s.cache->page();
        }
        gap = sequence < 0 || place >= s.keys(sequence);  // an unused page, or past the end of the cache
      }
      if (s.append() && is_cache && !gap) gap = place >= s.first_new(sequence);  // not written yet
      if (is_new && !gap) place += s.first_new(sequence);
      if (gap)
        std::fill_n(row, attention::kGapBytes / size, fp8 ? uint16_t{0x7f} : nan);
      else
        inputs.row(tensor, sequence, head, place, row);
      const size_t bytes_here = gap ? attention::kGapBytes : static_cast<size_t>(s.d) * size;
      if (fp8) std::copy_n(row, bytes_here, narrow);
      // The rest of the row of d elements, or of a part of a gap.
      const size_t skip = gap ? offset % attention::kGapBytes : static_cast<size_t>(col) * size + offset % size,
                   count = std::min(out.size(), bytes_here - skip);
      const void* bytes = fp8 ? static_cast<const void*>(narrow) : row;
      std::memcpy(out.data(), static_cast<const std::byte*>(bytes) + skip, count);
      out = out.subspan(count);
      offset += count;
    }
  }

  /// Keeps the shortest sequence, so that the next one starts at an odd offset, and the longest; none without keys.
  static void keep_extremes(Problem& p, const std::string& name) {
    std::vector<int64_t> lengths = *attention::parse_lengths(name, p.texts.at(name));
    std::erase(lengths, 0);
    const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
    p.texts[name] = lengths.size() == 1 ? fmt::format("{}", *longest) : fmt::format("{},{}", *shortest, *longest);
  }

  /// Whether a sequence without keys may be added: new keys have a place in every cache, and a query before the first
  /// key has no element in a table.
  static bool may_be_empty(const Shape& s, const Problem& p) {
    if (!s.ragged() || s.append() || (s.prologue && s.prologue->has_table())) return false;
    return std::ranges::none_of(p.args, [](const TensorArg& a) { return std::ranges::count(a.indices, "q") > 0; });
  }

  /// Sets L, kv_len and batch from the lengths.
  static Result<void> complete_lengths(Problem& p) {
    const auto text = p.texts.find("lengths");
    if (text == p.texts.end() || text->second.empty()) return {};
    ROOFGEN_TRY(const std::vector<int64_t> lengths, attention::parse_lengths("lengths", text->second));
    const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    const std::pair<const char*, int64_t> implied[] = {
        {"L", longest}, {"kv_len", longest}, {"batch", static_cast<int64_t>(lengths.size())}};
    for (const auto& [name, value] : implied)
      if (const int64_t given = p.dims.emplace(name, value).first->second; given != value)
        return usage(fmt::format("{} is {}, but --lengths gives {}; leave it out", name, given, value));
    p.flags["varlen"] = true;
    return {};
  }
};

}  // namespace

const Op& attention_op() {
  static const Attention op;
  return op;
}

}  // namespace roofgen
