// Where a candidate runs, for the files of the verifier: a problem with inputs, and the run of one stage on it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tuner/verify/verify.h"

namespace roofgen {

/// Most outputs and temporaries of a whole grid, in bytes. The simulator holds each byte with its records.
inline constexpr uint64_t kGridBytes = uint64_t{512} << 20;

struct Verifier::Site {
  std::string name;
  std::string label;  ///< of a shorter sum: "kv_len=64"
  Problem problem;
  InputPattern pattern = InputPattern::kNormal;
  bool whole = false;  ///< every CTA; else only those of the bands
  bool counted = false;
  bool real = false;  ///< the real launch, not the reduced problem
  /// The CTAs that run, each as in a launch of the whole grid: none of their tiles is left out, none has a CTA of its
  /// own. Empty: all.
  std::optional<std::vector<uint64_t>> as_launched;
  bool fed = false;   ///< temporaries that a kernel reads are generated inputs
  uint64_t skip = 0;  ///< bytes between the start of an allocation and the buffer
  struct Anchor {
    int64_t batch, head, row, col;
  };
  std::vector<Anchor> anchors;  ///< a slice is run around each, unless `whole`
  std::shared_ptr<SharedInputs> inputs;
};

struct Verifier::StageRun {
  RunResult result;
  std::vector<SiteCounts> sites;  ///< of a counted run
  Launch launch;
  Slices slices;
  uint64_t ctas = 0;
  bool in_tiles = false;                     ///< the launch has a CTA for each tile instead of its persistent ones
  std::map<std::string, DevicePtr> written;  ///< buffers made for this run; the caller releases them
  sim::Prerequisites launches;               ///< those before, and this one
};

/// Runs at the end of a scope.
template <class F>
class Defer {
 public:
  explicit Defer(F f) : f_(std::move(f)) {}
  ~Defer() { f_(); }
  Defer(const Defer&) = delete;
  Defer& operator=(const Defer&) = delete;

 private:
  F f_;
};

}  // namespace roofgen
