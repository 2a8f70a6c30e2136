#include "tuner/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/pool.h"
#include "base/units.h"
#include "generator/ops/elements.h"
#include "generator/ops/expected.h"
#include "tuner/verify/l2_model.h"
#include "tuner/verify/site.h"
#include "tuner/verify/tiles.h"

namespace roofgen {
namespace {

/// Most bytes of buffers of a reduced problem that runs whole.
constexpr uint64_t kFullLimitBytes = uint64_t{768} << 20;

/// Rows compared at each end of a one-tile slice of a problem too large to run whole: the reference of a million keys
/// takes as long as the kernel.
constexpr int64_t kEndRows = 16;

std::vector<double> decode(std::span<const std::byte> raw, DType dtype) {
  std::vector<double> out(raw.size() / static_cast<size_t>(size_of(dtype)));
  for (size_t i = 0; i < out.size(); ++i) out[i] = load_element(raw.data(), i, dtype);
  return out;
}

/// The mean of `weight` of all rows of an output over the batches. One batch stands for the others, unless data decides
/// how many rows each has.
template <class Weight>
double mean_over_batches(const Extent& extent, const std::string& output, Weight weight) {
  const int64_t different = extent.batch_rows.empty() ? 1 : extent.batch;
  double sum = 0;
  for (int64_t b = 0; b < different; ++b) sum += weight(Region{b, 0, 0, extent.rows_of(b), 0, -1, output});
  return sum / static_cast<double>(different);
}

int64_t last_row_step(const Launch& launch) {
  int64_t step = 1;
  for (const GridAxis& axis : launch.axes)
    if (axis.name == "row") step = axis.step;
  return step;
}

/// CTAs of a persistent launch in the simulator. In a part of it each has one tile, so that only the part runs. A
/// reduced problem has a CTA for each tile; CTAs with different numbers of tiles run instead.
uint32_t persistent_ctas(const Launch& launch, const Extent& extent, bool whole) {
  const auto tiles = static_cast<uint32_t>(tile_count(launch, extent));
  const uint32_t cluster = launch.cluster.x;
  if (!whole) return tiles;
  if (tiles > launch.grid.x || launch.grid.x >= tiles + cluster) return launch.grid.x;  // or CTAs share tiles
  const uint32_t half = std::max(1u, tiles / 2 / cluster) * cluster;
  return tiles % half == 0 && half + cluster < tiles ? half + cluster : half;
}

/// Seed of the order of CTAs and warps.
constexpr uint64_t kRandomOrder = 1;

/// A tensor may be a part of a larger one. Emitted kernels expect addresses that are multiples of 16 bytes.
constexpr uint64_t kOffsetOfBuffers = 16;

}  // namespace

Verification sum_of(const std::vector<Verification>& kernels) {
  Verification out;
  out.passed = true;
  for (const Verification& v : kernels) {
    out.passed &= v.passed;
    out.ctas_run += v.ctas_run;
    out.ctas_total += v.ctas_total;
    out.launch_ctas_run += v.launch_ctas_run;
    out.launch_ctas_total += v.launch_ctas_total;
    out.launch_in_tiles |= v.launch_in_tiles;
    out.inputs = v.inputs;
    out.not_run = v.not_run;
    out.add_checks(v);
    if (!out.failure.empty()) continue;
    out.failure = v.failure;
    out.findings = v.findings;
  }
  return out;
}

std::string VerifyPlan::key() const {
  return fmt::format("full={} slice={}x{} fed={} tiles={} patterns={}", full, slice_rows, slice_cols, fed_rows,
                     tile_slices, inputs);
}

Verifier::Verifier(const Op& op, Problem problem, double reduced_flops, const Device& device, const Variant& variant,
                   Executor& executor, std::shared_ptr<SharedInputs> inputs, Sites sites)
    : op_(op),
      problem_(std::move(problem)),
      device_(device),
      variant_(variant),
      executor_(executor),
      inputs_(std::move(inputs)),
      evaluated_at_(sites) {
  const Problem reduced = op_.reduced(op_.with_other_scalars(problem_));
  const Op::Slice slice = op_.slice(problem_);
  const Extent extent = op_.extent(problem_);
  plan_.slice_rows = slice.rows;
  plan_.fed_rows = slice.fed_rows;
  plan_.slice_cols = variant_.stages.size() == 1 ? slice.cols : 0;
  plan_.reduced_flops = reduced_flops;
  uint64_t bytes = 0;
  for (const Buffer& b : all_buffers(reduced)) bytes += b.bytes;
  // On a GPU the run costs little; the comparison takes the time.
  const double limit = executor_.origin() == Origin::kSimulated ? kFullLimitFlops : kFullComparisonFlops;
  plan_.full = plan_.reduced_flops <= limit && bytes <= kFullLimitBytes;
  if (!plan_.full && executor_.origin() == Origin::kSimulated)
    plan_.not_full = "reduced problem not run: " + (bytes > kFullLimitBytes
                                                        ? "its buffers take " + bytes_text(static_cast<double>(bytes))
                                                        : "it takes " + count_text(plan_.reduced_flops) + "FLOPs");
  const bool own_zeros = has_own_rows(op_, problem_) && std::ranges::any_of(all_buffers(reduced), &Buffer::zeroed);
  if (own_zeros && !plan_.not_full.empty()) plan_.not_full += "; zeros that a launch must leave not checked in slices";
  plan_.tile_slices = (slice.tile || !plan_.full) && variant_.stages.size() == 1;

  const auto add = [&](std::string name, const Problem& p, InputPattern pattern,
                       std::vector<Site::Anchor> anchors) -> Site& {
    auto site = std::make_unique<Site>();
    site->name = std::move(name);
    site->problem = p;
    site->pattern = pattern;
    site->anchors = std::move(anchors);
    site->inputs = inputs_;
    sites_.push_back(std::move(site));
    return *sites_.back();
  };
  if (plan_.full) {
    Site& site = add("reduced", reduced, InputPattern::kNormal, {});
    site.whole = site.counted = true;
  }
  int64_t head = 0;
  for (InputPattern pattern : op_.patterns(problem_)) {
    plan_.patterns += std::string(", ") + to_string(pattern);
    const Problem problem_of_pattern = op_.with_pattern(reduced, pattern);
    const Extent its = op_.extent(problem_of_pattern);
    // Of packed sequences one that another follows, whose values must not count (kGrowing: they are NaN).
    const bool packed = pattern == InputPattern::kGrowing && !its.batch_rows.empty() && its.batch > 1;
    const int64_t batch = its.batch - (packed ? 2 : 1);
    Site& site = add(to_string(pattern), problem_of_pattern, pattern,
                     {{batch, head, its.rows_of(batch) - 1, std::max<int64_t>(0, its.cols - 1)}});
    site.skip = kOffsetOfBuffers;
    // Of outputs in different rows a slice has only some.
    site.whole = plan_.full && has_own_rows(op_, problem_);
    head = its.heads - 1;
  }
  plan_.inputs = sites == Sites::kAll ? plan_.patterns : to_string(InputPattern::kNormal);
  // The first tile of each sampled head in the middle batch; of the last head, the last tile of the last batch.
  std::vector<Site::Anchor> anchors;
  for (const int64_t h : op_.sampled_heads(problem_)) anchors.push_back({(extent.batch - 1) / 2, h, 0, 0});
  anchors.back() = {extent.batch - 1, extent.heads - 1, extent.rows_of(extent.batch - 1) - 1,
                    std::max<int64_t>(0, extent.cols - 1)};
  Site& real = add("real launch", problem_, InputPattern::kNormal, std::move(anchors));
  real.real = true;
  real.counted = !plan_.full;
}

Verifier::~Verifier() {
  for (DevicePtr ptr : feeder_buffers_) free_buffer(ptr);
}

std::vector<Buffer> Verifier::all_buffers(const Problem& problem) const {
  std::vector<Buffer> out = op_.buffers(problem);
  const auto scope = problem_scope(op_, problem, limits(device_));
  if (auto temps = scope ? temporaries(variant_, *scope) : scope.error())
    for (Buffer& b : *temps) out.push_back(std::move(b));
  return out;
}

Result<DevicePtr> Verifier::allocate(const Site& site, const Buffer& buffer, Fill fill) {
  const uint64_t skip = site.skip;
  if (skip > 0 && fill)
    fill = [skip, fill = std::move(fill)](uint64_t offset, std::span<std::byte> out) {
      const uint64_t before = std::min<uint64_t>(out.size(), skip - std::min(skip, offset));
      std::fill_n(out.begin(), before, std::byte{0xff});
      if (before < out.size()) fill(offset + before - skip, out.subspan(before));
    };
  ROOFGEN_TRY(DevicePtr ptr, executor_.allocate(buffer.bytes + skip, buffer.name, std::move(fill)));
  if (buffer.role == Buffer::Role::kUpdated) ROOFGEN_CHECK(executor_.allow_writes(ptr));
  return DevicePtr{ptr.address + skip};
}

Result<DevicePtr> Verifier::input(const Site& site, const Buffer& buffer) {
  const std::string contents = fmt::format("{} {} {}", to_string(site.problem), to_string(site.pattern), site.skip);
  return site.inputs->get(contents, buffer.name,
                          [&] { return allocate(site, buffer, op_.filler(site.problem, site.pattern, buffer.name)); });
}

Result<Legal> Verifier::legal_of(const Site& site, const Candidate& candidate) const {
  ROOFGEN_TRY(expr::Map scope, problem_scope(op_, site.problem, limits(device_)));
  auto checked = check_schedule(variant_, candidate.stage(), candidate.schedule, scope, site.real);
  if (auto rejected = std::get_if<Rejected>(&checked))
    return Error{Exit::kFailed, fmt::format("illegal for the {} problem: {}", site.name, rejected->reason)};
  if (auto error = std::get_if<Error>(&checked)) return *error;
  return std::get<Legal>(std::move(checked));
}

Result<Launch> Verifier::launch_of(const Site& site, const Candidate& candidate) const {
  ROOFGEN_TRY(const Legal legal, legal_of(site, candidate));
  return make_launch(candidate.stage(), legal);
}

/// DRAM bytes over distinct bytes of the whole launch, from the launch order of its tiles.
Result<double> Verifier::tiled_miss_ratio(const Candidate& candidate, uint64_t wave, double unique_bytes) const {
  ROOFGEN_TRY(const Legal legal, legal_of(*sites_.back(), candidate));
  ROOFGEN_TRY(const Launch launch, make_launch(candidate.stage(), legal));
  std::vector<Panel> panels;
  for (const Stage::PanelSpec& spec : candidate.stage().panels) {
    ROOFGEN_TRY(const double bytes, spec.bytes.eval_number(legal.scope));
    panels.push_back({spec.name, spec.axes, bytes, spec.streamed});
  }
  const Extent extent = op_.extent_of(problem_, candidate.stage().output);
  std::map<std::string, int64_t> extents{{"row", extent.rows}};
  if (extent.cols > 0) extents["col"] = extent.cols;
  return tile_traffic(launch.axes, extents, panels, wave, device_.at("l2_bytes"), extent.groups, rows_together(launch))
      .miss_ratio(unique_bytes);
}

/// How many heads one CTA of a later stage may take, in any of its schedules.
Result<std::set<int64_t>> Verifier::heads_taken_behind(size_t stage_index) const {
  std::set<int64_t> out;
  ROOFGEN_TRY(const expr::Map problem, problem_scope(op_, problem_, limits(device_)));
  for (size_t i = stage_index + 1; i < variant_.stages.size(); ++i) {
    const Stage& stage = variant_.stages[i];
    ROOFGEN_TRY(const Schedule preset, default_schedule(variant_, stage, problem, {}));
    const auto checked = check_schedule(variant_, stage, preset, problem, false);
    const Legal* legal = std::get_if<Legal>(&checked);
    for (const Stage::AxisSpec& axis : stage.axes) {
      if (axis.name != "head" || !legal) continue;
      const std::vector<std::string> names = axis.step.names();
      for (const Param& param : stage.params) {
        if (std::find(names.begin(), names.end(), param.name) == names.end()) continue;
        for (const ParamValue& value : param.values) {
          expr::Map scope = legal->scope;
          std::visit([&](const auto& v) { scope[param.name] = v; }, value);
          ROOFGEN_TRY(const int64_t step, axis.step.eval_int(scope));
          out.insert(step);
        }
      }
    }
  }
  return out;
}

Result<Verifier::Slices> Verifier::slices_of(const Launch& launch, size_t stage_index, const Site& site,
                                             Run run) const {
  const Stage& stage = variant_.stages[stage_index];
  const std::vector<std::string> outputs = compared_outputs(op_, site.problem, stage);
  const Extent extent = op_.extent_of(site.problem, stage.output);
  Slices out;
  if (site.whole) {
    out.run = all_rows(op_, site.problem, stage.output);
    for (const std::string& output : outputs)
      for (Region& r : all_rows(op_, site.problem, output)) out.compare.push_back(std::move(r));
    return out;
  }
  const int64_t cols = extent.cols > 0 ? plan_.slice_cols : 0, step = finest_step(launch, "row"),
                least = op_.least_rows(site.problem, site.pattern), tiles = (least + step - 1) / step * step,
                rows = plan_.tile_slices ? tiles : std::max(plan_.slice_rows, tiles);
  if (variant_.stages.size() > 1 && extent.rows > plan_.fed_rows && plan_.fed_rows % step != 0)
    return Error{Exit::kFailed,
                 fmt::format("a row tile of {} does not divide the {} rows that the stages of a slice share", step,
                             plan_.fed_rows)};
  std::set<int64_t> steps;
  if (run == Run::kFeed) {
    ROOFGEN_TRY(steps, heads_taken_behind(stage_index));
  }
  steps.insert(finest_step(launch, "head"));
  for (Site::Anchor a : site.anchors) {
    a.batch = std::min(a.batch, extent.batch - 1), a.head = std::min(a.head, extent.heads - 1);
    // An anchor is the first or the last row and column.
    const int64_t end = extent.rows_of(a.batch), col = cols > 0 && a.col > 0 ? (extent.cols - 1) / cols * cols : 0;
    int64_t row = a.row > 0 ? (end - 1) / rows * rows : 0, row_end = std::min(row + rows, end);
    // The last rows may be too few.
    if (plan_.tile_slices && row_end == end) row = std::min(row, std::max<int64_t>(0, end - least) / step * step);
    // A CTA may compute several heads. Where a kernel alone is a variant, all of them are compared.
    int64_t first = a.head, last = a.head;
    for (const int64_t heads : steps) {
      first = std::min(first, a.head / heads * heads);
      last = std::min(extent.heads - 1, std::max(last, a.head / heads * heads + heads - 1));
    }
    for (int64_t head = first; head <= last; ++head) {
      const Region region{a.batch,        head, row, row_end, col, cols > 0 ? std::min(col + cols, extent.cols) : -1,
                          outputs.front()};
      // Two anchors may fall into one slice of a small problem.
      if (std::any_of(out.run.begin(), out.run.end(), [&](const Region& o) {
            return o.batch == region.batch && o.head == region.head && o.row_begin == row && o.col_begin == col;
          }))
        continue;
      out.run.push_back(region);
      if (run == Run::kFeed) {
        const int64_t begin = row / plan_.fed_rows * plan_.fed_rows;
        out.run.pop_back();
        for (const auto& [from, to] :
             op_.rows_fed(site.problem, variant_.stages[stage_index].name,
                          {begin, std::min(begin + std::max(rows, plan_.fed_rows), extent.rows_of(a.batch))})) {
          out.run.push_back(region);
          out.run.back().row_begin = from, out.run.back().row_end = std::min(to, extent.rows_of(a.batch));
        }
      }
      if (variant_.stages.size() > 1 && head != a.head) continue;
      if (plan_.full || !plan_.tile_slices || region.row_end - row <= 2 * kEndRows) {
        out.compare.push_back(region);
      } else {
        for (int64_t begin : {row, region.row_end - kEndRows}) {
          out.compare.push_back(region);
          out.compare.back().row_begin = begin;
          out.compare.back().row_end = begin + kEndRows;
        }
      }
    }
  }
  // Outputs of other rows are whole only where all CTAs ran.
  const size_t own = out.compare.size();
  for (const std::string& output : outputs)
    for (size_t i = 0; i < own && output != outputs.front(); ++i)
      if (op_.rows_of(output) == op_.rows_of(outputs.front())) {
        out.compare.push_back(out.compare[i]);
        out.compare.back().output = output;
      }
  return out;
}

Result<Verifier::StageRun> Verifier::run_stage(const Site& site, const Candidate& candidate, ModuleId module,
                                               const Before& before, std::vector<std::vector<LineAccess>>* trace,
                                               Run how, const std::vector<Region>& only) {
  StageRun run;
  const auto fail = [&](Error error) {
    for (const auto& [name, ptr] : run.written) free_buffer(ptr);
    return error;
  };
  ROOFGEN_TRY(const Legal legal, legal_of(site, candidate));
  ROOFGEN_TRY(run.launch, make_launch(candidate.stage(), legal));
  bool counts_arrivals = false;
  const std::vector<Buffer> buffers = all_buffers(site.problem);
  for (Arg& arg : run.launch.args) {
    if (!arg.is_buffer) continue;
    const auto buffer =
        std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == arg.name; });
    if (buffer == buffers.end()) continue;  // an output that the problem does not ask for: a null pointer
    const bool generated =
        site.fed && buffer->role == Buffer::Role::kTemporary && !buffer->zeroed && arg.name != candidate.stage().output;
    if (buffer->role == Buffer::Role::kInput || generated) {
      auto ptr = input(site, *buffer);
      if (!ptr) return fail(std::move(ptr).error());
      arg.bits = ptr->address;
    } else if (auto fed = before.feed.find(arg.name);
               fed != before.feed.end() && arg.name != candidate.stage().output) {
      arg.bits = fed->second.address;
    } else if (const auto own = run.written.find(arg.name); own != run.written.end()) {
      arg.bits = own->second.address;
    } else {
      // Each run begins with the cache as it was before.
      Fill contents = buffer->has_contents() ? op_.filler(site.problem, site.pattern, buffer->name) : Fill(nullptr);
      auto ptr = allocate(site, *buffer, std::move(contents));
      if (!ptr) return fail(std::move(ptr).error());
      run.written[arg.name] = *ptr;
      arg.bits = ptr->address;
      // Not as a fill, with which a buffer is an input.
      if (buffer->zeroed) {
        counts_arrivals = true;
        auto zeroed = executor_.write(*ptr, std::vector<std::byte>(buffer->bytes));
        if (!zeroed) return fail(std::move(zeroed).error());
      }
    }
  }
  RunOptions options;
  options.trace = trace;
  if (site.counted && how == Run::kCandidate) options.sites = &run.sites;
  // CTAs that meet must do so in any order: one after another, two groups may share a counter unnoticed.
  if (counts_arrivals) options.schedule = kRandomOrder;
  options.vain_waits = site.whole && !site.counted;
  if ((site.whole && !site.counted) || site.as_launched)
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  auto slices =
      only.empty() ? slices_of(run.launch, candidate.stage_index, site, how) : Result<Slices>(Slices{only, only});
  if (!slices) return fail(std::move(slices).error());
  run.slices = std::move(*slices);
  const Extent extent = op_.extent_of(site.problem, candidate.stage().output);
  if (numbers_tiles(run.launch) && executor_.runs_parts() && !site.as_launched) {
    ROOFGEN_TRY(const int64_t walkers, candidate.stage().persistent->eval_int(legal.scope));
    run.in_tiles = walkers > 0 && !(site.whole && only.empty());
    if (walkers > 0) run.launch.grid.x = persistent_ctas(run.launch, extent, !run.in_tiles);
  }
  run.ctas = run.launch.grid.count();
  if ((!site.whole || !only.empty()) && executor_.runs_parts()) {
    if (!site.as_launched)
      options.ctas = CtaSelection{select_ctas(run.launch, run.slices.run, extent)};
    else if (!site.as_launched->empty())  // else all
      options.ctas = CtaSelection{*site.as_launched};
    run.ctas = options.ctas ? options.ctas->ctas.size() : run.ctas;
  }
  run.launches = before.launches;
  const auto depends = [](const Stage& stage) { return stage.overlap.has_value(); };
  if (std::any_of(variant_.stages.begin(), variant_.stages.end(), depends)) options.prerequisites = &run.launches;
  auto result = executor_.run(module, run.launch, options);
  if (!result) return fail(std::move(result).error());
  run.result = std::move(*result);
  return run;
}

Result<void> Verifier::compare(const Site& site, const Candidate& candidate, const Slices& slices, const Feed& buffers,
                               Verification& into) const {
  const std::vector<Buffer> all = all_buffers(site.problem);
  const auto read = [&](const std::string& name, uint64_t first, std::span<double> out,
                        std::vector<bool>* valid) -> Result<void> {
    const auto at = buffers.find(name);
    const auto buffer = std::find_if(all.begin(), all.end(), [&](const Buffer& b) { return b.name == name; });
    if (at == buffers.end() || buffer == all.end())
      return Error{Exit::kFailed, fmt::format("{} is not written by {}", name, candidate.stage().name)};
    const size_t size = static_cast<size_t>(size_of(buffer->dtype));
    std::vector<std::byte> raw(out.size() * size);
    std::vector<bool> written;
    ROOFGEN_CHECK(executor_.read({at->second.address + first * size}, raw, valid ? &written : nullptr));
    const std::vector<double> values = decode(raw, buffer->dtype);
    std::copy(values.begin(), values.end(), out.begin());
    if (valid) {
      // A GPU cannot tell what was never written from the poison's own value, in whole numbers -1: it is compared as
      // that.
      const bool ambiguous =
          !executor_.runs_parts() && (buffer->dtype == DType::kInt32 || buffer->dtype == DType::kInt8);
      *valid = ambiguous ? std::vector<bool>(out.size(), true) : written_elements(written, size);
    }
    return {};
  };
  // What was never written reads as bytes of ones.
  const auto holds = [&](const std::string& name, uint64_t first, std::span<const std::byte> bytes) {
    const auto at = buffers.find(name);
    const auto buffer = std::find_if(all.begin(), all.end(), [&](const Buffer& b) { return b.name == name; });
    if (at == buffers.end() || buffer == all.end()) return false;
    std::vector<std::byte> raw(bytes.size());
    const uint64_t offset = first * static_cast<uint64_t>(size_of(buffer->dtype));
    return executor_.read({at->second.address + offset}, raw) && std::ranges::equal(raw, bytes);
  };
  const ElementReader reader(read, holds);
  for (const Region& band : slices.compare) {
    ROOFGEN_TRY(Comparison c,
                op_.compare(site.problem, site.pattern, variant_.name, candidate.stage().name, band, reader));
    into.rows_checked += c.rows;
    into.error_over_tolerance = std::max(into.error_over_tolerance, c.worst);
    if (!c.failure.empty() && into.failure.empty()) into.failure = fmt::format("{} problem: {}", site.name, c.failure);
  }
  return {};
}

/// What a launch left in a buffer that it must leave zero, for the next one.
Result<void> Verifier::check_zeroed(const Site& site, const Feed& buffers, Verification& into) const {
  // In a slice, CTAs may meet others that do not run, for an output of other rows.
  if (!site.whole && executor_.runs_parts() && has_own_rows(op_, problem_)) return {};
  for (const Buffer& buffer : all_buffers(site.problem)) {
    const auto at = buffers.find(buffer.name);
    if (!buffer.zeroed || at == buffers.end() || !into.failure.empty()) continue;
    std::vector<std::byte> bytes(buffer.bytes);
    ROOFGEN_CHECK(executor_.read(at->second, bytes));
    const std::string found = what_is_not_zero(buffer, bytes);
    if (!found.empty()) into.failure = fmt::format("{} problem: {}", site.name, found);
  }
  return {};
}

const Verifier::Before& Verifier::before(const Site& site, size_t stage_index) const {
  static const Before kNone;
  if (stage_index == 0) return kNone;
  const std::lock_guard lock(mutex_);
  auto it = feeders_.find({stage_index - 1, &site});
  return it == feeders_.end() ? kNone : it->second;
}

bool Verifier::can_feed(size_t stage_index) const {
  if (stage_index == 0) return true;
  const std::lock_guard lock(mutex_);
  return feeders_.count({stage_index - 1, sites_of(evaluated_at_).front()}) != 0;
}

namespace {

std::vector<LineRuns> lines_of(const std::vector<SiteCounts>& sites) {
  std::map<std::pair<std::string, int>, LineRuns> lines;
  for (const SiteCounts& s : sites) {
    LineRuns& l =
        lines
            .try_emplace({s.source.file, s.source.line}, LineRuns{s.source.file, s.source.line, s.executed, s.executed})
            .first->second;
    l.least = std::min(l.least, s.executed), l.most = std::max(l.most, s.executed);
  }
  std::vector<LineRuns> out;
  for (auto& [line, runs] : lines) out.push_back(std::move(runs));
  return out;
}

}  // namespace

std::vector<SiteCounts> site_counts(const std::vector<LineRuns>& lines) {
  std::vector<SiteCounts> out;
  for (const LineRuns& l : lines)
    for (const uint64_t executed : {l.least, l.most}) out.push_back({{}, {l.file, l.line, 0}, executed});
  return out;
}

Result<Evaluation> Verifier::evaluate(const Candidate& candidate, const Occupancy& occupancy) {
  Evaluation out;
  out.verification.inputs = plan_.inputs;
  ROOFGEN_TRY(ModuleId module, executor_.load(candidate.binary));
  const Defer unload([&] { executor_.unload(module); });
  const uint64_t wave = static_cast<uint64_t>(occupancy.ctas_per_sm) * static_cast<uint64_t>(device_.integer("sms"));
  // The whole run last: the slices find most faults.
  const std::vector<const Site*> sites = sites_of(evaluated_at_);
  for (auto it = sites.rbegin(); it != sites.rend(); ++it) {
    const Site& site = **it;
    std::vector<std::vector<LineAccess>> trace;
    const bool tiled = !candidate.stage().panels.empty();
    ROOFGEN_TRY(const bool traced, tiled ? Result<bool>(false) : may_overflow_l2(site, candidate, wave));
    ROOFGEN_TRY(StageRun run, run_stage(site, candidate, module, before(site, candidate.stage_index),
                                        site.counted && traced ? &trace : nullptr, Run::kCandidate));
    const Defer release([&] {
      for (const auto& [name, ptr] : run.written) free_buffer(ptr);
    });
    Verification& v = out.verification;
    note_ctas(site, run, v);
    if (run.result.time_ns && site.real) out.measured_ns = run.result.time_ns;
    if (!run.result.findings.empty()) {
      v.findings = run.result.findings;
      v.failure = fmt::format("{} problem: {}: {}", site.name, v.findings[0].kind, v.findings[0].message);
      return out;
    }
    ROOFGEN_CHECK(compare(site, candidate, run.slices, run.written, v));
    ROOFGEN_CHECK(check_zeroed(site, run.written, v));
    if (!v.failure.empty()) return out;
    if (site.counted && run.result.counts) {
      out.counts = *run.result.counts;
      out.counted_ctas = run.ctas;
      out.lines = lines_of(run.sites);
      ROOFGEN_CHECK(scale(candidate, site, run, out));
      if (tiled) {
        ROOFGEN_TRY(out.l2_miss_ratio, tiled_miss_ratio(candidate, wave, out.unique_bytes));
      } else if (traced) {
        ROOFGEN_TRY(const uint64_t group, group_ctas(candidate));
        if (!site.whole) keep_first_band(run, trace);
        out.l2_miss_ratio =
            wave_miss_ratio(trace, std::min<uint64_t>(wave, real_ctas(candidate)), group, device_.at("l2_bytes"));
      }
    }
  }
  out.verification.passed = true;
  if (!plan_.not_full.empty()) out.verification.not_run.push_back(plan_.not_full);
  return out;
}

/// The L2 model takes CTAs of one (batch, head) group.
void Verifier::keep_first_band(const StageRun& run, std::vector<std::vector<LineAccess>>& trace) {
  const std::vector<uint64_t> all = select_ctas(run.launch, run.slices.run),
                              first = select_ctas(run.launch, {run.slices.run.front()});
  std::vector<std::vector<LineAccess>> kept;
  for (size_t i = 0; i < all.size() && i < trace.size(); ++i)
    if (std::binary_search(first.begin(), first.end(), all[i])) kept.push_back(std::move(trace[i]));
  trace = std::move(kept);
}

Result<void> Verifier::scale(const Candidate& candidate, const Site& site, const StageRun& run, Evaluation& out) const {
  const uint64_t total = real_ctas(candidate);
  if (total == 0) return Error{Exit::kFailed, "the launch of the whole problem is illegal"};
  out.exact = false;
  const std::string& output = candidate.stage().output;
  const Extent extent = op_.extent_of(problem_, output), here_extent = op_.extent_of(site.problem, output);
  // The rows that a last tile has too many cost as much as its last row.
  const int64_t step = last_row_step(run.launch);
  const auto tiled = [&](const Problem& problem, const Region& r) {
    const double missing = static_cast<double>((step - r.row_end % step) % step);
    return op_.weight(problem, r) +
           missing * op_.weight(problem, {r.batch, r.head, r.row_end - 1, r.row_end, 0, -1, output});
  };
  const bool same_tiles =
      extent.rows == here_extent.rows && extent.cols == here_extent.cols && extent.groups == here_extent.groups;
  const auto whole_tiles = [&](const Extent& e) {
    return e.groups.empty() && e.rows % finest_step(run.launch, "row") == 0 &&
           (e.cols == 0 || e.cols % finest_step(run.launch, "col") == 0);
  };
  const bool own_rows = has_own_rows(op_, problem_);
  if (site.whole && (!extent.batch_rows.empty() || own_rows)) {
    const double all = mean_over_batches(extent, output, [&](const Region&r) { return tiled(problem_, r); }),
                 here = mean_over_batches(here_extent, output, [&](const Region&r) { return tiled(site.problem, r); });
    out.scale = all * static_cast<double>(extent.batch * extent.heads) /
                (here * static_cast<double>(here_extent.batch * here_extent.heads));
    // A shorter sum is another share of a CTA's work.
    out.exact = own_rows && problem_.dims == site.problem.dims;
  } else if (site.whole) {
    // The CTAs of a reduced problem stand for those of the real one. Where it has fewer row or column tiles, all must
    // be full for that to be exact.
    out.exact = same_tiles || (whole_tiles(extent) && whole_tiles(here_extent));
    ROOFGEN_TRY(const Launch launch, launch_of(*sites_.back(), candidate));
    out.scale = busy_ctas(launch, extent) / busy_ctas(run.launch, here_extent);
  } else if (plan_.slice_cols > 0) {
    ROOFGEN_TRY(const Launch launch, launch_of(*sites_.back(), candidate));
    out.scale = busy_ctas(launch, extent) / static_cast<double>(run.ctas);
  } else {
    // Under a causal mask CTAs differ: bands count by their share of the work.
    double sampled = 0;
    for (const Region& band : run.slices.run) sampled += tiled(problem_, band);
    const double heads = static_cast<double>(extent.batch * extent.heads);
    const double all = mean_over_batches(extent, output, [&](const Region& r) { return tiled(problem_, r); });
    out.scale = sampled > 0 ? all * heads / sampled : static_cast<double>(total) / static_cast<double>(run.ctas);
    if (sampled > 0 && run.launch.cluster.count() > 1) {
      // The other CTAs of a cluster ran too, for rows outside the bands.
      Launch alone = run.launch;
      alone.cluster = {};
      out.scale *=
          static_cast<double>(select_ctas(alone, run.slices.run, here_extent).size()) / static_cast<double>(run.ctas);
    }
  }
  // Distinct bytes scale with the buffers of the stage: K and V with the KV heads, Q and O with the query heads. Masked
  // parts of temporaries are not touched.
  Problem dense = problem_;
  dense.flags["causal"] = false;
  dense.texts.erase("mask");
  const auto mean_weight = [&](const Problem& problem) {
    return mean_over_batches(extent, output, [&](const Region& r) { return op_.weight(problem, r); });
  };
  const double touched = mean_weight(problem_) / mean_weight(dense);
  // The only kernel of a variant writes its temporaries and reads them; the counts have both. Their sizes are those of
  // the most that it may need, for any problem: what it touches grows with its tensors.
  const auto is_scratch = [&](const Buffer& b) {
    return b.role == Buffer::Role::kTemporary && variant_.stages.size() == 1;
  };
  const auto touched_bytes = [&](const Problem& problem, const Buffer& b) {
    const bool by_pairs = (b.role == Buffer::Role::kTemporary && !op_.by_rows(b.name)) || op_.by_pairs(b.name);
    return (is_scratch(b) ? 2 : 1) * op_.distinct_bytes(problem, b) * (by_pairs ? touched : 1);
  };
  double whole = 0, grows_to = 0, grows_from = 0;
  for (const Arg& arg : run.launch.args) {
    if (!arg.is_buffer) continue;
    for (const Buffer& b : all_buffers(problem_))
      if (b.name == arg.name) {
        const bool temporary = b.role == Buffer::Role::kTemporary;
        const double bytes = touched_bytes(problem_, b);
        (temporary ? out.temporary_bytes : out.tensor_bytes) += bytes;
        whole += bytes;
        if (!is_scratch(b)) grows_to += bytes;
      }
    for (const Buffer& b : all_buffers(site.problem))
      if (b.name == arg.name && !is_scratch(b)) grows_from += touched_bytes(site.problem, b);
  }
  const double seen = 32.0 * static_cast<double>(out.counts.unique_read_sectors + out.counts.unique_write_sectors);
  out.unique_bytes = site.whole ? seen * grows_to / grows_from : whole;
  return {};
}

uint64_t Verifier::real_ctas(const Candidate& candidate) const {
  auto launch = launch_of(*sites_.back(), candidate);
  return launch ? launch->grid.count() : 0;
}

Result<uint64_t> Verifier::group_ctas(const Candidate& candidate) const {
  ROOFGEN_TRY(Launch launch, launch_of(*sites_.back(), candidate));
  uint64_t ctas = 1, heads_of_cta = 1;
  for (const GridAxis& axis : launch.axes) {
    if (axis.name != "head" && axis.name != "batch") ctas *= static_cast<uint64_t>(axis.extent);
    if (axis.name == "head") heads_of_cta = static_cast<uint64_t>(axis.step);
  }
  // Query heads that share K and V form one group.
  const auto heads = problem_.dims.find("heads"), kv = problem_.dims.find("kv_heads");
  if (heads != problem_.dims.end() && kv != problem_.dims.end())
    ctas *= std::max<uint64_t>(1, static_cast<uint64_t>(heads->second / kv->second) / heads_of_cta);
  return ctas;
}

Result<bool> Verifier::may_overflow_l2(const Site& site, const Candidate& candidate, uint64_t wave) const {
  if (!site.counted) return false;
  ROOFGEN_TRY(const uint64_t group, group_ctas(candidate));
  ROOFGEN_TRY(Launch launch, launch_of(site, candidate));
  const auto touched = [&](const Problem& problem) {
    double bytes = 0;
    for (const Buffer& b : all_buffers(problem))
      for (const Arg& arg : launch.args)
        if (arg.is_buffer && arg.name == b.name) bytes += op_.distinct_bytes(problem, b);
    return bytes;
  };
  const Extent extent = op_.extent(problem_);
  double bytes = 0;
  if (extent.batch * extent.heads > 1) {
    const double groups = std::ceil(static_cast<double>(wave) / static_cast<double>(group)) + 1;
    bytes = groups * touched(op_.reduced(problem_));
  } else {
    bytes = touched(problem_) * std::min(1.0, static_cast<double>(wave) / static_cast<double>(group));
  }
  return bytes > kL2Usable * device_.at("l2_bytes");
}

void Verifier::note_ctas(const Site& site, const StageRun& run, Verification& into) {
  if (site.real) {
    into.launch_ctas_run = run.ctas;
    into.launch_ctas_total = run.launch.grid.count();
    into.launch_in_tiles = run.in_tiles;
  } else {
    into.ctas_total = run.launch.grid.count();
    if (site.whole) into.ctas_run = run.result.counts ? run.result.counts->ctas : run.ctas;
  }
}

std::vector<const Verifier::Site*> Verifier::sites_of(Sites which) const {
  std::vector<const Site*> out;
  for (const auto& site : sites_)
    if (site->counted || which == Sites::kAll || (which == Sites::kReduced && !site->real)) out.push_back(site.get());
  return out;
}

/// Calls body(index, site) for each site, in the simulator for several at a time. The first error in their order.
template <class Body>
Result<void> Verifier::at_sites(const std::vector<const Site*>& sites, const Body& body) const {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = executor_.runs_parts() ? std::min(cores, static_cast<int>(sites.size())) : 1;
  return for_each_index(threads, sites.size(), [&](size_t i) { return body(i, *sites[i]); });
}

Result<void> Verifier::set_feeder(const Candidate& candidate) {
  ROOFGEN_TRY(ModuleId module, executor_.load(candidate.binary));
  const Defer unload([&] { executor_.unload(module); });
  return at_sites(sites_of(evaluated_at_), [&](size_t, const Site& site) -> Result<void> {
    Before kept = before(site, candidate.stage_index);
    ROOFGEN_TRY(StageRun run, run_stage(site, candidate, module, kept, nullptr, Run::kFeed));
    for (const auto& [name, ptr] : run.written) kept.feed[name] = ptr;
    kept.launches = std::move(run.launches);
    const std::lock_guard lock(mutex_);
    for (const auto& [name, ptr] : run.written) feeder_buffers_.push_back(ptr);
    if (!run.result.findings.empty())
      return Error{Exit::kFailed, fmt::format("{} fails as a feeder: {}", to_string(candidate.schedule),
                                              run.result.findings[0].message)};
    feeders_[{candidate.stage_index, &site}] = std::move(kept);
    return {};
  });
}

/// The kernels of all stages at one site, up to the first that failed.
Result<std::vector<Verification>> Verifier::verify_chain_at(const Site& site, const std::vector<Candidate>& chain) {
  std::vector<Verification> out;
  const Run how = chain.size() == 1 ? Run::kCandidate : Run::kFeed;
  Before all;
  const Defer release([&] {
    for (const auto& [name, ptr] : all.feed) free_buffer(ptr);
  });
  for (const Candidate& candidate : chain) {
    Verification& v = out.emplace_back();
    ROOFGEN_TRY(ModuleId module, executor_.load(candidate.binary));
    const Defer unload([&] { executor_.unload(module); });
    ROOFGEN_TRY(StageRun run, run_stage(site, candidate, module, all, nullptr, how));
    for (const auto& [name, ptr] : run.written) all.feed[name] = ptr;
    all.launches = std::move(run.launches);
    note_ctas(site, run, v);
    if (!run.result.findings.empty()) {
      v.findings = run.result.findings;
      v.failure = fmt::format("{} problem: {}: {}", site.name, v.findings[0].kind, v.findings[0].message);
      break;
    }
    ROOFGEN_CHECK(compare(site, candidate, run.slices, all.feed, v));
    ROOFGEN_CHECK(check_zeroed(site, run.written, v));
    if (!v.failure.empty()) break;
  }
  return out;
}

Result<std::vector<Verification>> Verifier::verify_chain(const std::vector<Candidate>& chain, Sites at,
                                                         const Verification* counted) {
  std::vector<const Site*> sites = sites_of(at);
  if (counted && chain.size() == 1) std::erase_if(sites, [](const Site* site) { return site->counted; });
  std::vector<std::vector<Verification>> found(sites.size());
  ROOFGEN_CHECK(at_sites(sites, [&](size_t i, const Site& site) -> Result<void> {
    ROOFGEN_TRY(found[i], verify_chain_at(site, chain));
    return {};
  }));
  if (counted && chain.size() == 1) found.insert(found.begin(), std::vector<Verification>{*counted});
  std::vector<Verification> out;
  for (size_t kernel = 0; kernel < chain.size(); ++kernel) {
    Verification& v = out.emplace_back();
    v.inputs = plan_.patterns;
    for (std::vector<Verification>& at_site : found) {
      Verification& one = at_site.at(kernel);
      v.add_checks(one);
      // Where no reduced problem runs whole, the first pattern's.
      if (v.ctas_total == 0) v.ctas_total = one.ctas_total, v.ctas_run = one.ctas_run;
      if (one.launch_ctas_total > 0) {
        v.launch_ctas_run = one.launch_ctas_run, v.launch_ctas_total = one.launch_ctas_total;
        v.launch_in_tiles = one.launch_in_tiles;
      }
      v.findings = std::move(one.findings);
      v.failure = std::move(one.failure);
      if (!v.failure.empty()) return out;
    }
    v.passed = true;
    if (!plan_.not_full.empty()) v.not_run.push_back(plan_.not_full);
  }
  return out;
}

}  // namespace roofgen
