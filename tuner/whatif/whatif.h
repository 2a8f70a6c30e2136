// roofgen whatif: the time of every partition of a chain into kernels. Each part is tuned once, as its own problem, for
// all partitions that contain it. The search of a gemm with an epilogue begins with the best schedules of the bare
// gemm.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "generator/generate.h"
#include "generator/ops/chain.h"
#include "roofline/plot/figure.h"
#include "tuner/tune.h"
#include "tuner/whatif/report.h"

namespace roofgen {

/// `problem`: of the whole chain, completed. `plan`: a partition to compare with the best; may be empty. options.evals:
/// candidates of the bare gemm's search; other parts have a share of it.
Result<WhatIfReport> whatif_chain(const TuneResources& context, const Chain& chain, const Problem& problem,
                                  const std::vector<Part>& plan, const TuneOptions& options);

/// qk > scale > mask > softmax > pv; the mask step only with a mask. `plan`: a name as in reports, or empty.
Result<WhatIfReport> whatif_attention(const TuneResources& context, const Problem& problem, const std::string& plan,
                                      const TuneOptions& options);

/// The variants of an op that has no steps of its own. `plan`: a name as in reports, or empty.
Result<WhatIfReport> whatif_variants(const TuneResources& context, const Op& op, const Problem& problem,
                                     const std::string& plan, const TuneOptions& options);

/// Candidates of the search of a bare gemm, over all its kernels, and of every other part.
inline constexpr uint64_t kMainLoopEvals = 30;
inline constexpr uint64_t kPartEvals = 10;

// ---- Views -----------------------------------------------------------------------------------------

inline constexpr const char* kWhatIfSchema = "roofgen.whatif.1";  ///< docs/whatif-schema.json

std::string whatif_text(const WhatIfReport& report, bool color);
std::string sweep_text(const Sweep& sweep, bool color);
Json whatif_json(const WhatIfReport& report);
/// The document of the last run, with the table of all runs under "sweep".
Json sweep_json(const Sweep& sweep);
/// The ladder of partitions and the roofline with unfused -> fused arrows, from the JSON, for `whatif --html` and
/// `report`. Exit::kUsage when `result` is no complete document of the schema.
Result<plot::Page> whatif_page(const Json& result, const std::string& file, const DataFiles& files);

}  // namespace roofgen
