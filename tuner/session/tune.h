// A tune as a caller sees it: a request in, the result with what other judges of the hardware say of it out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "profile/profile.h"
#include "tuner/evidence/counters.h"
#include "tuner/evidence/sanitizer.h"
#include "tuner/session/family.h"

namespace roofgen {

struct TuneRequest {
  ProblemFlags problem;
  RunFlags run;
  FamilyFlags family;
  bool explain = false;       ///< the result needs every rejection
  bool explain_time = false;  ///< and where the time goes, by the model of one SM
  bool counters = false, sanitize = false;
  bool kernels = false;                ///< the result needs the kernels, not the report alone
  std::string html;                    ///< a page goes here; empty: none
  double min_score = 0, sm_clock = 0;  ///< MHz of explain_time; 0: the device's
  /// All flags, that of `kernels` excepted.
  void declare(FlagSet app);
};

struct TuneAnswer {
  Workbench bench;
  TuneResult result;                   ///< of a single problem
  std::optional<FamilyResult> family;  ///< of several
  std::optional<CounterReport> counters;
  std::optional<SanitizerReport> sanitizer;

  std::vector<TunedKernel> kernels() const;  ///< of the best variant, or of each row of the family's table
};

Result<TuneAnswer> tune(const Session& session, const TuneRequest& request);
/// docs/tune-schema.json; of a family its dispatch table.
Json answer_json(const TuneAnswer& answer);
std::string answer_text(const TuneAnswer& answer, bool details, bool color);
/// Writes the page and the recorded points that were asked for. Returns where the time of the best variant's kernels
/// goes, if that was asked for.
Result<std::vector<profile::Report>> write_tuned(const Session& session, const TuneRequest& request,
                                                 const TuneAnswer& answer);
/// The error of a search that verified nothing, lost its GPU or missed min_score, or that was interrupted (then without
/// a message).
Result<void> conclusion(const TuneRequest& request, const TuneAnswer& answer);

}  // namespace roofgen
