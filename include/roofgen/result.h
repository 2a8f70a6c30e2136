// Errors as values. Every fallible function between modules returns Result<T>; nothing throws
// across a module boundary, because LLVM is built without exceptions and a rejected candidate is
// ordinary data here, not an exceptional event.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace roofgen {

/// The process exit codes; also how an Error says which of them it leads to.
enum class Exit : int {
  kOk = 0,
  kFailed = 1,       ///< the job ran and failed: bad template, every candidate rejected, bad file
  kUsage = 2,        ///< the command line or problem asks for something that does not exist
  kUnavailable = 3,  ///< nothing legal to run, or a component (NVRTC, driver) is missing
  kBelowScore = 4,   ///< `--min-score` was not reached
  kInterrupted = 130,
};

/// A place in a text a user can open. line and col count from 1; 0 means unknown.
struct Where {
  std::string file;
  int line = 0;
  int col = 0;
};

/// One failure, in one clear line: what, where, what was expected, a suggestion.
struct Error {
  Exit exit = Exit::kFailed;
  std::string message;
  Where where = {};
  /// Already formatted follow-up lines: source excerpt with caret, "included from a:3", "did you mean ...".
  std::vector<std::string> notes = {};
};

/// `file:line:col: error: message` followed by the notes, one per line, no trailing newline.
std::string to_string(const Error& error);

/// A T, or the Error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& value() {
    assert(*this);
    return std::get<0>(state_);
  }
  const T& value() const {
    assert(*this);
    return std::get<0>(state_);
  }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return !error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

/// Returns early with the error of `expr`, else assigns its value to `lhs` (which may declare).
#define ROOFGEN_CONCAT_(a, b) a##b
#define ROOFGEN_CONCAT(a, b) ROOFGEN_CONCAT_(a, b)
#define ROOFGEN_TRY(lhs, expr) ROOFGEN_TRY_(ROOFGEN_CONCAT(result_, __LINE__), lhs, expr)
#define ROOFGEN_TRY_(tmp, lhs, expr)       \
  auto tmp = (expr);                       \
  if (!tmp) return std::move(tmp).error(); \
  lhs = std::move(*tmp)
#define ROOFGEN_CHECK(expr) \
  if (auto checked_ = (expr); !checked_) return std::move(checked_).error()

}  // namespace roofgen
