#include "generator/ops/rows_formulas.h"

#include <fmt/format.h>

#include "generator/ops/row_definitions.h"

namespace roofgen::rows {

using pointwise::Definition;
using pointwise::Formula;
using pointwise::Output;
using pointwise::Vocabulary;

// eps: the defaults of PyTorch's LayerNorm and of the RMSNorm in Llama's published code.
const Spec kRmsnorm{"rmsnorm", true, false, true, 1e-6};
const Spec kLayernorm{"layernorm", true, true, true, 1e-5};
const Spec kSoftmax{"softmax", false, false, false, 0};
const Spec kMap{"map", false, false, false, 0};

namespace {

bool flag(const Problem& p, const char* name) {
  const auto it = p.flags.find(name);
  return it != p.flags.end() && it->second;
}

std::string text(const Problem& p, const char* name) {
  const auto it = p.texts.find(name);
  return it == p.texts.end() ? "" : it->second;
}

bool quantised(const Problem& p) { return !text(p, "quant").empty(); }
bool scaled_by_row(const Problem& p) { return text(p, "quant_scale") == "row"; }

/// A formula under construction: definitions, outputs, names.
struct Draft {
  std::vector<Definition> definitions;
  std::vector<Output> outputs;
  Vocabulary names;

  void define(std::string name, std::string text) { definitions.push_back({std::move(name), std::move(text), "--op"}); }
  void define(const Definitions& all) {
    for (const auto& [name, text] : all) define(name, text);
  }
  Result<Formula> parse() { return Formula::parse(std::move(definitions), std::move(outputs), std::move(names)); }
};

Draft from(std::string source, DType dtype) {
  Draft d;
  d.names.source = std::move(source);
  d.names.source_dtype = dtype;
  return d;
}

/// v = the source, or source + residual, which is also the output `sum`.
void add_residual(Draft& d, const Problem& p) {
  d.names.tensors.push_back({"residual", p.dtype, {"m", "n"}});
  d.define("v", d.names.source + " + residual[m,n]");
  d.outputs.push_back({"v", "sum", p.dtype});
}

/// y = the normalised rows of `v`.
void normalise(Draft& d, const Spec& spec, const Problem& p, const std::string& v) {
  d.names.scalars["eps"] = p.reals.at("eps");
  d.names.tensors.push_back({"weight", p.dtype, {"n"}});
  NormInputs inputs{"eps", "weight", ""};
  if (flag(p, "bias")) {
    d.names.tensors.push_back({"bias", p.dtype, {"n"}});
    inputs.bias = "bias";
  }
  d.define(&spec == &kLayernorm ? layernorm(v, "normed", "centred", inputs) : rmsnorm(v, "normed", inputs));
}

/// q = `value` / scale of its row or of the tensor, so that the largest magnitude is that of the format.
void quantise(Draft& d, const Problem& p, const std::string& value) {
  if (scaled_by_row(p)) {
    d.define(quantised_by_row(value, "quantised", "row_scale", out_dtype(p)));
    d.outputs.push_back({"quantised", "y", out_dtype(p)});
    d.outputs.push_back({"row_scale", "row_scale", DType::kFp32, true});
  } else {
    d.names.scalars["scale"] = p.reals.at("scale");
    d.define("quantised", value + " * (1 / scale)");
    d.outputs.push_back({"quantised", "y", out_dtype(p)});
  }
}

Result<void> norm_formulas(const Spec& spec, const Problem& p, Formulas& out) {
  const bool residual = flag(p, "residual");
  Draft fused = from("x", p.dtype);
  if (residual) {
    Draft add = from("x", p.dtype);
    add_residual(add, p);
    ROOFGEN_TRY(Formula formula, add.parse());
    out.emplace("add", std::move(formula));
    add_residual(fused, p);
  }
  normalise(fused, spec, p, residual ? "v" : "x");
  Draft norm = from("x", p.dtype);
  normalise(norm, spec, p, "x");
  if (quantised(p)) {
    quantise(fused, p, "normed");
    norm.outputs.push_back({"normed", "normed", p.dtype});
    Draft last = from("normed", p.dtype);
    quantise(last, p, "normed");
    ROOFGEN_TRY(Formula formula, last.parse());
    out.emplace("quantise", std::move(formula));
  } else {
    fused.outputs.push_back({"normed", "y", out_dtype(p)});
    norm.outputs.push_back({"normed", "y", out_dtype(p)});
  }
  ROOFGEN_TRY(Formula whole, fused.parse());
  out.emplace("fused", std::move(whole));
  ROOFGEN_TRY(Formula part, norm.parse());
  out.emplace("norm", std::move(part));
  return {};
}

Result<void> softmax_formulas(const Problem& p, Formulas& out) {
  const auto add = [&out](const std::string& name, Draft& draft) -> Result<void> {
    ROOFGEN_TRY(Formula formula, draft.parse());
    out.emplace(name, std::move(formula));
    return {};
  };
  Draft fused = from("x", p.dtype);
  fused.define(softmax("x", "probability", "power"));
  fused.outputs.push_back({"probability", "y", out_dtype(p)});
  ROOFGEN_CHECK(add("fused", fused));

  const auto statistics = [&](const std::string& name, const std::string& top, const std::string& total,
                              const char* base) -> Result<void> {
    Draft d = from("x", p.dtype);
    d.define(top, "max(x)");
    d.define(total, fmt::format("sum(exp(x - {}))", fmt::format(fmt::runtime(base), top)));
    d.outputs.push_back({top, top, DType::kFp32, true});
    d.outputs.push_back({total, total, DType::kFp32, true});
    return add(name, d);
  };
  // A segment of -infinity alone has the total 0, not NaN, because the row may have other values. The least finite fp32
  // is a common mask value.
  ROOFGEN_CHECK(statistics("partial", "partial_top", "partial_total", "max({}, -3.4028234663852886e38)"));
  ROOFGEN_CHECK(statistics("statistics", "top", "total", "{}"));

  Draft combine = from("partial_top", DType::kFp32);
  combine.names.tensors.push_back({"partial_total", DType::kFp32, {"m", "n"}});
  combine.define("top", "max(partial_top)");
  combine.define("total", "sum(partial_total[m,n] * exp(partial_top - top))");
  combine.outputs.push_back({"top", "top", DType::kFp32, true});
  combine.outputs.push_back({"total", "total", DType::kFp32, true});
  ROOFGEN_CHECK(add("combine", combine));

  Draft last = from("x", p.dtype);
  last.names.tensors.push_back({"top", DType::kFp32, {"m"}});
  last.names.tensors.push_back({"total", DType::kFp32, {"m"}});
  last.define("probability", "exp(x - top[m]) * (1 / total[m])");
  last.outputs.push_back({"probability", "y", out_dtype(p)});
  return add("normalise", last);
}

Result<void> map_formula(const Problem& p, Formulas& out) {
  Draft d = from("x", p.dtype);
  d.names.tensors = {{"residual", p.dtype, {"m", "n"}},
                     {"bias", p.dtype, {"n"}},
                     {"weight", p.dtype, {"n"}},
                     {"row_bias", p.dtype, {"m"}}};
  d.names.tensors.insert(d.names.tensors.end(), p.args.begin(), p.args.end());
  d.names.scalars = p.reals;
  d.definitions.push_back({"y", text(p, "expr"), "--expr"});
  d.outputs.push_back({"y", "y", out_dtype(p)});
  ROOFGEN_TRY(Formula formula, d.parse());
  out.emplace("fused", std::move(formula));
  return {};
}

}  // namespace

DType out_dtype(const Problem& p) {
  if (const std::string quant = text(p, "quant"); !quant.empty()) return *parse_dtype(quant);
  const auto out = p.dtypes.find("out");
  return out == p.dtypes.end() ? p.dtype : out->second;
}

Result<Formulas> formulas(const Spec& spec, const Problem& p) {
  Formulas out;
  if (&spec == &kMap) {
    ROOFGEN_CHECK(map_formula(p, out));
  } else if (&spec == &kSoftmax) {
    ROOFGEN_CHECK(softmax_formulas(p, out));
  } else {
    ROOFGEN_CHECK(norm_formulas(spec, p, out));
  }
  return out;
}

std::vector<std::string> unfused_stages(const Spec& spec, const Problem& p) {
  if (&spec == &kMap) return {};
  if (&spec == &kSoftmax)
    return p.dims.at("cols") > kSegmentCols ? std::vector<std::string>{"partial", "combine", "normalise"}
                                            : std::vector<std::string>{};
  std::vector<std::string> out;
  if (flag(p, "residual")) out.push_back("add");
  out.push_back("norm");
  if (quantised(p)) out.push_back("quantise");
  return out;
}

}  // namespace roofgen::rows
