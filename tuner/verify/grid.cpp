// The whole grid of the winners, at the shortest sum for which their sources hold.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <thread>

#include "base/pool.h"
#include "base/units.h"
#include "tuner/verify/site.h"
#include "tuner/verify/tiles.h"

namespace roofgen {
namespace {

/// Above this many written bytes, a stage alone runs on a sample of its grid: its outputs may be all of S or P.
constexpr uint64_t kFedBytes = uint64_t{256} << 20;
/// Up to as many bytes of outputs and intermediates, a stage alone runs with all keys.
constexpr uint64_t kUnthinnedBytes = uint64_t{128} << 20;
/// Bytes that such a sample writes, unless each row tile and each head once takes more.
constexpr uint64_t kSampleBytes = uint64_t{8} << 20;
/// Rows that one thread compares at a time; of tiles of columns fewer.
constexpr int64_t kCompareRows = 256, kTileRows = 64, kTileCols = 1024;

}  // namespace

/// Bytes that the kernels of a chain write.
uint64_t Verifier::written_bytes(const Site& site, const std::vector<Candidate>& chain) const {
  uint64_t bytes = 0;
  for (const Buffer& b : all_buffers(site.problem))
    if (b.role == Buffer::Role::kOutput || b.role == Buffer::Role::kUpdated ||
        (b.role == Buffer::Role::kTemporary && (!site.fed || b.name == chain.back().stage().output)))
      bytes += b.bytes;
  return bytes;
}

/// Why a grid is too large to be run whole; empty: it is not.
std::string Verifier::too_large(const Site& site, const std::vector<Candidate>& chain) const {
  if (const uint64_t bytes = written_bytes(site, chain); bytes > kGridBytes)
    return fmt::format("outputs and intermediates take {}", bytes_text(static_cast<double>(bytes)));
  if (const auto required = op_.required(site.problem); required && required->mma_flops > kFullLimitFlops)
    return fmt::format("it takes {}FLOPs", count_text(required->mma_flops));
  return "";
}

/// Whether every kernel has as many CTAs as in the real launch: rows that are cut into segments have fewer when they
/// are shorter.
Result<bool> Verifier::has_all_ctas(const Site& site, const std::vector<Candidate>& chain) const {
  for (const Candidate& c : chain) {
    ROOFGEN_TRY(const Launch launch, launch_of(site, c));
    if (launch.grid.count() < real_ctas(c)) return false;
  }
  return true;
}

/// Whether all kernels, compiled for the schedules of `tuned`, may be launched for a problem.
Result<bool> Verifier::all_serve(const std::vector<Candidate>& chain, const std::vector<Legal>& tuned,
                                 const Problem& problem) const {
  ROOFGEN_TRY(const expr::Map scope, problem_scope(op_, problem, limits(device_)));
  for (size_t i = 0; i < chain.size(); ++i) {
    const auto checked = check_schedule(variant_, chain[i].stage(), chain[i].schedule, scope, false);
    const Legal* legal = std::get_if<Legal>(&checked);
    if (!legal) return false;
    ROOFGEN_TRY(const bool one, serves(chain[i].stage(), tuned[i], *legal));
    if (!one) return false;
  }
  return true;
}

/// The shortest problem that all kernels of a chain may be launched for, of those with the whole grid if one can be
/// run.
Result<std::unique_ptr<Verifier::Site>> Verifier::thin_site(const Problem& whole,
                                                            const std::vector<Candidate>& chain) const {
  std::vector<Legal> tuned;
  for (const Candidate& c : chain) {
    ROOFGEN_TRY(tuned.emplace_back(), legal_of(*sites_.back(), c));
  }
  uint64_t bytes = 0;
  for (const Buffer& b : all_buffers(whole)) bytes += b.role == Buffer::Role::kInput ? 0 : b.bytes;
  const bool small = whole.dims != problem_.dims && bytes <= kUnthinnedBytes;
  std::vector<Op::Thin> problems = small ? std::vector<Op::Thin>() : op_.thinner(whole);
  problems.push_back({whole, ""});
  std::unique_ptr<Site> shortest;
  for (Op::Thin& thin : problems) {
    ROOFGEN_TRY(const bool serve, all_serve(chain, tuned, thin.problem));
    if (!serve) continue;
    auto site = std::make_unique<Site>();
    site->name = "whole grid" + (thin.label.empty() ? "" : " with " + thin.label);
    site->label = thin.label;
    site->problem = std::move(thin.problem);
    site->pattern = op_.pattern_of_grid(whole);
    site->whole = true;
    site->fed = whole.dims != problem_.dims;
    site->inputs = std::make_shared<SharedInputs>(executor_);
    ROOFGEN_TRY(const bool complete, has_all_ctas(*site, chain));
    if (site->fed || (complete && too_large(*site, chain).empty())) return site;
    if (!shortest) shortest = std::move(site);
  }
  if (shortest) return shortest;
  return Error{Exit::kFailed, "the kernels serve no problem with this grid"};
}

/// Row tiles such that each tile index and each head and batch occurs, among them the last of both. `bytes`: of the
/// whole output.
std::vector<Region> Verifier::sample_of(const Extent& extent, uint64_t bytes, int64_t step) {
  const int64_t tiles = (extent.rows + step - 1) / step, pairs = extent.batch * extent.heads,
                once = std::max(tiles, pairs);
  const double share = static_cast<double>(kSampleBytes) / static_cast<double>(bytes);
  const int64_t rounds =
      std::max<int64_t>(1, static_cast<int64_t>(share * static_cast<double>(tiles) * static_cast<double>(pairs) /
                                                static_cast<double>(once)));
  std::vector<Region> out;
  // In each round a pair meets another tile.
  for (int64_t i = 0; i < once * std::min(rounds, std::min(tiles, pairs)); ++i) {
    const int64_t pair = pairs - 1 - i % pairs, tile = tiles - 1 - (i % once + i / once) % tiles,
                  b = pair / extent.heads, end = std::min((tile + 1) * step, extent.rows_of(b));
    if (tile * step < end) out.push_back({b, pair % extent.heads, tile * step, end});
  }
  return out;
}

/// Compares every row of some regions, on all cores.
Result<void> Verifier::compare_all(const Site& site, const Candidate& candidate, const std::vector<Region>& regions,
                                   const Feed& buffers, Verification& into) const {
  std::vector<Region> parts;
  std::vector<bool> beside;  // another part of the same rows
  for (const Region& r : regions) {
    const Extent extent = op_.extent_of(site.problem, r.output);
    const int64_t rows = extent.cols > 0 ? kTileRows : kCompareRows;
    for (int64_t row = r.row_begin; row < r.row_end; row += rows) {
      const int64_t end = std::min(row + rows, r.row_end);
      if (extent.cols == 0) parts.push_back({r.batch, r.head, row, end, 0, -1, r.output}), beside.push_back(false);
      const int64_t last = extent.cols == 0 || r.col_end < 0 ? extent.cols : r.col_end;
      for (int64_t col = r.col_begin; col < last; col += kTileCols) {
        parts.push_back({r.batch, r.head, row, end, col, std::min(col + kTileCols, last), r.output});
        beside.push_back(col > r.col_begin);
      }
    }
  }
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<Verification> found(parts.size());
  ROOFGEN_CHECK(for_each_index(threads, parts.size(), [&](size_t i) {
    return compare(site, candidate, {{}, {parts[i]}}, buffers, found[i]);
  }));
  for (size_t i = 0; i < found.size(); ++i) {
    into.add_checks(found[i]);
    // A row of a region is compared once for each of its column tiles, and counts once.
    if (beside[i]) into.rows_checked -= found[i].rows_checked;
    if (into.failure.empty()) into.failure = found[i].failure;
  }
  return {};
}

/// Runs the CTAs of some regions, all of them if there are none, in all kernels of a chain, and compares the outputs of
/// the last.
Result<Verifier::Grid> Verifier::verify_regions(Site& site, const std::vector<Candidate>& chain,
                                                const std::vector<Region>& regions, const GoOn& go_on) {
  Grid out;
  Verification& v = out.verification;
  Before all;
  const Defer release([&] {
    for (const auto& [name, ptr] : all.feed) free_buffer(ptr);
  });
  // The comparison takes about as long as a kernel.
  const auto stopped = [&](size_t done) {
    if (!go_on || go_on(done, chain.size() + 1)) return false;
    out.not_run = "interrupted";
    return true;
  };
  std::vector<Slices> slices;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (stopped(i)) return out;
    ROOFGEN_TRY(ModuleId module, executor_.load(chain[i].binary));
    const Defer unload([&] { executor_.unload(module); });
    ROOFGEN_TRY(StageRun run, run_stage(site, chain[i], module, all, nullptr, Run::kFeed, regions));
    for (const auto& [name, ptr] : run.written) all.feed[name] = ptr;
    all.launches = std::move(run.launches);
    v.grid_ctas += run.ctas;
    // Fewer keys may be fewer tiles of scores.
    if (const uint64_t due = real_ctas(chain[i]); run.ctas < due)
      out.not_run = fmt::format("{} of {} CTAs ran", run.ctas, due);
    slices.push_back(std::move(run.slices));
    if (run.result.findings.empty()) {
      ROOFGEN_CHECK(check_zeroed(site, run.written, v));
      if (v.failure.empty()) continue;
    } else {
      v.findings = run.result.findings;
      v.failure = fmt::format("{} problem: {}: {}", site.name, v.findings[0].kind, v.findings[0].message);
    }
    out.wrong = i;
    return out;
  }
  if (stopped(chain.size())) return out;
  // What is wrong in a kernel before is wrong in what the last one writes, unless its output is one of the problem.
  for (out.wrong = 0; out.wrong < chain.size(); ++out.wrong) {
    const bool last = out.wrong + 1 == chain.size();
    const std::vector<Region>& rows = slices[out.wrong].compare;
    if (!last && (rows.empty() || rows.front().output.empty())) continue;
    ROOFGEN_CHECK(compare_all(site, chain[out.wrong], rows, all.feed, v));
    if (last || !v.failure.empty()) break;
  }
  v.passed = v.failure.empty();
  // Outputs with rows of their own were compared above, kernel by kernel.
  for (size_t i = 0; !v.passed && i < out.wrong && slices[out.wrong].compare.front().output.empty(); ++i) {
    Verification before;
    ROOFGEN_CHECK(compare_all(site, chain[i], slices.back().compare, all.feed, before));
    if (before.failure.empty()) continue;
    v.failure = before.failure;
    out.wrong = i;
    break;
  }
  return out;
}

Result<Verifier::Grid> Verifier::verify_thin(const Problem& whole, const std::vector<Candidate>& chain,
                                             const GoOn& go_on) {
  ROOFGEN_TRY(const std::unique_ptr<Site> site, thin_site(whole, chain));
  const uint64_t bytes = written_bytes(*site, chain);
  std::vector<Region> sample;
  if (site->fed && bytes > kFedBytes) {
    ROOFGEN_TRY(const Launch launch, launch_of(*site, chain.back()));
    sample = sample_of(op_.extent_of(site->problem, chain.back().stage().output), bytes, finest_step(launch, "row"));
  } else if (std::string why = too_large(*site, chain); !why.empty()) {
    return Grid{{}, 0, std::move(why)};
  }
  ROOFGEN_TRY(Grid grid, verify_regions(*site, chain, sample, go_on));
  grid.verification.grid = site->label;
  return grid;
}

void Verifier::Grid::add_to(Verification& all) const {
  all.add_checks(verification);
  if (not_run.empty()) {
    all.grid_ctas = verification.grid_ctas;
    all.grid = verification.grid;
  } else {
    all.not_run.push_back(kNotRun + not_run);
  }
  all.division = verification.division;
  for (const std::string& check : verification.not_run) all.not_run.push_back(check);
}

Verification Verifier::Grid::stored() const {
  Verification out = verification;
  if (!not_run.empty()) out.not_run.insert(out.not_run.begin(), kNotRun + not_run);
  return out;
}

Verifier::Grid Verifier::Grid::from_stored(Verification v) {
  Grid out{std::move(v), 0, ""};
  std::vector<std::string>& checks = out.verification.not_run;
  if (!checks.empty() && checks[0].starts_with(kNotRun)) {
    out.not_run = checks[0].substr(std::string(kNotRun).size());
    checks.erase(checks.begin());
  }
  return out;
}

Result<Verifier::Grid> Verifier::verify_grid(const std::vector<Candidate>& chain, const GoOn& go_on) {
  ROOFGEN_TRY(Grid out, verify_thin_grid(chain, go_on));
  if (out.failed()) return out;
  // What the grid has shown stands, whatever hinders this run.
  Result<void> done;
  if (go_on && !go_on(0, 1))
    done = Error{Exit::kFailed, "interrupted"};
  else
    done = add_division(chain.front(), out);
  if (!done) out.verification.not_run.push_back("launch as it is not run: " + done.error().message);
  return out;
}

Result<Verifier::Grid> Verifier::verify_thin_grid(const std::vector<Candidate>& chain, const GoOn& go_on) {
  // The largest run of a search: what the heap keeps of the runs before goes back to the system.
  malloc_trim(0);
  const auto fed = variant_.stages.size() > 1 && !variant_.fused ? op_.fed(problem_) : std::nullopt;
  if (!fed) return verify_thin(problem_, chain, go_on);
  Grid all;
  Verification& v = all.verification;
  v.passed = true;
  for (size_t i = 0; i < chain.size(); ++i) {
    const std::string& stage = chain[i].stage().name;
    ROOFGEN_TRY(Grid one, verify_thin(*fed, {chain[i]}, [&](uint64_t done, uint64_t total) {
                  return !go_on || go_on(i * total + done, chain.size() * total);
                }));
    v.add_checks(one.verification);
    v.grid_ctas += one.verification.grid_ctas;
    const auto add = [&](std::string& to, const std::string& text) {
      if (!text.empty()) to += fmt::format("{}{} in {}", to.empty() ? "" : ", ", text, stage);
    };
    add(v.grid, one.verification.grid);
    add(all.not_run, one.not_run);
    if (one.verification.failure.empty()) continue;
    v.passed = false;
    v.findings = std::move(one.verification.findings);
    v.failure = std::move(one.verification.failure);
    all.wrong = i;
    return all;
  }
  return all;
}

}  // namespace roofgen
