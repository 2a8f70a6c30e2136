// Kernels in this process, on a real or a simulated driver, against references computed here: jit_test FOLDER
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <roofgen/roofgen.hpp>
#include <string>
#include <thread>

#include "check.h"
#include "examples/device.h"

namespace {

using roofgen::Argument;
using roofgen::Request;

const Driver driver;

Argument tensor(const char* name, const Tensor& t) { return Argument::at(name, t.at); }

/// The largest difference between results of bf16 and the reference, in units of a relative error of 2^-8.
double error_of(const std::vector<float>& got, const std::vector<double>& expected) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::fabs(got[i] - expected[i]) / (std::fabs(expected[i]) / 256 + 1.0 / 256));
  return std::isnan(worst) ? 1e30 : worst;
}

std::vector<double> rmsnorm(const Tensor& x, const Tensor& weight, size_t rows, size_t cols, double eps) {
  std::vector<double> out(rows * cols);
  for (size_t m = 0; m < rows; ++m) {
    double sum = 0;
    for (size_t n = 0; n < cols; ++n) sum += double{x.values[m * cols + n]} * x.values[m * cols + n];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(cols) + eps);
    for (size_t n = 0; n < cols; ++n) out[m * cols + n] = x.values[m * cols + n] * scale * weight.values[n];
  }
  return out;
}

/// Attention of one sequence; element (row, head, i) of a tensor is at row * row_stride + head * d + i.
std::vector<double> attention(const Tensor& q, const Tensor& k, const Tensor& v, size_t L, size_t kv_len, size_t heads,
                              size_t d, size_t q_row_stride, double scale) {
  std::vector<double> out(L * heads * d), p(kv_len);
  for (size_t h = 0; h < heads; ++h)
    for (size_t i = 0; i < L; ++i) {
      double most = -1e30, sum = 0;
      for (size_t j = 0; j < kv_len; ++j) {
        p[j] = 0;
        for (size_t c = 0; c < d; ++c)
          p[j] += double{q.values[i * q_row_stride + h * d + c]} * k.values[(j * heads + h) * d + c];
        most = std::max(most, p[j] *= scale);
      }
      for (double& x : p) sum += x = std::exp(x - most);
      for (size_t j = 0; j < kv_len; ++j)
        for (size_t c = 0; c < d; ++c) out[(i * heads + h) * d + c] += p[j] / sum * v.values[(j * heads + h) * d + c];
    }
  return out;
}

/// A search in the simulator.
Request request_of(const char* op, std::initializer_list<std::pair<const char*, size_t>> sizes,
                   const char* variant = nullptr, int evals = 1) {
  Request out(op);
  for (const auto& [name, size] : sizes) out.set(name, size);
  if (variant) out.set("variant", variant);
  return out.set("executor", "sim").set("evals", evals);
}

void rows(roofgen::Session& session) {
  constexpr size_t kCols = 256;
  const Request request = request_of("rmsnorm", {{"rows", 64}, {"cols", kCols}});
  const auto pipeline = roofgen::jit(session, request);
  CHECK(pipeline);
  if (!pipeline) return;
  CHECK(std::strstr(pipeline->text(), "\"roofgen.pipeline.1\"") != nullptr);
  // The time comes from the search now, later from the kept winner.
  const char* time = std::strstr(pipeline->text(), "\"time_us\":");
  CHECK(time && std::strtod(time + 10, nullptr) > 1 && std::strstr(time, "\"measured\":false"));
  const auto known = roofgen::jit(session, request);
  CHECK(known && std::string(known->text()) == pipeline->text());
  const Tensor weight(driver, kCols, 2);
  // The size of the request, and others.
  for (const size_t count : {64, 1, 77, 300}) {
    const Tensor x(driver, count * kCols, 1);
    Tensor y(driver, count * kCols, 3);
    const Argument arguments[] = {tensor("x", x), tensor("weight", weight), tensor("y", y), {"rows", count}};
    CHECK(pipeline->launch(nullptr, arguments));
    CHECK(y.fetch(driver) && error_of(y.values, rmsnorm(x, weight, count, kCols, 1e-6)) < 2);
    // A number of the user, which changes the results.
    const Argument other[] = {tensor("x", x), tensor("weight", weight), tensor("y", y), {"rows", count}, {"eps", 1.0}};
    CHECK(pipeline->launch(nullptr, other));
    CHECK(y.fetch(driver) && error_of(y.values, rmsnorm(x, weight, count, kCols, 1)) < 2);
    CHECK(error_of(y.values, rmsnorm(x, weight, count, kCols, 1e-6)) > 10);
  }
}

/// Three kernels with a workspace, other lengths, and rows of Q with gaps.
void stages(roofgen::Session& session) {
  constexpr size_t kHeads = 2, kD = 64;
  const auto pipeline = roofgen::jit(
      session, request_of("attention", {{"L", 64}, {"d", kD}, {"heads", kHeads}, {"batch", 1}}, "unfused"));
  CHECK(pipeline);
  if (!pipeline) return;
  const struct {
    size_t L, kv_len, q_row_stride;
  } cases[] = {{64, 64, kHeads * kD}, {64, 64, kHeads * kD + 16}, {128, 192, kHeads * kD}};
  bool served = false;
  for (const auto& c : cases) {
    const Tensor q(driver, c.L * c.q_row_stride, 1), k(driver, c.kv_len * kHeads * kD, 2),
        v(driver, c.kv_len * kHeads * kD, 3);
    Tensor o(driver, c.L * kHeads * kD, 4);
    const std::vector<Argument> arguments = {tensor("Q", q),
                                             tensor("K", k),
                                             tensor("V", v),
                                             tensor("O", o),
                                             {"L", c.L},
                                             {"kv_len", c.kv_len},
                                             {"q_row_stride", c.q_row_stride}};
    const auto bytes = pipeline->workspace_bytes(arguments);
    CHECK(bytes && *bytes >= c.L * c.kv_len * kHeads * 2);
    if (!bytes) continue;
    const unsigned long long workspace = driver.allocate(*bytes);
    CHECK(pipeline->launch(nullptr, arguments, workspace, *bytes));
    CHECK(o.fetch(driver) &&
          error_of(o.values, attention(q, k, v, c.L, c.kv_len, kHeads, kD, c.q_row_stride, 0.125)) < 4);
    served = true;
    CHECK(!pipeline->launch(nullptr, arguments, 0, *bytes) && std::strstr(roofgen_error(), "workspace is null"));
    CHECK(!pipeline->launch(nullptr, arguments, workspace, *bytes - 1) &&
          std::strstr(roofgen_error(), "were expected"));
    CHECK(!pipeline->launch(nullptr, arguments, workspace + 16, *bytes) && std::strstr(roofgen_error(), "256 bytes"));
    CHECK(!pipeline->launch(nullptr, arguments, q.at - q.at % 256, *bytes) &&
          std::strstr(roofgen_error(), "shares memory with Q"));
    std::vector<Argument> overlapping = arguments;
    overlapping.push_back({"o_row_stride", 0});
    CHECK(!pipeline->launch(nullptr, overlapping, workspace, *bytes) &&
          std::strstr(roofgen_error(), "O overlaps itself"));
  }
  CHECK(served);
  const Tensor t(driver, 64 * kHeads * kD, 1);
  const struct {
    int64_t stride;
    int status;
    const char* part;
  } wrong[] = {{kHeads * kD + 2, ROOFGEN_USAGE, "a stride of Q is 130 elements, which is not a multiple of 16 bytes"},
               {-128, ROOFGEN_USAGE, "q_row_stride is -128; 0 to 2^40"},
               {(int64_t{1} << 40) + 1, ROOFGEN_USAGE, "0 to 2^40 elements"},
               {int64_t{1} << 36, ROOFGEN_USAGE, "Q"}};
  const unsigned long long workspace = driver.allocate(1 << 20);
  for (const auto& w : wrong) {
    const Tensor o(driver, 64 * kHeads * kD, 1);
    const Argument arguments[] = {
        tensor("Q", t), tensor("K", t), tensor("V", t), tensor("O", o), {"q_row_stride", w.stride}};
    const auto launched = pipeline->launch(nullptr, arguments, workspace, 1 << 20);
    CHECK(!launched && launched.error().status == w.status && std::strstr(roofgen_error(), w.part));
  }
}

/// Tensor maps, on devices that have them.
void maps(roofgen::Session& session) {
  constexpr size_t kN = 128, kK = 128;
  const auto pipeline = roofgen::jit(session, request_of("gemm", {{"M", 256}, {"N", kN}, {"K", kK}}, "warpgroup"));
  CHECK(pipeline);
  if (!pipeline) return;
  const Tensor b(driver, kN * kK, 2);  // columns are contiguous
  for (const size_t M : {256, 512, 300}) {
    const Tensor a(driver, M * kK, 1);
    Tensor c(driver, M * kN, 3);
    const Argument arguments[] = {tensor("A", a), tensor("B", b), tensor("C", c), {"M", M}};
    const auto launched = pipeline->launch(nullptr, arguments);
    CHECK(M == 300 ? !launched && launched.error().status == ROOFGEN_UNAVAILABLE : bool(launched));
    if (!launched) continue;
    std::vector<double> expected(M * kN);
    for (size_t m = 0; m < M; ++m)
      for (size_t n = 0; n < kN; ++n)
        for (size_t k = 0; k < kK; ++k) expected[m * kN + n] += double{a.values[m * kK + k]} * b.values[n * kK + k];
    CHECK(c.fetch(driver) && error_of(c.values, expected) < 2);
  }
}

/// A fused kernel of tiles that divide its lengths: other lengths are computed right or refused.
void lengths(roofgen::Session& session) {
  constexpr size_t kHeads = 2, kD = 64;
  const auto pipeline =
      roofgen::jit(session, request_of("attention", {{"L", 128}, {"d", kD}, {"heads", kHeads}, {"batch", 1}}, "fused")
                                .set("set", "BM=64,BN=64"));
  CHECK(pipeline);
  if (!pipeline) return;
  int served = 0, refused = 0;
  for (const size_t L : {128, 192, 64, 100, 17}) {
    const Tensor q(driver, L * kHeads * kD, 1), k(driver, L * kHeads * kD, 2), v(driver, L * kHeads * kD, 3);
    Tensor o(driver, L * kHeads * kD, 4);
    const Argument arguments[] = {tensor("Q", q), tensor("K", k), tensor("V", v),
                                  tensor("O", o), {"L", L},       {"kv_len", L}};
    const auto launched = pipeline->launch(nullptr, arguments);
    if (launched) {
      ++served;
      CHECK(o.fetch(driver) && error_of(o.values, attention(q, k, v, L, L, kHeads, kD, kHeads * kD, 0.125)) < 4);
    } else {
      ++refused;
      CHECK(launched.error().status == ROOFGEN_UNAVAILABLE &&
            std::strstr(roofgen_error(), "not compiled for these sizes"));
    }
  }
  // A negative factor would turn the maximum of a row into its minimum.
  const Tensor x(driver, 128 * kHeads * kD, 1), y(driver, 128 * kHeads * kD, 2);
  for (const double scale : {-0.125, 0.0, 17.0, std::nan("")}) {
    const Argument arguments[] = {tensor("Q", x), tensor("K", x), tensor("V", x), tensor("O", y), {"scale", scale}};
    const auto launched = pipeline->launch(nullptr, arguments);
    CHECK(!launched && launched.error().status == ROOFGEN_USAGE && std::strstr(roofgen_error(), "scale"));
  }
  CHECK(served >= 2 && refused >= 1);
}

/// K of keys that a mask hides is not seen, whatever it holds; V behind the last key of a cache neither.
void hidden(roofgen::Session& session) {
  constexpr size_t kL = 64, kKeys = 96, kSeen = 40, kHeads = 2, kD = 64;
  for (const char* variant : {"fused", "unfused", "warpgroup"})
    for (const bool cache : {false, true}) {
      Request request = request_of("attention", {{"L", kL}, {"kv-len", kKeys}, {"d", kD}, {"heads", kHeads}}, variant);
      cache ? request.set("kv-lengths", "96") : request.set("mask", "k < 40").set("batch", 1);
      const auto pipeline = roofgen::jit(session, request);
      CHECK(pipeline);
      if (!pipeline) continue;
      const Tensor q(driver, kL * kHeads * kD, 1), k(driver, kKeys * kHeads * kD, 2), v(driver, kKeys * kHeads * kD, 3);
      Tensor o(driver, kL * kHeads * kD, 4);
      const std::vector<uint16_t> nan((kKeys - kSeen) * kHeads * kD, 0x7fc0);
      driver.write(k.at + 2 * kSeen * kHeads * kD, nan.data(), 2 * nan.size());
      const int32_t length = kSeen;
      const unsigned long long lengths = driver.allocate(sizeof length);
      driver.write(lengths, &length, sizeof length);
      std::vector<Argument> arguments = {tensor("Q", q), tensor("K", k), tensor("V", v), tensor("O", o)};
      if (cache) {
        driver.write(v.at + 2 * kSeen * kHeads * kD, nan.data(), 2 * nan.size());
        arguments.push_back(Argument::at("kv_lengths", lengths));
      }
      const auto bytes = pipeline->workspace_bytes(arguments);
      CHECK(bytes && pipeline->launch(nullptr, arguments, *bytes ? driver.allocate(*bytes) : 0, *bytes));
      CHECK(o.fetch(driver) && error_of(o.values, attention(q, k, v, kL, kSeen, kHeads, kD, kHeads * kD, 0.125)) < 4);
    }
}

void misuses(roofgen::Session& session) {
  constexpr size_t kRows = 64, kCols = 256;
  const Request request = request_of("rmsnorm", {{"rows", kRows}, {"cols", kCols}});
  const auto pipeline = roofgen::jit(session, request);
  CHECK(pipeline);
  if (!pipeline) return;
  const Tensor x(driver, kRows * kCols, 1), weight(driver, kCols, 2), y(driver, kRows * kCols, 3);
  const std::vector<Argument> right = {tensor("x", x), tensor("weight", weight), tensor("y", y)};
  const struct {
    std::vector<Argument> arguments;  // instead of those of `right` with the same name, or behind them
    int status;
    const char* part;
  } cases[] = {
      {{Argument::at("x", 0)}, ROOFGEN_USAGE, "x is null"},
      {{Argument::at("y", y.at + 2)}, ROOFGEN_USAGE, "y is not aligned to 16 bytes"},
      {{Argument::at("y", x.at)}, ROOFGEN_USAGE, "x shares memory with y"},
      {{Argument::at("y", weight.at)}, ROOFGEN_USAGE, "weight shares memory with y"},
      {{{"x", 3}}, ROOFGEN_USAGE, "x is a tensor: a pointer was expected"},
      {{Argument::at("rows", x.at)}, ROOFGEN_USAGE, "rows is a size, no tensor"},
      {{{"cols", 0}}, ROOFGEN_USAGE, "cols is 0; 1 to"},
      {{{"rows", -1}}, ROOFGEN_USAGE, "rows is -1; 0 to"},
      {{{"rows", int64_t{1} << 31}}, ROOFGEN_USAGE, "0 to 2147483647"},
      {{{"rows", 64.0}}, ROOFGEN_USAGE, "rows: a whole number was expected"},
      {{{"row", 64}}, ROOFGEN_USAGE, "the pipeline has no argument row; did you mean \"rows\"?"},
      {{{"q_row_stride", 64}}, ROOFGEN_USAGE, "the pipeline has no argument q_row_stride"},
      {{{"cols", 100000}},
       ROOFGEN_UNAVAILABLE,
       "not compiled for these sizes and strides: cols is 256 in the tuned problem; cols is 100000"},
      {{{"cols", 257}}, ROOFGEN_UNAVAILABLE, "cols is 257"},
  };
  for (const auto& c : cases) {
    std::vector<Argument> arguments = right;
    for (const Argument& a : c.arguments) {
      const auto same =
          std::ranges::find_if(arguments, [&](const Argument& b) { return !std::strcmp(a.name, b.name); });
      if (same == arguments.end())
        arguments.push_back(a);
      else
        *same = a;
    }
    const auto launched = pipeline->launch(nullptr, arguments);
    if (launched || launched.error().status != c.status || launched.error().message.find(c.part) == std::string::npos) {
      ++failures;
      std::fprintf(stderr, "expected %d %s, got %d %s\n", c.status, c.part, launched ? 0 : launched.error().status,
                   launched ? "" : launched.error().message.c_str());
    }
  }
  // Without rows there is nothing to do, and no tensor to look at.
  CHECK(pipeline->launch(nullptr, std::vector<Argument>{{"rows", 0}}));
  const Argument missing[] = {tensor("x", x), tensor("y", y)};
  CHECK(!pipeline->launch(nullptr, missing) && std::strstr(roofgen_error(), "weight is null or missing"));
  roofgen_argument raw[] = {right[0], right[1], right[2], {nullptr, ROOFGEN_INTEGER, {1}}};
  CHECK(roofgen_launch(nullptr, nullptr, raw, 3, 0, 0) == ROOFGEN_USAGE &&
        !std::strcmp(roofgen_error(), "pipeline is null"));
  roofgen_pipeline* own = nullptr;
  CHECK(roofgen_jit(session.get(), request.text().c_str(), &own) == ROOFGEN_OK);
  CHECK(roofgen_launch(own, nullptr, nullptr, 3, 0, 0) == ROOFGEN_USAGE &&
        !std::strcmp(roofgen_error(), "arguments is null"));
  CHECK(roofgen_launch(own, nullptr, raw, 4, 0, 0) == ROOFGEN_USAGE &&
        !std::strcmp(roofgen_error(), "an argument has no name"));
  raw[3] = {"rows", 7, {64}};
  CHECK(roofgen_launch(own, nullptr, raw, 4, 0, 0) == ROOFGEN_USAGE && std::strstr(roofgen_error(), "kind 7"));
  CHECK(roofgen_launch(own, nullptr, raw, 3, 0, 0) == ROOFGEN_OK);
  uint64_t bytes = 1;
  CHECK(roofgen_workspace_bytes(own, raw, 3, nullptr) == ROOFGEN_USAGE);
  CHECK(roofgen_workspace_bytes(own, nullptr, 0, &bytes) == ROOFGEN_OK && bytes == 0);
  roofgen_pipeline_free(own);
  roofgen_pipeline_free(nullptr);
  CHECK(!*roofgen_pipeline_text(nullptr));
  CHECK(roofgen_jit(nullptr, "{}", &own) == ROOFGEN_USAGE && !own);
  CHECK(roofgen_jit(session.get(), "{\"op\": \"rmsnorm\", \"rowz\": 3}", &own) == ROOFGEN_USAGE &&
        roofgen_error_line() == 1);
  CHECK(roofgen_jit(session.get(), "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"device\": \"v100-sxm2\"}",
                    &own) != ROOFGEN_OK);
}

/// A better winner of another search is taken, a damaged file or one with other binaries is not.
void winners(roofgen::Session& session, const std::string& folder) {
  const auto request = [](int evals) {
    return request_of("attention", {{"L", 256}, {"d", 64}, {"heads", 1}, {"batch", 1}}, "fused", evals);
  };
  const auto schedule = [&](int evals) -> std::string {
    const auto pipeline = roofgen::jit(session, request(evals));
    CHECK(pipeline);
    const std::string text = pipeline ? pipeline->text() : "";
    const size_t at = text.find("\"schedule\":\"");
    return at == std::string::npos ? "" : text.substr(at + 12, text.find('"', at + 12) - at - 12);
  };
  const std::string first = schedule(1);
  const auto tuned = roofgen::tune(session, request(4));
  CHECK(tuned && tuned->kernels().size() == 1);
  if (!tuned) return;
  const std::string best = tuned->kernels()[0].schedule;
  CHECK(!first.empty() && first != best);
  CHECK(schedule(1) == best && schedule(4) == best);
  // More candidates than any search had: it searches again.
  CHECK(!schedule(5).empty());
  const auto contents = [](const std::filesystem::path& file) {
    std::ifstream in(file);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/cache/winners"))
    if (contents(entry.path()).find("attention bf16 L=256") != std::string::npos) files.push_back(entry.path());
  CHECK(files.size() == 1);
  for (const std::filesystem::path& file : files) {
    std::string text = contents(file);
    const size_t digest = text.find("\"digest\": \"") + 11;
    text[digest] = text[digest] == '0' ? '1' : '0';
    // A new search follows, whose winner takes the place of the refused one.
    for (const std::string& damaged : {text, text.substr(0, digest)}) {
      std::ofstream(file) << damaged;
      CHECK(!schedule(1).empty());
      CHECK(contents(file) != damaged);
    }
  }
}

/// Two threads share a pipeline, with tensors of their own.
void threads(roofgen::Session& session) {
  constexpr size_t kCols = 256;
  const auto pipeline = roofgen::jit(session, request_of("rmsnorm", {{"rows", 64}, {"cols", kCols}}));
  CHECK(pipeline);
  if (!pipeline) return;
  const auto work = [&](size_t first, double* worst) {
    for (size_t count = first; count < first + 6; ++count) {
      const Tensor x(driver, count * kCols, 1), weight(driver, kCols, 2);
      Tensor y(driver, count * kCols, 3);
      const Argument arguments[] = {tensor("x", x), tensor("weight", weight), tensor("y", y), {"rows", count}};
      const bool launched = static_cast<bool>(pipeline->launch(nullptr, arguments));
      *worst = std::max(
          *worst, launched && y.fetch(driver) ? error_of(y.values, rmsnorm(x, weight, count, kCols, 1e-6)) : 1e30);
    }
  };
  double worst[2] = {};
  std::thread other([&] {
    if (driver.begin()) work(10, &worst[1]);
  });
  work(12, &worst[0]);
  other.join();
  CHECK(worst[0] < 2 && worst[1] < 2 && worst[1] > 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  started(argv[1]);
  auto session = roofgen::Session::open(options_below(argv[1]));
  CHECK(session);
  if (!session) return 1;
  const auto no_context = roofgen::jit(*session, Request("rmsnorm").set("rows", 64).set("cols", 256));
  CHECK(!no_context && no_context.error().status == ROOFGEN_UNAVAILABLE);
  if (!driver.begin()) return std::fprintf(stderr, "skipped: no CUDA driver\n"), kSkipped;
  const auto compiled = roofgen::compile(*session, Request("rmsnorm").set("rows", 64).set("cols", 256));
  if (!compiled && compiled.error().status == ROOFGEN_UNAVAILABLE)
    return std::fprintf(stderr, "skipped: %s\n", roofgen_error()), kSkipped;
  rows(*session);
  stages(*session);
  lengths(*session);
  hidden(*session);
  maps(*session);
  misuses(*session);
  threads(*session);
  winners(*session, argv[1]);
  CHECK(starts(argv[1]) == 1);
  return failures ? 1 : 0;
}
