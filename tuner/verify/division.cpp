// Kernels whose CTAs walk over tiles, as they are launched. One CTA with all of its tiles shows what a CTA carries from
// tile to tile: places in rings, parities, turns. CTAs that share the sums of a tile all run, because the launch
// decides which steps each has.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "tuner/verify/site.h"
#include "tuner/verify/tiles.h"

namespace roofgen {
namespace {

/// Most MMA FLOPs of all CTAs, and of one: some seconds.
constexpr double kDivisionFlops = 1.2e10, kWalkFlops = 5e9;
/// As many times more where no shorter sum may be launched.
constexpr double kAtMost = 2;
/// Most FLOPs of the rows that are compared.
constexpr double kReferenceFlops = 5e8, kWalkReferenceFlops = 2e8;

/// Every `step`-th row of some regions, from another place in each.
std::vector<Region> every(const std::vector<Region>& regions, int64_t step) {
  std::vector<Region> out;
  int64_t skip = step - 1;  // rows left before the next one
  for (const Region& region : regions) {
    int64_t row = region.row_begin + skip;
    for (; row < region.row_end; row += step) {
      out.push_back(region);
      out.back().row_begin = row, out.back().row_end = row + 1;
    }
    skip = row - region.row_end;
  }
  return out;
}

}  // namespace

/// The longest problem, this one or one with a shorter sum, of which a share of the CTAs takes at most so many FLOPs.
/// Null: there is none.
Result<std::unique_ptr<Verifier::Site>> Verifier::division_site(const Candidate& candidate, double share,
                                                                double most_flops) const {
  ROOFGEN_TRY(Legal legal, legal_of(*sites_.back(), candidate));
  const std::vector<Legal> tuned{std::move(legal)};
  std::vector<Op::Thin> problems = op_.thinner(problem_);
  problems.push_back({problem_, ""});
  const Op::Thin* best = nullptr;
  for (auto it = problems.rbegin(); it != problems.rend(); ++it) {
    const auto required = op_.required(it->problem);
    const double flops = required ? share * required->mma_flops : 0;
    if (flops > kAtMost * most_flops) continue;
    ROOFGEN_TRY(const bool serve, all_serve({candidate}, tuned, it->problem));
    if (serve) best = &*it;
    if (serve && flops <= most_flops) break;
  }
  if (!best) return std::unique_ptr<Site>();
  auto site = std::make_unique<Site>();
  site->name = "launch as it is" + (best->label.empty() ? "" : " with " + best->label);
  site->label = best->label;
  site->problem = best->problem;
  site->pattern = op_.extent(problem_).cols > 0 ? op_.pattern_of_grid(problem_) : InputPattern::kNormal;
  site->inputs = std::make_shared<SharedInputs>(executor_);
  return site;
}

/// Runs the first CTA of a launch that walks over tiles, or all where they share sums, and compares some rows of all
/// that they compute.
Result<void> Verifier::add_division(const Candidate& candidate, Grid& all) {
  ROOFGEN_TRY(const Legal legal, legal_of(*sites_.back(), candidate));
  ROOFGEN_TRY(const Launch real, make_launch(candidate.stage(), legal));
  if (!candidate.stage().persistent || !numbers_tiles(real) || !executor_.runs_parts()) return {};
  ROOFGEN_TRY(const int64_t walkers, candidate.stage().persistent->eval_int(legal.scope));
  if (walkers <= 0) return {};
  const std::vector<Buffer> buffers = all_buffers(problem_);
  const bool shares = std::any_of(real.args.begin(), real.args.end(), [&](const Arg& arg) {
    return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == arg.name && b.zeroed; });
  });
  const double share = shares ? 1 : static_cast<double>(real.cluster.x) / real.grid.x;
  const double most = shares ? kDivisionFlops : kWalkFlops;
  ROOFGEN_TRY(const std::unique_ptr<Site> site, division_site(candidate, share, most));
  std::vector<std::string>& not_run = all.verification.not_run;
  const char* const what = shares ? "all CTAs with their parts of tiles" : "a CTA with all of its tiles";
  if (!site) return (void)not_run.push_back(fmt::format("{} not run: too many FLOPs", what)), Result<void>();
  const uint64_t bytes = written_bytes(*site, {candidate});
  if (shares && bytes > kGridBytes)
    return (void)not_run.push_back(fmt::format("{} not run: outputs and intermediates take {}", what,
                                               bytes_text(static_cast<double>(bytes)))),
           Result<void>();

  const std::string& output = candidate.stage().output;
  const Extent extent = op_.extent_of(site->problem, output);
  ROOFGEN_TRY(const Launch launch, launch_of(*site, candidate));
  std::vector<Region> tiles;
  site->as_launched.emplace();
  if (shares) {
    site->whole = true;
    ROOFGEN_TRY(const Slices slices, slices_of(launch, candidate.stage_index, *site, Run::kFeed));
    tiles = slices.compare;
  } else {
    // Where tiles differ in their work, a walk may turn around after each round: the first and the last CTA together
    // have the same tiles either way.
    const bool uneven = op_.weight(site->problem, {0, 0, 0, 1, 0, -1, output}) !=
                        op_.weight(site->problem, {0, 0, extent.rows_of(0) - 1, extent.rows_of(0), 0, -1, output});
    for (uint64_t cta = 0; cta < launch.grid.x; ++cta) {
      if (cta >= launch.cluster.x && !(uneven && cta + launch.cluster.x >= launch.grid.x)) continue;
      site->as_launched->push_back(cta);
      for (Region& r : tiles_of(launch, extent, cta))
        r.output = op_.rows_of(output).empty() ? "" : output, tiles.push_back(r);
    }
  }
  ROOFGEN_TRY(ModuleId module, executor_.load(candidate.binary));
  const Defer unload([&] { executor_.unload(module); });
  ROOFGEN_TRY(StageRun run, run_stage(*site, candidate, module, {}, nullptr, Run::kFeed, tiles));
  const Defer release([&] {
    for (const auto& [name, ptr] : run.written) free_buffer(ptr);
  });
  Verification& v = all.verification;
  const auto fail = [&](std::string why) { v.failure = std::move(why), v.passed = false, all.wrong = 0; };
  if (!run.result.findings.empty()) {
    v.findings = run.result.findings;
    fail(fmt::format("{}: {}: {}", site->name, v.findings[0].kind, v.findings[0].message));
    return {};
  }
  ROOFGEN_CHECK(check_zeroed(*site, run.written, v));
  const auto required = op_.required(site->problem);
  int64_t step = shares ? 1 : 16;
  while (required &&
         share * required->mma_flops / static_cast<double>(step) > (shares ? kReferenceFlops : kWalkReferenceFlops))
    step *= 2;
  if (v.failure.empty()) ROOFGEN_CHECK(compare_all(*site, candidate, every(tiles, step), run.written, v));
  if (!v.failure.empty()) return fail(v.failure), Result<void>();
  const size_t ran = site->as_launched->size();
  const std::string with = site->label.empty() ? "" : " with " + site->label;
  v.division = shares ? fmt::format("all {} CTAs with their shares of the sums{}", launch.grid.x, with)
                      : fmt::format("{} CTA{} with all of {} {} tiles{}", ran, ran > 1 ? "s" : "",
                                    ran > 1 ? "their" : "its", tiles.size(), with);
  return {};
}

}  // namespace roofgen
