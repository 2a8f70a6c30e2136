// One function per rule, and their shared helpers. Private to lint.
#pragma once

#include "roofline/lint/lint.h"
#include "roofline/roofs.h"

namespace roofgen::lint_rules {

/// Collects the warnings of one rule.
class Findings {
 public:
  Findings(const char* rule, std::vector<Warning>& out) : rule_(rule), out_(out) {}
  void add(const char* field, std::string text) { out_.push_back({rule_, std::move(text), field}); }

 private:
  const char* rule_;
  std::vector<Warning>& out_;
};

/// The same for rules over all rows: `rows[i]` belongs to claim i.
class TableFindings {
 public:
  TableFindings(const char* rule, std::vector<std::vector<Warning>>& rows) : rule_(rule), rows_(rows) {}
  void add(size_t row, const char* field, std::string text) { rows_[row].push_back({rule_, std::move(text), field}); }

 private:
  const char* rule_;
  std::vector<std::vector<Warning>>& rows_;
};

// ---- shared helpers (facts.cpp) ----

/// |a - b| <= tolerance * |b|.
bool near(double a, double b, double tolerance);
/// "1631", "204.8", "0.125": three to four digits, no exponent below a million.
std::string number_text(double value);

/// The arithmetic of a row: from its work, else from its ceiling, else from its dtype; "" when unknown.
std::string math_of(const Claim& claim);
/// The device's dense ceiling for the row's arithmetic: matrix units, or CUDA cores for work outside them.
std::optional<Roof> ceiling_of(const Claim& claim);
/// As stated, else the device's, in GB/s.
std::optional<double> bandwidth_of(const Claim& claim);
/// min(peak, AI x bandwidth) in TFLOP/s, with stated numbers where present, else the device's.
std::optional<double> roof_at(const Claim& claim);
/// As stated, or FLOPs / bytes.
std::optional<double> ai_of(const Claim& claim);
/// The largest rate of the CUDA cores, in FLOP/s.
double fastest_vector_roof(const Device& device);

/// A number of the row that claims to be a peak.
struct ClaimedPeak {
  const char* field;
  double tflops;
  std::string text;  ///< "1979 TFLOPS", "ridge 591 at 3350 GB/s"
};
/// The stated peak, ridge x bandwidth, and the attainable rate unless it equals AI x bandwidth.
std::vector<ClaimedPeak> claimed_peaks(const Claim& claim);

/// Bytes of all tensors of all kernels. A tensor that is written and read again, or updated in place, counts once.
double working_set(const OpWork& work);

/// Arithmetic intensity of a decode step of `batch` sequences. One read of the weights serves the whole batch; each
/// sequence reads its own cache. Both take two FLOPs per element.
double decode_ai(double batch, double weight_bytes, double kv_bytes, double element_bytes);
/// Bytes of the weights and of one sequence's cache, over `layers` layers or over one layer without `layers`. Values as
/// stated, else from `hidden`: 12 hidden^2 parameters per layer (attention and a feed-forward of width 4 hidden) and a
/// cache of 2 hidden elements per token and layer. Empty unless both are above 0.
struct DecodeBytes {
  double weights = 0, cache = 0;
  double element_bytes = 2;
};
std::optional<DecodeBytes> decode_bytes(const Claim& claim);

// ---- ceilings (ceilings.cpp) ----
void sparse_peak(const Claim&, Findings&);                             // R01
void accumulator_unstated(const Claim&, Findings&);                    // R02
void dtype_of_ceiling(const Claim&, Findings&);                        // R03
void matrix_ridge_for_vector_work(const Claim&, Findings&);            // R04
void wrong_product(const Claim&, Findings&);                           // R05
void precision_and_regime(const std::vector<Claim>&, TableFindings&);  // R11

// ---- work (work.cpp) ----
void other_traffic(const Claim&, Findings&);                            // R06
void unit_slip(const Claim&, Findings&);                                // R07
void above_limit(const Claim&, Findings&);                              // R08
void shared_cache(const Claim&, Findings&);                             // R14
void shared_cache_in_table(const std::vector<Claim>&, TableFindings&);  // R14
void does_not_fit(const Claim&, Findings&);                             // R18

// ---- regimes (regimes.cpp) ----
void fits_l2(const Claim&, Findings&);                         // R09
void few_ctas(const Claim&, Findings&);                        // R10
void above_roof(const Claim&, Findings&);                      // R12
void contradiction(const Claim&, Findings&);                   // R13
void ranked_by_ai(const std::vector<Claim>&, TableFindings&);  // R15
void origin_missing(const Claim&, Findings&);                  // R16
void overhead(const Claim&, Findings&);                        // R17
void special_function_roof(const Claim&, Findings&);           // R19
void flattering_measurement(const Claim&, Findings&);          // R20

}  // namespace roofgen::lint_rules
