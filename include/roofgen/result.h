// Errors as values. Every fallible function between modules returns Result<T>. Exceptions do not cross a module
// boundary: LLVM is built without them, and a rejected candidate is ordinary data.
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace roofgen {

/// The process exit codes. Each Error carries its code.
enum class Exit : int {
  kOk = 0,
  kFailed = 1,       ///< the job ran and failed: bad template, every candidate rejected, bad file
  kUsage = 2,        ///< the command line or problem asks for something that does not exist
  kUnavailable = 3,  ///< nothing legal to run, or a component (NVRTC, driver) is missing
  kBelowScore = 4,   ///< `--min-score` was not reached
  kIncomplete = 5,   ///< `check` found nothing wrong, but could not decide everything
  kInterrupted = 130,
};

/// A position in a file that the user can open. line and col count from 1; 0: unknown.
struct Where {
  std::string file;
  int line = 0;
  int col = 0;
};

/// A failure on one line: the fault, its position, the expectation, a suggestion.
struct Error {
  Exit exit = Exit::kFailed;
  std::string message;
  Where where = {};
  /// Formatted lines that follow the message: source excerpt with caret, "included from a:3".
  std::vector<std::string> notes = {};
  bool no_gpu = false;  ///< the machine has no GPU, or no driver: no mistake where one is only an option
};

/// `file:line:col: error: message` followed by the notes, one per line, no trailing newline.
std::string to_string(const Error& error);

/// A T or an Error. An error is rare and may cost an allocation. A std::variant of T and Error took 8 % of the
/// compilation of a large file.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}

  explicit operator bool() const { return value_.has_value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& value() {
    assert(*this);
    return *value_;
  }
  const T& value() const {
    assert(*this);
    return *value_;
  }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<T> value_;
  std::unique_ptr<Error> error_;  ///< null: there is a value
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
