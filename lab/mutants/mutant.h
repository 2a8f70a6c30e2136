// A mutant and its fate.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/pool.h"
#include "lab/mutants/kernel.h"

namespace roofgen::mutants {

enum class Fate {
  kFinding,     ///< rejected by a finding of the simulator
  kComparison,  ///< rejected by a comparison with the reference
  kRefused,     ///< no valid program: it was not loaded
  kTolerated,   ///< accepted: less accurate, within the tolerance that docs/internals/verification.md derives
  kEquivalent,  ///< accepted, and proved to do the same as the kernel
  kSurvived,    ///< accepted
};
const char* to_string(Fate fate);

struct KernelFile;

/// One change of one instruction, or of one template line.
struct Mutant {
  const Kernel* kernel = nullptr;  ///< null: of `file`
  std::string rule;
  bool orders = false;     ///< drops a barrier, wait, fence, commit or store
  bool precision = false;  ///< only rounds an intermediate result
  Group group = Group::kData;
  const PtxStmt* statement = nullptr;  ///< of a PTX mutant
  std::string before, after;
  Where where;  ///< the template line
  int ptx_line = 0;

  Fate fate = Fate::kSurvived;
  std::string by = {};  ///< the finding's kind, the site of the comparison, or the argument for equivalence
  std::string message = {};
  Program program = {};  ///< of a mutant of a template
  const KernelFile* file = nullptr;

  const Code& code() const;
  const std::string& name() const;    ///< of the kernel
  const std::string& source() const;  ///< its template, or the folder of its file
};

/// The mutants of a kernel's instructions by a rule.
std::vector<Mutant> mutants_by(const Rule& rule, Group group, const Code& code,
                               const std::function<Where(const PtxStmt&)>& where_of);

/// Mutants of the kernels' PTX: all that drop an order, and `sample` others of each kernel, spread evenly over the
/// rules. Of the group kOrder: all. `rule`: only rules whose name contains it.
std::vector<Mutant> ptx_mutants(const std::vector<std::unique_ptr<Kernel>>& kernels, Group group, uint64_t sample,
                                uint64_t seed, const std::string& rule);
/// The same for the templates that the kernels are made of.
std::vector<Mutant> template_mutants(const Tools& tools, const std::vector<std::unique_ptr<Kernel>>& kernels,
                                     uint64_t count, uint64_t seed, const std::string& rule);
/// Moves `count` mutants that `accept` takes to `out`, in turn from each rule's in random order.
void sample(std::map<std::string, std::vector<Mutant>> by_rule, uint64_t count, std::mt19937_64& random,
            std::vector<Mutant>& out, const std::function<bool(Mutant&)>& accept);
/// Compiles mutants of templates; the pool decides their fates, and `done` is called after each.
void decide_all(const Tools& tools, std::vector<Mutant>& mutants, Pool& pool, const std::function<void()>& done);
/// Decides the fate of a mutant of PTX. Thread-safe.
void decide(Mutant& mutant);

/// An argument by hand for mutants of one line of a template.
struct Argument {
  const char *rule, *file, *line;  ///< regular expressions: the rule's name, the template's, a part of its line
  const char* reason;
  bool tolerated = false;   ///< the results differ within the tolerance
  const char* kernel = "";  ///< a part of the kernel's name
  const char* before = "";  ///< a part of the instruction
  bool never = false;       ///< only if the instruction's predicate is never true in the launch
  int tensor = -1;          ///< only copies from the tensor of this parameter; negative: all
  const char* caller = "";  ///< a part of a line that calls this one
};
/// Those that fit; `never` is up to the caller.
std::vector<const Argument*> arguments_for(const Kernel& kernel, const std::string& rule, const Where& where,
                                           const PtxStmt& before);

/// The argument that a surviving mutant does the same as its kernel in every thread of the launch; empty: none is
/// known.
std::string equivalence(const Mutant& mutant);
using Edits = std::map<const PtxStmt*, std::string>;
/// The kernel with traps where the mutant would differ in effect passes on every CTA.
bool never_traps(const Mutant& mutant, const Edits& edits);
/// In the launch, the predicate that the instruction computes, or the guard of the mutant's branch, is never true.
bool is_never_true(const Mutant& mutant);
/// No thread of the launch uses the bits of registers that may differ.
bool differs_in_unused_bits(const Mutant& mutant);
/// No run of the verification, and no CTA of the launch, executes the instruction.
bool is_never_executed(const Mutant& mutant, const PtxStmt& instruction);

/// The fate from an evaluation.
void judge(Mutant& mutant, const Result<Evaluation>& evaluation);

}  // namespace roofgen::mutants
