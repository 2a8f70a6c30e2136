#include "tuner/timing/launch_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <unordered_map>

namespace roofgen::timing {
namespace {

using sass::Action;
using sass::CtaStream;
using sass::Pipe;

/// Rounds of resident CTAs that the event model runs before it extrapolates.
constexpr uint64_t kRounds = 3;
/// Warp instructions that are interpreted at most, for the SM and for the L2 model.
constexpr uint64_t kMostSteps = 6'000'000;
/// Consecutive CTAs whose common sectors the L2 model looks at.
constexpr uint64_t kNeighbours = 32;

/// Positions on one axis of a grid, and the number of CTAs that each stands for.
std::vector<std::pair<uint32_t, double>> positions(uint32_t extent) {
  std::vector<std::pair<uint32_t, double>> out;
  if (extent <= 5) {
    for (uint32_t i = 0; i < extent; ++i) out.emplace_back(i, 1);
    return out;
  }
  // The edges stand for themselves. Three positions stand for the inside, exact for work that is linear in the index.
  const double each = (extent - 2) / 3.0;
  return {{0, 1}, {1, each}, {(extent - 1) / 2, each}, {extent - 2, each}, {extent - 1, 1}};
}

class Estimate {
 public:
  Estimate(const Device& device, const Machine& machine, LaunchRequest request)
      : device_(device),
        m_(machine),
        r_(std::move(request)),
        interpreter_(*r_.code, r_.launch),
        grid_(r_.launch.grid),
        ctas_(grid_.count()) {}

  Result<LaunchTime> run() {
    out_.occupancy = occupancy(device_, r_.registers, r_.smem_bytes, static_cast<int>(r_.launch.block.count()));
    if (out_.occupancy.ctas_per_sm < 1)
      return Error{Exit::kUsage, fmt::format("{}: no CTA fits on an SM of {} ({} registers, {} bytes of shared memory)",
                                             r_.code->kernel, device_.name, r_.registers, r_.smem_bytes)};
    const auto resident = static_cast<uint64_t>(out_.occupancy.ctas_per_sm);
    const auto sms = static_cast<uint64_t>(m_.sms);
    const uint64_t busiest = (ctas_ + sms - 1) / sms;  // CTAs of the SM with the most
    out_.ctas = static_cast<double>(ctas_);
    out_.waves = out_.ctas / static_cast<double>(sms * resident);

    // The CTAs of one SM, from the middle of the grid.
    uint64_t rounds = kRounds;
    ROOFGEN_TRY(const CtaStream* probe, stream(ctas_ / 2));
    while (rounds > 1 && rounds * resident * probe->steps() > kMostSteps) --rounds;
    const uint64_t all = std::min(busiest, rounds * resident + (busiest > rounds * resident ? busiest % resident : 0));
    const uint64_t first = (busiest - all) / 2 * sms + std::min(sms, ctas_) / 2;
    SmLoad load;
    for (uint64_t k = 0; k < all; ++k) {
      ROOFGEN_TRY(const CtaStream* one, stream(std::min(first + k * sms, ctas_ - 1)));
      load.ctas.push_back(one);
    }
    load.resident = static_cast<int>(std::min(resident, all));
    load.shared_bytes =
        static_cast<double>(r_.smem_bytes +
                            (device_.has("smem_reserved_per_block") ? device_.integer("smem_reserved_per_block") : 0)) *
        load.resident;
    load.active_sms = static_cast<int>(std::min(sms, ctas_));
    out_.simulated_ctas = static_cast<int>(all);

    ROOFGEN_CHECK(count_all());
    ROOFGEN_CHECK(miss_ratio(load));
    const Interval round = interval(m_, *r_.code, load);
    const double l2_per_cta =
        round.l2_read_sectors / std::max(1.0, std::min<double>(load.resident, static_cast<double>(load.ctas.size())));
    load.l2_miss = l2_per_cta > 0 ? std::min(1.0, dram_sectors_per_cta_ / l2_per_cta) : 0;
    out_.l2_miss = load.l2_miss;
    out_.counts.l2_read_sectors = l2_per_cta * out_.ctas;
    out_.counts.dram_read_bytes = std::min(l2_per_cta, dram_sectors_per_cta_) * 32 * out_.ctas;
    out_.counts.dram_write_bytes = out_.counts.l2_write_sectors * 32;
    const Interval again = interval(m_, *r_.code, load);
    const double rate_of_interval = again.cycles / load.resident;

    out_.sm = simulate_sm(m_, *r_.code, load);
    // Further rounds take as long as the full rounds between the first and the last.
    std::vector<double> ends;
    for (const CtaSpan& c : out_.sm.ctas) ends.push_back(c.end);
    double cycles = out_.sm.cycles;
    if (busiest > all && ends.size() >= 2 * resident) {
      const size_t full = ends.size() / resident;
      const double rate = (ends[full * resident - 1] - ends[resident - 1]) / static_cast<double>((full - 1) * resident);
      cycles += rate * static_cast<double>(busiest - all);
    } else if (busiest > all) {
      cycles *= static_cast<double>(busiest) / static_cast<double>(all);
    }
    double simulated = 0;
    for (const CtaStream* c : load.ctas) simulated += static_cast<double>(c->steps());
    const double scale =
        simulated > 0 ? out_.counts.warp_instructions / out_.ctas / (simulated / static_cast<double>(all)) : 1;
    out_.cycles = cycles * scale;
    out_.event_s = out_.cycles / m_.clock_hz + m_.launch_s;
    out_.interval_s = rate_of_interval * static_cast<double>(busiest) * scale / m_.clock_hz + m_.launch_s;
    roofline();
    out_.doubts = interpreter_.doubts();
    return std::move(out_);
  }

 private:
  Result<const CtaStream*> stream(uint64_t cta) {
    const auto [at, fresh] = streams_.try_emplace(cta);
    if (fresh) {
      Result<CtaStream> made = interpreter_.run(cta);
      if (!made) return made.error();
      at->second = std::move(*made);
    }
    return &at->second;
  }

  StreamCounts count(const CtaStream& cta) const {
    StreamCounts c;
    for (const sass::WarpStream& w : cta.warps) {
      c.warp_instructions += static_cast<double>(w.steps.size());
      c.thread_instructions += static_cast<double>(w.lane_instructions);
      for (const sass::Step& s : w.steps) {
        const sass::Instruction& i = r_.code->instructions[s.index];
        if (i.opcode->pipe == Pipe::kFma && i.opcode->action != Action::kFchk)
          c.fp32_operations += (i.opcode->action == Action::kFfma ? 64 : 32);
        if (s.access == sass::Step::kNoAccess) continue;
        const sass::Access& a = w.accesses[s.access];
        const Action what = i.opcode->action;
        double sectors = 0;
        for (uint32_t k = 0; k < a.lines; ++k)
          if (w.lines[a.first_line + k].line < sass::kLocalLines)
            sectors += std::popcount(w.lines[a.first_line + k].sectors);
        if (what == Action::kLds || what == Action::kLdsm)
          c.shared_load_wavefronts += a.wavefronts;
        else
          c.shared_store_wavefronts += a.wavefronts;
        if (!a.lines) continue;
        if (what == Action::kLdg || what == Action::kLdgsts) ++c.global_load_requests, c.global_load_sectors += sectors;
        if (what == Action::kStg || what == Action::kRed || what == Action::kAtomg)
          ++c.global_store_requests, c.l2_write_sectors += sectors;
      }
    }
    return c;
  }

  static void add(StreamCounts& to, const StreamCounts& c, double weight) {
    static constexpr double StreamCounts::*kAll[] = {
        &StreamCounts::warp_instructions,       &StreamCounts::thread_instructions,
        &StreamCounts::fp32_operations,         &StreamCounts::shared_load_wavefronts,
        &StreamCounts::shared_store_wavefronts, &StreamCounts::global_load_requests,
        &StreamCounts::global_store_requests,   &StreamCounts::global_load_sectors,
        &StreamCounts::l2_write_sectors};
    for (const auto member : kAll) to.*member += c.*member * weight;
  }

  /// The counts of the whole grid. If its first, middle and last CTAs do the same, all of them do.
  Result<void> count_all() {
    ROOFGEN_TRY(const CtaStream* middle, stream(ctas_ / 2));
    ROOFGEN_TRY(const CtaStream* first, stream(0));
    ROOFGEN_TRY(const CtaStream* last, stream(ctas_ - 1));
    const StreamCounts a = count(*middle), b = count(*first), c = count(*last);
    const auto same = [](const StreamCounts& x, const StreamCounts& y) {
      return x.warp_instructions == y.warp_instructions && x.thread_instructions == y.thread_instructions;
    };
    if (same(a, b) && same(a, c)) {
      add(out_.counts, a, out_.ctas);
      return {};
    }
    for (const auto& [z, wz] : positions(grid_.z))
      for (const auto& [y, wy] : positions(grid_.y))
        for (const auto& [x, wx] : positions(grid_.x)) {
          ROOFGEN_TRY(const CtaStream* one, stream(x + uint64_t{grid_.x} * (y + uint64_t{grid_.y} * z)));
          add(out_.counts, count(*one), wx * wy * wz);
        }
    return {};
  }

  /// Distinct sectors that a wave reads: those of consecutive CTAs, extrapolated by the growth between half of them and
  /// all.
  Result<void> miss_ratio(SmLoad& load) {
    ROOFGEN_TRY(const CtaStream* probe, stream(ctas_ / 2));
    uint64_t count = std::min(kNeighbours, ctas_);
    while (count > 2 && count * probe->steps() > kMostSteps / 2) count /= 2;
    const uint64_t first = std::min(ctas_ / 2, ctas_ - count);
    std::unordered_map<uint64_t, uint8_t> sectors;
    double distinct = 0, half = 0;
    for (uint64_t k = 0; k < count; ++k) {
      ROOFGEN_TRY(const CtaStream* one, stream(first + k));
      for (const sass::WarpStream& w : one->warps)
        for (const sass::Step& s : w.steps) {
          if (s.access == sass::Step::kNoAccess) continue;
          const Action what = r_.code->instructions[s.index].opcode->action;
          if (what != Action::kLdg && what != Action::kLdgsts && what != Action::kAtomg) continue;
          const sass::Access& a = w.accesses[s.access];
          for (uint32_t l = 0; l < a.lines; ++l) {
            const sass::LineRequest& line = w.lines[a.first_line + l];
            uint8_t& known = sectors[line.line];
            distinct += std::popcount(static_cast<uint8_t>(line.sectors & ~known));
            known |= line.sectors;
          }
        }
      if (2 * (k + 1) == count || (count == 1 && k == 0)) half = distinct;
    }
    const double wave = std::min<double>(out_.ctas, static_cast<double>(m_.sms) * out_.occupancy.ctas_per_sm);
    double of_wave = distinct;
    if (count > 1 && half > 0 && wave > static_cast<double>(count)) {
      const double exponent = std::clamp(std::log2(distinct / half), 0.0, 1.0);
      of_wave = distinct * std::pow(wave / static_cast<double>(count), exponent);
    }
    double per_cta = of_wave / std::max(1.0, std::max(wave, static_cast<double>(count)));
    // What fits in L2 comes from DRAM once.
    const double footprint = r_.buffer_bytes > 0 ? r_.buffer_bytes : 0;
    if (footprint > 0 && footprint <= 0.8 * m_.l2_bytes) per_cta = std::min(per_cta, footprint / 32 / out_.ctas);
    dram_sectors_per_cta_ = per_cta;
    (void)load;
    return {};
  }

  void roofline() {
    const StreamCounts& c = out_.counts;
    const double chip = m_.sms * m_.clock_hz;
    double tensor = 0, xu = 0;
    for (size_t i = 0; i < out_.sm.instructions.size(); ++i) {
      const sass::Instruction& inst = r_.code->instructions[i];
      const double times = static_cast<double>(out_.sm.instructions[i].issues);
      if (inst.opcode->pipe == Pipe::kTensor) tensor += times * tensor_cycles(m_, inst);
      if (inst.opcode->pipe == Pipe::kXu) xu += times * m_.interval[static_cast<size_t>(Pipe::kXu)];
    }
    const double per_cta = out_.ctas / std::max(1, out_.simulated_ctas);
    const std::pair<const char*, double> roofs[] = {
        {"FP32", c.fp32_operations / 64 * m_.interval[static_cast<size_t>(Pipe::kFma)] / m_.schedulers / chip},
        {"tensor", tensor * per_cta / m_.schedulers / chip},
        {"SFU", xu * per_cta / m_.schedulers / chip},
        {"shared memory", (c.shared_load_wavefronts + c.shared_store_wavefronts) * m_.cycles_per_wavefront / chip},
        {"issue", c.warp_instructions / m_.schedulers / chip},
        {"L2", 32 * (c.l2_read_sectors + c.l2_write_sectors) / (m_.l2_total_bytes_per_cycle * m_.clock_hz)},
        {"DRAM", (c.dram_read_bytes + c.dram_write_bytes) / (m_.dram_bytes_per_cycle * m_.clock_hz)}};
    for (const auto& [name, seconds] : roofs)
      if (seconds > out_.roofline_s) out_.roofline_s = seconds, out_.roof = name;
    out_.roofline_s += m_.launch_s;
  }

  const Device& device_;
  const Machine& m_;
  LaunchRequest r_;
  sass::Interpreter interpreter_;
  Dim3 grid_;
  uint64_t ctas_;
  std::map<uint64_t, CtaStream> streams_;
  double dram_sectors_per_cta_ = 0;
  LaunchTime out_;
};

}  // namespace

Result<LaunchTime> launch_time(const Device& device, const Machine& machine, LaunchRequest request) {
  return Estimate(device, machine, std::move(request)).run();
}

}  // namespace roofgen::timing
