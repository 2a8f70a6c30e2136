// The production Compiler: digest, cache, worker pool, and interpretation of NVRTC's replies.
#include "runtime/compiler.h"

#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/xxhash.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "base/costs.h"
#include "base/paths.h"
#include "base/sha256.h"
#include "base/target.h"
#include "runtime/compile/cache.h"
#include "runtime/compile/headers.h"
#include "runtime/compile/log.h"
#include "runtime/compile/nvrtc.h"
#include "runtime/compile/pool.h"

namespace roofgen {
namespace {

// Part of every digest. Raise the number when the meaning of a cached result changes.
constexpr const char* kDigestFormat = "roofgen-binary-2";

/// Hashes a list of texts including their lengths, so that shifted boundaries change the digest.
class Digest {
 public:
  void add(std::string_view text) {
    uint64_t size = text.size();
    for (int i = 0; i < 8; ++i, size >>= 8) bytes_ += static_cast<char>(size & 0xff);
    bytes_ += text;
  }
  std::string hex() const { return sha256(bytes_); }

 private:
  std::string bytes_;
};

std::vector<std::string> nvrtc_flags(const CompileOptions& options, const std::string& arch) {
  std::vector<std::string> flags{"--gpu-architecture=" + arch, "-std=c++17", "-default-device"};
  if (options.line_info) flags.emplace_back("-lineinfo");
  // Separate options: NVRTC's ptxas rejects a comma-separated list as an unknown option.
  flags.insert(flags.end(), {"--ptxas-options=-v", "--ptxas-options=--warn-on-spills"});
  flags.insert(flags.end(), options.extra_flags.begin(), options.extra_flags.end());
  return flags;
}

std::string range_of(const std::vector<std::string>& archs) {
  return archs.empty() ? "nothing" : archs.front() + " to " + archs.back();
}

class NvrtcCompiler : public Compiler {
 public:
  NvrtcCompiler(const CompileOptions& options, const NvrtcInfo& info, const Nvrtc& library, const std::string& dir,
                std::function<void(const std::string&)> warn)
      : options_(options),
        info_(info),
        library_id_(fmt::format("NVRTC {}.{} {}", info.major, info.minor, library.build_id())),
        headers_(info.include_dir),
        cache_(dir, options.cache_max_bytes, std::move(warn)),
        pool_(pool_options(options, info)) {}

  std::string description() const override {
    return fmt::format("NVRTC {}.{} at {}", info_.major, info_.minor, info_.library);
  }

  std::string digest(const Program& program) const override {
    Digest digest;
    digest.add(kDigestFormat);
    digest.add(library_id_);
    const std::vector<std::string> flags = nvrtc_flags(options_, arch_of(program));
    digest.add(std::to_string(flags.size()));
    for (const std::string& flag : flags) digest.add(flag);
    digest.add(program.entry);
    digest.add(program.source);
    const std::string other = options_.other_inputs ? options_.other_inputs() : "";
    digest.add(other);
    for (const auto& [name, text] : headers_.closure(program.source + other)) {
      digest.add(name);
      digest.add(digest_of(text));
    }
    return digest.hex();
  }

  void compile_all(const std::vector<const Program*>& programs,
                   const std::function<bool(CompileOutcome)>& done) override {
    const std::lock_guard lock(mutex_);
    // Programs with equal digests are compiled once; each result uses the program's own line map.
    struct Job {
      std::string digest;
      std::vector<size_t> indices;
    };
    std::vector<Job> jobs;
    std::map<std::string, size_t> job_of;
    for (size_t i = 0; i < programs.size(); ++i) {
      auto [at, fresh] = job_of.emplace(digest(*programs[i]), jobs.size());
      if (fresh) jobs.push_back({at->first, {}});
      jobs[at->second].indices.push_back(i);
    }

    auto deliver = [&](const Job& job, const Result<CompileReply>& reply, bool cached, double seconds) {
      for (size_t index : job.indices) {
        CompileOutcome outcome{index, interpret(*programs[index], job.digest, reply), cached, seconds};
        if (reply) outcome.log = reply->log;
        if (!done(std::move(outcome))) return false;
        cached = true;  // further programs with the same digest need no compilation
        seconds = 0;
      }
      return true;
    };

    std::vector<Job> misses;
    std::vector<CompileRequest> requests;
    for (Job& job : jobs) {
      if (std::optional<CompileReply> hit = cache_.lookup(job.digest)) {
        if (!deliver(job, std::move(*hit), true, 0)) return;
        continue;
      }
      const Program& program = *programs[job.indices[0]];
      requests.push_back({program.source, flags_for(program), headers_.closure(program.source)});
      misses.push_back(std::move(job));
    }
    // Of the processes that share the cache, one compiles a source, and the others wait for its entry.
    std::vector<std::unique_ptr<WorkClaim>> claims(misses.size());
    std::vector<char> found(misses.size());
    const auto look = [&](size_t index) {
      WorkerPool::Elsewhere out;
      claims[index] = cache_.claim(misses[index].digest);
      out.wait = !claims[index];
      if (!out.wait) out.reply = cache_.lookup(misses[index].digest);
      found[index] = out.reply.has_value();
      return out;
    };
    const auto finished = [&](size_t index, Result<CompileReply> reply, double seconds) {
      if (!found[index]) spend(Cost::kCompiled, 1);
      const Job& job = misses[index];
      const Program& program = *programs[job.indices[0]];
      if (reply && !found[index] && worth_keeping(*reply)) {
        reply->log = stable_log(reply->log);
        if (!options_.other_inputs || digest(program) == job.digest)
          cache_.store(
              {job.digest, program.entry, arch_of(program), library_id_, nvrtc_flags(options_, arch_of(program))},
              requests[index].source, *reply);
      }
      claims[index].reset();
      return deliver(job, reply, found[index], seconds);
    };
    pool_.run(requests, finished, look);
  }

 private:
  const std::string& arch_of(const Program& program) const {
    return program.target.empty() ? options_.arch : program.target;
  }

  /// Precompiled headers change no result, so their flags are not part of the digest.
  std::vector<std::string> flags_for(const Program& program) const {
    std::vector<std::string> flags = nvrtc_flags(options_, arch_of(program));
    if (!options_.pch_dir.empty() && std::pair(info_.major, info_.minor) >= std::pair(12, 8) &&
        program.source.find(kPrecompiledEnd) != std::string::npos)
      flags.insert(flags.end(), {"-pch", "-pch-messages=false", "-pch-dir=" + options_.pch_dir});
    return flags;
  }

  /// The digest of a header's text. Programs share their headers, of which some have megabytes.
  const std::string& digest_of(const std::string& text) const {
    const auto [at, fresh] = text_digests_.try_emplace(llvm::xxHash64(text));
    if (fresh) {
      Digest digest;
      digest.add(text);
      at->second = digest.hex();
    }
    return at->second;
  }

  static PoolOptions pool_options(const CompileOptions& options, const NvrtcInfo& info) {
    PoolOptions pool;
    pool.executable = options.worker_executable.empty() ? worker_program() : options.worker_executable;
    pool.library = info.library;
    pool.jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    pool.timeout = options.timeout;
    pool.memory_limit_bytes = options.memory_limit_bytes;
    return pool;
  }

  /// The front end reports a failed allocation as an error of the source.
  static bool out_of_memory(const CompileReply& reply) {
    return reply.status == kNvrtcOutOfMemory ||
           (reply.status == kNvrtcCompilationError && reply.log.find("error: out of memory") != std::string::npos);
  }

  /// Errors of the source are permanent and cached like successes. Failures of the machine are not cached.
  static bool worth_keeping(const CompileReply& reply) {
    return reply.status == 0 || (reply.status == kNvrtcCompilationError && !out_of_memory(reply));
  }

  Result<Binary> interpret(const Program& program, const std::string& digest, const Result<CompileReply>& reply) const {
    if (!reply) return reply.error();
    if (reply->status == kWorkerFailed) return Error{Exit::kUnavailable, reply->log};
    if (out_of_memory(*reply))
      return Error{Exit::kFailed,
                   fmt::format("the compiler ran out of its limit of {} MiB", options_.memory_limit_bytes >> 20)};
    if (reply->status != 0) return compile_error(*reply, program);
    PtxasReport report = parse_ptxas_log(reply->log, program.entry);
    if (!report.found && !program.entry.empty())
      return Error{Exit::kFailed, fmt::format("the source has no kernel named {}", program.entry)};
    Binary binary;
    binary.digest = digest;
    binary.arch = arch_of(program);
    binary.entry = program.entry;
    binary.ptx = reply->ptx;
    binary.cubin = reply->cubin;
    binary.log = stable_log(reply->log);
    binary.registers = report.registers;
    binary.spill_bytes = report.spill_bytes;
    binary.stack_bytes = report.stack_bytes;
    binary.static_smem_bytes = report.static_smem_bytes;
    binary.advisories = std::move(report.advisories);
    return binary;
  }

  CompileOptions options_;
  NvrtcInfo info_;
  std::string library_id_;
  std::mutex mutex_;  ///< one compile_all() at a time
  HeaderSet headers_;
  mutable std::map<uint64_t, std::string> text_digests_;  ///< by a quick hash
  CompileCache cache_;
  WorkerPool pool_;
};

}  // namespace

Result<std::unique_ptr<Compiler>> make_nvrtc_compiler(const CompileOptions& options, std::string cache_dir,
                                                      std::function<void(const std::string&)> warn) {
  const Result<Nvrtc>& library = nvrtc(options.arch);
  if (!library) return library.error();
  const NvrtcInfo& info = nvrtc_info(options.arch);
  if (!info.targets(options.arch)) {
    const std::optional<Target> asked = parse_target(options.arch),
                                first = parse_target(info.archs.empty() ? "" : info.archs.front());
    const bool is_older = asked && first && asked->arch < first->arch;
    return Error{Exit::kUnavailable,
                 fmt::format("NVRTC {}.{} cannot compile for {} (it targets {}); {}", info.major, info.minor,
                             options.arch, range_of(info.archs),
                             is_older ? "analysis only"
                                      : fmt::format("`python3 -m pip install --target {} nvidia-cuda-nvrtc` gets the "
                                                    "newest one",
                                                    info.place_of_newer))};
  }
  return std::unique_ptr<Compiler>(
      std::make_unique<NvrtcCompiler>(options, info, *library, cache_dir, std::move(warn)));
}

}  // namespace roofgen
