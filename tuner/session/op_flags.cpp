#include "tuner/session/op_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/suggest.h"
#include "generator/pointwise/formula.h"
#include "tuner/dispatch/dispatch.h"

namespace roofgen {
namespace {

constexpr const char* kAttention = " attention ";
constexpr const char* kRows = " rmsnorm layernorm softmax map ";
constexpr const char* kRowsSizes = " rmsnorm layernorm softmax map chain ";
constexpr const char* kGemm = " gemm ";
constexpr const char* kGrouped = " grouped_gemm ";
constexpr const char* kProducts = " gemm grouped_gemm ";
constexpr const char* kGemmSizes = " gemm grouped_gemm chain ";

/// Sizes. The help of one with a default ends in it.
constexpr struct {
  const char *flag, *name, *ops, *help;
} kDims[] = {
    {"--L", "L", kAttention, "query length"},
    {"--d", "d", kAttention, "head dimension, 32 to 256 in steps of 16"},
    {"--batch", "batch", kAttention, "batch size [max(1, 16384 / longest length)]"},
    {"--heads", "heads", kAttention, "query heads [max(1, 2048 / d)]"},
    {"--kv-heads", "kv_heads", kAttention, "key and value heads [heads]"},
    {"--kv-len", "kv_len", kAttention, "key and value length [L, or the longest of --kv-lengths]"},
    {"--page", "page", kAttention, "K and V in pages of 16, 32, 64, 128 or 256 keys, found in a block table"},
    {"--rotary-dim", "rotary_dim", kAttention, "columns that --rotary rotates, a multiple of 16 [d]"},
    {"--M", "M", kGemmSizes, "rows of A and of the output; grouped_gemm: of all experts [the sum of --sizes]"},
    {"--N", "N", kGemmSizes, "columns of B and of the output"},
    {"--K", "K", kGemmSizes, "columns of A, rows of B: the reduction dimension"},
    {"--experts", "experts", kGrouped, "experts, each with its own B [as many as --sizes]"},
    {"--tokens", "tokens", kGrouped, "tokens that are routed: M is tokens x topk"},
    {"--topk", "topk", kGrouped, "experts of each token"},
    {"--rows", "rows", kRowsSizes, "rows"},
    {"--cols", "cols", kRowsSizes, "elements of a row: the reduction dimension"},
};

constexpr struct {
  const char *flag, *name, *ops, *help;
} kFlags[] = {
    {"--causal", "causal", kAttention, "mask keys after the query, aligned bottom-right"},
    {"--lse", "lse", kAttention, "also write the log-sum-exp of each row"},
    {"--rotary-table", "rotary_table", kAttention, "cosines and sines of --rotary come from a tensor"},
    {"--append", "append", kAttention, "the last L keys are new: write K_new and V_new to the cache first"},
    {"--gather", "gather", kGrouped, "A has a row for each token; an index has the token of each routed row"},
    {"--residual", "residual", kRows, "add residual[m,n] first; the norms also write the sum"},
    {"--bias", "bias", " layernorm ", "add bias[n] last"},
};

constexpr struct {
  const char *flag, *name, *ops, *help;
} kReals[] = {
    {"--scale", "scale", " attention gemm grouped_gemm rmsnorm layernorm softmax map chain ",
     "attention: of the scores [1/sqrt(d)]; gemm: `scale` of the epilogue [1]; rows: of a quantised tensor [1]"},
    {"--softcap", "softcap", kAttention, "scores become cap * tanh(score / cap)"},
    {"--rotary-base", "rotary_base", kAttention,
     "pair i of --rotary turns by position * base^(-2i/rotary_dim) [10000]"},
    {"--alpha", "alpha", " gemm grouped_gemm map ", "`alpha` of the epilogue [1]"},
    {"--beta", "beta", " gemm grouped_gemm map ", "`beta` of the epilogue [1]"},
    {"--eps", "eps", " rmsnorm layernorm ", "added to the mean square or the variance"},
};

constexpr struct {
  const char *flag, *name, *ops, *help;
} kTexts[] = {
    {"--score", "score", kAttention, "score modifier: an expression over s, q, k, h, b (docs/use/epilogues.md)"},
    {"--mask", "mask", kAttention, "visible keys: a condition over q, k, h, b"},
    {"--lengths", "lengths", kAttention, "lengths of the sequences of a packed batch: 512,1024,33"},
    {"--kv-lengths", "kv_lengths", kAttention, "lengths of the caches, one per sequence: 100,8192,33"},
    {"--kv-layout", "kv_layout", kAttention, "K and V as [token, head, d] or [head, token, d]: nhd or hnd [nhd]"},
    {"--rotary", "rotary", kAttention, "rotate Q and K by position; pairs of columns: half or interleaved"},
    {"--kv-scales", "kv_scales", kAttention, "scales of fp8: one per tensor or per K/V head [tensor]"},
    {"--epilogue", "epilogue", kProducts, "epilogue: an expression over acc, bias[n], residual[m,n], ... [acc]"},
    {"--gated", "gated", kProducts, "columns come in pairs, gate and value: silu, gelu, gelu_tanh, relu, sigmoid"},
    {"--scales", "scales", kGemm, "of fp8 operands: block (A: 1 row x 128 of k, B: 128 of k x 128 columns)"},
    {"--scatter", "scatter", kGrouped, "weighted: the output is each token's sum over its experts, by weight"},
    {"--sizes", "sizes", kGrouped, "rows of each expert, 0 or more: 700,0,1300 [uneven]"},
    {"--a-layout", "a_layout", kGemm, "row or col [row]: K or M contiguous"},
    {"--b-layout", "b_layout", kGemm, "row or col [col]: N or K contiguous"},
    {"--quant", "quant", kRows, "write fp8 or int8"},
    {"--quant-scale", "quant_scale", kRows,
     "scale of a quantised output: row (computed) or tensor (given by --scale) [row]"},
    {"--expr", "expr", " map ", "output of each element: an expression over x (docs/use/epilogues.md)"},
};

Result<std::vector<int64_t>> parse_sizes(const std::string& flag, const std::string& text) {
  std::vector<int64_t> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t size = 0;
    const auto [rest, bad] = std::from_chars(text.data() + begin, text.data() + end, size);
    if (begin == end || bad != std::errc() || rest != text.data() + end) {
      if (text.find(',') == std::string::npos)
        return Error{Exit::kUsage, fmt::format("Could not convert: {} = {}; a number was expected", flag, text)};
      return Error{Exit::kUsage,
                   fmt::format("{} {}: \"{}\" is not a size; numbers with commas were expected, as in 512,1024", flag,
                               text, text.substr(begin, end - begin))};
    }
    if (std::ranges::count(out, size) > 0)
      return Error{Exit::kUsage, fmt::format("{} {}: {} occurs twice", flag, text, size)};
    out.push_back(size);
    begin = end + 1;
  }
  return out;
}

}  // namespace

void OpFlags::own(Flag flag, const char* ops, const char* group) { given_.push_back({flag.group(group), ops}); }

void OpFlags::declare(FlagSet app) {
  const auto group = [](const std::string& ops) {
    return ops == kAttention                                                          ? "Attention"
           : ops == kGemm || ops == kGemmSizes || ops == kProducts || ops == kGrouped ? "GEMM"
           : ops == kRows || ops == kRowsSizes                                        ? "Norms, softmax, map"
                                                                                      : "Problem";
  };
  for (const auto& d : kDims)
    own(app.add_each<std::string>(
            d.flag, [this, name = d.name](const std::string& v) { sizes_[name] = v; }, d.help),
        d.ops, group(d.ops));
  for (const auto& f : kFlags)
    own(app.add_switch(
            f.flag, [this, name = f.name] { flags_[name] = true; }, f.help),
        f.ops, group(f.ops));
  for (const auto& r : kReals)
    own(app.add_each<double>(
            r.flag, [this, name = r.name](double v) { reals_[name] = v; }, r.help),
        r.ops, group(r.ops));
  for (const auto& t : kTexts)
    own(app.add_each<std::string>(
            t.flag, [this, name = t.name](const std::string& v) { texts_[name] = v; }, t.help),
        t.ops, group(t.ops));
  own(app.add_each<std::string>(
          "--out-dtype", [this](const std::string& v) { dtypes_["out"] = v; },
          "number format of the output [the inputs' format; fp32 for tf32, bf16 for fp8, int32 for int8]"),
      " gemm grouped_gemm rmsnorm layernorm softmax map ", "Problem");
  own(app.add_each<std::string>(
          "--kv-dtype", [this](const std::string& v) { dtypes_["kv"] = v; },
          "number format of K and V: fp8 (e4m3 with scales) [Q's format]"),
      kAttention, "Attention");
  // One --arg each; its commas are its own.
  own(app.add("--arg", args_, "a tensor that an expression reads: name:dtype[indices], like slope:fp32[h]").repeated(),
      " attention gemm grouped_gemm map chain ", "Problem");
}

std::vector<std::string> OpFlags::names() const {
  std::vector<std::string> out;
  for (const Given& g : given_) out.push_back(g.flag.name());
  return out;
}

Result<Problem> OpFlags::problem(const std::string& op, const std::string& dtype) const {
  ROOFGEN_TRY(std::vector<Problem> all, problems(op, dtype));
  if (all.size() == 1) return std::move(all.front());
  for (const auto& d : kDims)
    if (const auto size = sizes_.find(d.name); size != sizes_.end() && size->second.find(',') != std::string::npos)
      return Error{Exit::kUsage,
                   fmt::format("{} {}: one size was expected; only `roofgen tune OP` takes a list of sizes", d.flag,
                               size->second)};
  return Error{Exit::kUsage, "one problem was expected"};
}

Result<std::vector<Problem>> OpFlags::problems(const std::string& op, const std::string& dtype) const {
  ROOFGEN_TRY(Problem first, without_sizes(op, dtype));
  std::vector<Problem> out{std::move(first)};
  std::string lists;
  size_t shapes = 1;
  for (const auto& d : kDims) {
    const auto text = sizes_.find(d.name);
    if (text == sizes_.end()) continue;
    ROOFGEN_TRY(const std::vector<int64_t> sizes, parse_sizes(d.flag, text->second));
    if (sizes.size() > 1) lists += fmt::format("{}{} {}", lists.empty() ? "" : " ", d.flag, text->second);
    shapes *= sizes.size();
    if (shapes > kMostShapes)
      return Error{Exit::kUsage, fmt::format("{}: {} shapes; {} at most were expected", lists, shapes, kMostShapes)};
    std::vector<Problem> product;
    for (const Problem& p : out)
      for (const int64_t size : sizes) product.emplace_back(p).dims[d.name] = size;
    out = std::move(product);
  }
  return out;
}

Result<Problem> OpFlags::without_sizes(const std::string& op, const std::string& dtype) const {
  std::vector<std::string> has;
  for (const Given& g : given_)
    if (g.ops.find(" " + op + " ") != std::string::npos) has.push_back(g.flag.name());
  for (const Given& g : given_)
    if (g.flag.given() && g.ops.find(" " + op + " ") == std::string::npos)
      return Error{Exit::kUsage, fmt::format("{} has no {}; it has {}", op, g.flag.name(), fmt::join(has, ", "))};
  // A shell variable that is not set gives an empty text.
  for (const auto& t : kTexts)
    if (const auto text = texts_.find(t.name); text != texts_.end() && text->second.empty())
      return Error{Exit::kUsage, fmt::format("{} is empty; expected: {}", t.flag, t.help)};
  Problem p;
  p.op = op;
  const auto format = [](const std::string& flag, const std::string& name) -> Result<DType> {
    if (const std::optional<DType> d = parse_dtype(name)) return *d;
    return Error{Exit::kUsage,
                 fmt::format("unknown {} \"{}\"{}", flag, name,
                             did_you_mean(name, {"bf16", "fp16", "fp32", "tf32", "fp8", "int8", "int32"}))};
  };
  ROOFGEN_TRY(p.dtype, format("dtype", dtype));
  p.flags = flags_;
  p.reals = reals_;
  p.texts = texts_;
  for (const auto& [role, name] : dtypes_) {
    if (role == "kv" && !parse_dtype(name))
      return Error{Exit::kUsage, fmt::format("unknown --kv-dtype \"{}\"; fp8 was expected", name)};
    ROOFGEN_TRY(p.dtypes[role], format("--out-dtype", name));
  }
  for (const std::string& text : args_) {
    ROOFGEN_TRY(TensorArg arg, pointwise::parse_tensor_arg(text));
    for (const TensorArg& other : p.args)
      if (other.name == arg.name)
        return Error{Exit::kUsage, fmt::format("--arg {}: {} is declared twice", text, arg.name)};
    p.args.push_back(std::move(arg));
  }
  return p;
}

}  // namespace roofgen
