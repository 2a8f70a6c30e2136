// Verification of one candidate (one kernel of a variant), and its counts. A kernel is verified at several *sites*: the
// reduced problem (every CTA, at the real lengths), the reduced problem with inputs of exactly representable results,
// and slices of the real launch. A search runs each candidate at the first of them, and the winners at all. Its inputs
// from earlier stages come from *feeders*: verified binaries whose outputs stay in memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "roofline/device.h"
#include "runtime/executor.h"
#include "runtime/sim/prerequisites.h"
#include "tuner/store/store.h"
#include "tuner/verify/inputs.h"

namespace roofgen {

/// A compiled kernel of one stage. Its launches follow from the schedule.
struct Candidate {
  const Variant* variant = nullptr;
  size_t stage_index = 0;
  Schedule schedule;
  Binary binary;
  const Stage& stage() const { return variant->stages[stage_index]; }
};

/// Executions of a line of the generated source: of its PTX instructions that run least and most often.
struct LineRuns {
  std::string file;
  int line = 0;
  uint64_t least = 0, most = 0;
};
/// As SiteCounts of those instructions.
std::vector<SiteCounts> site_counts(const std::vector<LineRuns>& lines);

/// The results of a candidate at all its sites.
struct Evaluation {
  Verification verification;
  Counts counts;  ///< of the CTAs in `counted_ctas`
  uint64_t counted_ctas = 0;
  double scale = 1;    ///< whole-launch work = counts x scale
  bool exact = false;  ///< scale is a ratio of equal parts (every CTA ran); else extrapolated from slices
  double temporary_bytes = 0, tensor_bytes = 0;  ///< of the buffers touched: temporaries, and inputs and outputs
  double unique_bytes = 0;                       ///< distinct sectors of the whole launch x 32
  double l2_miss_ratio = 1;           ///< DRAM-side bytes / unique bytes of one wave (docs/internals/model.md)
  std::vector<LineRuns> lines;        ///< of the counted CTAs, relative to each other
  std::optional<double> measured_ns;  ///< GPU only: one launch, not a tuned result
  std::string fault;  ///< stage of rejection after a fault or time-out on the GPU; such a result is never stored
};

/// The verifications of a variant's kernels as one.
Verification sum_of(const std::vector<Verification>& kernels);

/// The extent of the checks. The key of a store row contains key().
struct VerifyPlan {
  bool full = true;          ///< all of the reduced problem (false: too much work, slices only)
  std::string not_full;      ///< why, in the simulator
  double reduced_flops = 0;  ///< MMA FLOPs of the reduced problem, which decide `full`
  bool tile_slices = false;  ///< slices are single tiles (variants of one stage)
  int64_t slice_rows = 0, slice_cols = 0, fed_rows = 0;
  std::string patterns = "normal";
  std::string inputs;  ///< the patterns that evaluate() runs
  std::string key() const;
};

/// Above this many MMA FLOPs one reduced problem is not simulated whole (about 10 s on one core).
inline constexpr double kFullLimitFlops = 3e11;
/// On a GPU, above this many only slices of the reduced problem are compared (about 0.1 s a candidate).
inline constexpr double kFullComparisonFlops = 1e9;

/// Where kernels run: at the site whose counts are taken, with normal inputs; at all but the real launch, where the
/// reduced problem can run; at every site.
enum class Sites { kCounted, kReduced, kAll };

/// Verifies the candidates of one variant of one problem on one executor.
class Verifier {
 public:
  /// `reduced_flops`: required MMA FLOPs of the reduced problem. `inputs`: of this problem on this executor.
  Verifier(const Op& op, Problem problem, double reduced_flops, const Device& device, const Variant& variant,
           Executor& executor, std::shared_ptr<SharedInputs> inputs, Sites sites = Sites::kAll);
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  const VerifyPlan& plan() const { return plan_; }

  /// Runs at the sites of the constructor and compares. `occupancy` sets the wave of the L2 model. A wrong kernel gives
  /// an Evaluation that did not pass; an Error means that the kernel could not be run. Thread-safe for distinct
  /// candidates.
  Result<Evaluation> evaluate(const Candidate& candidate, const Occupancy& occupancy);
  /// Whether the stage before has a feeder. True for the first stage.
  bool can_feed(size_t stage_index) const;
  /// Makes a verified candidate the feeder of its stage: runs it at the sites of evaluate() and keeps its outputs. Not
  /// concurrent with evaluate() of later stages.
  Result<void> set_feeder(const Candidate& candidate);
  /// Runs the kernels of all stages in a row, and compares the output of each. The verifications of the kernels, up to
  /// the first that failed. `counted`: of evaluate() with Sites::kCounted; the kernel of a chain of one does not run
  /// there again.
  Result<std::vector<Verification>> verify_chain(const std::vector<Candidate>& chain, Sites at,
                                                 const Verification* counted = nullptr);
  /// Runs every CTA of the real grid, with the shortest sum for which the kernels' sources hold, and compares every
  /// output of the last kernel. For winners. An Error means that the grid could not be run. `go_on` shows the progress;
  /// false: the grid stops. Where an op generates the values between kernels, each kernel runs alone.
  struct Grid {
    Verification verification;  ///< of what ran
    size_t wrong = 0;           ///< the first kernel that failed
    std::string not_run;        ///< why the grid did not run, or not all of it; empty: it ran
    static constexpr const char* kNotRun = "whole grid not run: ";
    bool failed() const { return !verification.failure.empty(); }
    /// All of it in a Verification, and back.
    Verification stored() const;
    static Grid from_stored(Verification v);
    void add_to(Verification& all) const;  ///< its comparisons, and its CTAs or why they did not run
  };
  using GoOn = std::function<bool(uint64_t done, uint64_t total)>;
  Result<Grid> verify_grid(const std::vector<Candidate>& chain, const GoOn& go_on = {});

 private:
  struct Site;
  struct StageRun;
  /// The purpose of a run: to be compared, or to write the input of a later stage.
  enum class Run { kCandidate, kFeed };
  struct Slices {
    std::vector<Region> run, compare;
  };
  using Feed = std::map<std::string, DevicePtr>;
  /// What the stages before have left: their outputs, and their launches where later ones may depend on them.
  struct Before {
    Feed feed;
    sim::Prerequisites launches;
  };
  std::vector<Buffer> all_buffers(const Problem& problem) const;
  Result<DevicePtr> allocate(const Site& site, const Buffer& buffer, Fill fill);
  void free_buffer(DevicePtr buffer) { release_allocation(executor_, buffer); }
  Result<DevicePtr> input(const Site& site, const Buffer& buffer);
  Result<Legal> legal_of(const Site& site, const Candidate& candidate) const;
  Result<Grid> verify_regions(Site& site, const std::vector<Candidate>& chain, const std::vector<Region>& regions,
                              const GoOn& go_on);
  Result<Grid> verify_thin_grid(const std::vector<Candidate>& chain, const GoOn& go_on);
  Result<Grid> verify_thin(const Problem& whole, const std::vector<Candidate>& chain, const GoOn& go_on);
  Result<void> add_division(const Candidate& candidate, Grid& all);
  Result<std::unique_ptr<Site>> division_site(const Candidate& candidate, double share, double most_flops) const;
  Result<bool> all_serve(const std::vector<Candidate>& chain, const std::vector<Legal>& tuned,
                         const Problem& problem) const;
  uint64_t written_bytes(const Site& site, const std::vector<Candidate>& chain) const;
  std::string too_large(const Site& site, const std::vector<Candidate>& chain) const;
  Result<bool> has_all_ctas(const Site& site, const std::vector<Candidate>& chain) const;
  Result<std::unique_ptr<Site>> thin_site(const Problem& whole, const std::vector<Candidate>& chain) const;
  static std::vector<Region> sample_of(const Extent& extent, uint64_t bytes, int64_t step);
  std::vector<const Site*> sites_of(Sites which) const;
  template <class Body>
  Result<void> at_sites(const std::vector<const Site*>& sites, const Body& body) const;
  Result<std::vector<Verification>> verify_chain_at(const Site& site, const std::vector<Candidate>& chain);
  static void note_ctas(const Site& site, const StageRun& run, Verification& into);
  Result<void> compare_all(const Site& site, const Candidate& candidate, const std::vector<Region>& regions,
                           const Feed& buffers, Verification& into) const;
  Result<double> tiled_miss_ratio(const Candidate& candidate, uint64_t wave, double unique_bytes) const;
  Result<Launch> launch_of(const Site& site, const Candidate& candidate) const;
  Result<Slices> slices_of(const Launch& launch, size_t stage_index, const Site& site, Run run) const;
  Result<std::set<int64_t>> heads_taken_behind(size_t stage_index) const;
  static void keep_first_band(const StageRun& run, std::vector<std::vector<LineAccess>>& trace);
  Result<StageRun> run_stage(const Site& site, const Candidate& candidate, ModuleId module, const Before& before,
                             std::vector<std::vector<LineAccess>>* trace, Run how,
                             const std::vector<Region>& only = {});
  Result<void> compare(const Site& site, const Candidate& candidate, const Slices& slices, const Feed& buffers,
                       Verification& into) const;
  Result<void> check_zeroed(const Site& site, const Feed& buffers, Verification& into) const;
  Result<void> scale(const Candidate& candidate, const Site& site, const StageRun& run, Evaluation& out) const;
  const Before& before(const Site& site, size_t stage_index) const;
  uint64_t real_ctas(const Candidate& candidate) const;
  Result<uint64_t> group_ctas(const Candidate& candidate) const;
  Result<bool> may_overflow_l2(const Site& site, const Candidate& candidate, uint64_t wave) const;

  const Op& op_;
  Problem problem_;
  const Device& device_;
  const Variant& variant_;
  Executor& executor_;
  std::shared_ptr<SharedInputs> inputs_;
  VerifyPlan plan_;
  Sites evaluated_at_;
  std::vector<std::unique_ptr<Site>> sites_;                  ///< the real launch is the last
  std::map<std::pair<size_t, const Site*>, Before> feeders_;  ///< of all feeders up to a stage
  std::vector<DevicePtr> feeder_buffers_;
  mutable std::mutex mutex_;
};

// ---- Stored evaluations ----------------------------------------------------------------------------

/// Digest of the sources that a row depends on: simulator, references, verification (tuner/CMakeLists.txt). After a
/// change of any of them, no older row is read.
extern const char* const kEvaluationVersion;

std::string to_payload(const Evaluation& evaluation);
/// nullopt when the text is not a payload of this version.
std::optional<Evaluation> from_payload(const std::string& text);

/// The stored evaluation. nullopt without a store.
std::optional<Evaluation> recall(Evaluations* store, const StoreKey& key);
std::unique_ptr<EvaluationClaim> claim(Evaluations* store, const StoreKey& key);
void remember(Evaluations* store, const StoreKey& key, const Evaluation& evaluation);

}  // namespace roofgen
