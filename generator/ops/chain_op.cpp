#include "generator/ops/chain_op.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/ops/chain_reference.h"
#include "generator/ops/elements.h"
#include "generator/ops/gemm.h"

namespace roofgen {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 24;
constexpr const char* kRowsStage = "stages/rows.json";
/// The variant after which those of a chain are named like their plan.
constexpr const char* kOnlyKernel = "fused";

/// Rows and columns of a slice, and of a reduced problem without its tail: multiples of every tile of a gemm and of the
/// rows per CTA of a row kernel.
constexpr int64_t kGemmTile = 256, kRowsTile = 64;
/// Rows that the gemm of a slice computes for later kernels: a multiple of the heights of its tiles, 64 to 256.
constexpr int64_t kGemmRowsFed = 768;
/// The sum of a gemm in a plan of several kernels, without its tail: longer than any pipeline of loads. Each of the
/// kernels is verified with the whole sum when it is alone.
constexpr int64_t kShortSum = 512;

int64_t shortened(int64_t size, int64_t tile) { return size <= 2 * tile ? size : tile + size % tile; }

Result<expr::Expr> literal(const std::string& text) { return expr::Expr::parse(text); }

bool is_gemm(const Chain& chain, Part part) { return chain.steps()[part.first].kind == ChainStep::Kind::kGemm; }

/// Elements of a tensor with these indices.
uint64_t elements(const TensorArg& tensor, const Problem& problem) {
  uint64_t n = 1;
  for (const std::string& index : tensor.indices)
    n *= static_cast<uint64_t>(index == "m" ? chain_rows(problem) : chain_columns(problem));
  return n;
}

}  // namespace

int64_t chain_rows(const Problem& p) { return p.dims.count("rows") ? p.dims.at("rows") : p.dims.at("M"); }
int64_t chain_columns(const Problem& p) { return p.dims.count("cols") ? p.dims.at("cols") : p.dims.at("N"); }

Result<Problem> chain_gemm(const Problem& p) {
  Problem out{"gemm", {}, p.dtype, {}, {}};
  for (const char* name : {"M", "N", "K"}) out.dims[name] = p.dims.at(name);
  return gemm_op().complete(std::move(out));
}

Result<Problem> ChainOp::complete_chain(const Chain& chain, Problem problem) {
  const std::vector<std::string> wanted =
      chain.has_gemm() ? std::vector<std::string>{"M", "N", "K"} : std::vector<std::string>{"rows", "cols"};
  for (const std::string& name : wanted) {
    const auto dim = problem.dims.find(name);
    if (dim == problem.dims.end())
      return Error{Exit::kUsage, fmt::format("--{} is missing: a chain {} has {}", name,
                                             chain.has_gemm() ? "that begins with gemm" : "without a gemm",
                                             chain.has_gemm() ? "--M, --N and --K" : "--rows and --cols")};
    if (dim->second < 1 || dim->second > kMostRows)
      return Error{Exit::kUsage, fmt::format("{} is {}; 1 to {} was expected", name, dim->second, kMostRows)};
  }
  for (const auto& [name, value] : problem.dims)
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end())
      return Error{Exit::kUsage, fmt::format("--{} does not apply to a chain {}", name,
                                             chain.has_gemm() ? "that begins with gemm: --M, --N, --K"
                                                              : "without a gemm: --rows, --cols")};
  problem.op = "chain";
  problem.dtype = chain.dtype();
  if (chain.has_gemm()) ROOFGEN_CHECK(chain_gemm(problem));
  return problem;
}

Result<std::vector<Variant>> one_kernel_products(const DataFiles& files) {
  ROOFGEN_TRY(std::vector<Variant> out, load_variants(files, gemm_op().name()));
  std::erase_if(out, [](const Variant& v) { return v.stages.size() > 1; });
  return out;
}

Result<std::unique_ptr<ChainOp>> ChainOp::make(Chain chain, std::vector<Part> plan) {
  std::unique_ptr<ChainOp> op(new ChainOp);
  op->chain_ = std::move(chain);
  op->plan_ = std::move(plan);
  for (const Part& part : op->plan_) {
    ROOFGEN_TRY(pointwise::Formula formula, op->chain_.formula(part));
    op->formulas_.emplace_back(part, std::move(formula));
  }
  return op;
}

Problem ChainOp::problem_of(const Problem& whole) const {
  Problem out = whole;
  out.texts["steps"] = chain_.name(covered());
  return out;
}

bool ChainOp::has_row_step(Part part) const {
  for (size_t i = part.first; i < part.last; ++i)
    if (chain_.steps()[i].kind == ChainStep::Kind::kRow) return true;
  return false;
}

std::vector<Buffer> ChainOp::buffers(const Problem& problem) const {
  std::vector<Buffer> out;
  const Part all = covered();
  const uint64_t rows = static_cast<uint64_t>(chain_rows(problem)),
                 cols = static_cast<uint64_t>(chain_columns(problem));
  const auto add = [&](const std::string& name, DType dtype, uint64_t count, Buffer::Role role) {
    if (std::none_of(out.begin(), out.end(), [&](const Buffer& b) { return b.name == name; }))
      out.push_back({name, dtype, count * static_cast<uint64_t>(size_of(dtype)), role});
  };
  if (is_gemm(chain_, all)) {
    const uint64_t depth = static_cast<uint64_t>(problem.dims.at("K"));
    add("A", chain_.dtype(), rows * depth, Buffer::Role::kInput);
    add("B", chain_.dtype(), cols * depth, Buffer::Role::kInput);
  } else {
    add(chain_.buffer_before(all.first), chain_.dtype_before(all.first), rows * cols, Buffer::Role::kInput);
  }
  // Values written by this op are outputs or temporaries, not inputs.
  const auto is_written = [&](const std::string& buffer) {
    return std::any_of(formulas_.begin(), formulas_.end(), [&](const auto& f) {
      const auto& outputs = f.second.outputs();
      return std::any_of(outputs.begin(), outputs.end(),
                         [&](const pointwise::Output& o) { return o.buffer == buffer; });
    });
  };
  for (const auto& [part, formula] : formulas_)
    for (const TensorArg& t : formula.tensors())
      if (!is_written(t.name)) add(t.name, t.dtype, elements(t, problem), Buffer::Role::kInput);
  for (const pointwise::Output& o : chain_.outputs(all))
    add(o.buffer, o.dtype, o.per_row ? rows : rows * cols, Buffer::Role::kOutput);
  return out;
}

expr::Map ChainOp::scope(const Problem& problem) const {
  expr::Map scope;
  // Strides, alignments and layouts of the operands, as in the op gemm.
  if (chain_.has_gemm())
    if (const auto gemm = chain_gemm(problem)) scope = gemm_op().scope(*gemm);
  const auto put = [&](const char* name, auto value) { scope[name] = expr::Value(value); };
  put("rows", chain_rows(problem));
  put("cols", chain_columns(problem));
  put("source_slabs", int64_t{1});
  put("dtype", std::string(to_string(chain_.dtype())));
  put("esize", int64_t{size_of(chain_.dtype())});
  expr::Map formulas, scalars;
  for (const auto& [part, formula] : formulas_) formulas[chain_.name(part)] = expr::Value(formula.scope());
  for (const auto& [name, value] : chain_.scalars()) scalars[name] = expr::Value(value);
  put("formulas", std::move(formulas));
  put("scalars", std::move(scalars));
  return scope;
}

Problem ChainOp::reduced(const Problem& problem) const {
  Problem out = problem;
  const int64_t tile = is_gemm(chain_, covered()) ? kGemmTile : kRowsTile;
  for (const char* name : {"M", "rows"})
    if (auto dim = out.dims.find(name); dim != out.dims.end()) dim->second = shortened(dim->second, tile);
  if (!has_row_step(covered()))
    for (const char* name : {"N", "cols"})
      if (auto dim = out.dims.find(name); dim != out.dims.end()) dim->second = shortened(dim->second, kGemmTile);
  if (auto sum = out.dims.find("K"); sum != out.dims.end() && plan_.size() > 1)
    sum->second = shortened(sum->second, kShortSum);
  return out;
}

/// Whole rows, except for gemms without a reduction, which tile columns.
bool ChainOp::tiles_columns() const {
  return plan_.size() == 1 && is_gemm(chain_, covered()) && !has_row_step(covered());
}

Extent ChainOp::extent(const Problem& problem) const {
  return {1, 1, chain_rows(problem), tiles_columns() ? chain_columns(problem) : 0};
}

Op::Slice ChainOp::slice(const Problem& problem) const {
  if (!is_gemm(chain_, covered())) return {kRowsTile, 0, kRowsTile};
  return {kGemmTile, tiles_columns() ? std::min(chain_columns(problem), kGemmTile) : 0,
          plan_.size() > 1 ? kGemmRowsFed : kGemmTile, tiles_columns()};
}

/// As for the ops gemm and those of rows. Extreme rows only where the row step reads them as they are, or after adding
/// `residual`, which is 0 then: a step before it would round away what a constant row with an offset leaves. No
/// extremes where a value between two kernels may overflow fp16, nor of fp8: the tolerance of the sums that wgmma cuts
/// off (docs/internals/verification.md) is that of an average row, not of the largest. Each kernel alone has them.
std::vector<InputPattern> ChainOp::patterns(const Problem&) const {
  const bool gemm = is_gemm(chain_, covered()), reduces = has_row_step(covered());
  std::vector<InputPattern> out{gemm ? InputPattern::kIntegers : InputPattern::kSpecial};
  const bool cut = plan_.size() > 1;
  size_t first = covered().first;
  while (first + 1 < covered().last && chain_.steps()[first].label == "residual") ++first;
  if ((chain_.dtype() == DType::kFp16 || chain_.dtype() == DType::kFp8) && cut) return out;
  if (!reduces)
    out.push_back(InputPattern::kExtremes);
  else if (gemm || chain_.steps()[first].kind == ChainStep::Kind::kRow)
    out.push_back(InputPattern::kExtremeRows);
  return out;
}

Problem ChainOp::with_pattern(Problem reduced, InputPattern pattern) const {
  if (pattern == InputPattern::kExtremeRows && !is_gemm(chain_, covered())) reduced.dims["rows"] = rows::kRowClasses;
  return reduced;
}

int64_t ChainOp::least_rows(const Problem&, InputPattern pattern) const {
  return pattern == InputPattern::kExtremeRows && !is_gemm(chain_, covered()) ? rows::kRowClasses : 1;
}

std::vector<Op::Thin> ChainOp::thinner(const Problem& problem) const {
  return is_gemm(chain_, covered()) ? gemm_op().thinner(problem) : std::vector<Thin>{};
}

InputPattern ChainOp::pattern_of_grid(const Problem& problem) const {
  return is_gemm(chain_, covered()) ? gemm_op().pattern_of_grid(problem) : InputPattern::kNormal;
}

std::string ChainOp::plan_name() const {
  std::string out;
  for (const Part& part : plan_) out += (out.empty() ? "" : " | ") + chain_.name(part);
  return out;
}

/// Variants with the first stage of the plan, for any part.
Result<std::vector<Variant>> ChainOp::first_kernels(const DataFiles& files) const {
  if (is_gemm(chain_, covered())) return one_kernel_products(files);
  Variant rows;
  rows.file = kRowsStage;
  rows.name = kOnlyKernel;
  ROOFGEN_TRY(rows.stages.emplace_back(), load_stage(files, kRowsStage));
  return std::vector{std::move(rows)};
}

Result<std::vector<Variant>> ChainOp::variants(const DataFiles& files, const Problem& problem) const {
  ROOFGEN_TRY(std::vector<Variant> out, first_kernels(files));
  const std::vector<Buffer> known = buffers(problem);
  for (Variant& v : out) {
    v.op = name();
    v.name = plan_name() + (v.name == kOnlyKernel ? "" : " " + v.name);
    v.description =
        fmt::format("{} of the chain", plan_.size() == 1 ? "one kernel" : fmt::format("{} kernels", plan_.size()));
    v.fused = plan_.size() == 1;
    for (const Part& part : plan_) {
      if (part.first > covered().first) {
        ROOFGEN_TRY(v.stages.emplace_back(), load_stage(files, kRowsStage));
      }
      Stage& stage = v.stages.back();
      stage.name = stage.formula = chain_.name(part);
      stage.output = chain_.outputs(part).back().buffer;
      if (!is_gemm(chain_, part)) stage.buffers["X"] = chain_.buffer_before(part.first);
      for (const pointwise::Output& o : chain_.outputs(part)) {
        if (std::any_of(known.begin(), known.end(), [&](const Buffer& b) { return b.name == o.buffer; })) continue;
        ROOFGEN_TRY(expr::Expr dtype, literal(fmt::format("'{}'", to_string(o.dtype))));
        ROOFGEN_TRY(expr::Expr bytes,
                    literal(fmt::format("rows * {}{}", o.per_row ? "" : "cols * ", size_of(o.dtype))));
        v.temporaries.push_back({o.buffer, std::move(dtype), std::move(bytes)});
      }
    }
  }
  return out;
}

std::optional<RequiredWork> ChainOp::required(const Problem& problem) const {
  RequiredWork out;
  const double rows = static_cast<double>(chain_rows(problem)), cols = static_cast<double>(chain_columns(problem));
  if (is_gemm(chain_, covered())) out.mma_flops = 2 * rows * cols * static_cast<double>(problem.dims.at("K"));
  for (const Buffer& b : buffers(problem)) out.dram_bytes += static_cast<double>(b.bytes);
  for (const auto& [part, formula] : formulas_) out.exps += formula.cost().exps * rows * cols;
  return out;
}

std::function<void(uint64_t, std::span<std::byte>)> ChainOp::filler(const Problem& problem, InputPattern pattern,
                                                                    const std::string& buffer) const {
  const bool gemm = is_gemm(chain_, covered());
  if (gemm && (buffer == "A" || buffer == "B")) return gemm_op().filler(*chain_gemm(problem), pattern, buffer);
  if (!gemm && buffer == chain_.buffer_before(covered().first))
    return [contents = chain_source(chain_, covered().first, problem, pattern)](
               uint64_t offset, std::span<std::byte> out) { contents.fill(offset, out); };
  DType dtype = problem.dtype;
  for (const Buffer& b : buffers(problem))
    if (b.name == buffer) dtype = b.dtype;
  return [contents = TensorContents{pattern, buffer, dtype}](uint64_t offset, std::span<std::byte> out) {
    contents.fill(offset, out);
  };
}

Result<Comparison> ChainOp::compare(const Problem& problem, InputPattern pattern, const std::string&,
                                    const std::string& stage, const Region& region, const ElementReader& read) const {
  for (const Part& part : plan_)
    if (chain_.name(part) == stage) return ChainReference(chain_, plan_, problem, pattern).compare(part, region, read);
  return Error{Exit::kFailed, fmt::format("{} has no stage {}", plan_name(), stage)};
}

double ChainOp::weight(const Problem& problem, const Region& region) const {
  const int64_t end = region.col_end < 0 ? chain_columns(problem) : region.col_end;
  return static_cast<double>(region.row_end - region.row_begin) * static_cast<double>(end - region.col_begin);
}

}  // namespace roofgen
