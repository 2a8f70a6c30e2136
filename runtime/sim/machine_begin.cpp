// The start of a CTA, and its findings.
#include <fmt/format.h>
#include <llvm/Support/xxhash.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/sim/doubles.h"
#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

/// Cooperative groups rely on 288 (their memory.h). It is after the CTA's own.
constexpr uint32_t kReservedSharedBytes = 512;

uint32_t lanes_of(uint32_t n) { return n >= 32 ? ~0u : (1u << n) - 1; }

bool changes_with_cta(Special s) {
  return (s >= Special::kCtaidX && s <= Special::kCtaidZ) || s == Special::kSmid ||
         (s >= Special::kClusterCtaidX && s <= Special::kNclusteridZ);
}

}  // namespace

Machine::Machine(LaunchState& state, Counter& counter, const LaneTable& lanes)
    : state_(state), kernel_(state.kernel), counter_(counter), lanes_(lanes), checker_(state, lanes.rows, shared_) {
  threads_ = static_cast<uint32_t>(state.launch.block.count());
  n_warps_ = (threads_ + kWarpSize - 1) / kWarpSize;
  shared_bytes_ = reserved_at_ = kernel_.static_shared + state.launch.smem_bytes;
  if (std::any_of(kernel_.specials.begin(), kernel_.specials.end(),
                  [](const SpecialRow& s) { return s.special == Special::kReservedSmem; })) {
    reserved_at_ = (shared_bytes_ + 15) / 16 * 16;
    shared_bytes_ = reserved_at_ + kReservedSharedBytes;
  }
  shared_.resize(shared_bytes_);
  local_.resize(size_t{kernel_.local_bytes} * n_warps_ * kWarpSize);
  row_buffer_.resize(kernel_.code.size());
  prepare_registers();
  if (kernel_.has_tensor_memory) tensor_ = std::make_unique<TensorMemory>();
  if (state.doubles) doubles_ = std::make_unique<CtaDoubles>(*this, *state.doubles);
}

Machine::~Machine() = default;

/// Writes constants and the specials that are the same for all CTAs. Rows are cleared between CTAs only if CTAs go on
/// after findings; otherwise the assignment checks prevent reads of old values.
void Machine::prepare_registers() {
  register_memory_.assign(size_t{kernel_.rows} * kWarpSize * n_warps_ + 16, 0);
  predicate_memory_.assign(size_t{kernel_.preds} * n_warps_, 0);
  auto start = (reinterpret_cast<uintptr_t>(register_memory_.data()) + 63) & ~uintptr_t{63};
  warps_.resize(n_warps_);
  for (uint32_t i = 0; i < n_warps_; ++i) {
    Warp& w = warps_[i];
    w.index = i;
    w.regs.rows = reinterpret_cast<uint32_t*>(start) + size_t{i} * kernel_.rows * kWarpSize;
    w.regs.preds = predicate_memory_.data() + size_t{i} * kernel_.preds;
    w.regs.preds[0] = ~0u;
    for (const ConstantRow& c : kernel_.constants)
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        if (c.wide)
          wide_row(w, c.row)[l] = c.value;
        else
          row(w, c.row)[l] = static_cast<uint32_t>(c.value);
      }
    for (const SpecialRow& s : kernel_.specials)
      for (uint32_t l = 0; l < kWarpSize; ++l)
        row(w, s.row)[l] = static_cast<uint32_t>(special(s.special, i * kWarpSize + l));
  }
}

uint64_t Machine::special(Special s, uint32_t thread) const {
  const Dim3 &block = state_.launch.block, &grid = state_.launch.grid, &cluster = state_.launch.cluster;
  const uint64_t x = cta_ % grid.x, y = cta_ / grid.x % grid.y, z = cta_ / grid.x / grid.y;
  const uint32_t lane = thread % kWarpSize;
  switch (s) {
    case Special::kTidX: return thread % block.x;
    case Special::kTidY: return thread / block.x % block.y;
    case Special::kTidZ: return thread / (block.x * block.y);
    case Special::kNtidX: return block.x;
    case Special::kNtidY: return block.y;
    case Special::kNtidZ: return block.z;
    case Special::kNctaidX: return grid.x;
    case Special::kNctaidY: return grid.y;
    case Special::kNctaidZ: return grid.z;
    case Special::kLaneid: return lane;
    case Special::kWarpid: return thread / kWarpSize;
    case Special::kNwarpid: return n_warps_;
    case Special::kNsmid: return state_.sms;
    case Special::kLanemaskEq: return 1u << lane;
    case Special::kLanemaskLe: return lanes_of(lane + 1);
    case Special::kLanemaskLt: return lanes_of(lane);
    case Special::kLanemaskGe: return ~lanes_of(lane);
    case Special::kLanemaskGt: return ~lanes_of(lane + 1);
    case Special::kDynamicSmem: return state_.launch.smem_bytes;
    case Special::kTotalSmem: return kernel_.static_shared + state_.launch.smem_bytes;
    case Special::kReservedSmem: return kSharedBase + reserved_at_;
    case Special::kEnvreg1: return state_.grid_workspace >> 32;
    case Special::kEnvreg2: return state_.grid_workspace;
    case Special::kCtaidX: return x;
    case Special::kCtaidY: return y;
    case Special::kCtaidZ: return z;
    case Special::kSmid: return cta_ % state_.sms;
    case Special::kClusterCtaidX: return x % cluster.x;
    case Special::kClusterCtaidY: return y % cluster.y;
    case Special::kClusterCtaidZ: return z % cluster.z;
    case Special::kClusterNctaidX: return cluster.x;
    case Special::kClusterNctaidY: return cluster.y;
    case Special::kClusterNctaidZ: return cluster.z;
    case Special::kClusterCtarank: return rank_;
    case Special::kClusterNctarank: return cluster.count();
    case Special::kClusteridX: return x / cluster.x;
    case Special::kClusteridY: return y / cluster.y;
    case Special::kClusteridZ: return z / cluster.z;
    case Special::kNclusteridX: return grid.x / cluster.x;
    case Special::kNclusteridY: return grid.y / cluster.y;
    case Special::kNclusteridZ: return grid.z / cluster.z;
    case Special::kGridid:
    case Special::kZero: break;
  }
  return 0;
}

uint64_t Machine::resident_bytes() const {
  return 4 * (register_memory_.size() + predicate_memory_.size()) + shared_.size() * 2 + local_.size() +
         checker_.bytes();
}

void Machine::begin_cta(uint64_t cta, uint32_t ordinal) {
  cta_ = cta;
  ordinal_ = ordinal;
  instructions_ = 0;
  idle_looks_ = shared_looks_ = vain_waits_ = 0;
  polling_ = {};
  waits_ = regular_ = took_ = false;
  pause_ = 0;
  if (state_.schedule) {
    random_.seed(state_.schedule * 0x9e3779b97f4a7c15u + ordinal);
    turns_.resize(n_warps_);
    std::iota(turns_.begin(), turns_.end(), 0u);
  }
  ended_ = met_ = refused_ = false;
  canceled_ = 0;
  bulk_copies_.clear();
  changed_maps_.clear();
  group_registers_.assign((n_warps_ + 3) / 4, kernel_.registers_per_thread);
  free_registers_ = 0;
  last_buffer_ = nullptr;
  std::fill(shared_.begin(), shared_.end(), std::byte{0xff});
  // The reserved part starts as zeros: cooperative groups do not initialise their barriers there.
  std::fill(shared_.begin() + reserved_at_, shared_.end(), std::byte{0});
  emit(CtaBegin{kernel_, state_.launch, cta, ordinal, n_warps_, shared_bytes_, reserved_at_});
  // Old values would depend on the CTA that this machine ran before.
  std::fill(local_.begin(), local_.end(), std::byte{0xff});
  partly_undefined_.clear();
  if (tensor_) tensor_->begin();
  if (doubles_) doubles_->begin();
  const bool any_unassigned = std::any_of(kernel_.unassigned.begin(), kernel_.unassigned.end(),
                                          [](const std::string& name) { return !name.empty(); });
  if (state_.go_on != GoOn::kNever && any_unassigned) prepare_registers();
  for (Barrier& b : barriers_)
    if (b.in_use) b = Barrier{};
  for (Warp& w : warps_) {
    w.pc = 0;
    w.dead = ~lanes_of(threads_ - w.index * kWarpSize);
    w.active = ~w.dead;
    w.merge_pc = ~0u;
    w.spins = 0;
    w.hoped_at = ~0u;
    w.parked.clear();
    w.undefined.assign(kernel_.unassigned.size(), 0);
    for (uint32_t i = 0; any_unassigned && i < w.undefined.size(); ++i)
      if (!kernel_.unassigned[i].empty()) w.undefined[i] = ~0u;
    w.details.clear();
    w.origins.clear();
    w.follow = 0;
    std::fill(std::begin(w.committed), std::end(w.committed), 0u);
    w.cluster_arrived = w.cluster_released = 0;
    w.ran = w.now = 0;
    w.impatient = w.in_vain = false;
    w.fences = w.batches = w.batches_done = 0;
    w.uses.assign(kernel_.watched_names.size(), {});
    w.sums = {};
    w.tensor_load = 0;
    w.tensor_loads.clear();
    w.load_of.assign(tensor_ ? kernel_.watched_names.size() : 0, 0);
    w.copies.clear();
    w.copies_begin = 0;
    w.bulk_reads.clear();
    w.bulk_writes.clear();
    std::fill(std::begin(w.bulk_committed), std::end(w.bulk_committed), 0u);
    for (const SpecialRow& s : kernel_.specials)
      if (changes_with_cta(s.special))
        std::fill_n(row(w, s.row), kWarpSize, static_cast<uint32_t>(special(s.special, 0)));
  }
}

void Machine::join(std::span<Machine* const> cluster, uint32_t rank) {
  cluster_ = cluster;
  rank_ = rank;
  std::vector<Checker*> checkers;
  for (Machine* m : cluster) checkers.push_back(&m->checker_);
  checker_.join(std::move(checkers));
}

Finding Machine::finding(const char* kind, std::string message, const Warp& w, uint32_t pc, uint32_t lane) const {
  return finding_of(kernel_, {kind, std::move(message), lane}, cta_, w.index, pc);
}

std::string Machine::waiters() const {
  std::string out, last;
  uint32_t first = 0, end = 0;
  const auto close = [&] {
    if (!last.empty())
      out += fmt::format("{}{}{}", out.empty() ? "" : "; ",
                         end == first + 1 ? fmt::format("warp {}", first) : fmt::format("warps {}-{}", first, end - 1),
                         last);
  };
  for (const Warp& w : warps_)
    for (const Fragment& f : w.parked) {
      if (f.barrier < 0 || f.barrier == kPaused) continue;
      std::string what;
      if (f.barrier == kWaitsForPhase) {
        what = phase_text(w, f);
      } else if (f.barrier == kAtWarpgroup) {
        what = "the other warps of their group";
      } else if (f.barrier == kWaitsForRegisters) {
        what = fmt::format(
            "wait at setmaxnreg for {} registers per thread; they have {}, and {} of the CTA's are free "
            "for each of their threads",
            kernel_.code[f.pc].imm, group_registers_[w.index / 4], free_registers_ / 128);
      } else if (f.barrier == kWaitsForColumns) {
        what = fmt::format("{} columns of tensor memory that nobody gives back",
                           row(w, kernel_.code[f.pc].b)[first_lane(f.mask)]);
      } else if (f.barrier == kAtClusterBarrier) {
        what = "the cluster's barrier";
      } else {
        const Barrier& b = barriers_[f.barrier];
        uint32_t arrived = 0;
        for (const uint32_t* lanes : {b.arrived, b.again})
          for (uint32_t i = 0; i < n_warps_; ++i) arrived += static_cast<uint32_t>(__builtin_popcount(lanes[i]));
        what = fmt::format("barrier {} ({} of {} threads are there)", f.barrier, arrived,
                           b.expected ? b.expected : threads_);
      }
      const std::string text = checker_.at(f.waits_at()) + ": " + what;
      if (text != last || w.index > end) {
        close();
        first = w.index;
        last = text;
      }
      end = w.index + 1;
    }
  close();
  return out;
}

bool Machine::sleeps() const {
  return std::all_of(warps_.begin(), warps_.end(), [](const Warp& w) {
    return !w.active && std::all_of(w.parked.begin(), w.parked.end(),
                                    [](const Fragment& f) { return f.barrier >= 0 || f.barrier == kWaitsForLanes; });
  });
}

Finding Machine::deadlock() const {
  const Warp* at = nullptr;
  uint32_t pc = 0, lane = 0;
  for (const Warp& w : warps_)
    for (const Fragment& f : w.parked) {
      if (f.barrier < 0) continue;
      for (uint32_t i = w.index / 4 * 4; f.barrier == kAtWarpgroup && i < w.index / 4 * 4 + 4; ++i)
        if (warps_[i].finished())
          return finding("partial-warp",
                         fmt::format("warp {} waits for the 4 warps of its group, but warp {} has ended", w.index, i),
                         w, f.pc, 0);
      if (!at) at = &w, pc = f.waits_at(), lane = f.barrier == kWaitsForPhase ? first_lane(f.mask) : 0;
    }
  return finding("deadlock", "nothing that the warps wait for can happen: " + waiters(), *at, pc, lane);
}

/// False: it stops at a finding, of copies that the CTA has not waited for.
bool Machine::ends_well(std::vector<Finding>& findings) {
  bool well = true;
  const auto report = [&](uint32_t warp, uint32_t pc, uint32_t lane, std::string message,
                          const char* kind = "async-pending") {
    if (goes_on(state_.go_on, kind))
      checker_.report({kernel_.code[pc], pc, warp}, kind, lane, [&] { return message; });
    else if (std::exchange(well, false))
      stop(findings, finding(kind, std::move(message), warps_[warp], pc, lane));
  };
  if (tensor_)
    for (const TensorMemory::Allocation& a : tensor_->allocations())
      report(a.warp, a.pc, 0,
             fmt::format("the CTA ends with these {} columns of tensor memory: no tcgen05.dealloc gives them back",
                         a.columns),
             "bad-tensor-memory");
  for (const BulkCopy& copy : bulk_copies_)
    report(copy.warp, copy.pc, copy.lane,
           fmt::format("CTA {} ends while this copy of {} bytes into its shared memory may be under way", cta_,
                       copy.data.size()));
  for (const Warp& w : warps_)
    for (const BulkRead& read : w.bulk_reads)
      report(w.index, read.pc, read.lane,
             "the CTA ends while this copy may still read its shared memory: no cp.async.bulk.wait_group covers it");
  for (const Warp& w : warps_) try {
      for (const BulkWrite& copy : w.bulk_writes) write_again(w.index, copy);
    } catch (Fault& fault) {
      if (std::exchange(well, false))
        stop(findings, finding(fault.kind, std::move(fault.message), w, fault.pc, fault.lane));
    }
  return well;
}

Finding Machine::vain_polling(std::string message) const {
  const Warp& w = warps_[look_warp_];
  return finding("deadlock", std::move(message), w, look_pc_, w.active ? first_lane(w.active) : 0);
}

uint64_t Machine::fingerprint() const {
  uint64_t hash = 0;
  const auto add = [&](const void* data, size_t bytes) {
    hash = llvm::xxHash64({static_cast<const char*>(data), bytes}) + 0x9e3779b97f4a7c15u * hash;
  };
  const auto add_value = [&](const auto& value) {
    static_assert(std::has_unique_object_representations_v<std::decay_t<decltype(value)>>);
    add(&value, sizeof value);
  };
  add(register_memory_.data(), register_memory_.size() * sizeof register_memory_[0]);
  add(predicate_memory_.data(), predicate_memory_.size() * sizeof predicate_memory_[0]);
  add(shared_.data(), shared_.size());
  add(local_.data(), local_.size());
  for (const Warp& w : warps_) {
    // Lanes that are ahead get a turn after some spins, if there are lanes behind them that run.
    const auto ready =
        std::count_if(w.parked.begin(), w.parked.end(), [](const Fragment& f) { return f.barrier == kReady; });
    add_value(std::array{w.pc, w.active, w.dead, (w.active != 0) + ready > 1 ? w.spins : 0u, w.cluster_arrived,
                         w.cluster_released, uint32_t{w.impatient}});
    for (const Fragment& f : w.parked) add_value(f);
    add_value(w.committed);
    add_value(w.copies.size());
  }
  for (const Barrier& b : barriers_) {
    add_value(b.arrived);
    add_value(b.again);
    add_value(std::array{b.expected, b.votes_all, b.votes_any, b.votes});
  }
  add_value(bulk_copies_.size());
  add_value(pause_);
  return hash;
}

std::string Machine::whereabouts() const {
  std::string out;
  for (uint32_t i = 0; i < warps_.size();) {
    const auto place = [&](const Warp& w) -> std::string {
      if (w.finished()) return "";
      uint32_t pc = w.pc;
      for (const Fragment& f : w.parked)
        if (!w.active || f.pc < pc) pc = f.pc;
      pc = std::min<uint32_t>(pc, static_cast<uint32_t>(kernel_.code.size() - 1));
      const Where& at = kernel_.sources[pc];
      return at.line > 0 ? fmt::format("{}:{}", at.file, at.line) : fmt::format("PTX line {}", kernel_.code[pc].line);
    };
    const std::string here = place(warps_[i]);
    uint32_t end = i + 1;
    while (end < warps_.size() && place(warps_[end]) == here) ++end;
    if (!here.empty())
      out += fmt::format("{}{} at {}", out.empty() ? "" : "; ",
                         end == i + 1 ? fmt::format("warp {}", i) : fmt::format("warps {}-{}", i, end - 1), here);
    i = end;
  }
  return out;
}

}  // namespace roofgen::sim
