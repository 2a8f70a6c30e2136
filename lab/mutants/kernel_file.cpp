#include "lab/mutants/kernel_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>

#include "base/paths.h"
#include "base/pool.h"
#include "check/kernel.h"
#include "tests/check/kernel_files.h"

namespace roofgen::mutants {
namespace {

bool is_clean(const check::Report& report) { return report.verdict() != check::Verdict::kFindings; }

/// The kernel's PTX in place of its source; nothing where its launch is not clean.
std::unique_ptr<KernelFile> checked(const check::Kernel& kernel, const std::string& folder) {
  auto source = check::request_of(kernel);
  if (!source) return nullptr;
  source->include_dirs = {folder};
  source->cache_dir = cache_dir();
  auto chosen = check::choose_kernel(*source);
  if (!chosen) return nullptr;
  auto out = std::make_unique<KernelFile>();
  out->name = kernel.name;
  out->folder = std::filesystem::path(folder).filename();
  out->code = std::make_unique<Code>(chosen->compiled.binary.ptx, std::vector<size_t>{}, chosen->entry.mangled);
  out->request = std::move(*source);
  out->request.file = kernel.name + ".ptx";
  out->request.kernel = chosen->entry.mangled;
  out->request.text = out->code->printed();
  out->request.jobs = 1;
  const auto own = check::run(out->request);
  if (!own || !is_clean(*own)) return nullptr;
  out->request.max_findings = 1;
  out->request.max_instructions =
      20 * own->counts.warp_instructions / std::max<uint64_t>(1, own->counts.ctas) + 200'000;
  return out;
}

Result<check::Report> check_edited(const Mutant& m, const Edits& edits, int schedules = 1) {
  check::Request request = m.file->request;
  request.text = m.file->code->with(edits);
  request.schedules = schedules;
  return check::run(request);
}

}  // namespace

Result<std::vector<std::unique_ptr<KernelFile>>> kernel_files(const std::vector<std::string>& folders,
                                                              const std::string& only, int threads) {
  std::vector<std::unique_ptr<KernelFile>> out;
  std::mutex mutex;
  Pool pool(threads);
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(folder)) return Error{Exit::kUsage, folder + " is no folder"};
    for (const check::Kernel& kernel : check::kernels_in(folder)) {
      const auto finds = kernel.says.find("finds");
      if (finds == kernel.says.end() || finds->second != "nothing" || kernel.name.find(only) == std::string::npos)
        continue;
      pool.push([&out, &mutex, kernel, folder] {
        auto file = checked(kernel, folder);
        const std::lock_guard lock(mutex);
        if (file) out.push_back(std::move(file));
      });
    }
  }
  pool.drain([] {});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a->name < b->name; });
  return out;
}

std::vector<Mutant> file_mutants(const std::vector<std::unique_ptr<KernelFile>>& files, const std::string& only) {
  std::vector<Mutant> out;
  for (const auto& file : files)
    for (const Rule* rule : rules(Group::kOrder)) {
      if (std::string(rule->name).find(only) == std::string::npos || *rule->line) continue;
      const auto where_of = [&](const PtxStmt& s) {
        return Where{file->name, static_cast<int>(file->code->source_line(s)), 0};
      };
      for (Mutant& m : mutants_by(*rule, Group::kOrder, *file->code, where_of)) {
        m.file = file.get();
        out.push_back(std::move(m));
      }
    }
  return out;
}

bool is_clean(const Mutant& m, const Edits& edits) {
  const auto report = check_edited(m, edits);
  return report && is_clean(*report);
}

void decide_by_check(Mutant& m, int schedules) {
  const auto report = check_edited(m, {{m.statement, m.after}}, schedules);
  if (!report) {
    m.fate = Fate::kRefused;
    m.message = report.error().message;
  } else if (!report->findings.empty()) {
    m.fate = Fate::kFinding;
    m.by = report->findings[0].kind;
    m.message = report->findings[0].message;
  } else if (!is_clean(*report)) {
    m.fate = Fate::kComparison;
    m.by = "outputs";
  } else if (m.by = equivalence(m); !m.by.empty()) {
    m.fate = Fate::kEquivalent;
  }
}

}  // namespace roofgen::mutants
