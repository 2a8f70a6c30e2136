#include "lab/mutants/mutant.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "lab/mutants/kernel_file.h"

namespace roofgen::mutants {
const char* to_string(Fate fate) {
  switch (fate) {
    case Fate::kFinding: return "finding";
    case Fate::kComparison: return "comparison";
    case Fate::kRefused: return "refused";
    case Fate::kTolerated: return "tolerated";
    case Fate::kEquivalent: return "equivalent";
    case Fate::kSurvived: return "survived";
  }
  return "?";
}

namespace {

/// Not std::shuffle, whose order depends on the library.
template <class T>
void shuffle(std::vector<T>& all, std::mt19937_64& random) {
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
}

}  // namespace

void sample(std::map<std::string, std::vector<Mutant>> by_rule, uint64_t count, std::mt19937_64& random,
            std::vector<Mutant>& out, const std::function<bool(Mutant&)>& accept) {
  std::vector<std::vector<Mutant>> rules;
  for (auto& [rule, mutants] : by_rule) rules.push_back(std::move(mutants));
  shuffle(rules, random);
  for (std::vector<Mutant>& mutants : rules) shuffle(mutants, random);
  for (bool more = true; more && count > 0;) {
    more = false;
    for (std::vector<Mutant>& mutants : rules) {
      while (!mutants.empty() && !accept(mutants.back())) mutants.pop_back();
      if (mutants.empty() || count == 0) continue;
      out.push_back(std::move(mutants.back()));
      mutants.pop_back();
      --count;
      more = true;
    }
  }
}

const Code& Mutant::code() const { return kernel ? kernel->code() : *file->code; }
const std::string& Mutant::name() const { return kernel ? kernel->name() : file->name; }
const std::string& Mutant::source() const { return kernel ? kernel->stage().template_name : file->folder; }

std::vector<Mutant> mutants_by(const Rule& rule, Group group, const Code& code,
                               const std::function<Where(const PtxStmt&)>& where_of) {
  std::vector<Mutant> out;
  for (const PtxStmt& s : code.body())
    for (const std::string& text : replacements(rule, code, s))
      out.push_back(
          {nullptr, rule.name, rule.orders, rule.precision, group, &s, to_text(s), text, where_of(s), s.line});
  return out;
}

std::vector<Mutant> ptx_mutants(const std::vector<std::unique_ptr<Kernel>>& kernels, Group group, uint64_t count,
                                uint64_t seed, const std::string& only) {
  std::vector<Mutant> out;
  std::mt19937_64 random(seed);
  for (const auto& kernel : kernels) {
    if (!kernel->wanted) continue;
    std::map<std::string, std::vector<Mutant>> by_rule;
    for (const Rule* rule : rules(group)) {
      if (std::string(rule->name).find(only) == std::string::npos) continue;
      const std::regex line(rule->line);
      for (Mutant& m :
           mutants_by(*rule, group, kernel->code(), [&](const PtxStmt& s) { return kernel->template_line(s); })) {
        if (*rule->line && !std::regex_search(kernel->text_of(m.where), line)) continue;
        m.kernel = kernel.get();
        (rule->orders || group == Group::kOrder ? out : by_rule[rule->name]).push_back(std::move(m));
      }
    }
    sample(std::move(by_rule), count, random, out, [](Mutant&) { return true; });
  }
  return out;
}

void judge(Mutant& mutant, const Result<Evaluation>& evaluation) {
  if (!evaluation) {
    mutant.fate = Fate::kRefused;
    mutant.message = evaluation.error().message;
    return;
  }
  const Verification& v = evaluation->verification;
  if (v.passed) return;
  mutant.message = v.failure;
  mutant.fate = v.findings.empty() ? Fate::kComparison : Fate::kFinding;
  mutant.by = v.findings.empty() ? v.failure.substr(0, v.failure.find(" problem: ")) : v.findings[0].kind;
}

void decide(Mutant& mutant) {
  judge(mutant, mutant.kernel->verify(mutant.kernel->code().with({{mutant.statement, mutant.after}})));
  if (mutant.fate != Fate::kSurvived) return;
  mutant.by = equivalence(mutant);
  const auto fitting = arguments_for(*mutant.kernel, mutant.rule, mutant.where, *mutant.statement);
  const auto argument = std::find_if(fitting.begin(), fitting.end(),
                                     [&](const Argument* a) { return !a->never || is_never_true(mutant); });
  if (!mutant.by.empty()) {
    mutant.fate = Fate::kEquivalent;
  } else if (argument != fitting.end()) {
    mutant.by = fmt::format("{}: {}", mutant.where.file, (*argument)->reason);
    mutant.fate = (*argument)->tolerated ? Fate::kTolerated : Fate::kEquivalent;
  }
  if (mutant.fate != Fate::kSurvived) return;
  if (mutant.precision)
    mutant.fate = Fate::kTolerated;
  else if (mutant.rule != "wait without repetition" && is_never_executed(mutant, *mutant.statement))
    mutant.by = "no run executes it";
}

}  // namespace roofgen::mutants
