// Which of a wave's requests reach DRAM: an LRU of 0.8 of the L2, fed by the lines of one wave of
// CTAs that run side by side. A model, and labelled so.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/executor.h"

namespace roofgen {

/// Share of the L2 that holds a kernel's data in practice (simulators.md: replay at 0.8 x capacity).
inline constexpr double kL2Usable = 0.8;

/// Replays at most this many accesses of a wave: its CTAs stream in step, and the ratio settles early.
inline constexpr uint64_t kReplayLimit = 4'000'000;

/// Replays `wave_ctas` CTAs side by side (one line each in turn) and returns DRAM-side bytes over
/// distinct bytes, at least 1. `traces` are sampled CTAs of one (batch, head) group; CTA i of the
/// wave repeats trace i mod n. Lines that two or more sampled CTAs touch are shared by all CTAs of
/// a group of `group_ctas`; the others are private to their CTA.
double wave_miss_ratio(const std::vector<std::vector<LineAccess>>& traces, uint64_t wave_ctas, uint64_t group_ctas,
                       double l2_bytes);

}  // namespace roofgen
