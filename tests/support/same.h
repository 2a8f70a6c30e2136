// Whether two function types can be called in the same way.
#pragma once

#include <type_traits>

namespace {

/// Equal calling convention: pointers as pointers, numbers and enums with equal sizes.
template <class A, class B>
constexpr bool kAlike = std::is_pointer_v<A> == std::is_pointer_v<B> &&
                        sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B>;

template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class R, class... A, class S, class... B>
struct Same<R (*)(A...), S (*)(B...)> {
  static constexpr bool all() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return kAlike<R, S> && (kAlike<A, B> && ...);
  }
  static constexpr bool value = all();
};

}  // namespace
