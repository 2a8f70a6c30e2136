// Every class of arithmetic instructions against the host: NVRTC compiles functions.inc for the simulator, and the
// host's compiler compiles it for the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <sstream>

#include "host_functions.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tests/support/words.h"

namespace roofgen::check::arithmetic {
namespace {

constexpr size_t kValues = 4096;

enum class Type { kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64, kF32, kF64 };
template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, f32>)
    return Type::kF32;
  else if constexpr (std::is_same_v<T, f64>)
    return Type::kF64;
  else
    return static_cast<Type>(2 * std::countr_zero(sizeof(T)) + std::is_unsigned_v<T>);
}
size_t size_of(Type t) { return t == Type::kF32 ? 4 : t == Type::kF64 ? 8 : size_t{1} << static_cast<int>(t) / 2; }

struct Function {
  const char* name;
  Type result, in[3];
  void (*run)(const void* a, const void* b, const void* c, void* y);
};
const Function kFunctions[] = {
#define F(name, R, A, B, C, ...)                                  \
  {#name,                                                         \
   type_of<R>(),                                                  \
   {type_of<A>(), type_of<B>(), type_of<C>()},                    \
   [](const void* pa, const void* pb, const void* pc, void* y) {  \
     for (size_t i = 0; i < kValues; ++i) {                       \
       [[maybe_unused]] const A a = static_cast<const A*>(pa)[i]; \
       [[maybe_unused]] const B b = static_cast<const B*>(pb)[i]; \
       [[maybe_unused]] const C c = static_cast<const C*>(pc)[i]; \
       static_cast<R*>(y)[i] = static_cast<R>(__VA_ARGS__);       \
     }                                                            \
   }},
#include "functions.inc"
#undef F
};

const std::vector<u64>& special(Type t) {
  static const std::vector<u64> integers = test::numbers<u64>(
      "0 1 2 3 7 31 32 33 0x7f 0x80 0xff 0x100 0x7fff 0x8000 0xffff 0x10000 0x7fffffff 0x80000000 0xfffffffe "
      "0xffffffff 0x100000000 0x7fffffffffffffff 0x8000000000000000 0xffffffffffffffff");
  static const std::vector<u64> floats{
      0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x3f000000,
      0x3fc00000, 0xbfc00000, 0x40200000, 0x3effffff, 0x4b000001, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000,
      0x477fe000, 0x477ff000, 0x33000000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fa00001, 0x3f800001},
      doubles = test::numbers<u64>(
          "0 0x8000000000000000 1 0x000fffffffffffff 0x0010000000000000 0x3ff0000000000000 0xbff0000000000000 "
          "0x3fe0000000000000 0x3ff8000000000000 0x4004000000000000 0x41dfffffffc00000 0x41e0000000000000 "
          "0xc1e0000000000000 0x43e0000000000000 0x43f0000000000000 0x47efffffe0000000 0x47f0000000000000 "
          "0x36a0000000000000 0x7fefffffffffffff 0x7ff0000000000000 0xfff0000000000000 0x7ff8000000000000 "
          "0x3ff0000000000001 0x40effc0000000000"),
      halves{0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00, 0x3800, 0x3e00, 0x4100, 0x7bff,
             0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3f80, 0xbf80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x007f};
  return t == Type::kF32 ? floats : t == Type::kF64 ? doubles : t == Type::kU16 ? halves : integers;
}

/// All triples of special values would be too many. The inputs are pairs of special values, then random bits and
/// numbers of similar magnitude.
std::vector<std::byte> inputs(Type t, int operand, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(kValues * size_of(t));
  const std::vector<u64>& s = special(t);
  for (size_t i = 0; i < kValues; ++i) {
    u64 v = random();
    if (i < s.size() * s.size())
      v = operand == 0 ? s[i % s.size()] : operand == 1 ? s[i / s.size()] : s[(i * 7 + i / s.size()) % s.size()];
    else if (i % 4 == 0 && t == Type::kF32)
      v = std::bit_cast<u32>(static_cast<f32>(std::ldexp(static_cast<f64>(v >> 11) - 0x1p52, -40)));
    else if (i % 4 == 0 && t == Type::kF64)
      v = std::bit_cast<u64>(std::ldexp(static_cast<f64>(v >> 11) - 0x1p52, -40));
    else if (i % 4 == 1 && t == Type::kF64)
      v = std::bit_cast<u64>(std::ldexp(static_cast<f64>(v >> 40) - 0x1p23, static_cast<int>(v & 15) - 12));
    else if (i % 4 == 0)
      v >>= v % 64;  // also small numbers
    std::memcpy(&out[i * size_of(t)], &v, size_of(t));
  }
  return out;
}

template <class T>
T element(const std::vector<std::byte>& bytes, size_t i) {
  T v;
  std::memcpy(&v, &bytes[i * sizeof v], sizeof v);
  return v;
}
bool same(Type t, const std::vector<std::byte>& x, const std::vector<std::byte>& y, size_t i) {
  if (t == Type::kF32 && std::isnan(element<f32>(x, i))) return std::isnan(element<f32>(y, i));
  if (t == Type::kF64 && std::isnan(element<f64>(x, i))) return std::isnan(element<f64>(y, i));
  return std::memcmp(&x[i * size_of(t)], &y[i * size_of(t)], size_of(t)) == 0;
}
std::string text(Type t, const std::vector<std::byte>& x, size_t i) {
  u64 bits = 0;
  std::memcpy(&bits, &x[i * size_of(t)], size_of(t));
  if (t == Type::kF32) return fmt::format("{} ({:#x})", element<f32>(x, i), bits);
  if (t == Type::kF64) return fmt::format("{} ({:#x})", element<f64>(x, i), bits);
  return fmt::format("{:#x}", bits);
}

std::string file(const char* name) {
  std::ifstream in(std::string(ROOFGEN_ARITHMETIC) + "/" + name);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

/// The PTX of each kernel alone: the text before the first kernel, and the kernel's own text.
std::map<std::string, std::string> kernels_of(const std::string& ptx) {
  std::map<std::string, std::string> out;
  const std::string mark = ".visible .entry ";
  size_t at = ptx.find(mark);
  const std::string head = ptx.substr(0, at);
  while (at != std::string::npos) {
    const size_t next = ptx.find(mark, at + 1), name = at + mark.size();
    out[ptx.substr(name, ptx.find('(', name) - name)] =
        head + ptx.substr(at, next == std::string::npos ? ptx.rfind('}') + 1 - at : next - at);
    at = next;
  }
  return out;
}

TEST(Arithmetic, AsOnTheHost) {
  if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  CompileOptions options;
  options.extra_flags = {"--fmad=false"};
  options.timeout = std::chrono::milliseconds(120000);
  auto compiler = make_nvrtc_compiler(options, "", [](const std::string&) {});
  ASSERT_TRUE(compiler) << to_string(compiler.error());
  Program program;
  program.source = file("device_functions.cuh") + file("functions.inc");
  program.target = "compute_90";  // no machine code
  std::optional<Result<Binary>> binary;
  (*compiler)->compile_all({&program}, [&](CompileOutcome outcome) {
    binary.emplace(std::move(outcome.binary));
    return true;
  });
  ASSERT_TRUE(binary && *binary) << to_string(binary->error());
  const std::map<std::string, std::string> kernels = kernels_of((*binary)->ptx);

  auto executor = make_sim_executor();
  ASSERT_TRUE(executor);
  std::map<std::pair<Type, int>, std::pair<std::vector<std::byte>, DevicePtr>> sources;
  const auto source = [&](Type t, int operand) -> auto& {
    auto [at, fresh] = sources.try_emplace({t, operand});
    if (fresh) {
      at->second.first = inputs(t, operand, static_cast<uint64_t>(t) * 3 + static_cast<uint64_t>(operand));
      at->second.second = *(*executor)->allocate(at->second.first.size(), "in");
      EXPECT_TRUE((*executor)->write(at->second.second, at->second.first));
    }
    return at->second;
  };
  size_t compared = 0;
  for (const Function& f : kFunctions) {
    const std::string name = std::string("k_") + f.name;
    ASSERT_TRUE(kernels.count(name)) << name;
    Binary one;
    one.entry = name;
    one.ptx = kernels.at(name);
    auto module = (*executor)->load(one);
    EXPECT_TRUE(module) << f.name << ": " << to_string(module.error());
    if (!module) continue;
    std::vector<std::byte> wanted(kValues * size_of(f.result)), got(wanted.size());
    const DevicePtr y = *(*executor)->allocate(wanted.size(), "y");
    Launch launch;
    launch.grid.x = kValues / 256;
    launch.block.x = 256;
    for (int i = 0; i < 3; ++i) launch.args.push_back({"in", true, source(f.in[i], i).second.address, 8});
    launch.args.push_back({"y", true, y.address, 8});
    auto result = (*executor)->run(*module, launch, {});
    ASSERT_TRUE(result) << to_string(result.error());
    for (const Finding& finding : result->findings) ADD_FAILURE() << f.name << ": " << finding.message;
    ASSERT_TRUE((*executor)->read(y, got));
    (*executor)->release(y);
    (*executor)->unload(*module);
    f.run(source(f.in[0], 0).first.data(), source(f.in[1], 1).first.data(), source(f.in[2], 2).first.data(),
          wanted.data());
    size_t wrong = 0, first = 0;
    for (size_t i = kValues; i-- > 0;)
      if (!same(f.result, wanted, got, i)) ++wrong, first = i;
    EXPECT_EQ(wrong, 0u) << f.name << " of " << text(f.in[0], source(f.in[0], 0).first, first) << ", "
                         << text(f.in[1], source(f.in[1], 1).first, first) << ", "
                         << text(f.in[2], source(f.in[2], 2).first, first) << " is " << text(f.result, got, first)
                         << ", on the host " << text(f.result, wanted, first);
    compared += kValues;
  }
  RecordProperty("values", std::to_string(compared));
  std::printf("%zu functions, %zu values\n", std::size(kFunctions), compared);
}

}  // namespace
}  // namespace roofgen::check::arithmetic
