#include "tests/roofline/errata/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "roofline/work.h"

namespace roofgen::errata {
namespace {

const DataFiles& files() {
  static const DataFiles data;
  return data;
}

template <class T>
T take(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return std::move(*result);
}

struct Line {
  std::string op, expression;
  WorkRequest request;
};

Line parse(const std::string& text) {
  std::istringstream in(text);
  Line line;
  in >> line.op;
  if (line.op == "elementwise") in >> line.expression;
  for (std::string word; in >> word;) {
    if (const size_t eq = word.find('='); eq != std::string::npos) {
      const double value = std::stod(word.substr(eq + 1));
      if (word.substr(0, eq) == "softmax_flops")
        line.request.softmax_flops = value;
      else
        line.request.dims[word.substr(0, eq)] = static_cast<int64_t>(value);
    } else if (const size_t colon = word.find(':'); colon != std::string::npos) {
      const std::string role = word.substr(0, colon), format = word.substr(colon + 1);
      if (role == "math")
        line.request.math_dtype = format;
      else if (role == "acc")
        line.request.accumulate = format;
      else
        line.request.dtypes[role == "dtype" ? "" : role] = format;
    } else {
      line.request.flags[word] = true;
    }
  }
  return line;
}

int decimals(const std::string& number) {
  const size_t point = number.find('.');
  return point == std::string::npos ? 0 : static_cast<int>(number.size() - point - 1);
}

}  // namespace

void Checks::operator()(int artifact, const std::string& what, double got, const std::string& expected) {
  list_.push_back({artifact, what, fmt::format("{:.{}f}", got, decimals(expected)), expected});
}

void Checks::holds(int artifact, const std::string& what, bool got) {
  list_.push_back({artifact, what, got ? "yes" : "no", "yes"});
}

OpWork work(const std::string& text) {
  const Line line = parse(text);
  if (line.op != "elementwise") return take(take(WorkFormula::load(files(), line.op)).evaluate(line.request));
  ElementwiseRequest e;
  e.expression = line.expression;
  e.rows = line.request.dims.at("rows");
  e.cols = line.request.dims.at("cols");
  e.unfused = line.request.flags.count("unfused") != 0;
  if (const auto it = line.request.dtypes.find(""); it != line.request.dtypes.end()) e.dtype = it->second;
  return take(elementwise_work(e));
}

double ai(const std::string& line) { return work(line).arithmetic_intensity(); }
double megabytes(const std::string& line) { return work(line).dram_bytes() / 1e6; }
double gigaflops(const std::string& line) { return work(line).flops() / 1e9; }

Device device(const std::string& name) { return take(load_device(files(), name)); }
double cell(const std::string& device_name, const std::string& name) { return device(device_name).at(name); }

double peak(const std::string& device_name, const std::string& math, const std::string& accumulate) {
  for (const Roof& r : compute_roofs(device(device_name), RoofSet::kDatasheet))
    if (r.math == math && r.accumulate == accumulate) return r.rate / 1e12;
  return 0;
}

double ridge_of(const std::string& device_name, const std::string& math) {
  const Device d = device(device_name);
  return ridge(d, take(matrix_roof(d, math, "fp32", RoofSet::kDatasheet)), RoofSet::kDatasheet);
}

double vector_ridge(const std::string& device_name) {
  const Device d = device(device_name);
  return ridge(d, vector_roof(d, RoofSet::kDatasheet), RoofSet::kDatasheet);
}

Explanation on(const std::string& device_name, const std::string& line, RoofSet set) {
  return take(explain(device(device_name), work(line), set));
}

double attainable_tflops(const std::string& device_name, const std::string& line) {
  return on(device_name, line).attainable_flops_per_s / 1e12;
}

double seconds_under(const Explanation& e, const std::string& roof) {
  double out = 0;
  for (const KernelExplanation& k : e.kernels)
    for (const RoofTime& b : k.bounds)
      if (b.name == roof) out += b.seconds;
  return out;
}

bool warns(const Explanation& e, const std::string& rule) {
  return std::any_of(e.warnings.begin(), e.warnings.end(), [&](const Warning& w) { return w.rule == rule; });
}

double crossing(const std::string& device_name, const std::string& text, double dram_gb_s) {
  const Line line = parse(text);
  const WorkFormula formula = take(WorkFormula::load(files(), line.op));
  Device d = device(device_name);
  if (dram_gb_s > 0) d.cells.at("dram_gb_s").value = dram_gb_s;
  const Explanation e = take(explain(d, take(formula.evaluate(line.request))));
  return static_cast<double>(ridge_crossing(formula, line.request, e).value_or(-1));
}

ModelRun decode_step(const std::string& model, const std::string& device_name, int64_t batch, int64_t kv,
                     int64_t gpus) {
  ModelRequest request;
  request.phase = "decode";
  request.batch = batch;
  request.length = kv;
  request.tp = gpus;
  return take(run_model(take(load_model(files(), model)), device(device_name), request));
}

bool breaks(const std::string& rule, const std::string& device_name, const std::function<void(Claim&)>& state) {
  const Device d = device(device_name);
  Claim claim;
  claim.device = &d;
  state(claim);
  const std::vector<Warning> found = lint(claim);
  return std::any_of(found.begin(), found.end(), [&](const Warning& w) { return w.rule == rule; });
}

}  // namespace roofgen::errata
