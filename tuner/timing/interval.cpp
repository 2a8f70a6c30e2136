// The interval model: the busiest units of an SM and the latency of one warp alone, without the order of instructions.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "tuner/timing/instruction_facts.h"
#include "tuner/timing/l1_cache.h"
#include "tuner/timing/sm_model.h"

namespace roofgen::timing {

using sass::Action;
using sass::Pipe;

namespace {

bool loads_tile(const sass::WarpStream& w, const sass::Step& step) {
  return step.is_sync() && w.syncs[step.sync()].kind == sass::Sync::Kind::kLoad;
}

double sectors_of(const sass::WarpStream& w, const sass::Access& a) {
  int sectors = 0;
  for (uint32_t l = 0; l < a.lines; ++l) sectors += __builtin_popcount(w.lines[a.first_line + l].sectors);
  return sectors;
}

/// Calls f(stream, step) for the instructions of all warps of the CTAs in turns: each warp's next before any warp's
/// next but one.
template <class F>
void in_turns(std::span<const sass::CtaStream* const> ctas, F f) {
  std::vector<std::pair<const sass::WarpStream*, sass::Cursor>> left;
  for (const sass::CtaStream* cta : ctas)
    for (const sass::WarpStream& w : cta->warps) left.emplace_back(&w, w.steps);
  while (!left.empty()) {
    std::erase_if(left, [](const auto& warp) { return warp.second == std::default_sentinel; });
    for (auto& [stream, at] : left) f(*stream, *at), ++at;
  }
}

}  // namespace

double l2_read_sectors(const Machine& m, const sass::Code& code, const SmLoad& load) {
  const std::vector<Facts> facts = facts_of(m, code);
  L1Cache l1(std::max(0.0, m.unified_bytes - load.shared_bytes));
  double out = 0;
  for (size_t first = 0; first < load.ctas.size(); first += static_cast<size_t>(load.resident)) {
    const size_t last = std::min(load.ctas.size(), first + static_cast<size_t>(load.resident));
    in_turns({load.ctas.data() + first, last - first}, [&](const sass::WarpStream& w, const sass::Step& s) {
      const sass::Access* access = w.access_of(s);
      if (!access) return;
      const Facts& f = facts[s.index];
      if (loads_tile(w, s)) out += sectors_of(w, *access);
      for (uint32_t l = 0; f.reads_device && l < access->lines; ++l) {
        const sass::LineRequest& line = w.lines[access->first_line + l];
        const uint8_t missing = f.bypasses_l1 ? line.sectors : l1.missing(line.line, line.sectors);
        if (line.line < sass::kLocalLines) out += __builtin_popcount(missing);
      }
    });
  }
  return out;
}

RoundWork work_of_round(const Machine& m, const sass::Code& code, const SmLoad& load) {
  const std::vector<Facts> facts = facts_of(m, code);
  const size_t round = std::min(load.ctas.size(), static_cast<size_t>(load.resident));
  RoundWork out;
  L1Cache l1(std::max(0.0, m.unified_bytes - load.shared_bytes));
  std::vector<double> accesses(facts.size());
  out.misses.resize(facts.size());
  in_turns({load.ctas.data(), round}, [&](const sass::WarpStream& w, const sass::Step& s) {
    const Facts& f = facts[s.index];
    ++out.issues;
    out.pipes[f.pipe] += f.interval;
    if (f.action == Action::kShfl) out.shared += m.shared_least;
    out.tensor += f.pipe == static_cast<uint8_t>(Pipe::kTensor) ? f.interval * (f.is_product ? 1 : m.tensor_share) : 0;
    out.shared += f.operand_cycles;
    if (s.is_sync()) {
      const sass::Sync& sync = w.syncs[s.sync()];
      if (sync.kind == sass::Sync::Kind::kStore) out.shared += sync.bytes / m.shared_bytes_per_cycle;
      if (sync.kind == sass::Sync::Kind::kLoad) out.received += copy_cycles(m, sync), ++out.copies;
      if (sync.kind == sass::Sync::Kind::kMatrix) {
        const MatrixCycles c = matrix_cycles(m, f, sync);
        out.pipes[static_cast<size_t>(Pipe::kTensor)] += m.schedulers * c.interval;
        out.tensor += m.schedulers * c.math;
        out.shared += c.read;
      }
      if (const sass::Access* a = w.access_of(s)) (loads_tile(w, s) ? out.tiles : out.written) += sectors_of(w, *a);
    }
    if (!s.has_access()) return;
    const sass::Access& a = w.accesses[s.access];
    if (f.atomic) out.atomics += a.same * load.atomic_sharers;
    if (f.is_shared && a.wavefronts)
      out.shared += std::max(m.shared_least, m.cycles_per_wavefront * std::max<double>(a.wavefronts, a.same));
    uint32_t sectors = 0;
    bool missed = false;
    for (uint32_t l = 0; l < a.lines; ++l) {
      const sass::LineRequest& line = w.lines[a.first_line + l];
      const auto count = static_cast<uint32_t>(__builtin_popcount(line.sectors));
      sectors += count;
      if (f.reads_device) {
        const uint8_t missing = f.bypasses_l1 ? line.sectors : l1.missing(line.line, line.sectors);
        (line.line < sass::kLocalLines ? out.loaded : out.reloaded) += __builtin_popcount(missing);
        missed |= missing != 0;
      } else if (line.line < sass::kLocalLines) {
        out.written += count;
      } else {
        l1.keep(line.line, line.sectors);
      }
    }
    out.spilled += l1.take_evicted();
    accesses[s.index] += 1;
    out.misses[s.index] += missed;
    if (a.lines) out.device += std::max<double>({m.shared_least, static_cast<double>(a.tags), sectors / 4.0});
  });
  for (size_t i = 0; i < accesses.size(); ++i)
    if (accesses[i] > 0) out.misses[i] /= accesses[i];
  return out;
}

namespace {

/// Cycles of the longest warp, alone on the SM: of the first CTA, where its warps work for each other.
double alone_cycles(const Machine& m, const sass::Code& code, const SmLoad& load, const RoundWork& work) {
  if (load.ctas.empty()) return 0;
  SmLoad alone = load;
  alone.resident = 1;
  alone.misses = &work.misses;
  alone.ctas = {load.ctas[0]};
  const std::vector<sass::WarpStream>& all = load.ctas[0]->warps;
  sass::CtaStream one;
  // A warp whose work is that of others' arrivals has no time of its own.
  if (std::ranges::all_of(all, [](const sass::WarpStream& w) { return w.syncs.empty(); })) {
    const auto longest = std::ranges::max_element(all, {}, &sass::WarpStream::length);
    if (longest == all.end()) return 0;
    one.warps.push_back(*longest);
    alone.ctas = {&one};
  }
  return simulate_sm(m, code, alone).cycles;
}

}  // namespace

Interval interval(const Machine& m, const sass::Code& code, const SmLoad& load, const RoundWork& work) {
  const double share = 1.0 / std::max(1, load.active_sms);
  const double l2_rate = std::min(m.l2_bytes_per_cycle, m.l2_total_bytes_per_cycle * share);
  const double latency = alone_cycles(m, code, load, work);
  const double l2_cycles =
      (work.loaded + work.reloaded + work.written + work.spilled) * 32 / l2_rate +
      std::max({work.received, work.copies * m.copy_issue_cycles, work.tiles * 32 / (copy_rate(m, load) * share)});
  const double dram_sectors = load.l2_miss * (work.loaded + work.tiles) + load.write_back * work.written +
                              load.local_miss * (work.reloaded + work.spilled);
  const double dram = dram_sectors * 32 / (m.dram_bytes_per_cycle * share);
  double sum = 0;
  for (const double term :
       {work.atomics, latency, work.issues / m.schedulers, work.shared + work.device, l2_cycles, dram})
    sum += std::pow(term, 4);
  for (const double p : work.pipes) sum += std::pow(p / m.schedulers, 4);
  Interval out;
  out.cycles = std::pow(sum, 0.25);
  out.alone_cycles = latency;
  out.dram_cycles = dram;
  out.tensor_cycles = work.tensor / m.schedulers;
  return out;
}

}  // namespace roofgen::timing
