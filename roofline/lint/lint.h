// Rules a roofline table must not break. One table of rules; each looks at one claim (a row of a user's
// table, or a result of ours) or at all rows together. docs/lint.md says what each rule means and where it
// was met.
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
  std::string field = {};  ///< what of the claim is wrong: "ai", "attainable", ...; empty: the claim as a whole
};

struct Rule {
  const char* id;
  const char* title;  ///< "working set fits in L2"
};
/// All of them, R01 to R20.
const std::vector<Rule>& rules();

/// A number stated in a unit other than its column's.
struct Restated {
  std::string field;
  std::string stated;       ///< "10 GFLOPS"
  std::string column_unit;  ///< "TFLOPS"
};

/// What is said about one operator on one device. Only what is known is set.
struct Claim {
  std::string name;                                ///< the row's name, for messages
  Where where = {};                                ///< its place in the file
  const Device* device = nullptr;                  ///< the catalogue's, when one is named and known
  std::string device_text = {};                    ///< as written: "A100"
  std::vector<const Device*> candidates = {};      ///< all products `device_text` may mean, when more than one
  const std::vector<Device>* catalogue = nullptr;  ///< to recognise another product's numbers; may be null
  std::string op = {};                             ///< operator of work/, when known
  std::map<std::string, int64_t> dims = {};        ///< as stated
  const OpWork* work = nullptr;                    ///< by our formulas, when the shape is known
  bool traffic_open = false;             ///< `work` has presets for what changes its bytes: heads, passes, fusion
  std::optional<bool> matrix_work = {};  ///< whether it runs on the matrix units; none: unknown
  /// AI as `ai_limit_of` grows without bound, when the shape leaves a dimension open; else `work` has it.
  std::optional<double> ai_limit = {};
  std::string ai_limit_of = {};
  std::optional<double> flops, bytes, ai, ridge, peak_tflops, bandwidth_gb_s;
  double bytes_unit = 0;  ///< in which `bytes` was stated: 1e9, 2^30; 0: not stated
  std::optional<double> attainable_tflops, achieved_tflops, time_us, launches, ctas, memory_bytes;
  std::vector<Restated> restated = {};
  std::string bound = {};  ///< "memory" or "compute"; empty: neither is claimed
  std::string dtype = {}, accumulate = {}, ceiling_dtype = {};
  std::string origin = {};              ///< "measured", "model", ...; empty: not stated
  std::string inputs = {}, cache = {};  ///< "zeros", "warm"
  std::string phase = {};               ///< "decode", "prefill"
  std::optional<bool> fused = {};
  std::optional<double> rank = {};  ///< 1 is best
  std::optional<double> batch = {}, kv_len = {};
  /// Of a whole transformer, for decode: width and layers, or the bytes of its weights and of one sequence's
  /// cache.
  std::optional<double> hidden = {}, layers = {}, weight_bytes = {}, kv_bytes = {};
};

/// Every rule that `claim` breaks, in the order of the rules.
std::vector<Warning> lint(const Claim& claim);

/// The same for each row, with the rules that compare rows of one table.
std::vector<std::vector<Warning>> lint_table(const std::vector<Claim>& claims);

}  // namespace roofgen
