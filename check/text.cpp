// The report as text.
#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"
#include "base/units.h"
#include "check/check.h"
#include "check/in_double.h"
#include "check/views.h"

namespace roofgen::check {
namespace {

std::string dims(const Dim3& d) {
  return d.y == 1 && d.z == 1 ? fmt::format("{}", d.x) : fmt::format("{} x {} x {}", d.x, d.y, d.z);
}

/// The removed host code.
std::string left_out_text(const std::vector<LeftOut>& all) {
  constexpr size_t kMost = 4;
  std::string out;
  for (size_t i = 0; i < std::min(kMost, all.size()); ++i) out += fmt::format("{}{}", i ? ", " : "", all[i].what);
  if (all.size() > kMost) out += fmt::format(" and {} more", all.size() - kMost);
  return out + ": host code, left out";
}

/// The lines with the largest excess.
template <class Excess, class Row>
std::string worst_lines(const Report& r, size_t top, const char* title, const Excess& excess, const Row& row) {
  std::vector<const LineCounts*> lines;
  for (const LineCounts& l : r.lines)
    if (excess(l) > 0) lines.push_back(&l);
  if (lines.empty() || top == 0) return "";
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const LineCounts* a, const LineCounts* b) { return excess(*a) > excess(*b); });
  std::string out = fmt::format("\n{}\n", title);
  for (size_t i = 0; i < std::min(top, lines.size()); ++i)
    out += fmt::format("  {:<30} {}\n", place(lines[i]->source), row(*lines[i]));
  if (lines.size() > top) out += fmt::format("  and {} more lines\n", lines.size() - top);
  return out;
}

constexpr size_t kPrintedLines = 50;

/// The first lines of the kernel's printf output; JSON has all.
std::string printed_text(const std::string& printed) {
  if (printed.empty()) return "";
  std::string out = "\nprinted\n";
  size_t at = 0;
  for (size_t n = 0; at < printed.size() && n < kPrintedLines; ++n) {
    const size_t end = std::min(printed.find('\n', at), printed.size());
    out += fmt::format("  {}\n", printed.substr(at, end - at));
    at = end + 1;
  }
  if (at < printed.size())
    out += fmt::format(
        "  and {} more lines; --json has them\n",
        std::count(printed.begin() + static_cast<ptrdiff_t>(at), printed.end(), '\n') + (printed.back() != '\n'));
  if (printed.size() >= kMaxPrintedBytes)
    out += fmt::format("  cut at {}\n", bytes_text(static_cast<double>(kMaxPrintedBytes)));
  return out;
}

/// In how many schedules a finding was.
std::string schedules_text(const Report& r, size_t finding) {
  return r.schedules == 1 ? "" : fmt::format("; in {} of {} schedules", r.in_schedules[finding], r.schedules);
}

double ratio(uint64_t a, uint64_t b) { return b ? static_cast<double>(a) / static_cast<double>(b) : 0; }

}  // namespace

std::string range_text(const NotRun& lines) {
  const std::string first = place({lines.file, lines.first, 0});
  return lines.last > lines.first ? fmt::format("{} to {}", first, lines.last) : first;
}

std::string mismatch_text(const Report& r, const BufferReport& b) {
  std::string out = fmt::format("{}; {} of {} elements are wrong", b.first, b.mismatches, b.elements - b.ignored);
  if (b.largest_error > 0) out += fmt::format(", by at most {:.3g}", b.largest_error);
  if (b.largest_relative_error > 0) out += fmt::format(" (relatively {:.2g})", b.largest_relative_error);
  if (!r.findings.empty())
    out += fmt::format("; likely a consequence of the finding{}", r.findings.size() == 1 ? "" : "s");
  return out;
}

std::string check_text(const Report& r, size_t top) {
  const std::string kernel =
      fmt::format("kernel    {} of {}, grid {}, block {}{}\n", r.kernel, r.file, dims(r.grid), dims(r.block),
                  r.smem_bytes ? fmt::format(", {} bytes of dynamic shared memory", r.smem_bytes) : "");
  std::string out;
  if (!r.compiler.empty())
    out += fmt::format("compiled  {} for {}: {} registers, {} of spills, {} of static shared memory\n",
                       r.compiler.substr(0, r.compiler.find(" at ")), r.arch, r.registers,
                       bytes_text(static_cast<double>(r.spill_bytes)),
                       bytes_text(static_cast<double>(r.static_smem_bytes)));
  if (!r.left_out.empty()) out += fmt::format("without   {}\n", left_out_text(r.left_out));
  for (const std::string& note : r.notes) out += fmt::format("note      {}\n", note);
  if (!r.deciding.empty())
    out += fmt::format("orders    {} of many{}: a value that other threads change decides at {}\n", r.schedules,
                       r.schedules == 1 ? " (--schedules N runs others)" : "", places_text(r.deciding, place));
  if (!r.not_run.empty())
    out += fmt::format("not run   {}: no thread came there with these arguments\n", places_text(r.not_run, range_text));
  const Counts& c = r.counts;
  out += fmt::format("ran       {} of {} CTAs in the simulator, {} warp-instructions{}\n", c.ctas, r.ctas,
                     c.warp_instructions, r.stopped_early ? "; stopped at the limit of findings" : "");
  out += fmt::format(
      "traffic   {} read and {} written in requests of 32 bytes, {} and {} of them distinct; shared memory {} "
      "wavefronts, {} of them by conflicts\n",
      bytes_text(32.0 * static_cast<double>(c.l2_read_sectors)),
      bytes_text(32.0 * static_cast<double>(c.l2_write_sectors)),
      bytes_text(32.0 * static_cast<double>(c.unique_read_sectors)),
      bytes_text(32.0 * static_cast<double>(c.unique_write_sectors)), c.smem_wavefronts,
      c.smem_wavefronts - c.smem_ideal_wavefronts);
  out = kernel + wrapped(out, 10) + printed_text(r.printed);
  if (!r.findings.empty()) out += "\n";
  for (const Finding& f : r.findings)
    out += finding_text(f, "",
                        (f.count > 1 ? fmt::format("; {} times", f.count) : "") +
                            (f.ctas > 1 ? fmt::format(" in {} CTAs", f.ctas) : "") +
                            schedules_text(r, static_cast<size_t>(&f - r.findings.data())));
  for (const Difference& d : r.differences) out += fmt::format("\n{}\n", difference_text(r, d));
  for (const BufferReport& b : r.buffers) {
    if (b.mismatches)
      out += fmt::format("\n{}\n", mismatch_text(r, b));
    else if (b.compared)
      out += fmt::format("\n{}: all {} elements {}are as expected\n", b.name, b.elements - b.ignored,
                         b.ignored ? fmt::format("that are compared, of {}, ", b.elements) : "");
    else if (b.unwritten)
      out += fmt::format("\n{}: {} of {} elements are uninitialised, and zeros in the dump\n", b.name, b.unwritten,
                         b.elements);
  }
  if (r.in_double) out += in_double_text(*r.in_double);
  out += worst_lines(
      r, top, "uncoalesced: sectors beyond the minimum for the bytes",
      [](const LineCounts& l) { return l.excess_sectors(); },
      [](const LineCounts& l) {
        return fmt::format("{:>10} of {:<10} {:.1f} x", l.excess_sectors(), l.sum.sectors,
                           ratio(l.sum.sectors, l.sum.ideal_sectors));
      });
  out += worst_lines(
      r, top, "bank conflicts: wavefronts more than without conflicts",
      [](const LineCounts& l) { return l.excess_wavefronts(); },
      [](const LineCounts& l) {
        return fmt::format("{:>10} of {:<10} {:.1f} x", l.excess_wavefronts(), l.sum.wavefronts,
                           ratio(l.sum.wavefronts, l.sum.ideal_wavefronts));
      });
  const uint64_t findings = r.findings.size();
  uint64_t wrong = 0;
  for (const BufferReport& b : r.buffers) wrong += b.mismatches > 0;
  out += "\nverdict   ";
  const std::string schedules = r.schedules == 1 ? "" : fmt::format(" in {} schedules", r.schedules);
  if (r.verdict() == Verdict::kClean) return out + "clean" + schedules + "\n";
  if (r.verdict() == Verdict::kIncomplete)
    return out + fmt::format("incomplete: nothing wrong in what ran{} (docs/use/check-limits.md)\n", schedules);
  uint64_t differ = 0;
  for (const Difference& d : r.differences) differ += !d.is_rounding;
  if (findings) out += plural(findings, "finding");
  if (wrong)
    out += (findings ? ", and " : "") + plural(wrong, "wrong output") + (findings ? ", likely a consequence" : "");
  if (differ) out += (findings || wrong ? ", and " : "") + plural(differ, "output") + " that depends on the schedule";
  return out + kSeeFindings + "\n";
}

}  // namespace roofgen::check
