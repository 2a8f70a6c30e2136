// The objects of the C API. Its functions are in api.cpp.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "roofgen/roofgen.h"
#include "tuner/session/session.h"
#include "tuner/tune.h"

struct roofgen_session {
  std::vector<std::string> data_dirs;
  std::string cache, home;
  std::mutex mutex;  ///< of what is below
  void (*warning)(void* user, const char* line) = nullptr;
  void (*progress)(void* user, const char* phase, uint64_t done, uint64_t total) = nullptr;
  void *warning_user = nullptr, *progress_user = nullptr;
  std::set<std::atomic<bool>*> running;  ///< the stop flags of the calls
};

struct roofgen_result {
  std::string text, verdict;
  std::vector<roofgen::TunedKernel> kernels;
  std::vector<std::string> schedules;  ///< as text
};

namespace roofgen::library {

/// Keeps the error for roofgen_error(), and returns its status.
int fail(const Error& error);
/// Null pointers and the like: `what` is null.
int null_argument(const char* what);
/// Of a request's text.
int bad(Error error);
/// Runs `call`, whose exceptions become errors.
int guarded(const std::function<int()>& call);

/// The session during one call.
class Call {
 public:
  explicit Call(roofgen_session& owner);
  ~Call();
  Call(const Call&) = delete;
  Session session;

 private:
  roofgen_session& owner_;
  std::atomic<bool> stop_ = false;
};

}  // namespace roofgen::library
