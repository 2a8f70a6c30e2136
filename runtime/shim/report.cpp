#include "runtime/shim/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "runtime/shim/state.h"
#include "runtime/sim/count_names.h"

namespace roofgen::shim {
namespace {

constexpr int kDigits = 20;  // of any 64-bit number

/// The command line of this process, with spaces between the arguments.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string out{std::istreambuf_iterator<char>(in), {}};
  while (out.ends_with('\0')) out.pop_back();
  std::replace(out.begin(), out.end(), '\0', ' ');
  return out;
}

}  // namespace

Report& Report::instance() {
  static Report* report = new Report;
  return *report;
}

Report::Report() {
  const char* directory = std::getenv("ROOFGEN_SIM_REPORT");
  std::error_code ignored;
  if (directory && *directory) directory_ = std::filesystem::absolute(directory, ignored);
  on();
}

bool Report::on() {
  if (!directory_.empty() && pid_ != getpid()) begin();
  return !directory_.empty();
}

void Report::begin() {
  pid_ = getpid();
  end_ = 0;
  records_.clear();
  // The random part: a program that is replaced by exec keeps its process id.
  file_ = fmt::format("{}/{}-XXXXXX", directory_, pid_);
  const int fd = mkostemp(file_.data(), O_CLOEXEC);
  if (fd < 0) {
    std::fputs(
        fmt::format("roofgen-sim[{}]: ROOFGEN_SIM_REPORT={}: {}\n", pid_, directory_, std::strerror(errno)).c_str(),
        stderr);
    return directory_.clear();
  }
  close(fd);
  write(record("process", {{"record", "process"}, {"pid", pid_}, {"parent", getppid()}, {"program", command_line()}},
               {"peak_bytes"}));
}

Report::Record& Report::record(const std::string& key, const Json& fields, const std::vector<const char*>& numbers) {
  const auto [at, added] = records_.try_emplace(key);
  Record& r = at->second;
  if (!added) return r;
  r.at = end_;
  r.text = json_line(fields);
  r.text.pop_back();
  end_ += static_cast<off_t>(r.text.size() + 2);  // "}\n"
  for (const char* name : numbers) {
    r.numbers.emplace_back(name, 0);
    end_ += static_cast<off_t>(std::strlen(name) + 4 + kDigits);
  }
  return r;
}

void Report::write(const Record& record) {
  std::string line = record.text;
  for (const auto& [name, value] : record.numbers) line += fmt::format(",\"{}\":{:{}}", name, value, kDigits);
  line += "}\n";
  const int fd = open(file_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;  // `roofgen run` has ended and removed the directory
  [[maybe_unused]] const ssize_t written = pwrite(fd, line.data(), line.size(), record.at);
  close(fd);
}

void Report::initialised(const std::string& device, const std::string& title) {
  if (on()) write(record("device", {{"record", "device"}, {"device", device}, {"title", title}}, {}));
}

void Report::allocated(size_t bytes) {
  if (!on()) return;
  Record& r = records_.at("process");
  if (bytes <= r[0]) return;
  r[0] = bytes;
  write(r);
}

Report::Record& Report::kernel(const std::string& name) {
  std::vector<const char*> numbers = {"launches", "not_run"};
  for (const sim::CountName& c : sim::kCountNames) numbers.push_back(c.name);
  return record("kernel " + name, {{"record", "kernel"}, {"kernel", name}}, numbers);
}

void Report::launched(const std::string& name, const Counts& counts) {
  if (!on()) return;
  Record& r = kernel(name);
  ++r[0];
  for (size_t i = 0; i < std::size(sim::kCountNames); ++i) r[2 + i] += counts.*sim::kCountNames[i].member;
  write(r);
}

void Report::not_run(const std::string& name) {
  if (!on()) return;
  Record& r = kernel(name);
  ++r[1];
  write(r);
}

void Report::found(const Finding& f, const std::string& instruction) {
  if (!on()) return;
  // Those of whole launches have no line.
  Record& r = record(fmt::format("finding {} {} {} {}", f.kernel, f.kind, f.ptx.line, f.ptx.line > 0 ? "" : f.message),
                     {{"record", "finding"},
                      {"kind", f.kind},
                      {"message", f.message},
                      {"kernel", f.kernel},
                      {"source_file", f.source.file},
                      {"source_line", f.source.line},
                      {"ptx_file", f.ptx.file},
                      {"ptx_line", f.ptx.line},
                      {"instruction", instruction},
                      {"cta", f.cta},
                      {"thread", f.thread}},
                     {"count"});
  ++r[0];
  write(r);
}

void Report::decides(const std::string& kernel, const Where& at) {
  if (on())
    write(record(fmt::format("decides {} {} {}", kernel, at.file, at.line),
                 {{"record", "decides"}, {"kernel", kernel}, {"file", at.file}, {"line", at.line}}, {}));
}

void Report::failed(const char* call, Status status, const char* name, const std::string& why) {
  if (!on()) return;
  Record& r =
      record(fmt::format("call {} {}", call, status),
             {{"record", "call"}, {"call", call}, {"error", name}, {"status", status}, {"message", why}}, {"count"});
  ++r[0];
  write(r);
}

namespace {
/// A process that loads the driver and calls nothing of it is in the report too, unless every process loads it.
[[gnu::constructor]] void load() {
  if (!std::getenv("ROOFGEN_SIM_PRELOADED")) Report::instance();
}
}  // namespace

}  // namespace roofgen::shim
