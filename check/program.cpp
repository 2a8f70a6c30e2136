#include "check/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/demangle.h"
#include "base/json_text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "check/kernel.h"
#include "check/views.h"
#include "runtime/sim/count_names.h"

namespace roofgen::check {

ROOFGEN_TO_JSON(FailedCall, call, error, status, message, count)

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRows = 40;  ///< of each list in the text; JSON has all

/// The item of a list whose members are equal to those of `item`; `item`, appended, where there is none.
template <class T, class Same>
T& merged(std::vector<T>& list, T item, const Same& same) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const T& other) { return same(other, item); });
  return at != list.end() ? *at : list.emplace_back(std::move(item));
}

void add_kernel(const Json& j, ProgramReport& report) {
  KernelUse use;
  j.at("kernel").get_to(use.mangled);
  use.kernel = demangled(use.mangled);
  KernelUse& k = merged(report.kernels, std::move(use),
                        [](const KernelUse& a, const KernelUse& b) { return a.mangled == b.mangled; });
  k.launches += j.at("launches").get<uint64_t>();
  k.not_run += j.at("not_run").get<uint64_t>();
  for (const sim::CountName& c : sim::kCountNames) k.counts.*c.member += j.at(c.name).get<uint64_t>();
}

/// NVRTC makes names absolute; below the working directory the relative name is enough.
std::string own_name(std::string file) {
  std::error_code ignored;
  if (const std::string here = fs::current_path(ignored).string() + "/"; file.starts_with(here))
    file.erase(0, here.size());
  return file;
}

void add_finding(const Json& j, ProgramReport& report) {
  ProgramFinding made;
  Finding& first = made.first;
  ROOFGEN_GET(j, first, kind, message, kernel, cta, thread)
  j.at("ptx_file").get_to(first.ptx.file);
  j.at("ptx_line").get_to(first.ptx.line);
  first.source.file = own_name(j.at("source_file").get<std::string>());
  j.at("source_line").get_to(first.source.line);
  ROOFGEN_GET(j, made, instruction)
  merged(report.findings, std::move(made), [](const ProgramFinding& a, const ProgramFinding& b) {
    return a.first.kind == b.first.kind && a.first.kernel == b.first.kernel && a.first.ptx.line == b.first.ptx.line &&
           (a.first.ptx.line > 0 || a.first.message == b.first.message);
  }).count += j.at("count").get<uint64_t>();
}

void add_call(const Json& j, ProgramReport& report) {
  FailedCall made;
  ROOFGEN_GET(j, made, call, error, message, status)
  merged(report.calls, std::move(made), [](const FailedCall& a, const FailedCall& b) {
    return a.call == b.call && a.status == b.status;
  }).count += j.at("count").get<uint64_t>();
}

void add_record(const Json& j, ProgramReport& report) {
  const auto record = j.at("record").get<std::string>();
  if (record == "process") {
    DriverProcess& made = report.processes.emplace_back();
    ROOFGEN_GET(j, made, pid, parent, program, peak_bytes)
  } else if (record == "device") {
    ROOFGEN_GET(j, report.processes.back(), device, title)
  } else if (record == "kernel") {
    add_kernel(j, report);
  } else if (record == "finding") {
    add_finding(j, report);
  } else if (record == "call") {
    add_call(j, report);
  } else if (record == "decides") {
    merged(report.deciding, {own_name(j.at("file").get<std::string>()), j.at("line").get<int>(), 0},
           [](const Where& a, const Where& b) { return a.file == b.file && a.line == b.line; });
  }
}

/// How the program failed; empty: it did not.
std::string failure(const ProgramReport& r) {
  if (r.signal) return fmt::format("the program was ended by signal {} ({})", r.signal, strsignal(r.signal));
  return r.exit ? fmt::format("the program ended with exit status {}", r.exit) : "";
}

/// Why nothing wrong does not mean clean.
std::vector<std::string> left_open(const ProgramReport& r) {
  std::vector<std::string> out;
  uint64_t not_run = 0;
  for (const KernelUse& k : r.kernels) not_run += k.not_run;
  if (not_run) out.push_back(plural(not_run, "launch") + " did not run");
  if (std::ranges::any_of(r.calls, [](const FailedCall& c) { return c.error == "CUDA_ERROR_NOT_SUPPORTED"; }))
    out.push_back("the simulated driver does not support a call or a kernel");
  if (!r.deciding.empty()) out.push_back("one order of threads of many was run");
  return out;
}

std::string verdict_text(const ProgramReport& r) {
  uint64_t launches = 0, findings = 0;
  for (const KernelUse& k : r.kernels) launches += k.launches;
  for (const ProgramFinding& f : r.findings) findings += f.count;
  if (findings) return plural(findings, "finding") + kSeeFindings;
  if (r.processes.empty())
    return "nothing was checked: the program did not load the simulated driver" +
           (r.other_driver.empty() ? "" : ", but " + r.other_driver);
  if (launches == 0) return "nothing was checked: no kernel ran";
  if (r.verdict() == Verdict::kIncomplete)
    return fmt::format("incomplete: nothing wrong in what ran, but {}", fmt::join(left_open(r), ", and "));
  return failure(r).empty() ? "clean" : "no findings";
}

std::string driver_text(const ProgramReport& r) {
  if (r.processes.empty()) return "not loaded";
  std::vector<std::string> titles;
  uint64_t peak = 0;
  for (const DriverProcess& p : r.processes) {
    peak = std::max(peak, p.peak_bytes);
    if (!p.title.empty() && std::find(titles.begin(), titles.end(), p.title) == titles.end()) titles.push_back(p.title);
  }
  const std::string by = r.processes.size() > 1 ? fmt::format(", loaded by {} processes", r.processes.size()) : "";
  if (titles.empty()) return "never initialised" + by;
  return fmt::format("simulated {}{}; at most {} of device memory allocated", fmt::join(titles, ", "), by,
                     bytes_text(static_cast<double>(peak)));
}

/// A line on rows beyond the most that are printed.
std::string beyond(size_t rows, const char* what) {
  return rows > kMostRows ? fmt::format("  and {} more {}; --json has them\n", rows - kMostRows, what) : "";
}

std::string kernels_text(const ProgramReport& r) {
  if (r.kernels.empty()) return "";
  TextTable table(
      {"  kernel", "launches", "CTAs", "warp-instructions", "read", "written", "bank conflicts", "findings"});
  table.left(0);
  for (size_t i = 0; i < std::min(kMostRows, r.kernels.size()); ++i) {
    const KernelUse& k = r.kernels[i];
    const auto count = [](uint64_t n) { return count_text(static_cast<double>(n)); };
    const auto bytes = [](uint64_t sectors) { return bytes_text(32.0 * static_cast<double>(sectors)); };
    table.row({"  " + k.kernel, count(k.launches), count(k.counts.ctas), count(k.counts.warp_instructions),
               bytes(k.counts.l2_read_sectors), bytes(k.counts.l2_write_sectors),
               count(k.counts.smem_wavefronts - k.counts.smem_ideal_wavefronts), fmt::format("{}", k.findings)});
  }
  return "\n" + table.str(1 << 20) + beyond(r.kernels.size(), "kernels");  // names stay whole
}

/// A program that tries machine code for several architectures, or machine code before PTX, is told by this error which
/// to take. Where its kernels ran, that is no failure.
bool is_question(const ProgramReport& r, const FailedCall& c) {
  return c.error == "CUDA_ERROR_NO_BINARY_FOR_GPU" && failure(r).empty() && !r.kernels.empty();
}

std::string calls_text(const ProgramReport& r) {
  std::string out;
  for (size_t i = 0; i < std::min(kMostRows, r.calls.size()); ++i) {
    const FailedCall& c = r.calls[i];
    if (is_question(r, c)) continue;
    out += fmt::format("  {}: {} ({}): {}{}\n", c.call, c.error, c.status, c.message,
                       c.count > 1 ? fmt::format("; {} times", c.count) : "");
  }
  return out.empty() ? "" : "\nfailed driver calls\n" + wrapped(out, 4) + beyond(r.calls.size(), "calls");
}

}  // namespace

Verdict ProgramReport::verdict() const {
  if (!findings.empty()) return Verdict::kFindings;
  const bool ran = std::ranges::any_of(kernels, [](const KernelUse& k) { return k.launches > 0; });
  return ran && left_open(*this).empty() ? Verdict::kClean : Verdict::kIncomplete;
}

Result<void> read_records(const std::string& directory, ProgramReport& report) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) files.push_back(entry.path());
  if (failed) return Error{Exit::kFailed, fmt::format("{}: {}", directory, failed.message())};
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a.filename().string().size(), a) < std::pair(b.filename().string().size(), b);
  });
  for (const fs::path& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      ROOFGEN_TRY(const JsonFile record, JsonFile::parse(line, file.string()));
      add_record(record.root(), report);
    }
  }
  for (KernelUse& k : report.kernels)
    for (const ProgramFinding& f : report.findings)
      if (f.first.kernel == k.mangled) k.findings += f.count;
  return {};
}

std::string program_text(const ProgramReport& r) {
  std::string out = fmt::format("program   {}\ndriver    {}\n", fmt::join(r.program, " "), driver_text(r));
  for (const KernelUse& k : r.kernels)
    if (k.not_run)
      out += fmt::format("note      {} of {} launches of {} did not run: the program never synchronised with them\n",
                         k.not_run, k.not_run + k.launches, k.kernel);
  if (!r.deciding.empty())
    out += wrapped(fmt::format("orders    1 of many: a value that other threads change decides at {}\n",
                               places_text(r.deciding, place)),
                   10);
  out += kernels_text(r);
  if (!r.findings.empty()) out += "\n";
  for (size_t i = 0; i < std::min(kMostRows, r.findings.size()); ++i) {
    const ProgramFinding& f = r.findings[i];
    const std::string instruction = f.instruction.empty() ? "" : ": " + f.instruction;
    out += finding_text(f.first, demangled(f.first.kernel) + ", ",
                        instruction + (f.count > 1 ? fmt::format("; {} times", f.count) : ""));
  }
  out += beyond(r.findings.size(), "findings") + calls_text(r);
  return out + fmt::format("\nverdict   {}{}{}\n", verdict_text(r), failure(r).empty() ? "" : "; ", failure(r));
}

std::string program_json(const ProgramReport& r) {
  Json j{{"schema", "roofgen.run.1"},
         {"program", r.program},
         {"exit_status", r.signal ? Json() : Json(r.exit)},
         {"signal", r.signal ? Json(r.signal) : Json()},
         {"driver", r.driver},
         {"other_driver", r.other_driver.empty() ? Json() : Json(r.other_driver)},
         {"verdict", to_string(r.verdict())},
         {"clean", r.verdict() == Verdict::kClean}};
  for (const char* list : {"processes", "kernels", "findings"}) j[list] = Json::array();
  for (const DriverProcess& p : r.processes) {
    Json& process = j["processes"].emplace_back();
    ROOFGEN_PUT(process, p, pid, parent, program)
    process["device"] = p.device.empty() ? Json() : Json(p.device);
    process["peak_bytes"] = p.peak_bytes;
  }
  for (const KernelUse& k : r.kernels) {
    Json& kernel = j["kernels"].emplace_back();
    ROOFGEN_PUT(kernel, k, kernel, mangled, launches)
    kernel["launches_not_run"] = k.not_run;
    kernel["findings"] = k.findings;
    kernel["counts"] = counts_json(k.counts);
  }
  for (const ProgramFinding& f : r.findings) {
    Json& finding = j["findings"].emplace_back(finding_json(f.first));
    finding["kernel"] = demangled(f.first.kernel);
    ROOFGEN_PUT(finding, f, instruction, count)
  }
  j["deciding"] = Json::array();
  for (const Where& at : r.deciding) j["deciding"].push_back(where_json(at));
  j["failed_calls"] = r.calls;
  return json_document(j);
}

}  // namespace roofgen::check
