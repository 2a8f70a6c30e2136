// The kernels under test: verified kernels of every template, each with the default verification of `roofgen tune`.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "generator/jinja/jinja.h"
#include "lab/mutants/rules.h"
#include "runtime/compiler.h"
#include "runtime/sim/call_sites.h"
#include "tuner/search/plan.h"
#include "tuner/verify/verify.h"

namespace roofgen::mutants {

/// What all kernels share.
struct Tools {
  DataFiles files;
  Device device;
  std::unique_ptr<Compiler> compiler;
};

class Search;           ///< the plan of one command of `roofgen tune`
class LimitedExecutor;  ///< the simulator with a limit on instructions

/// A stage at one schedule.
class Kernel {
 public:
  /// `before`: the kernels of the earlier stages, which must outlive this one.
  Kernel(const Tools& tools, std::shared_ptr<const Search> search, size_t stage, std::string name,
         std::vector<Kernel*> before);
  ~Kernel();

  bool wanted = true;  ///< false: only feeds a kernel that is
  const std::string& name() const { return name_; }
  const Stage& stage() const { return candidate_.stage(); }
  const Schedule& schedule() const { return candidate_.schedule; }
  const Program& program() const { return program_; }
  const Code& code() const { return *code_; }
  /// The template line of an instruction.
  Where template_line(const PtxStmt& instruction) const;
  /// The template lines of the calls that were inlined to an instruction, the innermost first.
  std::vector<Where> callers(const PtxStmt& instruction) const;
  /// The text of a template line.
  std::string text_of(const Where& where) const;
  /// The kernel from other templates.
  Result<Program> render(const jinja::Loader& templates) const;

  Result<void> generate_program();
  /// Verifies the kernel itself, from text printed anew, and sets the limit of instructions from its own. The kernels
  /// before it are ready.
  Result<void> prepare(Binary binary);

  /// The default verification of another text of the kernel. Thread-safe.
  Result<Evaluation> verify(const std::string& ptx) const { return evaluate(slices_, ptx); }
  /// The same with every CTA of the real launch. Thread-safe.
  Result<Evaluation> verify_whole_launch(const std::string& ptx) const;

 private:
  struct Bench {
    std::unique_ptr<LimitedExecutor> executor;
    std::unique_ptr<Verifier> verifier;
  };
  Where template_line(uint32_t line) const;
  Result<Bench> make_bench(bool whole) const;
  Result<Evaluation> evaluate(const Bench& bench, const std::string& ptx) const;

  const Tools& tools_;
  std::shared_ptr<const Search> search_;
  std::string name_;
  std::vector<Kernel*> before_;
  Legal legal_;
  Candidate candidate_;
  Program program_;
  Occupancy occupancy_;
  std::unique_ptr<Code> code_;
  std::unique_ptr<sim::CallSites> call_sites_;
  Bench slices_;
  mutable std::mutex mutex_;
  mutable std::optional<Bench> whole_;
};

Result<Tools> make_tools(int threads);
/// Generates, compiles and verifies the kernels whose name or template contains `only`, with those that they need. The
/// rules of the group `group` are tested on them.
Result<std::vector<std::unique_ptr<Kernel>>> make_kernels(const Tools& tools, Group group, const std::string& only,
                                                          int threads);

}  // namespace roofgen::mutants
