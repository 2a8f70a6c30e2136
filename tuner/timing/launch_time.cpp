#include "tuner/timing/launch_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <unordered_map>

#include "tuner/timing/launch_lines.h"
#include "tuner/timing/launch_roofs.h"
#include "tuner/timing/placement.h"

namespace roofgen::timing {
namespace {

using sass::Action;
using sass::CtaStream;
using sass::Pipe;

/// Rounds of resident CTAs that the event model runs before it extrapolates.
constexpr uint64_t kRounds = 3;
/// Warp instructions that are interpreted at most, for the SM and for the L2 model.
constexpr uint64_t kMostSteps = 2'000'000;

/// The event model runs again, at most so often, at a clock that differs from the one before by more than this share.
constexpr int kMostClocks = 3;
constexpr double kSameClock = 0.01;

/// CTAs of one axis of a grid that are interpreted at most.
constexpr size_t kMostPositions = 20;
/// Work grows evenly if the CTA in the middle differs from the mean of the two ends by at most this share of their
/// difference.
constexpr double kEven = 0.1;
/// Where CTAs have many warp instructions, this share of the work of an axis may stay open: the models err by far more.
constexpr double kManySteps = 1e5;
constexpr double kOpenShare = 0.002;
/// To learn which data the CTAs of a one-dimensional grid share: CTAs of a wave, and the part of each warp's
/// instructions that is interpreted, at least and at most.
constexpr size_t kSampled = 48;
constexpr uint64_t kSampledPart = 8, kLeastSampledSteps = 256, kMostSampledSteps = 1024;

}  // namespace

class LaunchModel::Estimate {
 public:
  Estimate(const Device& device, LaunchRequest request)
      : device_(device), r_(std::move(request)), interpreter_(*r_.code, r_.launch), ctas_(r_.launch.grid.count()) {
    uint64_t stride = 1;
    const uint32_t extents[] = {r_.launch.grid.x, r_.launch.grid.y, r_.launch.grid.z};
    for (size_t dim = 0; dim < 3; ++dim) {
      dims_[dim] = {static_cast<int>(dim), extents[dim], stride};
      // Axes that do not cover the dimension exactly say nothing about its CTAs.
      std::vector<uint32_t> parts = r_.launch.axes[dim];
      uint64_t all = 1;
      for (const uint32_t extent : parts) all *= extent;
      if (all != extents[dim] || parts.empty()) parts = {extents[dim]};
      for (const uint32_t extent : parts) {
        if (extent > 1) axes_.push_back({static_cast<int>(dim), extent, stride});
        stride *= extent;
      }
    }
    works_.resize(axes_.size());
  }

  Result<LaunchTime> time(const Machine& machine) {
    m_ = machine;
    // A cluster takes SMs of one GPC: the rest of its SMs stay idle.
    const std::string usable = fmt::format("cluster_{}_sms", r_.launch.cluster.count());
    if (device_.has(usable)) m_.sms = std::min(m_.sms, static_cast<int>(device_.at(usable)));
    if (!interpreted_) {
      ROOFGEN_CHECK(interpret());
      interpreted_ = out_;
    }
    out_ = *interpreted_;
    longest_ = 1;
    return time_of_streams();
  }

  size_t stream_bytes() const {
    size_t sum = 0;
    for (const auto& [number, cta] : streams_)
      for (const sass::WarpStream& w : cta.warps)
        sum += w.steps.size() * sizeof(sass::Step) + w.accesses.size() * sizeof(sass::Access) +
               w.lines.size() * sizeof(sass::LineRequest);
    return sum;
  }

 private:
  /// All that does not depend on the machine's clock and scalars: the streams, the counts and the L2 model.
  Result<void> interpret() {
    out_.occupancy = occupancy(device_, r_.registers, r_.smem_bytes, static_cast<int>(r_.launch.block.count()));
    if (out_.occupancy.ctas_per_sm < 1)
      return Error{Exit::kUsage, fmt::format("{}: no CTA fits on an SM of {} ({} registers, {} bytes of shared memory)",
                                             r_.code->kernel, device_.name, r_.registers, r_.smem_bytes)};
    ROOFGEN_CHECK(fit_tensor_memory());
    const auto resident = static_cast<uint64_t>(out_.occupancy.ctas_per_sm);
    const auto sms = static_cast<uint64_t>(m_.sms);
    share_work(resident * sms);
    busiest_ = (ctas_ + sms - 1) / sms;
    out_.ctas = static_cast<double>(ctas_);
    out_.waves = out_.ctas / static_cast<double>(sms * resident);

    ROOFGEN_CHECK(count_all());
    // The CTAs of one SM: a typical one and those that its SM gets before and after it.
    uint64_t rounds = r_.event ? kRounds : 1;
    ROOFGEN_TRY(const CtaStream* typical, stream(typical_));
    while (rounds > 1 && rounds * resident * typical->instructions() > kMostSteps) --rounds;
    const uint64_t all =
        std::min(busiest_, rounds * resident + (busiest_ > rounds * resident && rounds > 1 ? busiest_ % resident : 0));
    const uint64_t behind = std::min(typical_ / sms, all / 2);
    for (uint64_t k = 0; k < all; ++k) {
      const uint64_t cta = typical_ + k * sms - behind * sms;
      ROOFGEN_TRY(const CtaStream* one, stream(std::min(cta, ctas_ - 1)));
      // CTAs that do far less or more, at the edge of the grid, are not typical: the mean of the grid counts them.
      const bool is_typical =
          one->instructions() <= 2 * typical->instructions() && typical->instructions() <= 2 * one->instructions();
      load_.ctas.push_back(is_typical ? one : typical);
    }
    load_.resident = static_cast<int>(std::min(resident, all));
    const double reserved = device_.has("smem_reserved_per_block") ? device_.at("smem_reserved_per_block") : 0;
    load_.shared_bytes = carve_out(m_, (static_cast<double>(r_.smem_bytes) + reserved) * load_.resident);
    load_.active_sms = static_cast<int>(std::min(sms, ctas_));
    out_.simulated_ctas = static_cast<int>(all);

    if (!r_.dram_bytes) {
      ROOFGEN_CHECK(miss_ratio());
      load_.write_back = distinct_writes(*r_.code, *typical);
    }
    if (count(*typical).tile_sectors > 0) {
      ROOFGEN_TRY(load_.copy_sharing, copy_sharing(*typical));
    }
    ROOFGEN_TRY(last_, interpreter_.run_on(typical_));
    load_.local_miss = local_miss(*typical);
    ROOFGEN_TRY(load_.atomic_sharers, atomic_sharers(*typical));
    std::set<uint64_t> simulated{typical_};
    for (const CtaStream* c : load_.ctas) simulated.insert(c->cta);
    std::erase_if(streams_, [&](const auto& s) { return !simulated.count(s.first); });
    return {};
  }

  bool has(Action action) const {
    return std::ranges::any_of(r_.code->instructions, [&](const auto& i) { return i.opcode->action == action; });
  }

  /// A CTA waits for the columns of tensor memory that it takes, so that more CTAs than fit there work no faster.
  Result<void> fit_tensor_memory() {
    constexpr int kBytesOfColumn = 4 * 128;
    if (!has(Action::kTensorMemoryAlloc) || !device_.has("tmem_bytes_per_sm")) return {};
    ROOFGEN_TRY(const CtaStream* first, stream(0));
    Occupancy& o = out_.occupancy;
    const int most = static_cast<int>(device_.at("tmem_bytes_per_sm")) / kBytesOfColumn /
                     std::max(1, static_cast<int>(first->tensor_columns));
    if (most < 1 || most >= o.ctas_per_sm) return {};
    o.warps_per_sm = o.warps_per_sm / o.ctas_per_sm * most;
    o.fraction = o.fraction / o.ctas_per_sm * most;
    o.ctas_per_sm = most;
    o.limited_by = "tensor memory";
    return {};
  }

  /// Of CTAs that ask for more work, as many run as fit on the GPU at once, and share that of the grid.
  void share_work(uint64_t at_once) {
    at_once -= at_once % r_.launch.cluster.count();
    if (!has(Action::kNextWork) || at_once == 0 || at_once >= ctas_) return;
    ctas_ = r_.launch.next_work = at_once;
    interpreter_.give_work(at_once);
    streams_.clear();
    dims_ = {};
    dims_[0] = {0, static_cast<uint32_t>(ctas_), 1};
    axes_ = {dims_[0]};
    works_.assign(1, {});
  }

  Result<LaunchTime> time_of_streams() {
    const auto all = static_cast<uint64_t>(out_.simulated_ctas);
    SmLoad load = load_;
    const RoundWork round = work_of_round(m_, *r_.code, load);
    // The mean CTA of the grid does as much more or less than the round's as its loads and its instructions say.
    StreamCounts of_round;
    for (int k = 0; k < load.resident; ++k) {
      const StreamCounts one = count(*load.ctas[static_cast<size_t>(k)]);
      for_each_count([](double& sum, double of_cta) { sum += of_cta; }, of_round, one);
    }
    const double l2_per_cta = round.l2_read_sectors() / std::max(1.0, of_round.global_load_sectors) *
                              out_.counts.global_load_sectors / out_.ctas;
    if (r_.dram_bytes) {
      const double written = out_.counts.l2_write_sectors * 32;
      load.write_back = written > 0 ? std::min(1.0, *r_.dram_bytes / written) : 1;
      dram_sectors_per_cta_ = std::max(0.0, *r_.dram_bytes - written) / 32 / out_.ctas;
    }
    load.l2_miss = l2_per_cta > 0 ? std::min(1.0, dram_sectors_per_cta_ / l2_per_cta) : 0;
    out_.l2_miss = load.l2_miss;
    out_.counts.l2_read_sectors = l2_per_cta * out_.ctas;
    out_.counts.dram_read_bytes = std::min(l2_per_cta, dram_sectors_per_cta_) * 32 * out_.ctas;
    out_.counts.dram_write_bytes = load.write_back * out_.counts.l2_write_sectors * 32;
    // A kernel that keeps the tensor units busy lowers the clock.
    const Machine highest = m_;
    Interval of_clock = interval(m_, *r_.code, load, round);
    out_.clock_hz = clock_of(highest, of_clock.tensor_cycles / std::max(1.0, of_clock.cycles));
    if (out_.clock_hz < m_.clock_hz) {
      m_ = at_clock(m_, out_.clock_hz);
      of_clock = interval(m_, *r_.code, load, round);
    }
    const double rate_of_interval =
        of_clock.cycles / std::max(1.0, of_round.warp_instructions) * out_.counts.warp_instructions / out_.ctas;

    double simulated = 0;
    for (const CtaStream* c : load.ctas) simulated += static_cast<double>(c->instructions());
    scale_ = simulated > 0 ? out_.counts.warp_instructions / out_.ctas / (simulated / static_cast<double>(all)) : 1;
    const double dram_share = std::min(1.0, of_clock.dram_cycles / std::max(1.0, of_clock.cycles));
    out_.imbalance = imbalance_if(of_clock.cycles / load.resident, of_clock.alone_cycles, dram_share);
    const double interval_cycles =
        rate_of_interval * static_cast<double>(busiest_) * out_.imbalance * short_of_busiest(dram_share);
    out_.interval_s = std::max(interval_cycles, least_cycles_) / m_.clock_hz + m_.launch_s;
    out_.doubts = interpreter_.doubts();
    if (!r_.event) return std::move(out_);

    // Later rounds find in L1 what all CTAs read: DRAM has fewer sectors of L2 to serve than by the first one.
    double loaded = 0;
    for (const CtaStream* c : load.ctas) loaded += count(*c).global_load_sectors;
    const double of_loads = l2_read_sectors(m_, *r_.code, load) / std::max(1.0, loaded);
    const double l2_of_all = of_loads * out_.counts.global_load_sectors / out_.ctas;
    load.l2_miss = l2_of_all > 0 ? std::min(1.0, dram_sectors_per_cta_ / l2_of_all) : 0;
    // The clock decides the bytes that L2 and DRAM give in a cycle, and the cycles decide the clock.
    for (int run = 0, same = false; run < kMostClocks && !same; ++run) {
      simulate(load, dram_share);
      const double clock =
          clock_of(highest, tensor_unit_cycles(m_, *r_.code, out_, scale_) / std::max(1.0, out_.cycles));
      same = std::abs(clock - m_.clock_hz) <= kSameClock * clock;
      m_ = at_clock(m_, clock);
    }
    out_.clock_hz = m_.clock_hz;
    out_.event_s = out_.cycles / m_.clock_hz + m_.launch_s;
    find_roof(m_, *r_.code, copy_rate(m_, load_), scale_ * out_.ctas / std::max(1, out_.simulated_ctas), out_);
    return std::move(out_);
  }

  /// The cycles of the launch by the event model.
  void simulate(SmLoad load, double dram_share) {
    const auto resident = static_cast<uint64_t>(out_.occupancy.ctas_per_sm);
    const auto all = static_cast<uint64_t>(out_.simulated_ctas);
    load.trace_spans = r_.trace_spans;
    out_.sm = simulate_sm(m_, *r_.code, load);
    // Further rounds take as long as the full rounds between the first and the last, but DRAM has to serve them: what
    // only the first round misses in L1 took a part of it from the reads that all rounds have.
    std::vector<double> ends;
    for (const CtaSpan& c : out_.sm.ctas) ends.push_back(c.end);
    double cycles = out_.sm.cycles;
    if (busiest_ > all && ends.size() >= 2 * resident) {
      const size_t full = ends.size() / resident;
      const double rate = (ends[full * resident - 1] - ends[resident - 1]) / static_cast<double>((full - 1) * resident);
      const double bytes = (out_.counts.dram_read_bytes + out_.counts.dram_write_bytes) / out_.ctas / scale_;
      cycles += std::max(rate, bytes * load.active_sms / m_.dram_bytes_per_cycle) * static_cast<double>(busiest_ - all);
    } else if (busiest_ > all) {
      cycles *= static_cast<double>(busiest_) / static_cast<double>(all);
    }
    SmLoad alone = load;
    alone.resident = 1;
    alone.trace_spans = 0;
    const auto cycles_alone = [&](const CtaStream& cta) {
      alone.ctas = {&cta};
      if (load.resident == 1 && load.ctas == alone.ctas) return out_.sm.cycles;
      return simulate_sm(m_, *r_.code, alone).cycles;
    };
    // Where no CTA does more than the typical one, the end of the grid is short: the interval model's estimate
    // suffices.
    if (longest_ > 1) {
      const double alone_cycles = cycles_alone(streams_.at(typical_));
      out_.imbalance = imbalance_if(cycles / static_cast<double>(busiest_), alone_cycles, dram_share);
    }
    out_.cycles = std::max(cycles * scale_ * out_.imbalance * short_of_busiest(dram_share), least_cycles_);
    // The CTA that goes on where the others end does so when all have ended.
    if (last_) out_.cycles += std::max(0.0, cycles_alone(*last_) - cycles_alone(streams_.at(typical_)));
  }

  Result<const CtaStream*> stream(uint64_t cta) {
    const auto [at, fresh] = streams_.try_emplace(cta);
    if (fresh) {
      ROOFGEN_TRY(at->second, interpreter_.run(interpreter_.leader(cta)));
    }
    return &at->second;
  }

  /// Long streams of CTAs that are only counted are not kept: a dozen would take hundreds of megabytes.
  Result<StreamCounts> counts_of(uint64_t cta) {
    if (const auto known = counted_.find(cta); known != counted_.end()) return known->second;
    ROOFGEN_TRY(const CtaStream* one, stream(cta));
    const StreamCounts out = counted_[cta] = count(*one);
    if (cta != typical_ && out.warp_instructions > kManySteps) streams_.erase(cta);
    return out;
  }

  StreamCounts count(const CtaStream& cta) const {
    StreamCounts c;
    // More executions of an instruction than of the one before it in the code.
    std::vector<int64_t> more(r_.code->instructions.size() + 1);
    for (const sass::WarpStream& w : cta.warps) {
      c.thread_instructions += static_cast<double>(w.lane_instructions);
      c.fp32_operations += static_cast<double>(w.fp32_lanes + w.fma_lanes);
      c.fp32_thread_instructions += static_cast<double>(w.fp32_lanes);
      for (const sass::Step& s : w.steps) {
        ++more[s.index], --more[s.index + s.count()];
        const sass::Access* access = w.access_of(s);
        if (!access) continue;
        const sass::Access& a = *access;
        const Action what = r_.code->instructions[s.index].opcode->action;
        double sectors = 0;
        for (uint32_t k = 0; k < a.lines; ++k)
          if (w.lines[a.first_line + k].line < sass::kLocalLines)
            sectors += std::popcount(w.lines[a.first_line + k].sectors);
        if (what == Action::kLds || what == Action::kLdsm)
          c.shared_load_wavefronts += a.wavefronts;
        else
          c.shared_store_wavefronts += a.wavefronts;
        if (!a.lines) continue;
        const bool is_tile = s.is_sync(), is_load = is_tile && w.syncs[s.sync()].kind == sass::Sync::Kind::kLoad;
        if (is_load) c.tile_sectors += sectors;
        if (what == Action::kLdg || what == Action::kLdgsts || is_load)
          ++c.global_load_requests, c.global_load_sectors += sectors;
        if (writes_device(*r_.code, w, s)) ++c.global_store_requests, c.l2_write_sectors += sectors;
      }
    }
    int64_t executions = 0;
    for (size_t i = 0; i < r_.code->instructions.size(); ++i) {
      executions += more[i];
      c.pipe_instructions[static_cast<size_t>(r_.code->instructions[i].opcode->pipe)] +=
          static_cast<double>(executions);
      c.warp_instructions += static_cast<double>(executions);
    }
    return c;
  }

  static constexpr double StreamCounts::*kCounted[] = {&StreamCounts::warp_instructions,
                                                       &StreamCounts::thread_instructions,
                                                       &StreamCounts::fp32_operations,
                                                       &StreamCounts::fp32_thread_instructions,
                                                       &StreamCounts::shared_load_wavefronts,
                                                       &StreamCounts::shared_store_wavefronts,
                                                       &StreamCounts::global_load_requests,
                                                       &StreamCounts::global_store_requests,
                                                       &StreamCounts::global_load_sectors,
                                                       &StreamCounts::l2_write_sectors,
                                                       &StreamCounts::tile_sectors};

  /// Calls `f` with every count that grows with the CTAs, of each of the given sums.
  template <class F, class... Sums>
  static void for_each_count(F f, Sums&... sums) {
    for (const auto member : kCounted) f(sums.*member...);
    for (size_t p = 0; p < static_cast<size_t>(Pipe::kCount); ++p) f(sums.pipe_instructions[p]...);
  }

  /// An axis of the grid: a dimension, or one of the axes that it is flattened from.
  struct Axis {
    int dim = 0;
    uint32_t extent = 1;
    uint64_t stride = 1;  ///< of the CTAs' linear index
    uint32_t position(uint64_t cta) const { return static_cast<uint32_t>(cta / stride % extent); }
    /// The CTA at another position on the axis.
    uint64_t moved(uint64_t cta, uint32_t to) const { return cta - position(cta) * stride + to * stride; }
  };

  /// A position on one axis of the grid, and the number of positions that it stands for.
  using Shares = std::map<uint32_t, double>;
  /// Positions on one axis, and the work of their CTAs; between two of them it changes evenly.
  using Works = std::vector<std::pair<uint32_t, double>>;

  /// Where DRAM is the limit, SMs with fewer CTAs than the busiest leave their part of it to the others: the time that
  /// DRAM takes goes with the mean number of CTAs of an SM. The time is the 4-norm of DRAM's and the rest, as in the
  /// interval model.
  double short_of_busiest(double dram_share) const {
    if (ctas_ <= static_cast<uint64_t>(m_.sms)) return 1;
    const double even = static_cast<double>(ctas_) / static_cast<double>(busiest_ * static_cast<uint64_t>(m_.sms));
    return std::pow(1 - std::pow(dram_share, 4) + std::pow(dram_share * even, 4), 0.25);
  }

  /// LaunchTime::imbalance where a CTA takes `cta_cycles` of a full SM, and `alone_cycles` if it has the SM alone.
  /// Where DRAM is the limit, the CTAs that run on at the end have more of it. Sets the least time of the longest CTA.
  double imbalance_if(double cta_cycles, double alone_cycles, double dram_share) {
    const double alone = alone_cycles > 0 ? cta_cycles / alone_cycles : 1;
    const double out = work_imbalance(std::clamp(alone, 1.0 / out_.occupancy.ctas_per_sm, 1.0));
    least_cycles_ = longest_ > 1 ? alone_cycles * longest_ : 0;
    return 1 + (out - 1) * (1 - dram_share);
  }

  /// The work of each CTA is that of the typical one, times a factor for its position on each axis.
  double work_imbalance(double alone) {
    if (ctas_ > kMostPlaced) return 1;
    std::vector<std::vector<double>> factors(axes_.size());
    bool alike = true;
    for (size_t k = 0; k < axes_.size(); ++k) {
      const Works& at = works_[k];
      factors[k].assign(axes_[k].extent, 1);
      if (at.size() < 2) continue;
      for (size_t i = 0; i + 1 < at.size(); ++i)
        for (uint32_t p = at[i].first; p <= at[i + 1].first; ++p)
          factors[k][p] = at[i].second + (at[i + 1].second - at[i].second) * (p - at[i].first) /
                                             std::max(1u, at[i + 1].first - at[i].first);
      alike &= std::all_of(at.begin(), at.end(), [&](const auto& w) { return w.second == at[0].second; });
    }
    if (alike) return 1;
    longest_ = 1;
    for (size_t k = 0; k < axes_.size(); ++k)
      longest_ *= *std::max_element(factors[k].begin(), factors[k].end()) / factors[k][axes_[k].position(typical_)];
    return imbalance({ctas_, m_.sms, out_.occupancy.ctas_per_sm, alone, [&](uint64_t cta) {
                        double work = 1;
                        for (size_t k = 0; k < axes_.size(); ++k) work *= factors[k][axes_[k].position(cta)];
                        return work;
                      }});
  }

  /// The positions on one axis through a typical CTA, whose position on the axis it sets. Between two positions whose
  /// CTAs do the same, all CTAs do; otherwise the gap is halved, and in the end both ends stand for half of it.
  Result<Shares> shares_of_axis(const Axis& axis, Works& works) {
    const uint32_t extent = axis.extent;
    std::map<uint32_t, StreamCounts> at;
    const auto probe = [&](uint32_t position) -> Result<void> {
      ROOFGEN_TRY(at[position], counts_of(axis.moved(typical_, position)));
      return {};
    };
    for (const uint32_t position : {0u, extent / 2, extent - 1}) ROOFGEN_CHECK(probe(position));
    // Often only the CTAs at the ends differ.
    if (extent > 4 && !same(at[0], at[extent / 2])) ROOFGEN_CHECK(probe(1));
    if (extent > 4 && !same(at[extent - 1], at[extent / 2])) ROOFGEN_CHECK(probe(extent - 2));
    // The gap whose ends leave most of the work open is halved, unless the work grows evenly across it.
    std::set<uint32_t> even;  // gaps by their first position
    const double enough = at[extent / 2].warp_instructions > kManySteps ? kOpenShare : 0;
    while (at.size() < kMostPositions) {
      double most = 0, sum = 0;
      uint32_t from = 0, width = 0;
      for (auto i = at.begin(); std::next(i) != at.end(); ++i) {
        const auto next = std::next(i);
        if (next->first - i->first == 1 || even.count(i->first)) continue;
        const double open = open_share(i->second, next->second) * (next->first - i->first - 1) / extent;
        sum += open;
        if (open > most) most = open, from = i->first, width = next->first - i->first;
      }
      if (sum <= enough) break;
      const uint32_t middle = from + width / 2;
      ROOFGEN_CHECK(probe(middle));
      if (std::ranges::all_of(kWork, [&](auto member) {
            const double begin = at[from].*member, end = at[from + width].*member;
            return std::abs(at[middle].*member - (begin + end) / 2) <= kEven * std::abs(end - begin);
          }))
        even.insert(from), even.insert(middle);
    }
    works.clear();
    for (const auto& [position, counted] : at) works.emplace_back(position, counted.warp_instructions);
    // The typical position is in the middle of the gap that does the most.
    double most = -1;
    Shares out;
    uint32_t alike = at.begin()->first;  // the first of a run of CTAs that do the same stands for all of them
    for (auto i = at.begin(); i != at.end(); ++i) {
      const auto next = std::next(i);
      out[alike] += 1;
      if (next == at.end()) break;
      const double gap = next->first - i->first - 1;
      const double work = (gap + 1) * std::min(i->second.warp_instructions, next->second.warp_instructions);
      if (work > most) most = work, typical_ = axis.moved(typical_, i->first + (next->first - i->first) / 2);
      if (same(i->second, next->second)) {
        out[alike] += gap;
      } else {
        out[alike] += gap / 2;
        alike = next->first;
        out[alike] += gap / 2;
      }
    }
    return out;
  }

  /// What tells the work of CTAs apart.
  static constexpr std::array kWork = {&StreamCounts::warp_instructions, &StreamCounts::thread_instructions};

  static bool same(const StreamCounts& a, const StreamCounts& b) {
    return std::ranges::all_of(kWork, [&](auto member) { return a.*member == b.*member; });
  }
  /// The share of the work of a CTA between two others that they do not tell.
  static double open_share(const StreamCounts& a, const StreamCounts& b) {
    const auto of = [&](auto m) { return std::abs(a.*m - b.*m) / std::max(1.0, a.*m + b.*m); };
    return std::max(of(kWork[0]), of(kWork[1]));
  }

  /// The number of SMs that operate atomically on the same addresses: all, if distant CTAs do.
  Result<double> atomic_sharers(const CtaStream& typical) {
    const auto atomics = [&](const CtaStream& cta) {
      std::set<uint64_t> lines;
      for (const sass::WarpStream& w : cta.warps)
        for (const sass::Step& s : w.steps) {
          const Action what = r_.code->instructions[s.index].opcode->action;
          if ((what != Action::kAtomg && what != Action::kRed) || !s.has_access()) continue;
          const sass::Access& a = w.accesses[s.access];
          for (uint32_t l = 0; l < a.lines; ++l) lines.insert(w.lines[a.first_line + l].line);
        }
      return lines;
    };
    const std::set<uint64_t> own = atomics(typical);
    if (own.empty()) return 1.0;
    ROOFGEN_TRY(const CtaStream* other, stream(typical.cta < ctas_ / 2 ? ctas_ - 1 : 0));
    const std::set<uint64_t> others = atomics(*other);
    size_t both = 0;
    for (const uint64_t line : own) both += others.count(line);
    const double sms = std::min<double>(m_.sms, out_.ctas);
    return 1 + (sms - 1) * static_cast<double>(both) / static_cast<double>(own.size());
  }

  /// Local memory of all resident CTAs of the chip against L2.
  double local_miss(const CtaStream& cta) const {
    std::set<uint64_t> lines;
    for (const sass::WarpStream& w : cta.warps)
      for (const sass::LineRequest& l : w.lines)
        if (l.line >= sass::kLocalLines) lines.insert(l.line);
    const double bytes = 128.0 * static_cast<double>(lines.size()) *
                         std::min(out_.ctas, static_cast<double>(m_.sms) * out_.occupancy.ctas_per_sm);
    return bytes > m_.l2_bytes ? 1 - m_.l2_bytes / bytes : 0;
  }

  /// The counts of the whole grid: sums over the positions of all axes, or, where these are too many, of a typical CTA
  /// times the mean of each axis.
  Result<void> count_all() {
    typical_ = 0;
    for (const Axis& axis : axes_) typical_ = axis.moved(typical_, axis.extent / 2);
    std::vector<Shares> shares(axes_.size());
    ROOFGEN_CHECK(stream(typical_));
    // The first pass finds a typical CTA, through which the axes of the second go.
    for (int pass = 0; pass < 2; ++pass)
      for (size_t k = 0; k < axes_.size(); ++k) {
        const Axis& axis = axes_[k];
        if (!interpreter_.depends_on_axis(axis.dim)) {
          shares[k] = {{axis.position(typical_), axis.extent}};
          continue;
        }
        ROOFGEN_TRY(shares[k], shares_of_axis(axis, works_[k]));
      }
    ROOFGEN_TRY(const StreamCounts typical, counts_of(typical_));
    std::vector<std::pair<uint64_t, double>> corners{{typical_, 1}};
    for (size_t k = 0;
         k < axes_.size() && static_cast<double>(corners.size()) * typical.warp_instructions <= kMostSteps; ++k) {
      std::vector<std::pair<uint64_t, double>> more;
      for (const auto& [cta, weight] : corners)
        for (const auto& [position, share] : shares[k])
          more.emplace_back(axes_[k].moved(cta, position), weight * share);
      corners = std::move(more);
    }
    if (static_cast<double>(corners.size()) * typical.warp_instructions <= kMostSteps) {
      for (const auto& [number, weight] : corners) {
        ROOFGEN_TRY(const StreamCounts c, counts_of(number));
        for_each_count([&, w = weight](double& sum, double of_cta) { sum += of_cta * w; }, out_.counts, c);
      }
      return {};
    }
    StreamCounts factor;
    for_each_count([](double& f) { f = 1; }, factor);
    for (size_t k = 0; k < axes_.size(); ++k) {
      StreamCounts sum;
      for (const auto& [position, weight] : shares[k]) {
        ROOFGEN_TRY(const StreamCounts c, counts_of(axes_[k].moved(typical_, position)));
        for_each_count([&, w = weight](double& all, double one_cta) { all += one_cta * w; }, sum, c);
      }
      const double extent = axes_[k].extent;
      for_each_count(
          [&](double& f, double all, double of_typical) {
            if (of_typical > 0) f *= all / (of_typical * extent);
          },
          factor, sum, typical);
    }
    for_each_count([&](double& all, double of_typical, double f) { all = of_typical * f * out_.ctas; }, out_.counts,
                   typical, factor);
    return {};
  }

  using Sectors = std::unordered_map<uint64_t, uint8_t>;  ///< of device memory that a CTA reads, by line

  /// Calls f(instruction, lines) for every request of a load from device memory.
  template <class F>
  void for_each_read(F f, const CtaStream& cta) const {
    for (const sass::WarpStream& w : cta.warps)
      for (const sass::Step& s : w.steps) {
        const sass::Access* access = w.access_of(s);
        if (!access) continue;
        const Action what = r_.code->instructions[s.index].opcode->action;
        const bool is_load = s.is_sync() && w.syncs[s.sync()].kind == sass::Sync::Kind::kLoad;
        if (what != Action::kLdg && what != Action::kLdgsts && what != Action::kAtomg && !is_load) continue;
        const sass::Access& a = *access;
        for (uint32_t l = 0; l < a.lines; ++l) f(s.index, w.lines[a.first_line + l]);
      }
  }

  Sectors sectors_read(const CtaStream& cta) const {
    Sectors out;
    for_each_read([&](uint32_t, const sass::LineRequest& l) { out[l.line] |= l.sectors; }, cta);
    return out;
  }

  /// The first instruction that reads a sector, by sector.
  std::unordered_map<uint64_t, uint32_t> readers_of(const CtaStream& cta) const {
    std::unordered_map<uint64_t, uint32_t> out;
    for_each_read(
        [&](uint32_t index, const sass::LineRequest& l) {
          for (uint64_t bit = 0; bit < 4; ++bit)
            if (l.sectors >> bit & 1) out.emplace(4 * l.line + bit, index);
        },
        cta);
    return out;
  }

  /// The distinct sectors that `count` CTAs from `first` on read, over the sum of what each of them reads, from a
  /// sample of them. Unseen sectors are estimated for each load instruction on its own, from the numbers of sectors
  /// that one and two CTAs of the sample read (Chao, Scandinavian Journal of Statistics 11, 1984).
  Result<double> distinct_share(uint64_t first, uint64_t count, const CtaStream& typical) {
    const uint64_t most = sampled_steps(typical);
    std::set<uint64_t> sample;
    for (uint64_t state = 1; sample.size() < std::min<uint64_t>(kSampled, count);) {
      state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
      sample.insert(first + (state >> 33) % count);
    }
    struct Seen {
      uint32_t instruction = 0, ctas = 0;
    };
    struct Frequencies {
      double all = 0, any = 0, once = 0, twice = 0, share = 1;
    };
    std::unordered_map<uint64_t, Seen> seen;  // by sector
    std::map<uint32_t, Frequencies> of;       // by load instruction
    sass::Interpreter interpreter(*r_.code, r_.launch);
    for (const uint64_t number : sample) {
      ROOFGEN_TRY(const CtaStream cta, interpreter.run(number, most));
      for (const auto& [sector, index] : readers_of(cta)) {
        Seen& s = seen.try_emplace(sector, Seen{index, 0}).first->second;
        ++s.ctas;
        of[s.instruction].all += 1;
      }
    }
    for (const auto& [sector, s] : seen) {
      Frequencies& f = of[s.instruction];
      ++f.any, f.once += s.ctas == 1, f.twice += s.ctas == 2;
    }
    // The typical CTA says how much each instruction reads in all.
    const std::unordered_map<uint64_t, uint32_t> own = readers_of(typical);
    const auto size = static_cast<double>(sample.size()), scale = static_cast<double>(count) / size;
    double sum = 0, distinct = 0;
    for (auto& [index, f] : of) {
      // What a CTA reads by an instruction is shared as a whole: the estimate counts such parts, not sectors.
      const double part = f.all / size, once = f.once / part, twice = f.twice / part;
      const double unseen = part * once * std::max(0.0, once - 1) / (2 * (twice + 1));
      const bool is_shared = f.any > f.once;
      f.share = is_shared ? std::min(1.0, (f.any + unseen) / (f.all * scale)) : 1;
      sum += f.all, distinct += f.share * f.all;
    }
    const double mean = sum > 0 ? distinct / sum : 1;  // for instructions after the part
    distinct = 0;
    for (const auto& [sector, index] : own) {
      const auto f = of.find(index);
      distinct += f == of.end() ? mean : f->second.share;
    }
    return own.empty() ? 1 : distinct / static_cast<double>(own.size());
  }

  /// Warp instructions that are interpreted of a CTA of which a part suffices, of each of its warps.
  static uint64_t sampled_steps(const CtaStream& typical) {
    const uint64_t of_warp = typical.instructions() / std::max<size_t>(1, typical.warps.size());
    return std::clamp(of_warp / kSampledPart, kLeastSampledSteps, kMostSampledSteps);
  }

  /// The share of the sectors that the typical CTA reads first which other CTAs of its wave read first, too: of those
  /// at distances of 1, 2, 4, ... CTAs, among which all axes of a grid with extents in powers of two are.
  Result<double> copy_sharing(const CtaStream& typical) {
    const uint64_t most = sampled_steps(typical), own = typical_;
    const uint64_t wave = std::min(ctas_, static_cast<uint64_t>(m_.sms) * static_cast<uint64_t>(load_.resident));
    sass::Interpreter interpreter(*r_.code, r_.launch);
    ROOFGEN_TRY(const CtaStream first, interpreter.run(own, most));
    Sectors of_others;
    for (uint64_t distance = 1; distance < wave; distance *= 2) {
      const uint64_t other = own + distance < ctas_ ? own + distance : own - std::min(own, distance);
      if (other == own) continue;
      ROOFGEN_TRY(const CtaStream cta, interpreter.run(other, most));
      for (const auto& [line, mask] : sectors_read(cta)) of_others[line] |= mask;
    }
    double all = 0, shared = 0;
    for (const auto& [line, mask] : sectors_read(first)) {
      const auto there = of_others.find(line);
      all += std::popcount(mask);
      if (there != of_others.end()) shared += std::popcount(static_cast<uint8_t>(mask & there->second));
    }
    return all > 0 ? shared / all : 0;
  }

  /// Distinct sectors that a wave reads, per CTA. A sector of the typical CTA that the CTA far away on an axis reads,
  /// too, does not depend on that axis: all CTAs along it share the sector. One that only the next CTA reads, too,
  /// belongs to the overlap of neighbours, and counts for one of them.
  Result<void> miss_ratio() {
    ROOFGEN_TRY(const CtaStream* typical, stream(typical_));
    const Sectors own = sectors_read(*typical);
    const double wave = std::min<double>(out_.ctas, static_cast<double>(m_.sms) * out_.occupancy.ctas_per_sm);
    struct Neighbours {
      double in_wave, extent;  ///< positions on the axis: within a wave, of the grid
      Sectors next, far;
    };
    std::vector<Neighbours> axes;
    double before = 1;
    for (const Axis& axis : dims_) {
      const uint32_t extent = axis.extent, own_position = axis.position(typical_);
      const double in_wave = std::min<double>(extent, std::ceil(wave / before));
      before *= extent;
      if (extent < 2) continue;
      const auto neighbour = [&](uint32_t distance) -> Result<Sectors> {
        const uint32_t position = own_position + distance < extent ? own_position + distance
                                                                   : own_position - std::min(distance, own_position);
        ROOFGEN_TRY(const CtaStream* one, stream(axis.moved(typical_, position)));
        return sectors_read(*one);
      };
      Neighbours& a = axes.emplace_back(Neighbours{in_wave, static_cast<double>(extent), {}, {}});
      ROOFGEN_TRY(a.next, neighbour(1));
      ROOFGEN_TRY(a.far, neighbour(std::max(1u, std::min<uint32_t>(extent - 1, static_cast<uint32_t>(in_wave)) / 2)));
    }
    const auto in = [](const Sectors& set, uint64_t line) {
      const auto it = set.find(line);
      return it == set.end() ? uint8_t{0} : it->second;
    };
    const auto distinct = [&](double Neighbours::*extent) {
      double sum = 0;
      for (const auto& [line, mask] : own)
        for (uint8_t bit = 1; bit < 16; bit = static_cast<uint8_t>(bit << 1)) {
          if (!(mask & bit)) continue;
          double copies = 1;
          for (const Neighbours& a : axes)
            if (!(in(a.far, line) & bit)) copies *= in(a.next, line) & bit ? 1 : a.*extent;
          sum += copies;
        }
      return sum;
    };
    double of_wave = distinct(&Neighbours::in_wave), of_grid = distinct(&Neighbours::extent);
    // A kernel may divide the index on the only axis into those of several: then a distance says little.
    if (axes.size() == 1) {
      const auto in_wave = static_cast<uint64_t>(wave);
      const uint64_t middle = typical_, first = std::min(middle - std::min(middle, in_wave / 2), ctas_ - in_wave);
      ROOFGEN_TRY(const double share, distinct_share(first, in_wave, *typical));
      double sectors = 0;
      for (const auto& [line, mask] : own) sectors += std::popcount(mask);
      if (share * sectors * wave < of_wave) {
        of_grid *= share * sectors * wave / of_wave;
        of_wave = share * sectors * wave;
      }
    }
    // If a wave fits in L2, the next wave finds there what both read.
    const double loaded = count(*typical).global_load_sectors;
    double per_cta = of_wave / wave * (loaded > 0 ? out_.counts.global_load_sectors / out_.ctas / loaded : 1);
    if (32 * of_wave <= kL2Share * m_.l2_bytes) per_cta = std::min(per_cta, of_grid / out_.ctas);
    // What fits in L2 comes from DRAM once.
    if (r_.buffer_bytes > 0 && r_.buffer_bytes <= kL2Share * m_.l2_bytes)
      per_cta = std::min(per_cta, r_.buffer_bytes / 32 / out_.ctas);
    dram_sectors_per_cta_ = per_cta;
    return {};
  }

  const Device& device_;
  Machine m_;
  LaunchRequest r_;
  sass::Interpreter interpreter_;
  std::optional<CtaStream> last_;  ///< of the CTA that does the rest of the work after the exit of the others
  uint64_t ctas_;                  ///< that run: all of the grid, or those whose work the others do not take
  std::array<Axis, 3> dims_;       ///< of the grid
  std::vector<Axis> axes_;         ///< of more than one position, fastest first
  std::map<uint64_t, CtaStream> streams_;
  std::map<uint64_t, StreamCounts> counted_;  ///< by CTA
  SmLoad load_;
  std::optional<LaunchTime> interpreted_;  ///< the time, as far as interpret() knows it
  uint64_t busiest_ = 0;                   ///< CTAs of the SM with the most
  double dram_sectors_per_cta_ = 0;
  double scale_ = 1;          ///< work of the mean CTA of the grid over that of the simulated ones
  uint64_t typical_ = 0;      ///< a CTA of the largest class
  std::vector<Works> works_;  ///< by axis
  double longest_ = 1;        ///< work of the CTA with the most over that of the typical one
  double least_cycles_ = 0;   ///< of the longest CTA, alone
  LaunchTime out_;
};

LaunchModel::LaunchModel(const Device& device, LaunchRequest request)
    : estimate_(std::make_unique<Estimate>(device, std::move(request))) {}
LaunchModel::LaunchModel(LaunchModel&&) noexcept = default;
LaunchModel::~LaunchModel() = default;

Result<LaunchTime> LaunchModel::time(const Machine& machine) { return estimate_->time(machine); }

size_t LaunchModel::stream_bytes() const { return estimate_->stream_bytes(); }

Result<LaunchTime> launch_time(const Device& device, const Machine& machine, LaunchRequest request) {
  return LaunchModel(device, std::move(request)).time(machine);
}

}  // namespace roofgen::timing
