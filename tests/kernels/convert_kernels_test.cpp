// templates/lib/convert.cuh through NVRTC and the simulator against generator/ops/elements.h: loads of every bit
// pattern of the narrow formats, and stores in every format of numbers at and next to its rounding boundaries.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "generator/generate.h"
#include "generator/jinja/jinja.h"
#include "generator/ops/elements.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tests/support/compile_cache.h"

namespace roofgen::convert_kernels_test {
namespace {

constexpr DType kFormats[] = {DType::kBf16, DType::kFp16, DType::kFp32, DType::kFp8, DType::kInt8, DType::kInt32};

/// Vectors of N elements: In loaded and stored as float, and float stored as Out.
constexpr const char* kKernel = R"(
{% include "lib/math.cuh" %}
{% include "lib/convert.cuh" %}
template <class T, int N>
__device__ __forceinline__ void both_ways(const T* in, float* loaded, const float* x, T* stored) {
  const int i = (blockIdx.x * 32 + threadIdx.x) * N;
  float v[N];
  load_as<T, N>(in + i, v);
  store_as<float, N>(loaded + i, v);
  load_as<float, N>(x + i, v);
  store_as<T, N>(stored + i, v);
}
extern "C" __global__ void convert(const Element_{{ dtype }}* in, float* loaded, const float* x, Element_{{ dtype }}* stored) {
  both_ways<Element_{{ dtype }}, {{ n }}>(in, loaded, x, stored);
}
)";

constexpr size_t kElements = 1 << 16;

/// An architecture that converts fp8 by integer arithmetic; everything else is the same from sm_80 on.
const std::string kBeforeFp8 = "sm_80";

class Convert : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC here";
  }
};

Result<Program> render(DType dtype, int n) {
  const DataFiles files;
  const jinja::Loader loader = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "convert") return std::string(kKernel);
    return files.read("templates/" + std::string(name));
  };
  ROOFGEN_TRY(jinja::Rendered rendered, jinja::render(loader, "convert", {{"dtype", to_string(dtype)}, {"n", n}}));
  return Program{{}, std::move(rendered.text), "convert", {}};
}

/// Numbers at and next to the midpoints of the format, its limits, and random numbers.
std::vector<float> numbers(DType dtype) {
  std::mt19937 rng(7);
  std::vector<float> out = {0.0f,   -0.0f,   INFINITY, -INFINITY,     NAN,   448,      464,   464.1f,  -500,
                            127.5f, -128.5f, 128,      2147483648.0f, -3e9f, 65519.9f, 65520, 3.4e38f, 1e-45f};
  while (out.size() < kElements) {
    const float any = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    const double moderate =
        std::ldexp(static_cast<double>(rng() % 0x1000000) - 0x800000, -static_cast<int>(rng() % 36));
    const double below = round_to_dtype(moderate, dtype);
    const float middle = static_cast<float>(below + spacing_of(below, dtype) / 2);
    out.insert(out.end(), {any, static_cast<float>(moderate), middle, std::nextafter(middle, 0.0f),
                           std::nextafter(middle, INFINITY)});
  }
  out.resize(kElements);
  return out;
}

template <class T>
DevicePtr put(Executor& sim, const std::string& name, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return *sim.allocate(bytes.size(), name, [bytes](uint64_t offset, std::span<std::byte> out) {
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
  });
}

std::string bits(const std::byte* at, size_t i, int size) {
  uint32_t word = 0;
  std::memcpy(&word, at + i * static_cast<size_t>(size), static_cast<size_t>(size));
  return fmt::format("{:#x}", word);
}

TEST_P(Convert, LoadsAndStoresEveryFormatAtEveryWidth) {
  std::vector<Program> programs;
  std::vector<std::pair<DType, int>> cases;
  for (DType dtype : kFormats)
    for (int n = 1; (dtype == DType::kFp8 || GetParam() != kBeforeFp8) && n * size_of(dtype) <= 32; n *= 2) {
      auto program = render(dtype, n);
      ASSERT_TRUE(program) << to_string(program.error());
      programs.push_back(std::move(*program));
      cases.emplace_back(dtype, n);
    }
  CompileOptions options;
  options.arch = GetParam();
  auto nvrtc = make_nvrtc_compiler(options, test::shared_compile_cache(), [](const std::string&) {});
  ASSERT_TRUE(nvrtc) << to_string(nvrtc.error());
  std::vector<const Program*> pointers;
  for (const Program& p : programs) pointers.push_back(&p);
  (*nvrtc)->compile_all(pointers, [&](CompileOutcome outcome) {
    EXPECT_TRUE(outcome.binary) << to_string(outcome.binary.error());
    if (!outcome.binary) return true;
    const auto [dtype, n] = cases[outcome.index];
    const size_t size = static_cast<size_t>(size_of(dtype));
    std::mt19937 rng(8);
    std::vector<std::byte> in(kElements * size);
    for (size_t i = 0; i < kElements; ++i) {
      const uint32_t word = size == 4 ? static_cast<uint32_t>(rng()) : static_cast<uint32_t>(i);
      std::memcpy(&in[i * size], &word, size);
    }
    const std::vector<float> x = numbers(dtype);
    auto sim = *make_sim_executor();
    const DevicePtr loaded = *sim->allocate(kElements * 4, "loaded"),
                    stored = *sim->allocate(kElements * size, "stored");
    Launch launch;
    launch.grid = {static_cast<uint32_t>(kElements / 32) / static_cast<uint32_t>(n), 1, 1};
    launch.block = {32, 1, 1};
    for (DevicePtr p : {put(*sim, "in", in), loaded, put(*sim, "x", x), stored})
      launch.args.push_back({"p", true, p.address, 8});
    const ModuleId module = *sim->load(*outcome.binary);
    const RunResult result = *sim->run(module, launch, {});
    for (const Finding& f : result.findings) ADD_FAILURE() << f.message;
    // A single access of all bytes, up to 16 bytes.
    const double bytes = static_cast<double>(n) * static_cast<double>(size),
                 warps = static_cast<double>(kElements) / 32 / n;
    EXPECT_EQ(static_cast<double>(result.counts->global_store),
              warps * (std::max(1.0, bytes / 16) + std::max(1.0, n * 4 / 16.0)));

    std::vector<std::byte> got(kElements * 4), want(4);
    EXPECT_TRUE(sim->read(loaded, got));
    int wrong = 0;
    for (size_t i = 0; i < kElements && wrong < 5; ++i) {
      const double a = load_element(got.data(), i, DType::kFp32),
                   b = round_to_dtype(load_element(in.data(), i, dtype), DType::kFp32);
      if (a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b)) continue;
      ++wrong;
      ADD_FAILURE() << to_string(dtype) << " x " << n << ": " << bits(in.data(), i, size_of(dtype)) << " was loaded as "
                    << a << ", it is " << b;
    }
    got.resize(kElements * size);
    EXPECT_TRUE(sim->read(stored, got));
    for (size_t i = 0; i < kElements && wrong < 5; ++i) {
      store_element(want.data(), 0, dtype, static_cast<double>(x[i]));
      if (bits(got.data(), i, size_of(dtype)) == bits(want.data(), 0, size_of(dtype)) ||
          (std::isnan(load_element(got.data(), i, dtype)) && std::isnan(x[i])))
        continue;
      ++wrong;
      ADD_FAILURE() << to_string(dtype) << " x " << n << ": " << x[i] << " was stored as "
                    << bits(got.data(), i, size_of(dtype)) << ", " << bits(want.data(), 0, size_of(dtype))
                    << " was expected";
    }
    return true;
  });
}

INSTANTIATE_TEST_SUITE_P(Archs, Convert, testing::Values(kBeforeFp8, "sm_89"),
                         [](const auto& arch) { return arch.param; });

}  // namespace
}  // namespace roofgen::convert_kernels_test
