#include "generator/ops/expected.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace roofgen {
namespace {

/// First positions of `count` neighbours at the beginning, in the middle and at the end of `size`.
std::set<int64_t> places(int64_t size, int64_t count) {
  const int64_t last = std::max<int64_t>(0, size - count);
  return {0, last / 2, last};
}

}  // namespace

bool has_own_rows(const Op& op, const Problem& problem) {
  const std::vector<Buffer> buffers = op.buffers(problem);
  return std::ranges::any_of(buffers, [&](const Buffer& b) { return !op.rows_of(b.name).empty(); });
}

std::vector<std::string> compared_outputs(const Op& op, const Problem& problem, const Stage& stage) {
  std::vector<std::string> out;
  for (const Buffer& b : op.buffers(problem)) {
    const bool written = std::ranges::any_of(stage.args, [&](const Stage::ArgSpec& arg) {
      const std::string& name = arg.buffer.empty() ? arg.name : arg.buffer;
      const auto other = stage.buffers.find(name);
      return (other == stage.buffers.end() ? name : other->second) == b.name;
    });
    if (b.role == Buffer::Role::kInput || !written || op.rows_of(b.name).empty()) continue;
    out.insert(b.name == stage.output ? out.begin() : out.end(), b.name);
  }
  if (out.empty()) out.emplace_back();
  return out;
}

std::vector<Region> all_rows(const Op& op, const Problem& problem, const std::string& output) {
  const Extent extent = op.extent_of(problem, output);
  std::vector<Region> out;
  for (int64_t b = 0; b < extent.batch; ++b)
    for (int64_t h = 0; h < extent.heads && extent.rows_of(b) > 0; ++h)
      out.push_back({b, h, 0, extent.rows_of(b), 0, -1, output});
  return out;
}

std::vector<Region> sampled_regions(const Extent& extent, int64_t rows, const std::string& output) {
  std::vector<Region> out;
  for (const int64_t batch : std::set<int64_t>{0, extent.batch - 1})
    for (const int64_t head : std::set<int64_t>{0, extent.heads - 1}) {
      const int64_t size = extent.rows_of(batch);
      std::set<int64_t> starts = places(size, rows);
      for (const int64_t group : extent.groups)
        if (group < size) starts.insert(group);
      for (const int64_t row : starts)
        for (const int64_t column : extent.cols > 0 ? places(extent.cols, kSampledColumns) : std::set<int64_t>{0})
          if (row < size)
            out.push_back({batch, head, row, std::min(size, row + rows), column,
                           extent.cols > 0 ? std::min(extent.cols, column + kSampledColumns) : -1, output});
    }
  return out;
}

Result<void> add_expected(const Op& op, const Problem& problem, InputPattern pattern, const std::string& variant,
                          const std::string& stage, const std::vector<Region>& regions, const WantedElement& wanted,
                          ExpectedElements& out) {
  // Each element is read as its own index: with an expected value the judge then names the element. A value computed
  // from several elements, as of parts that are still to be added, is no index.
  std::map<std::string, std::pair<uint64_t, uint64_t>> last_read;
  const ElementReader reader(
      [&](const std::string& buffer, uint64_t first, std::span<double> values, std::vector<bool>* valid) {
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(first + i);
        if (valid) valid->assign(values.size(), true);
        last_read[buffer] = {first, first + values.size()};
        return Result<void>();
      },
      nullptr,
      [&](const std::string& buffer, double got, double expected, double tolerance) {
        const auto [first, end] = last_read[buffer];
        if (!(got >= static_cast<double>(first) && got < static_cast<double>(end) && got == std::floor(got))) return;
        const auto at = static_cast<uint64_t>(got);
        if (wanted(buffer, at, first, end)) out[buffer][at] = {expected, tolerance};
      });
  for (const Region& region : regions) ROOFGEN_CHECK(op.compare(problem, pattern, variant, stage, region, reader));
  return {};
}

}  // namespace roofgen
