// The dynamic instruction streams of a launch's warps, from an interpretation of the machine code: control flow, active
// lanes and addresses. Floating-point results that decide none of these are not computed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/sass/code.h"

namespace roofgen::sass {

/// Lines of local memory have numbers from here on, a range for each warp; those of device memory lie below.
inline constexpr uint64_t kLocalLines = uint64_t{1} << 56;

/// Part of a 128-byte line that one warp instruction requests.
struct LineRequest {
  uint64_t line;    ///< address / 128
  uint8_t sectors;  ///< bit i: 32-byte sector i
};

/// The memory access of one executed instruction.
struct Access {
  uint32_t first_line = 0;  ///< in WarpStream::lines
  uint16_t lines = 0;       ///< requests, one for each line; of device or local memory
  uint16_t wavefronts = 0;  ///< passes of shared memory
  uint8_t lanes = 0;        ///< active lanes
  uint8_t same = 0;         ///< of an atomic operation: the most lanes at one address
  uint8_t tags = 0;  ///< look-ups of lines: a half or a quarter of the warp makes its own for 8 or 16 bytes a lane
};

/// One operation on an mbarrier, a copy that the tensor copy engine makes, or work for the tensor unit of sm_100.
/// Barriers are named by their offset in shared memory: an arrival at the barrier of another CTA of the cluster stands
/// for that CTA's arrival at this one's.
struct Sync {
  enum class Kind : uint8_t {
    kInit,    ///< `count` arrivals complete a phase
    kArrive,  ///< of `count` threads, which expect `bytes` more
    kWait,    ///< until the phase of `parity` is complete
    kLoad,    ///< of `bytes` to shared memory; its end counts at the barrier
    kStore,   ///< of `bytes` from shared memory
    kSend,    ///< of `bytes` from registers to other CTAs, whose barriers count them
    kMatrix,  ///< a product: `rows` x `columns` by tcgen05.mma, or a copy of `bytes` to tensor memory (no rows)
    kCommit   ///< an arrival at the barrier after all products so far
  };
  Kind kind = Kind::kArrive;
  static constexpr uint8_t kOfArrival = 2;
  uint8_t parity = 0;               ///< of a wait; kOfArrival: of the phase of the warp's last arrival at the barrier
  uint8_t ctas = 1;                 ///< that receive a load; that multiply together
  uint8_t senders = 1;              ///< CTAs of a pair whose loads count at this barrier
  bool a_in_tensor_memory = false;  ///< of a product
  bool is_remote = false;           ///< an arrival that may be at another CTA's barrier
  bool after_copies = false;        ///< an arrival once the warp's asynchronous copies have ended
  uint32_t barrier = 0, count = 0, bytes = 0;
  uint16_t rows = 0, columns = 0;  ///< of a product; rows of a load, of 128 bytes at most
  uint32_t pages = 0;              ///< of a load: rows that begin in another 64 KiB than the row before
  uint32_t access = ~0u;           ///< of a copy: its lines of device memory, in WarpStream::accesses
};

/// One executed warp instruction, or several plain ones that follow each other in the code: most instructions access
/// nothing, and a stream with an entry for each would take hundreds of megabytes.
struct Step {
  static constexpr uint32_t kPlain = 13u << 28;  ///< and the number of plain instructions after this one
  static constexpr uint32_t kSkipped = ~0u;      ///< a barrier whose guard is false
  static constexpr uint32_t kFirstSync = 14u << 28, kFirstBarrier = 15u << 28;
  uint32_t index;            ///< in Code::instructions
  uint32_t access = kPlain;  ///< in WarpStream::accesses or syncs; of a barrier of the CTA: its number and its warps
  bool is_plain() const { return access >= kPlain && access < kFirstSync; }
  uint32_t count() const { return is_plain() ? access - kPlain + 1 : 1; }
  bool has_access() const { return access < kPlain; }
  bool is_sync() const { return access >= kFirstSync && access < kFirstBarrier; }
  uint32_t sync() const { return access - kFirstSync; }
  /// `warps`: that have to arrive.
  static constexpr uint32_t barrier(uint32_t number, uint32_t warps) { return kFirstBarrier + number * 256 + warps; }
  bool is_barrier() const { return access >= kFirstBarrier && access < kSkipped; }
  uint32_t barrier_number() const { return (access - kFirstBarrier) / 256; }
  uint32_t barrier_warps() const { return (access - kFirstBarrier) % 256; }
};

/// Goes through a stream instruction by instruction.
class Cursor {
 public:
  using value_type = Step;
  using difference_type = std::ptrdiff_t;
  Cursor() = default;
  explicit Cursor(const std::vector<Step>& steps) : step_(steps.data()), end_(steps.data() + steps.size()) {}
  Step operator*() const { return step_->is_plain() ? Step{step_->index + done_} : *step_; }
  Cursor& operator++() {
    if (++done_ == step_->count()) ++step_, done_ = 0;
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return step_ == end_; }

 private:
  const Step *step_ = nullptr, *end_ = nullptr;
  uint32_t done_ = 0;  ///< instructions of the step
};

struct WarpStream {
  std::vector<Step> steps;
  std::vector<Access> accesses;
  std::vector<Sync> syncs;
  std::vector<LineRequest> lines;
  /// The lines of device memory that a step asks for; null: none.
  const Access* access_of(const Step& step) const {
    const uint32_t at = step.has_access() ? step.access : step.is_sync() ? syncs[step.sync()].access : ~0u;
    return at == ~0u ? nullptr : &accesses[at];
  }
  std::ranges::subrange<Cursor, std::default_sentinel_t> instructions() const { return {Cursor(steps), {}}; }
  uint64_t length() const;         ///< number of the instructions
  uint64_t lane_instructions = 0;  ///< sum of the active lanes, guards included
  uint64_t fp32_lanes = 0;         ///< of them, FP32 additions, multiplications and fused multiply-adds
  uint64_t fma_lanes = 0;          ///< of those, fused multiply-adds
};

struct CtaStream {
  uint64_t cta = 0;             ///< linear index in the grid
  uint32_t tensor_columns = 0;  ///< of tensor memory that it takes
  std::vector<WarpStream> warps;
  uint64_t instructions() const;  ///< of all warps
};

/// What the interpreter did not know, by instruction.
struct Doubt {
  uint32_t index = 0;
  uint64_t count = 0;                ///< executions
  bool is_branch = false;            ///< a branch on an unknown value; otherwise an access with an unknown address
  std::optional<double> share = {};  ///< of a branch: TakenShare's answer; none: it is not taken
  bool repeats = false;              ///< of a branch: a warp comes to it more than once
};

/// Initial contents of device memory: writes `out` with the bytes at `address`; false: unknown.
using ReadMemory = std::function<bool(uint64_t address, std::span<std::byte> out)>;
/// The share of executions in which the branch at an instruction is taken, for branches on unknown values; nullopt: no
/// knowledge. taken_shares() of taken_shares.h takes it from a simulated run.
using TakenShare = std::function<std::optional<double>(uint32_t index)>;

struct StreamLaunch {
  Dim3 grid, block;
  Dim3 cluster = {};  ///< CTAs of a cluster
  /// Extents of the axes that a dimension of the grid is flattened from, fastest first; none: unknown.
  std::array<std::vector<uint32_t>, 3> axes = {};
  uint32_t dynamic_smem = 0;
  std::vector<std::byte> params;  ///< as they lie in constant bank 0
  /// Begin and size of each parameter in `params`; with them, the parameters go where the code has them.
  std::vector<std::pair<uint32_t, uint32_t>> param_places = {};
  /// Device address of a variable of the module; 0: unknown.
  std::function<uint64_t(const std::string&)> variable = {};
  ReadMemory read = {};
  TakenShare taken_share = {};
  /// A CTA that asks for more work (clusterlaunchcontrol.try_cancel) gets that of the CTAs at this distance, one after
  /// the other; 0: it gets none.
  uint64_t next_work = 0;
  uint64_t max_steps = 50'000'000;  ///< instructions of one CTA; above it the kernel counts as endless
};

/// Interprets CTAs of one launch. `code` must outlive it.
class Interpreter {
 public:
  Interpreter(const Code& code, StreamLaunch launch);
  ~Interpreter();
  /// Runs one CTA from its beginning; a warp stops after `most_of_warp` instructions. Errors: Exit::kFailed with the
  /// reason (endless, deadlock).
  Result<CtaStream> run(uint64_t cta, uint64_t most_of_warp = ~uint64_t{0});
  /// Sets StreamLaunch::next_work.
  void give_work(uint64_t next_work);
  /// The CTA that issues the products of this one: the first of a pair, where CTAs multiply in pairs.
  uint64_t leader(uint64_t cta) const;
  /// The same CTA if it is the one that goes on where an unknown condition ends most CTAs: the last to arrive at a
  /// counter, for example, which adds up the parts of all. nullopt: run() met no such exit.
  Result<std::optional<CtaStream>> run_on(uint64_t cta);
  /// Whether a branch or a guard of the CTAs so far may depend on the CTA's index on an axis of the grid (0: x). If
  /// not, all CTAs along the axis execute the same instructions.
  bool depends_on_axis(int axis) const;
  /// Of all CTAs so far.
  std::vector<Doubt> doubts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// For each instruction whether its results steer control flow, active lanes or addresses. `stores`: loads from device
/// memory that do may read what the CTA itself has stored there.
std::vector<bool> steering(const Code& code, bool stores = false);

}  // namespace roofgen::sass
