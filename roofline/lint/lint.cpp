#include "roofline/lint/lint.h"

#include <algorithm>

#include "roofline/lint/rules.h"

namespace roofgen {
namespace {

using lint_rules::Findings;
using lint_rules::TableFindings;

struct Check {
  Rule rule;
  void (*row)(const Claim&, Findings&);
  void (*table)(const std::vector<Claim>&, TableFindings&) = nullptr;
};

const std::vector<Check>& checks() {
  using namespace lint_rules;
  static const std::vector<Check> table = {
      {{"R01", "sparse peak"}, sparse_peak},
      {{"R02", "accumulator not stated"}, accumulator_unstated},
      {{"R03", "dtype of the intensity is not that of the ceiling"}, dtype_of_ceiling},
      {{"R04", "matrix-unit ridge for work outside the matrix units"}, matrix_ridge_for_vector_work},
      {{"R05", "another product's numbers, or an ambiguous name"}, wrong_product},
      {{"R06", "not the operator's traffic: a pass is missing, or bytes are too many"}, other_traffic},
      {{"R07", "unit slip"}, unit_slip},
      {{"R08", "intensity above the shape's limit"}, above_limit},
      {{"R09", "working set fits in L2"}, fits_l2},
      {{"R10", "fewer CTAs than SMs, or a partial wave"}, few_ctas},
      {{"R11", "lower precision changes the regime"}, nullptr, precision_and_regime},
      {{"R12", "above its roof"}, above_roof},
      {{"R13", "contradicts its own numbers"}, contradiction},
      {{"R14", "KV cache shared across the batch"}, shared_cache, shared_cache_in_table},
      {{"R15", "ranked by intensity instead of time"}, nullptr, ranked_by_ai},
      {{"R16", "a performance without an origin"}, origin_missing},
      {{"R17", "launch overhead"}, overhead},
      {{"R18", "does not fit in memory"}, does_not_fit},
      {{"R19", "the special-function roof binds"}, special_function_roof},
      {{"R20", "measured on zeros or with a warm cache"}, flattering_measurement},
  };
  return table;
}

bool has(const std::vector<Warning>& warnings, const std::string& rule, const std::string& field) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const Warning& w) { return w.rule == rule && w.field == field; });
}

/// Drops the consequences of an error found in the same field. For example, R12 (above its roof) is dropped when R01,
/// R02, R05 or R07 already explains the number.
void drop_consequences(std::vector<Warning>& warnings) {
  struct Consequence {
    const char* rule;
    std::vector<const char*> causes;
  };
  static const std::vector<Consequence> table = {{"R12", {"R01", "R02", "R05", "R07"}},
                                                 {"R08", {"R03", "R06", "R07", "R14"}},
                                                 {"R05", {"R01", "R02"}},
                                                 {"R03", {"R01", "R02"}}};
  for (const Consequence& c : table)
    std::erase_if(warnings, [&](const Warning& w) {
      return w.rule == c.rule && !w.field.empty() &&
             std::any_of(c.causes.begin(), c.causes.end(),
                         [&](const char* cause) { return has(warnings, cause, w.field); });
    });
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = [] {
    std::vector<Rule> out;
    for (const Check& c : checks()) out.push_back(c.rule);
    return out;
  }();
  return table;
}

std::vector<Warning> lint(const Claim& claim) {
  std::vector<Warning> out;
  for (const Check& c : checks())
    if (c.row) {
      Findings findings(c.rule.id, out);
      c.row(claim, findings);
    }
  drop_consequences(out);
  return out;
}

std::vector<std::vector<Warning>> lint_table(const std::vector<Claim>& claims) {
  std::vector<std::vector<Warning>> out;
  for (const Claim& claim : claims) out.push_back(lint(claim));
  for (const Check& c : checks())
    if (c.table) {
      TableFindings findings(c.rule.id, out);
      c.table(claims, findings);
    }
  for (std::vector<Warning>& row : out)
    std::stable_sort(row.begin(), row.end(), [](const Warning& a, const Warning& b) { return a.rule < b.rule; });
  return out;
}

}  // namespace roofgen
