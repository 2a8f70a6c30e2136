// RMSNorm of batches of different sizes by kernels that are tuned, compiled and launched in this process:
//   jit [ROWS,...]
// A kernel serves many sizes. Where none does, another one is made. Each result is compared with a reference.
#include <cstdio>
#include <roofgen/roofgen.hpp>
#include <string>

#include "../device.h"

namespace {

constexpr size_t kCols = 1024;
constexpr double kEps = 1e-6;

/// The largest error of y = x / rms(x) * weight, relative to the largest number that rounds to bf16 like it.
double error_of(const Tensor& x, const Tensor& weight, const Tensor& y, size_t rows) {
  double worst = 0;
  for (size_t m = 0; m < rows; ++m) {
    double sum = 0;
    for (size_t n = 0; n < kCols; ++n) sum += double{x.values[m * kCols + n]} * x.values[m * kCols + n];
    for (size_t n = 0; n < kCols; ++n) {
      const double expected = x.values[m * kCols + n] / std::sqrt(sum / kCols + kEps) * weight.values[n];
      const double error = std::fabs(y.values[m * kCols + n] - expected) / (std::fabs(expected) + 1);
      if (!(error <= worst)) worst = error;  // also NaN
    }
  }
  return worst;
}

int fail(const roofgen::Error& error) {
  std::fprintf(stderr, "jit: %s\n", error.message.c_str());
  return error.status;
}

/// Launches the first kernels that serve the arguments, or makes some.
roofgen::Result<void> normalize(roofgen::Session& session, std::vector<roofgen::Pipeline>& pipelines, size_t rows,
                                std::span<const roofgen::Argument> arguments) {
  for (const roofgen::Pipeline& pipeline : pipelines) {
    const auto launched = pipeline.launch(nullptr, arguments);
    if (launched || launched.error().status != ROOFGEN_UNAVAILABLE) return launched;
  }
  auto made = roofgen::jit(session, roofgen::Request("rmsnorm").set("rows", rows).set("cols", kCols).set("evals", 4));
  if (!made) return made.error();
  std::printf("made %s\n", made->text());
  pipelines.push_back(std::move(*made));
  return pipelines.back().launch(nullptr, arguments);
}

}  // namespace

int main(int argc, char** argv) {
  const Driver driver;
  if (!driver.begin()) return std::fprintf(stderr, "jit: no CUDA driver, or no GPU\n"), ROOFGEN_UNAVAILABLE;
  auto session = roofgen::Session::open();
  if (!session) return fail(session.error());
  session->on_warning([](const char* line) { std::fprintf(stderr, "jit: warning: %s\n", line); });

  std::vector<roofgen::Pipeline> pipelines;
  const Tensor weight(driver, kCols, 1);
  const std::string list = argc > 1 ? argv[1] : "16,64,100,64";
  for (size_t at = 0; at < list.size(); at = std::min(list.find(',', at), list.size() - 1) + 1) {
    const size_t rows = std::strtoul(list.c_str() + at, nullptr, 10);
    if (rows == 0) return std::fprintf(stderr, "jit: %s: numbers of rows with commas were expected\n", argv[1]), 2;
    const Tensor x(driver, rows * kCols, 2);
    Tensor y(driver, rows * kCols, 3);
    const roofgen::Argument arguments[] = {roofgen::Argument::at("x", x.at),
                                           roofgen::Argument::at("weight", weight.at),
                                           roofgen::Argument::at("y", y.at),
                                           {"rows", rows}};
    if (const auto ran = normalize(*session, pipelines, rows, arguments); !ran) return fail(ran.error());
    if (!y.fetch(driver)) return std::fprintf(stderr, "jit: the kernel failed\n"), 1;
    const double error = error_of(x, weight, y, rows);
    std::printf("%zu rows: largest relative error %.2g\n", rows, error);
    if (!(error < 1.0 / 128)) return 1;  // half a unit of bf16 is 1/256
  }
  return 0;
}
