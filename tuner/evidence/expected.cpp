#include "tuner/evidence/expected.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "base/pool.h"

namespace roofgen {
namespace {

constexpr int64_t kColumns = 32;     ///< of a wide row, at each of several places
constexpr uint64_t kWholeRow = 256;  ///< a row of so many elements is judged whole

struct Element {
  double expected, tolerance;
};

/// First positions of `count` neighbours at the beginning, in the middle and at the end of `size`.
std::set<int64_t> places(int64_t size, int64_t count) {
  const int64_t last = std::max<int64_t>(0, size - count);
  return {0, last / 2, last};
}

std::vector<Region> sampled_regions(const Extent& extent, int64_t rows) {
  std::vector<Region> out;
  for (const int64_t batch : std::set<int64_t>{0, extent.batch - 1})
    for (const int64_t head : std::set<int64_t>{0, extent.heads - 1}) {
      const int64_t size = extent.rows_of(batch);
      std::set<int64_t> starts = places(size, rows);
      for (const int64_t group : extent.groups)
        if (group < size) starts.insert(group);
      for (const int64_t row : starts)
        for (const int64_t column : extent.cols > 0 ? places(extent.cols, kColumns) : std::set<int64_t>{0})
          if (row < size)
            out.push_back({batch, head, row, std::min(size, row + rows), column,
                           extent.cols > 0 ? std::min(extent.cols, column + kColumns) : -1});
    }
  return out;
}

std::string number(double x) {
  if (std::isnan(x)) return "\"nan\"";
  if (std::isinf(x)) return x > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{:.9g}", x);
}

/// The elements as runs of neighbours.
std::string runs(const std::map<uint64_t, Element>& elements) {
  std::string out;
  for (auto it = elements.begin(); it != elements.end();) {
    const uint64_t first = it->first;
    std::string expected, tolerance;
    for (uint64_t at = first; it != elements.end() && it->first == at; ++it, ++at) {
      expected += (at == first ? "" : ",") + number(it->second.expected);
      tolerance += (at == first ? "" : ",") + number(it->second.tolerance);
    }
    out += fmt::format("{}{{\"first\":{},\"expected\":[{}],\"tolerance\":[{}]}}", out.empty() ? "" : ",\n", first,
                       expected, tolerance);
  }
  return "[" + out + "]";
}

}  // namespace

Result<std::string> expected_json(const Replay& replay, int64_t rows) {
  ROOFGEN_TRY(const Op* op, find_op(replay.problem.op));
  ROOFGEN_TRY(const Problem problem, op->complete(replay.problem));
  // Each element is read as its own index: with an expected value the judge then names the element. A value computed
  // from several elements, as of parts that are still to be added, is no index.
  std::map<std::string, std::map<uint64_t, Element>> found;
  std::map<std::string, std::pair<uint64_t, uint64_t>> last_read;
  const ElementReader reader(
      [&](const std::string& buffer, uint64_t first, std::span<double> out, std::vector<bool>* valid) -> Result<void> {
        for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(first + i);
        if (valid) valid->assign(out.size(), true);
        last_read[buffer] = {first, first + out.size()};
        return {};
      },
      nullptr,
      [&](const std::string& buffer, double got, double expected, double tolerance) {
        const auto [first, end] = last_read[buffer];
        if (!(got >= static_cast<double>(first) && got < static_cast<double>(end) && got == std::floor(got))) return;
        const auto at = static_cast<uint64_t>(got);
        if (end - first <= kWholeRow || at - first < kColumns || end - at <= kColumns)
          found[buffer][at] = {expected, tolerance};
      });
  for (const Region& region : sampled_regions(op->extent(problem), rows))
    ROOFGEN_CHECK(op->compare(problem, replay.pattern, replay.variant, replay.kernels.back().stage, region, reader));
  std::string out;
  for (const Buffer& buffer : replay.buffers)
    if (const auto it = found.find(buffer.name); buffer.role == Buffer::Role::kOutput && it != found.end())
      out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",\n", buffer.name, runs(it->second));
  if (out.empty()) return Error{Exit::kFailed, fmt::format("nothing is expected of the outputs of {}", replay.variant)};
  return "{" + out + "}";
}

Result<std::vector<std::byte>> input_bytes(const Replay& replay, const std::string& buffer) {
  ROOFGEN_TRY(const Op* op, find_op(replay.problem.op));
  ROOFGEN_TRY(const Problem problem, op->complete(replay.problem));
  for (const Buffer& each : op->buffers(problem)) {
    if (each.name != buffer || !each.has_contents()) continue;
    constexpr uint64_t kPart = uint64_t{4} << 20;
    std::vector<std::byte> out(each.bytes);
    ROOFGEN_CHECK(for_each_index(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                                 (each.bytes + kPart - 1) / kPart, [&](size_t i) -> Result<void> {
                                   const std::span part = std::span(out).subspan(i * kPart);
                                   op->fill(problem, replay.pattern, buffer, i * kPart,
                                            part.first(std::min<size_t>(kPart, part.size())));
                                   return {};
                                 }));
    return out;
  }
  return Error{Exit::kUsage, fmt::format("{} has no input \"{}\"", op->name(), buffer)};
}

}  // namespace roofgen
