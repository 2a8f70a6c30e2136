#include "tuner/evidence/expected.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <thread>

#include "base/pool.h"
#include "generator/ops/expected.h"

namespace roofgen {
namespace {

constexpr uint64_t kWholeRow = 256;  ///< a row of so many elements is judged whole

std::string number(double x) {
  if (std::isnan(x)) return "\"nan\"";
  if (std::isinf(x)) return x > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{:.9g}", x);
}

/// The elements as runs of neighbours.
std::string runs(const std::map<uint64_t, ExpectedElement>& elements) {
  std::string out;
  for (auto it = elements.begin(); it != elements.end();) {
    const uint64_t first = it->first;
    std::string expected, tolerance;
    for (uint64_t at = first; it != elements.end() && it->first == at; ++it, ++at) {
      expected += (at == first ? "" : ",") + number(it->second.value);
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
  ExpectedElements found;
  ROOFGEN_CHECK(add_expected(
      *op, problem, replay.pattern, replay.variant, replay.kernels.back().stage,
      sampled_regions(op->extent(problem), rows),
      [](const std::string&, uint64_t at, uint64_t first, uint64_t end) {
        return end - first <= kWholeRow || std::min(at - first, end - 1 - at) < kSampledColumns;
      },
      found));
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
