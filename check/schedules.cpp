// Findings and outputs of several schedules.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/check.h"

namespace roofgen::check {
namespace {

/// Sums in another order differ by some units in the last place; relative to the largest magnitude.
double most_rounding(Element type) {
  switch (type) {
    case Element::kF64: return 0x1p-40;
    case Element::kF32: return 0x1p-15;
    case Element::kF16: return 0x1p-7;
    case Element::kBf16: return 0x1p-5;
    default: return 0;
  }
}

/// The difference of two contents of one buffer; none: `schedules` is 0.
Difference difference_of(const Output& a, const Output& b) {
  Difference d;
  d.name = a.name;
  double magnitude = 0;
  const uint32_t size = bytes_of(a.type);
  for (size_t at = 0; at < a.bytes.size(); at += size) {
    const std::byte *x = &a.bytes[at], *y = &b.bytes[at];
    const double value = decode(a.type, x);
    if (std::isfinite(value)) magnitude = std::max(magnitude, std::fabs(value));
    const bool both = a.written[at] && b.written[at];
    if ((both && std::equal(x, x + size, y)) || (!a.written[at] && !b.written[at])) continue;
    const auto text = [&](const Output& o, const std::byte* from) {
      return o.written[at] ? shown(o.type, from) : std::string("uninitialised");
    };
    if (d.elements++ == 0) d.first = fmt::format("{}[{}] is {} or {}", a.name, at / size, text(a, x), text(b, y));
    const double apart = distance(a.type, x, y);
    if (both && std::isfinite(apart)) d.largest = std::max(d.largest, apart);
    d.is_rounding &= both && std::isfinite(apart);
  }
  d.schedules = d.elements > 0;
  d.relative = magnitude > 0 ? d.largest / magnitude : 0;
  d.is_rounding &= !is_integer(a.type) && d.largest <= magnitude * most_rounding(a.type);
  return d;
}

}  // namespace

namespace {

auto same_place(const Finding& a) {
  return [&a](const Finding& b) { return a.kind == b.kind && a.ptx.line == b.ptx.line; };
}

/// A line was run if one of the runs came there.
void join_not_run(Report& report, const Report& other) {
  std::erase_if(report.not_run, [&](const NotRun& lines) {
    return std::ranges::none_of(other.not_run, [&](const NotRun& there) {
      return there.file == lines.file && there.first <= lines.last && lines.first <= there.last;
    });
  });
}

}  // namespace

void add_run(Report& report, Report other) {
  join_not_run(report, other);
  for (Finding& f : other.findings)
    if (std::ranges::none_of(report.findings, same_place(f))) report.findings.push_back(std::move(f));
}

void add_schedule(Report& report, const Report& other) {
  ++report.schedules;
  report.in_schedules.resize(report.findings.size(), 1);
  const bool compares = report.findings.empty() && other.findings.empty();
  join_not_run(report, other);
  for (const Finding& g : other.findings) {
    const auto same = std::ranges::find_if(report.findings, same_place(g));
    if (same != report.findings.end()) {
      ++report.in_schedules[static_cast<size_t>(same - report.findings.begin())];
    } else {
      report.findings.push_back(g);
      report.in_schedules.push_back(1);
    }
  }
  for (size_t i = 0; compares && i < report.outputs.size(); ++i) {
    const Difference d = difference_of(report.outputs[i], other.outputs[i]);
    if (!d.schedules) continue;
    const auto same = std::find_if(report.differences.begin(), report.differences.end(),
                                   [&](const Difference& known) { return known.name == d.name; });
    if (same == report.differences.end()) {
      report.differences.push_back(d);
      continue;
    }
    ++same->schedules;
    same->elements = std::max(same->elements, d.elements);
    same->largest = std::max(same->largest, d.largest);
    same->relative = std::max(same->relative, d.relative);
    same->is_rounding &= d.is_rounding;
  }
}

std::string difference_text(const Report& r, const Difference& d) {
  return fmt::format(
      "{}, depending on the schedule; {} of {} schedules differ from the first, in up to {} elements, by "
      "at most {:.3g} (relatively {:.2g}){}",
      d.first, d.schedules, r.schedules - 1, d.elements, d.largest, d.relative,
      d.is_rounding ? ": rounding, as atomics add floats in any order" : "");
}

}  // namespace roofgen::check
