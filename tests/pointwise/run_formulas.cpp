#include "tests/pointwise/run_formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "generator/generate.h"
#include "generator/jinja/jinja.h"
#include "generator/ops/elements.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tests/support/compile_cache.h"

namespace roofgen::test {
namespace {

using pointwise::Estimate;
using pointwise::Formula;

/// Processes a row in the order given in docs/use/epilogues.md.
constexpr const char* kTemplate = R"({% include "lib/math.cuh" %}
{% include "lib/pointwise.cuh" %}
constexpr int kCols = {{ cols }};
__device__ __forceinline__ float plus(float a, float b) { return a + b; }

struct Tensors { {% for t in tensors %}const float* t_{{ t }}; {% endfor %}float none; };
struct Scalars { {% for s in scalars %}float s_{{ s }}; {% endfor %}float none; };
{% for formula in formulas %}
{% set keeps_x = loop.index0 % 2 == 0 %}
namespace f{{ loop.index0 }} {
{{ formula.cuda }}
__device__ __forceinline__ void run(const float* source, const Tensors& t, const Scalars& given, float* out, int rows, float* terms) {
  const int n = threadIdx.x;
  const bool inside = n < kCols;
  const FormulaScalars s = { {% for name in formula.scalars %}given.s_{{ name }}, {% endfor %} };
  for (int m = 0; m < rows; ++m) {
    FormulaElement e = {};
    FormulaRow r = {};
    float x = 0.0f;
    if (inside) {
      x = source[m * kCols + n];
{% for tensor in formula.tensors %}
      e.{{ tensor.field }} = t.{{ tensor.param }}[{{ "m * kCols + n" if tensor.along_row and tensor.along_rows else "n" if tensor.along_row else "m" if tensor.along_rows else "0" }}];
{% endfor %}
    }
    const float loaded = x;
{% for p in range(formula.phases|length + 1) %}
{% if p > 0 %}
    {
{% if not keeps_x %}
      x = loaded;
{% for before in range(p - 1) %}
      formula_phase{{ before }}(x, e, r, s, m, n);
{% endfor %}
{% endif %}
      const float term = formula_phase{{ p - 1 }}(x, e, r, s, m, n);
      __syncthreads();
      terms[n] = term;
      __syncthreads();
{% set combine = "plus" if formula.phases[p - 1].reduce == "sum" else formula.phases[p - 1].reduce + "_nan" %}
      float total = terms[0];
      for (int i = 1; i < (kCols < 64 ? kCols : 64); ++i) total = {{ combine }}(total, terms[i]);
      if constexpr (kCols > 64) {
        float rest = terms[64];
        for (int i = 65; i < kCols; ++i) rest = {{ combine }}(rest, terms[i]);
        total = {{ combine }}(total, rest);
      }
      formula_row{{ p - 1 }}(total, r, s, m, 1.0f / kCols);
    }
{% endif %}
{% for o in formula.outputs %}
{% if o.after_phase == p - 1 %}
{% if o.per_row %}
    if (n == 0) out[({{ loop.index0 }} * rows + m) * kCols] = {{ o.call }}(0.0f, e, r, s, m, 0);
{% else %}
    if (inside) out[({{ loop.index0 }} * rows + m) * kCols + n] = {{ o.call }}(x, e, r, s, m, n);
{% endif %}
{% endif %}
{% endfor %}
{% endfor %}
  }
}
}
{% endfor %}
extern "C" __global__ void formulas(const float* source, {% for t in tensors %}const float* t_{{ t }}, {% endfor %}{% for s in scalars %}float s_{{ s }}, {% endfor %}float* out, int rows) {
  __shared__ float terms[128];
  const Tensors t = { {% for t in tensors %}t_{{ t }}, {% endfor %}0.0f };
  const Scalars s = { {% for s in scalars %}s_{{ s }}, {% endfor %}0.0f };
  out += (long long)blockIdx.x * {{ outputs }} * rows * kCols;
  switch (blockIdx.x) {
{% for formula in formulas %}
    case {{ loop.index0 }}: return f{{ loop.index0 }}::run(source, t, s, out, rows, terms);
{% endfor %}
  }
}
)";

uint64_t name_seed(const std::string& name) {
  uint64_t h = 1469598103934665603u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}
float tensor_element(const std::string& name, int64_t index) {
  return noise(name_seed(name) + static_cast<uint64_t>(index));
}

Result<Compiler*> compiler() {
  static const auto made = make_nvrtc_compiler({}, shared_compile_cache(), [](const std::string&) {});
  if (!made) return made.error();
  return made->get();
}

Result<Binary> compile(const std::vector<Formula>& formulas, const FormulaRun& run, int outputs) {
  const pointwise::Vocabulary& v = formulas[0].vocabulary();
  expr::List list, tensors, scalars;
  for (const Formula& f : formulas) list.emplace_back(f.scope());
  for (const TensorArg& t : v.tensors) tensors.emplace_back(t.name);
  for (const auto& [name, value] : v.scalars) scalars.emplace_back(name);
  const DataFiles files;
  const jinja::Loader loader = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "main") return kTemplate;
    return files.read("templates/" + std::string(name));
  };
  const expr::Map context{
      {"formulas", list}, {"tensors", tensors}, {"scalars", scalars}, {"cols", run.cols}, {"outputs", outputs}};
  ROOFGEN_TRY(jinja::Rendered rendered, jinja::render(loader, "main", context));
  for (const auto& [from, to] : run.edits) {
    const size_t at = rendered.text.find(from);
    if (at == std::string::npos) return Error{Exit::kFailed, "the text to replace is not there: " + from};
    rendered.text.replace(at, from.size(), to);
  }
  const Program program{{}, std::move(rendered.text), "formulas", std::move(rendered.line_map)};
  ROOFGEN_TRY(Compiler * nvrtc, compiler());
  Result<Binary> out = Error{Exit::kFailed, "nothing was compiled"};
  nvrtc->compile_all({&program}, [&](CompileOutcome outcome) {
    out = std::move(outcome.binary);
    return true;
  });
  return out;
}

Arg scalar(const std::string& name, const void* value) {
  Arg arg{name, false, 0, 4};
  std::memcpy(&arg.bits, value, 4);
  return arg;
}

}  // namespace

float noise(uint64_t seed) {
  // The sum of four uniform 16-bit numbers from one splitmix64 step has variance 1/3.
  seed += 0x9e3779b97f4a7c15u;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  seed ^= seed >> 31;
  double sum = -2;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>((seed >> (16 * i)) & 0xffff) / 65536;
  return static_cast<float>(sum * 1.7320508);
}

std::vector<float> noisy_source(int rows, int cols, uint64_t seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < int64_t{rows} * cols; ++i) out.push_back(noise(seed * 1000003 + static_cast<uint64_t>(i)));
  return out;
}

Result<FormulaOutputs> run_formulas(const std::vector<Formula>& formulas, const FormulaRun& run) {
  size_t outputs = 1;
  for (const Formula& f : formulas) outputs = std::max(outputs, f.outputs().size());
  ROOFGEN_TRY(const Binary binary, compile(formulas, run, static_cast<int>(outputs)));
  ROOFGEN_TRY(std::unique_ptr<Executor> executor, make_sim_executor());
  ROOFGEN_TRY(const ModuleId module, executor->load(binary));
  const size_t plane = static_cast<size_t>(run.rows) * static_cast<size_t>(run.cols);
  Launch launch;
  launch.grid.x = static_cast<uint32_t>(formulas.size());
  launch.block.x = 128;
  const auto buffer = [&](const std::string& name, const std::vector<float>& values) -> Result<void> {
    ROOFGEN_TRY(const DevicePtr at, executor->allocate(values.size() * 4, name));
    ROOFGEN_CHECK(executor->write(at, std::as_bytes(std::span(values))));
    launch.args.push_back({name, true, at.address});
    return {};
  };
  ROOFGEN_CHECK(buffer("source", run.source));
  for (const TensorArg& t : formulas[0].vocabulary().tensors) {
    std::vector<float> values;
    const size_t size = t.indices.size() == 2 ? plane
                        : t.indices.empty()   ? 1
                                              : static_cast<size_t>(t.indices[0] == "m" ? run.rows : run.cols);
    for (size_t i = 0; i < size; ++i) values.push_back(tensor_element(t.name, static_cast<int64_t>(i)));
    ROOFGEN_CHECK(buffer(t.name, values));
  }
  for (const auto& [name, value] : formulas[0].vocabulary().scalars) {
    const float f = static_cast<float>(value);
    launch.args.push_back(scalar(name, &f));
  }
  ROOFGEN_TRY(const DevicePtr out, executor->allocate(formulas.size() * outputs * plane * 4, "out"));
  launch.args.push_back({"out", true, out.address});
  launch.args.push_back(scalar("rows", &run.rows));
  ROOFGEN_TRY(const RunResult result, executor->run(module, launch, {}));
  if (!result.findings.empty())
    return Error{Exit::kFailed, result.findings[0].kind + ": " + result.findings[0].message};

  FormulaOutputs all(formulas.size());
  for (size_t f = 0; f < formulas.size(); ++f)
    for (size_t o = 0; o < formulas[f].outputs().size(); ++o) {
      std::vector<float> values(plane);
      ROOFGEN_CHECK(
          executor->read({out.address + (f * outputs + o) * plane * 4}, std::as_writable_bytes(std::span(values))));
      if (formulas[f].outputs()[o].per_row)
        for (int m = 0; m < run.rows; ++m) values[static_cast<size_t>(m)] = values[static_cast<size_t>(m * run.cols)];
      all[f].push_back(std::move(values));
    }
  return all;
}

std::string compare(const Formula& formula, const FormulaRun& run, const std::vector<std::vector<float>>& outputs,
                    Tally* tally) {
  const int cols = run.cols;
  const pointwise::TensorReader read = [&](const TensorArg& t, std::span<const int64_t> row, int64_t first,
                                           std::span<double> out) {
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t n = first + static_cast<int64_t>(i);
      const int64_t index = t.indices.size() == 2 ? row[0] * cols + n
                            : t.indices.empty()   ? 0
                            : t.indices[0] == "m" ? row[0]
                                                  : n;
      out[i] = tensor_element(t.name, index);
    }
  };
  for (int64_t m = 0; m < run.rows; ++m) {
    std::vector<Estimate> source;
    for (int n = 0; n < cols; ++n) source.push_back({run.source[static_cast<size_t>(m * cols + n)], 0});
    const auto expected = formula.evaluate(source, {&m, 1}, 0, read);
    for (size_t o = 0; o < expected.size(); ++o)
      for (size_t n = 0; n < expected[o].size(); ++n) {
        const Estimate& e = expected[o][n];
        const double got =
            outputs[o][formula.outputs()[o].per_row ? static_cast<size_t>(m) : static_cast<size_t>(m * cols) + n];
        if (tally) ++tally->elements, tally->tight += kSigmas * e.sigma < std::max(1.0, std::abs(e.value)) / 256;
        const bool same =
            got == e.value || (std::isnan(got) && std::isnan(e.value)) || std::abs(got - e.value) <= kSigmas * e.sigma;
        if (!same)
          return fmt::format("{}[{},{}] is {:.9g}, {:.9g} +- {:.3g} was expected", formula.outputs()[o].buffer, m, n,
                             got, e.value, kSigmas * e.sigma);
      }
  }
  return "";
}

}  // namespace roofgen::test
