// The entry points' types against cuda.h, when this compiles: CMake has each api_*.cpp of the simulated driver read after it, with
// ROOFGEN_CU meaning a comparison, where cuda.h of CUDA 13.0 is found.
#pragma once

#define __CUDA_API_VERSION_INTERNAL  // cuda.h declares older forms too, and renames nothing
#include <cuda.h>
#include <cudaProfiler.h>

#include <type_traits>

namespace {

/// Passed alike: pointers as pointers, numbers and enums in as many bytes.
template <class A, class B>
constexpr bool kAlike = std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B>;

template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class R, class... A, class S, class... B>
struct Same<R (*)(A...), S (*)(B...)> {
  static constexpr bool all() {
    if constexpr (sizeof...(A) != sizeof...(B)) return false;
    else return kAlike<R, S> && (kAlike<A, B> && ...);
  }
  static constexpr bool value = all();
};

}  // namespace

#define ROOFGEN_CU(name, needs, params, ...) \
  static_assert(Same<::roofgen::shim::Status(*) params, decltype(&::name)>::value, #name " is not as cuda.h has it");
#define ROOFGEN_CU_PER_THREAD(name, suffix) static_assert(true)  // has its type from the other

// What only the bodies use.
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
