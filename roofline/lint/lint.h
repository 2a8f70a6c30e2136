// Checks roofline tables against a list of rules. Each rule looks at one claim (a row of a user's table, or a result of
// roofgen) or at all rows together. docs/use/lint.md explains each rule and names published examples.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "roofgen/result.h"
#include "roofline/device.h"
#include "roofline/work.h"

namespace roofgen {

struct Warning {
  std::string rule;        ///< "R09"
  std::string text;        ///< one sentence with the numbers
  std::string field = {};  ///< the wrong field of the claim: "ai", "attainable", ...; empty: the claim as a whole
};

struct Rule {
  const char* id;
  const char* title;  ///< "working set fits in L2"
};
/// All rules, R01 to R20.
const std::vector<Rule>& rules();

/// A number stated in a unit other than its column's.
struct Restated {
  std::string field;
  std::string stated;       ///< "10 GFLOPS"
  std::string column_unit;  ///< "TFLOPS"
};

/// A statement about one operator on one device. Unknown fields stay empty.
struct Claim {
  std::string name;                                ///< the row's name, for messages
  Where where = {};                                ///< its place in the file
  const Device* device = nullptr;                  ///< in the catalogue; null when unknown
  std::string device_text = {};                    ///< as written: "A100"
  std::vector<const Device*> candidates = {};      ///< the products that `device_text` may mean, if several
  const std::vector<Device>* catalogue = nullptr;  ///< to recognise the numbers of other products; may be null
  std::string op = {};                             ///< operator in work/, when known
  bool own_cache = false;                          ///< of which each sequence reads a cache of its own
  std::map<std::string, int64_t> dims = {};        ///< as stated
  const OpWork* work = nullptr;                    ///< by roofgen's formulas, when the shape is known
  bool traffic_open = false;             ///< presets decided part of the bytes of `work`: heads, passes, fusion
  std::optional<bool> matrix_work = {};  ///< whether the operator runs on the matrix units; empty: unknown
  /// The limit of AI as `ai_limit_of` grows without bound, when the shape leaves a dimension open; otherwise `work`
  /// holds the limit.
  std::optional<double> ai_limit = {};
  std::string ai_limit_of = {};
  std::optional<double> flops, bytes, ai, ridge, peak_tflops, bandwidth_gb_s;
  double bytes_unit = 0;  ///< unit of the stated `bytes`: 1e9, 2^30; 0: not stated
  std::optional<double> attainable_tflops, achieved_tflops, time_us, launches, ctas, memory_bytes;
  std::vector<Restated> restated = {};
  std::string bound = {};  ///< "memory" or "compute"; empty: not claimed
  std::string dtype = {}, accumulate = {}, ceiling_dtype = {};
  std::string origin = {};              ///< "measured", "model", ...; empty: not stated
  std::string inputs = {}, cache = {};  ///< "zeros", "warm"
  std::string phase = {};               ///< "decode", "prefill"
  std::optional<bool> fused = {};
  std::optional<double> rank = {};  ///< 1 is best
  std::optional<double> batch = {}, kv_len = {};
  /// For the decode of a whole transformer: width and layers, or the bytes of the weights and of one sequence's cache.
  std::optional<double> hidden = {}, layers = {}, weight_bytes = {}, kv_bytes = {};
};

/// All violations of the per-claim rules, in the order of the rules.
std::vector<Warning> lint(const Claim& claim);

/// The same for each row, plus the rules that compare rows of one table.
std::vector<std::vector<Warning>> lint_table(const std::vector<Claim>& claims);

}  // namespace roofgen
