// Small kernels with planted faults, and correct kernels: the checker finds every fault at its line and reports nothing
// else. The first lines of each file state the launch and the expected findings.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "check/check.h"
#include "kernel_files.h"
#include "runtime/compiler.h"
#include "tests/support/patterns.h"
#include "tests/support/words.h"

namespace roofgen::check::kernels_test {
namespace {

/// Kernels as programs have them.
const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = kernels_in(ROOFGEN_CHECK_KERNELS);
  return all;
}
/// Small ones around one fault.
std::vector<Kernel> wrong_kernels() { return kernels_in(ROOFGEN_CHECK_KERNELS "/../wrong", "cta_"); }

/// Right ones of suspicious look, some with an edit that makes them wrong; without those of grid_order_test.cpp.
const std::vector<Kernel>& right_kernels() {
  static const std::vector<Kernel> kept = [] {
    std::vector<Kernel> all = kernels_in(ROOFGEN_CHECK_KERNELS "/../right");
    std::erase_if(all, [](const Kernel& k) { return k.name.starts_with("grid_"); });
    return all;
  }();
  return kept;
}

/// Right ones, each with an edit: the mistakes that are made with copies, clusters and wgmma of Hopper.
std::vector<Kernel> pairs() { return kernels_in(ROOFGEN_CHECK_KERNELS "/../today"); }

/// A library's header takes seconds to compile: of the kernels with cooperative groups or cuda::barrier, some are slow.
std::vector<Kernel> chosen(std::vector<Kernel> all, bool slow) {
  static const std::set<std::string> kSlow = {"tiles_of_warps_clean", "group_copy_clean", "coalesced_group_clean",
                                              "cuda_barrier_clean", "tiles_of_a_group"};
  std::erase_if(all, [&](const Kernel& k) { return kSlow.count(k.name) != slow; });
  return all;
}

/// "race at 8, race at 9" in parts; "wrong y[3] is 1, 2 was expected" is one.
std::vector<std::string> split(const std::string& text) {
  std::istringstream parts(test::substituted(text, ", (?=[a-z-]+ at )", "\n"));
  std::vector<std::string> out;
  for (std::string part; std::getline(parts, part);) out.push_back(part);
  return out;
}

class Kernels : public testing::TestWithParam<Kernel> {};

TEST_P(Kernels, FindsThePlantedFaults) {
  if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  const Kernel& k = GetParam();
  auto says = k.says;
  const bool planted = std::filesystem::exists(std::filesystem::path(ROOFGEN_CHECK_KERNELS) / k.file);
  ASSERT_TRUE(says.count("block")) << "the first lines must state the launch";
  auto made = request_of(k);
  ASSERT_TRUE(made) << to_string(made.error());
  Request& r = *made;
  r.jobs = 3;  // run as many CTAs in parallel as possible: the report must not change
  r.worth_jobs = 0;
  auto report = run(r);
  ASSERT_TRUE(report) << to_string(report.error());

  if (says.count("prints")) {
    std::string wanted = says["prints"];
    for (size_t at = wanted.find("\\n"); at != std::string::npos; at = wanted.find("\\n")) wanted.replace(at, 2, "\n");
    EXPECT_EQ(report->printed, wanted);
  } else {
    EXPECT_EQ(report->printed, "");
  }
  std::set<std::string> found;
  for (const Finding& f : report->findings) {
    const Where& at = r.file.ends_with(".ptx") ? f.ptx : f.source;
    const std::filesystem::path file = at.file;
    if (at.file != r.file) {
      EXPECT_EQ(file, std::filesystem::path(k.folder) / file.filename());
    }
    found.insert(fmt::format("{} at {}{}", f.kind, at.file == r.file ? "" : file.filename().string() + ":", at.line));
  }
  // Outputs may be wrong as a consequence of a finding.
  for (const BufferReport& b : report->buffers)
    if (b.mismatches && report->findings.empty()) found.insert("wrong " + b.first);
  const std::string wanted = says["finds"];
  if (wanted == "nothing") {
    EXPECT_EQ(found, std::set<std::string>());
    EXPECT_EQ(report->verdict(), says.count("leaves open") ? Verdict::kIncomplete : Verdict::kClean)
        << check_text(*report, 0);
  } else {
    // If the place depends on scheduling, the file states only the kind.
    for (const std::string& w : split(wanted)) {
      const auto same = std::find_if(found.begin(), found.end(),
                                     [&](const std::string& f) { return f == w || f.starts_with(w + " at "); });
      if (same != found.end())
        found.erase(same);
      else
        ADD_FAILURE() << "not found: " << w << "\n" << check_text(*report, 0);
    }
    EXPECT_EQ(found, std::set<std::string>()) << check_text(*report, 0);
    EXPECT_NE(report->verdict(), Verdict::kClean);
  }

  std::set<std::string> conflicts, uncoalesced;
  for (const LineCounts& l : report->lines) {
    if (l.excess_wavefronts()) conflicts.insert(std::to_string(l.source.line));
    if (l.excess_sectors()) uncoalesced.insert(std::to_string(l.source.line));
  }
  if (wanted == "nothing" && planted && says["conflicts at"] != "any") {  // "any": in a library
    EXPECT_EQ(fmt::format("{}", fmt::join(conflicts, ",")), says["conflicts at"]);
    EXPECT_EQ(fmt::format("{}", fmt::join(uncoalesced, ",")), says["uncoalesced at"]);
  }
}

const auto kName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Planted, Kernels, testing::ValuesIn(chosen(kernels(), false)), kName);
INSTANTIATE_TEST_SUITE_P(Wrong, Kernels, testing::ValuesIn(wrong_kernels()), kName);
INSTANTIATE_TEST_SUITE_P(Right, Kernels, testing::ValuesIn(chosen(right_kernels(), false)), kName);
INSTANTIATE_TEST_SUITE_P(Today, Kernels, testing::ValuesIn(pairs()), kName);
INSTANTIATE_TEST_SUITE_P(SlowPlanted, Kernels, testing::ValuesIn(chosen(kernels(), true)), kName);
INSTANTIATE_TEST_SUITE_P(SlowRight, Kernels, testing::ValuesIn(chosen(right_kernels(), true)), kName);

TEST(Kernels, AreManyOfBothKinds) {
  std::set<std::string> kinds;
  struct Counts {
    int clean = 0, faulty = 0;
  };
  const auto count = [&](std::vector<Kernel> all) {
    Counts counts;
    for (Kernel& k : all) {
      (k.says["finds"] == "nothing" ? counts.clean : counts.faulty)++;
      kinds.insert(k.says["finds"].substr(0, k.says["finds"].find(' ')));
    }
    return counts;
  };
  const Counts planted = count(kernels()), right = count(right_kernels()), wrong = count(wrong_kernels());
  EXPECT_EQ(planted.clean, 79);
  EXPECT_EQ(planted.faulty, 62);
  EXPECT_EQ(right.clean, 122);
  EXPECT_EQ(right.faulty + wrong.faulty, 86);
  const Counts today = count(pairs());
  EXPECT_EQ(today.clean, 60);  // two wrong ones are not found
  EXPECT_EQ(today.clean + today.faulty, 116);
  for (const std::string& kind : test::words(
           "out-of-bounds misaligned uninitialised async-pending race write-to-input divergent-barrier partial-warp "
           "bad-member-mask bad-barrier bad-branch bad-copy-size out-of-array deadlock instruction-limit trap "
           "assert out-of-memory bad-tensor-map bad-tensor-memory bad-texture wrong"))
    EXPECT_TRUE(kinds.count(kind)) << kind;
}

/// "`race`, line 5; `race`, hopper.cuh:7; `deadlock`".
std::string places_of(const std::string& finds) {
  std::string out;
  for (const std::string& one : split(finds)) {
    out += out.empty() ? "" : "; ";
    if (const size_t at = one.find(" at "); at != std::string::npos)
      out += fmt::format("`{}`, {}{}", one.substr(0, at), one.find(':') == std::string::npos ? "line " : "",
                         one.substr(at + 4));
    else if (one.starts_with("wrong "))
      out += "wrong output: " + one.substr(6);
    else
      out += fmt::format("`{}`", one);
  }
  return out;
}

/// An item of a list, in lines of at most 120 characters.
std::string item(std::string text) {
  const size_t at = text.size() > 120 ? text.rfind("; ", 120) : std::string::npos;
  if (at != std::string::npos) text.replace(at, 2, ";\n  ");
  return text + "\n";
}

/// The wrong half of each pair, with its finding. In all mended halves there is none.
std::string table_of_pairs() {
  std::string rows;
  int n = 0, found = 0;
  for (Kernel& k : pairs()) {
    if (k.name.ends_with("_mended")) continue;
    const bool is_found = k.says["finds"] != "nothing";
    ++n, found += is_found;
    rows += fmt::format("- `{}`: {}\n", k.name, is_found ? places_of(k.says["finds"]) : "not found");
  }
  return fmt::format(R"(
## {} pairs of a wrong and a corrected kernel

`tests/check/today` has mistakes with asynchronous copies, mbarriers, clusters, `wgmma` and `tcgen05`, each as a right
kernel with an edit that makes it wrong. The first lines say what goes wrong and where the mistake was reported. `check`
finds {} of the {} wrong kernels, and nothing in the corrected ones.

{})",
                     n, found, n, rows);
}

/// "`calls`, `chain`, ..." in lines of at most 120 characters.
std::string in_lines(const std::vector<std::string>& names) {
  std::string out, line;
  for (const std::string& name : names) {
    const std::string word = fmt::format("`{}`{}", name, &name == &names.back() ? "." : ",");
    if (!line.empty() && line.size() + 1 + word.size() > 120) out += std::exchange(line, "") + "\n";
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + "\n";
}

/// The expected text of docs/use/check-kernels.md.
std::string table() {
  std::string faulty, traffic;
  std::vector<std::string> clean;
  int n_faulty = 0;
  for (Kernel k : kernels()) {
    const std::string name = k.name.ends_with("_clean") ? k.name.substr(0, k.name.size() - 6) : k.name;
    const std::string finds = k.says["finds"];
    if (finds != "nothing") {
      ++n_faulty;
      const bool edited = k.file.substr(0, k.file.find('.')) != k.name;
      faulty += item(fmt::format("- `{}`{}: {}", name, edited ? " in `" + k.file + "`" : "", places_of(finds)));
      continue;
    }
    clean.push_back(name);
    for (const auto& [what, title] : {std::pair{"conflicts at", "bank conflicts"}, {"uncoalesced at", "uncoalesced"}})
      if (k.says.count(what))
        traffic += fmt::format("- `{}`: {} {}\n", name, title,
                               k.says[what] == "any" ? "in the library" : "in line " + k.says[what]);
  }
  return fmt::format(R"(# Test kernels of `roofgen check`

The first lines of each kernel in `tests/check/kernels` state its launch and the expected findings. A test runs every
kernel and requires exactly the listed findings, at the listed lines, and none for a correct kernel. A test writes this
page (`ROOFGEN_UPDATE_GOLDEN=1`) and fails if the page is out of date. `tests/check/right` has more correct kernels
that look suspicious: warp-synchronous code, reductions by the last block, updates in place.

## {} kernels with a planted fault

{}
## {} correct kernels

{}
Correct kernels with excess traffic:

{})",
                     n_faulty, faulty, clean.size(), in_lines(clean), traffic) +
         table_of_pairs();
}

TEST(Kernels, TheTableInTheDocs) {
  const std::string path = ROOFGEN_CHECK_KERNELS "/../../../docs/use/check-kernels.md";
  if (std::getenv("ROOFGEN_UPDATE_GOLDEN")) std::ofstream(path) << table();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), table());
}

}  // namespace
}  // namespace roofgen::check::kernels_test
