// roofgen from C++20 (docs/use/library.md): a thin layer over roofgen.h without code of its own in a library. Errors
// are values: a Result has a value or an Error. Nothing throws, beside std::bad_alloc.
#pragma once

#if __cplusplus < 202002L
#error "roofgen.hpp needs C++20 (-std=c++20); roofgen.h is for C and for older C++"
#else

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "roofgen/roofgen.h"

namespace roofgen {
// A namespace of its own, so that no name is equal to one inside the library.
inline namespace api_1 {

struct Error {
  int status = ROOFGEN_FAILED;  ///< ROOFGEN_USAGE, ...
  std::string message;          ///< one line
  int line = 0, column = 0;     ///< in the JSON text of the request; 0: none

  /// Of the last call of this thread.
  static Error last(int status) { return {status, roofgen_error(), roofgen_error_line(), roofgen_error_column()}; }
};

/// A T or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return error_.status == ROOFGEN_OK; }
  const Error& error() const { return error_; }

 private:
  Error error_{ROOFGEN_OK, "", 0, 0};
};

/// A request: Request("attention").set("L", 2048).set("kv-heads", 4).set("causal", true). Or any JSON text, as
/// Request::json(R"({"op": "attention", "L": 2048, "d": 64})").
class Request {
 public:
  explicit Request(std::string_view op) { set("op", op); }
  static Request json(std::string text) {
    Request out;
    out.whole_ = std::move(text);
    return out;
  }
  Request& set(std::string_view flag, std::string_view value) { return member(flag, quoted(value)); }
  Request& set(std::string_view flag, const char* value) { return set(flag, std::string_view(value)); }
  Request& set(std::string_view flag, bool value) { return member(flag, value ? "true" : "false"); }
  Request& set(std::string_view flag, std::integral auto value) { return member(flag, std::to_string(value)); }
  Request& set(std::string_view flag, double value) {
    char text[32];  // in no locale
    const auto end = std::to_chars(text, text + sizeof text, value);
    return member(flag, std::string(text, end.ptr));
  }
  /// A repeated flag.
  Request& set(std::string_view flag, const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ", ") + quoted(value);
    return member(flag, "[" + list + "]");
  }
  std::string text() const { return whole_.empty() ? "{" + members_ + "}" : whole_; }

 private:
  Request() = default;
  Request& member(std::string_view name, std::string_view value) {
    members_ += (members_.empty() ? "" : ", ") + quoted(name) + ": " + std::string(value);
    return *this;
  }
  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) {
        out += c;
      } else {
        char code[8];
        std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
        out += code;
      }
    }
    return out + "\"";
  }
  std::string whole_, members_;
};

/// One kernel of an Output, valid as long as that.
using Kernel = roofgen_kernel;

/// What a call gives: see the call in roofgen.h.
class Output {
 public:
  Output(roofgen_result* result, int status) : result_(result), status_(status) {
    if (status != ROOFGEN_OK) stopped_ = roofgen_error();
  }
  /// ROOFGEN_OK; with another status there is a result nevertheless: interrupted, below "min-score", nothing verified.
  int status() const { return status_; }
  const std::string& stopped() const { return stopped_; }  ///< why, in one line; empty for ROOFGEN_OK
  const char* text() const { return roofgen_result_text(result_.get()); }
  const char* verdict() const { return roofgen_result_verdict(result_.get()); }
  std::vector<Kernel> kernels() const {
    std::vector<Kernel> out(roofgen_result_kernels(result_.get()));
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].struct_bytes = sizeof(Kernel);
      roofgen_result_kernel(result_.get(), i, &out[i]);
    }
    return out;
  }

 private:
  struct Free {
    void operator()(roofgen_result* r) const { roofgen_result_free(r); }
  };
  std::unique_ptr<roofgen_result, Free> result_;
  int status_;
  std::string stopped_;
};

/// Where kernels and evaluations are kept; threads may share one.
class Session {
 public:
  /// `options`: JSON text as for roofgen_open; empty: none.
  static Result<Session> open(const std::string& options = "") {
    roofgen_session* session = nullptr;
    const int status = roofgen_open(&session, options.empty() ? nullptr : options.c_str());
    if (status != ROOFGEN_OK) return Error::last(status);
    return Session(session);
  }
  /// `warn` receives one line, in any thread, of calls that begin later.
  void on_warning(std::function<void(const char* line)> warn) {
    warn_.push_back(std::make_unique<std::function<void(const char*)> >(std::move(warn)));
    roofgen_on_warning(
        get(),
        [](void* user, const char* line) {
          if (const auto& f = *static_cast<std::function<void(const char*)>*>(user)) f(line);
        },
        warn_.back().get());
  }
  /// Receives phase, steps done and all steps of searches, in the thread of the call.
  using Progress = std::function<void(const char* phase, uint64_t done, uint64_t total)>;
  void on_progress(Progress progress) {
    progress_.push_back(std::make_unique<Progress>(std::move(progress)));
    roofgen_on_progress(
        get(),
        [](void* user, const char* phase, uint64_t done, uint64_t total) {
          if (const auto& f = *static_cast<Progress*>(user)) f(phase, done, total);
        },
        progress_.back().get());
  }
  void cancel() { roofgen_cancel(get()); }
  roofgen_session* get() const { return session_.get(); }

 private:
  explicit Session(roofgen_session* session) : session_(session) {}
  struct Close {
    void operator()(roofgen_session* s) const { roofgen_close(s); }
  };
  // Calls that run go on with the callbacks with which they began.
  std::vector<std::unique_ptr<std::function<void(const char*)> > > warn_;
  std::vector<std::unique_ptr<Progress> > progress_;
  std::unique_ptr<roofgen_session, Close> session_;
};

namespace detail {
inline Result<Output> output(int status, roofgen_result* result) {
  if (!result) return Error::last(status);
  return Output(result, status);
}
}  // namespace detail

inline Result<Output> tune(Session& session, const Request& request) {
  roofgen_result* result = nullptr;
  const int status = roofgen_tune(session.get(), request.text().c_str(), &result);
  return detail::output(status, result);
}
inline Result<Output> generate(Session& session, const Request& request) {
  roofgen_result* result = nullptr;
  const int status = roofgen_generate(session.get(), request.text().c_str(), &result);
  return detail::output(status, result);
}
inline Result<Output> compile(Session& session, const Request& request) {
  roofgen_result* result = nullptr;
  const int status = roofgen_compile(session.get(), request.text().c_str(), &result);
  return detail::output(status, result);
}
inline Result<Output> emit(Session& session, const Request& request, const std::string& directory) {
  roofgen_result* result = nullptr;
  const int status = roofgen_emit(session.get(), request.text().c_str(), directory.c_str(), &result);
  return detail::output(status, result);
}
inline Result<Output> explain(Session& session, const Request& request) {
  roofgen_result* result = nullptr;
  const int status = roofgen_explain(session.get(), request.text().c_str(), &result);
  return detail::output(status, result);
}

// ---- Launches in this process ----

/// An argument of a launch; the name must live as long as it.
struct Argument : roofgen_argument {
  Argument(const char* parameter, const void* device_pointer) : roofgen_argument{parameter, ROOFGEN_POINTER, {}} {
    value.pointer = reinterpret_cast<uintptr_t>(device_pointer);
  }
  Argument(const char* parameter, std::integral auto number) : roofgen_argument{parameter, ROOFGEN_INTEGER, {}} {
    value.integer = static_cast<int64_t>(number);
  }
  Argument(const char* parameter, double number) : roofgen_argument{parameter, ROOFGEN_REAL, {}} {
    value.real = number;
  }
  /// A CUdeviceptr, which is a number.
  static Argument at(const char* parameter, unsigned long long address) {
    Argument out(parameter, static_cast<const void*>(nullptr));
    out.value.pointer = address;
    return out;
  }
};

static_assert(sizeof(Argument) == sizeof(roofgen_argument));  // an array of them is one for C

/// Kernels in a CUDA context; threads may share one.
class Pipeline {
 public:
  explicit Pipeline(roofgen_pipeline* pipeline) : pipeline_(pipeline) {}
  /// JSON: variant, time, kernels, parameters.
  const char* text() const { return roofgen_pipeline_text(pipeline_.get()); }
  Result<uint64_t> workspace_bytes(std::span<const Argument> arguments = {}) const {
    uint64_t bytes = 0;
    const int status = roofgen_workspace_bytes(pipeline_.get(), arguments.data(), arguments.size(), &bytes);
    if (status != ROOFGEN_OK) return Error::last(status);
    return bytes;
  }
  /// `workspace`: device memory of workspace_bytes(), not shared with a launch that may run at the same time.
  Result<void> launch(void* stream, std::span<const Argument> arguments, unsigned long long workspace = 0,
                      uint64_t workspace_bytes = 0) const {
    const int status =
        roofgen_launch(pipeline_.get(), stream, arguments.data(), arguments.size(), workspace, workspace_bytes);
    if (status != ROOFGEN_OK) return Error::last(status);
    return {};
  }

 private:
  struct Free {
    void operator()(roofgen_pipeline* p) const { roofgen_pipeline_free(p); }
  };
  std::unique_ptr<roofgen_pipeline, Free> pipeline_;
};

inline Result<Pipeline> jit(Session& session, const Request& request) {
  roofgen_pipeline* pipeline = nullptr;
  const int status = roofgen_jit(session.get(), request.text().c_str(), &pipeline);
  if (status != ROOFGEN_OK) return Error::last(status);
  return Pipeline(pipeline);
}

}  // namespace api_1
}  // namespace roofgen

#endif
