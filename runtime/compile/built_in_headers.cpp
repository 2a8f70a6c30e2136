#include "runtime/compile/built_in_headers.h"

#include <fmt/format.h>

#include <map>
#include <vector>

namespace roofgen {
namespace {

// NVRTC itself provides printf, memcpy, malloc, the mathematical functions, size_t and ptrdiff_t.
constexpr const char* kNothing = "#pragma once\n";

// NVRTC lacks these constants; bit casts make them constant expressions.
constexpr const char* kMath = R"(#pragma once
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000)
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
)";

constexpr const char* kAssert = R"(#undef assert
#ifdef NDEBUG
#define assert(...) (static_cast<void>(0))
#else
#define assert(...) ((__VA_ARGS__) ? static_cast<void>(0) : __assertfail(#__VA_ARGS__, __FILE__, __LINE__, __func__, sizeof(char)))
#endif
)";

constexpr const char* kLimits = R"(#pragma once
#ifndef CHAR_BIT
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MIN (-9223372036854775807l - 1)
#define LONG_MAX 9223372036854775807l
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LLONG_MAX 9223372036854775807ll
#define ULLONG_MAX 18446744073709551615ull
#endif
)";

constexpr const char* kFloat = R"(#pragma once
#ifndef FLT_MAX
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_EPSILON 1.19209290e-7f
#define FLT_MIN 1.17549435e-38f
#define FLT_MAX 3.40282347e+38f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
#endif
)";

// The same types as <cuda/std/cstdint> under NVRTC, so that both can be included.
constexpr const char* kInteger = R"(#pragma once
using int8_t = signed char;
using int16_t = signed short;
using int32_t = signed int;
using int64_t = signed long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using intptr_t = int64_t;
using uintptr_t = uint64_t;
using intmax_t = int64_t;
using uintmax_t = uint64_t;
#ifndef INT8_MAX
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
#define SIZE_MAX UINT64_MAX
#define PTRDIFF_MAX INT64_MAX
#endif
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
}
)";

// Types from <sys/types.h>, which glibc's <stdlib.h> includes and host code in .cu files uses.
constexpr const char* kStdlib = R"(#pragma once
typedef unsigned long ulong;
typedef unsigned short ushort;
typedef unsigned int uint;
#ifndef EXIT_SUCCESS
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
#endif
)";

constexpr const char* kStddef = R"(#pragma once
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
namespace std {
using ::size_t; using ::ptrdiff_t;
}
)";

/// The device-side headers of CUB's umbrella header; the host calls CUB's device-wide algorithms.
std::string cub_for_device(const std::function<bool(const std::string&)>& exists) {
  std::string out;
  for (const char* part : {"block/block_adjacent_difference",
                           "block/block_discontinuity",
                           "block/block_exchange",
                           "block/block_histogram",
                           "block/block_load",
                           "block/block_merge_sort",
                           "block/block_radix_rank",
                           "block/block_radix_sort",
                           "block/block_reduce",
                           "block/block_run_length_decode",
                           "block/block_scan",
                           "block/block_shuffle",
                           "block/block_store",
                           "grid/grid_even_share",
                           "grid/grid_mapping",
                           "grid/grid_queue",
                           "thread/thread_load",
                           "thread/thread_operators",
                           "thread/thread_reduce",
                           "thread/thread_scan",
                           "thread/thread_search",
                           "thread/thread_sort",
                           "thread/thread_store",
                           "warp/warp_exchange",
                           "warp/warp_load",
                           "warp/warp_merge_sort",
                           "warp/warp_reduce",
                           "warp/warp_scan",
                           "warp/warp_store"})
    if (const std::string header = fmt::format("cub/{}.cuh", part); exists(header))
      out += fmt::format("#include <{}>\n", header);
  return out.empty() ? out : "#pragma once\n" + out;
}

}  // namespace

const std::string* built_in_header(const std::string& name) {
  static const std::map<std::string, std::string> texts{
      {"assert.h", kAssert},    {"cassert", kAssert},   {"limits.h", kLimits},  {"climits", kLimits},
      {"float.h", kFloat},      {"cfloat", kFloat},     {"stdint.h", kInteger}, {"cstdint", kInteger},
      {"stddef.h", kStddef},    {"cstddef", kStddef},   {"stdio.h", kNothing},  {"cstdio", kNothing},
      {"math.h", kMath},        {"cmath", kMath},       {"stdlib.h", kStdlib},  {"cstdlib", kStdlib},
      {"sys/types.h", kStdlib}, {"string.h", kNothing}, {"cstring", kNothing}};
  const auto at = texts.find(name);
  return at == texts.end() ? nullptr : &at->second;
}

std::string redirected_header(const std::string& name, const std::function<bool(const std::string&)>& exists) {
  if (name == "cub/cub.cuh") return cub_for_device(exists);
  static const std::map<std::string, std::vector<std::string>> sources{
      {"algorithm",
       {"__algorithm/min.h", "__algorithm/max.h", "__algorithm/minmax.h", "__algorithm/clamp.h", "utility"}},
      {"array", {"array"}},
      {"bit", {"bit"}},
      {"cmath", {"cmath"}},
      {"complex", {"complex"}},
      {"functional", {"functional"}},
      {"initializer_list", {"initializer_list"}},
      {"iterator", {"iterator"}},
      {"limits", {"limits"}},
      {"numbers", {"numbers"}},
      {"numeric", {"numeric"}},
      {"optional", {"optional"}},
      {"ratio", {"ratio"}},
      {"span", {"span"}},
      {"tuple", {"tuple"}},
      {"type_traits", {"type_traits"}},
      {"utility", {"utility"}},
      {"variant", {"variant"}}};
  const auto at = sources.find(name);
  if (at == sources.end()) return "";
  std::string includes;
  for (const std::string& part : at->second)
    if (exists("cuda/std/" + part)) includes += "#include <cuda/std/" + part + ">\n";
  if (includes.empty()) return "";
  return "#pragma once\n" + std::string(name == "cmath" ? "#include <math.h>\n" : "") + includes +
         "namespace std {\nusing namespace ::cuda::std;\n}\n";
}

}  // namespace roofgen
