#include "lab/mutants/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/paths.h"
#include "base/pool.h"
#include "generator/ops/attention_parts.h"
#include "lab/mutants/jobs.h"
#include "tuner/session/workbench.h"

namespace roofgen::mutants {

class LimitedExecutor final : public Executor {
 public:
  /// `whole`: every CTA of a launch runs, whatever was selected.
  LimitedExecutor(std::unique_ptr<Executor> simulator, bool whole) : simulator_(std::move(simulator)), whole_(whole) {}
  void limit(uint64_t warp_instructions) { limit_ = warp_instructions; }
  /// Warp-instructions of a CTA, the mean of the longest launch.
  uint64_t most() const { return most_; }

  ExecutorInfo info() const override { return simulator_->info(); }
  Origin origin() const override { return simulator_->origin(); }
  bool runs_parts() const override { return true; }
  Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill) override {
    return simulator_->allocate(bytes, std::move(label), std::move(fill));
  }
  Result<void> allow_writes(DevicePtr ptr) override { return simulator_->allow_writes(ptr); }
  void release(DevicePtr ptr) override { simulator_->release(ptr); }
  Result<void> write(DevicePtr to, std::span<const std::byte> from) override { return simulator_->write(to, from); }
  Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) override {
    return simulator_->read(from, to, written);
  }
  Result<void> poison(DevicePtr ptr) override { return simulator_->poison(ptr); }
  Result<ModuleId> load(const Binary& binary) override { return simulator_->load(binary); }
  void unload(ModuleId module) override { simulator_->unload(module); }
  Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& given) override {
    RunOptions options = given;
    options.max_warp_instructions = limit_;
    if (whole_) options.ctas.reset();
    auto result = simulator_->run(module, launch, options);
    if (result && result->counts && limit_ == 0)
      most_ = std::max(most_, result->counts->warp_instructions / std::max<uint64_t>(1, result->counts->ctas));
    return result;
  }

 private:
  std::unique_ptr<Executor> simulator_;
  bool whole_;
  uint64_t limit_ = 0, most_ = 0;
};

class Search {
 public:
  const Op& op() const { return *op_; }
  const Problem& problem() const { return problem_; }
  const SearchPlan& plan() const { return plan_; }
  const Device& device() const { return device_; }

  static Result<std::shared_ptr<const Search>> make(const Tools& tools, const Job& job) {
    CommandLine line("roofgen", "", "");
    const FlagSet set = line.add_command("tune", "");
    ProblemFlags flags;
    RunFlags run;
    flags.declare(set);
    run.declare(set);
    std::vector<std::string> words = words_of(std::string("roofgen tune ") + job.words);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ROOFGEN_TRY(const bool parsed, line.parse(static_cast<int>(argv.size()), argv.data()));
    if (!parsed) return Error{Exit::kFailed, "no command"};
    auto out = std::make_shared<Search>();
    out->device_ = tools.device;
    if (job.sms > 0) out->device_.cells.at("sms").value = job.sms;
    ROOFGEN_TRY(out->op_, find_op(flags.op));
    ROOFGEN_TRY(Problem partial, flags.problem());
    ROOFGEN_TRY(out->problem_, out->op_->complete(std::move(partial)));
    if (*job.part) {
      for (const Partition& p : attention_partitions(out->problem_))
        for (const Part part : p.parts)
          if (!out->part_ && attention_part_name(out->problem_, part) == job.part)
            out->part_ = std::make_unique<AttentionParts>(out->problem_, std::vector<Part>{part});
      if (!out->part_) return Error{Exit::kFailed, fmt::format("attention has no part {}", job.part)};
      out->problem_ = out->part_->problem_of(out->problem_);
      out->op_ = out->part_.get();
    }
    TuneOptions options;
    options.variants = run.variants;
    ROOFGEN_TRY(options.pins, flags.pins());
    ROOFGEN_TRY(const auto simulator, make_sim_executor());
    const TuneContext context{{tools.files, out->device_, *tools.compiler, *simulator}, *out->op_};
    ROOFGEN_TRY(out->plan_, plan_search({context, out->problem_, options}));
    return std::shared_ptr<const Search>(std::move(out));
  }

 private:
  static std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> out(1);
    bool quoted = false;
    for (const char ch : text) {
      if (ch == '\'')
        quoted = !quoted;
      else if (ch == ' ' && !quoted)
        out.emplace_back();
      else
        out.back() += ch;
    }
    std::erase(out, "");
    return out;
  }

  std::unique_ptr<AttentionParts> part_;
  const Op* op_ = nullptr;
  Problem problem_;
  Device device_;
  SearchPlan plan_;
};

Kernel::Kernel(const Tools& tools, std::shared_ptr<const Search> search, size_t stage, std::string name,
               std::vector<Kernel*> before)
    : tools_(tools), search_(std::move(search)), name_(std::move(name)), before_(std::move(before)) {
  const StagePlan& plan = search_->plan().stages[stage];
  candidate_ = {plan.variant, plan.index, plan.points.schedule(*plan.space.preset), {}};
}
Kernel::~Kernel() = default;

Result<void> Kernel::generate_program() {
  ROOFGEN_TRY(StagePoints points, StagePoints::of(*candidate_.variant, stage(), search_->plan().scope));
  if (const auto why = points.move_to(candidate_.schedule)) return Error{Exit::kFailed, name_ + ": " + *why};
  legal_ = points.point();
  ROOFGEN_TRY(program_, generate(tools_.files, stage(), legal_));
  return {};
}

Where Kernel::template_line(uint32_t line) const {
  const std::vector<Where>& lines = program_.line_map.lines;
  return line >= 1 && line <= lines.size() ? lines[line - 1] : Where{};
}

Where Kernel::template_line(const PtxStmt& instruction) const { return template_line(code_->source_line(instruction)); }

std::vector<Where> Kernel::callers(const PtxStmt& instruction) const {
  std::vector<Where> out;
  for (const Where& call : call_sites_->inlined(instruction.line).callers)
    out.push_back(template_line(static_cast<uint32_t>(call.line)));
  return out;
}

std::string Kernel::text_of(const Where& where) const {
  std::istringstream in(tools_.files.read("templates/" + where.file).value_or(""));
  std::string line;
  for (int i = 0; i < where.line; ++i) std::getline(in, line);
  return line;
}

Result<Program> Kernel::render(const jinja::Loader& templates) const {
  ROOFGEN_TRY(jinja::Rendered rendered, jinja::render(templates, stage().template_name, legal_.scope));
  return Program{legal_.schedule, std::move(rendered.text), stage().entry, std::move(rendered.line_map),
                 stage().target};
}

Result<Kernel::Bench> Kernel::make_bench(bool whole) const {
  Bench bench;
  ROOFGEN_TRY(auto simulator, make_sim_executor());
  bench.executor = std::make_unique<LimitedExecutor>(std::move(simulator), whole);
  bench.verifier =
      std::make_unique<Verifier>(search_->op(), search_->problem(), search_->plan().reduced_flops, search_->device(),
                                 *candidate_.variant, *bench.executor, std::make_shared<SharedInputs>(*bench.executor));
  for (const Kernel* kernel : before_) ROOFGEN_CHECK(bench.verifier->set_feeder(kernel->candidate_));
  return bench;
}

Result<Evaluation> Kernel::evaluate(const Bench& bench, const std::string& ptx) const {
  Candidate candidate = candidate_;
  candidate.binary.ptx = ptx;
  ROOFGEN_TRY(Evaluation out, bench.verifier->evaluate(candidate, occupancy_));
  // As a winner is checked. The shorter sums are no part of the launch.
  if (!out.verification.passed || &bench != &slices_) return out;
  std::vector<Candidate> chain;
  if (!search_->op().fed(search_->problem()))
    for (const Kernel* kernel : before_) chain.push_back(kernel->candidate_);
  chain.push_back(std::move(candidate));
  ROOFGEN_TRY(const auto grid, bench.verifier->verify_grid(chain));
  if (grid.failed()) {
    out.verification = grid.verification;
    if (out.verification.findings.empty()) out.verification.failure = "whole grid problem: " + out.verification.failure;
  }
  return out;
}

Result<Evaluation> Kernel::verify_whole_launch(const std::string& ptx) const {
  {
    const std::lock_guard lock(mutex_);
    if (!whole_) {
      ROOFGEN_TRY(whole_, make_bench(true));
      whole_->executor->limit(100 * slices_.executor->most());
    }
  }
  return evaluate(*whole_, ptx);
}

Result<void> Kernel::prepare(Binary binary) {
  candidate_.binary = std::move(binary);
  ROOFGEN_TRY(const Launch launch, make_launch(stage(), legal_));
  const Binary& b = candidate_.binary;
  occupancy_ = occupancy(search_->device(), b, launch);
  std::vector<size_t> sizes;
  for (size_t i = 0; i < launch.args.size(); ++i)
    for (const char* name : {"cu_seqlens", "kv_lengths", "block_table", "offsets"})
      if (launch.args[i].name == name) sizes.push_back(i);
  code_ = std::make_unique<Code>(b.ptx, sizes);
  call_sites_ = std::make_unique<sim::CallSites>(b.ptx, [](const std::string&) { return false; });
  ROOFGEN_TRY(slices_, make_bench(false));
  ROOFGEN_TRY(const Evaluation own, verify(code_->printed()));
  if (!own.verification.passed)
    return Error{Exit::kFailed, fmt::format("{} is no correct kernel: {}", name_, own.verification.failure)};
  slices_.executor->limit(5 * slices_.executor->most() + 20'000);
  return {};
}

namespace {

std::vector<Job> jobs_of(Group group) {
  std::vector<Job> out(std::begin(kJobs), std::end(kJobs));
  if (group == Group::kOrder) out.insert(out.end(), std::begin(kOrderJobs), std::end(kOrderJobs));
  return out;
}

}  // namespace

Result<Tools> make_tools(int threads) {
  Tools tools;
  ROOFGEN_TRY(tools.device, load_device(tools.files, kDefaultDevice));
  CompileOptions options;
  options.arch = tools.device.arch;
  options.jobs = threads;
  ROOFGEN_TRY(tools.compiler, make_nvrtc_compiler(options, cache_dir(), [](const std::string& line) {
                fmt::print(stderr, "mutants: warning: {}\n", line);
              }));
  return tools;
}

Result<std::vector<std::unique_ptr<Kernel>>> make_kernels(const Tools& tools, Group group, const std::string& only,
                                                          int threads) {
  std::vector<std::unique_ptr<Kernel>> out;
  std::vector<std::vector<Kernel*>> chains;
  for (const Job& job : jobs_of(group)) {
    auto search = Search::make(tools, job);
    if (!search) return Error{search.error().exit, fmt::format("{}: {}", job.words, to_string(search.error()))};
    const std::vector<StagePlan>& stages = (*search)->plan().stages;
    const auto name_of = [&](const StagePlan& s) {
      return fmt::format("{}{}{}", job.name,
                         *job.part           ? ": "
                         : stages.size() > 1 ? ", "
                                             : "",
                         *job.part           ? job.part
                         : stages.size() > 1 ? s.stage().name
                                             : "");
    };
    const auto wanted = [&](const StagePlan& s) {
      return name_of(s).find(only) != std::string::npos || s.stage().template_name.find(only) != std::string::npos;
    };
    if (std::none_of(stages.begin(), stages.end(), wanted)) continue;
    chains.emplace_back();
    for (size_t i = 0; i < stages.size(); ++i) {
      out.push_back(std::make_unique<Kernel>(tools, *search, i, name_of(stages[i]), chains.back()));
      out.back()->wanted = wanted(stages[i]);
      chains.back().push_back(out.back().get());
    }
  }
  if (out.empty()) return Error{Exit::kUsage, fmt::format("no kernel or template has \"{}\" in its name", only)};

  std::vector<const Program*> programs;
  for (const auto& kernel : out) {
    ROOFGEN_CHECK(kernel->generate_program());
    programs.push_back(&kernel->program());
  }
  std::vector<std::optional<Result<Binary>>> binaries(out.size());
  tools.compiler->compile_all(programs, [&](CompileOutcome outcome) {
    binaries[outcome.index] = std::move(outcome.binary);
    return true;
  });
  std::map<const Kernel*, Binary> binary_of;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!binaries[i]) return Error{Exit::kFailed, out[i]->name() + ": the compiler gave no answer"};
    ROOFGEN_TRY(binary_of[out[i].get()], std::move(*binaries[i]));
  }
  std::mutex mutex;
  std::optional<Error> failed;
  Pool pool(threads);
  for (const auto& chain : chains)
    pool.push([&] {
      for (Kernel* kernel : chain)
        if (auto ready = kernel->prepare(std::move(binary_of.at(kernel))); !ready) {
          const std::lock_guard lock(mutex);
          failed = Error{Exit::kFailed, fmt::format("{}: {}", kernel->name(), to_string(ready.error()))};
          return;
        }
    });
  pool.drain([] {});
  if (failed) return *failed;
  return out;
}

}  // namespace roofgen::mutants
