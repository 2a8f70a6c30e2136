// roofgen whatif: every way to cut a chain into kernels, timed. A part is tuned once, as a problem of its own, and all
// partitions that have it share the result; gemms with an epilogue start from what the search of the bare gemm found.
#pragma once

#include <string>
#include <vector>

#include "generator/ops/chain.h"
#include "tuner/tune.h"
#include "tuner/whatif/report.h"

namespace roofgen {

/// As TuneContext, without the op: that is the chain's.
struct WhatIfContext {
  const DataFiles& files;
  const Device& device;
  Compiler& compiler;
  Executor& executor;
  GpuExecutor* gpu = nullptr;
  Store* store = nullptr;
};

/// `problem`: of the whole chain, completed. `plan`: a partition that is to be there and is compared with the best; may
/// be empty. options.evals: candidates of the bare gemm's search; other parts have a share of it.
Result<WhatIfReport> whatif_chain(const WhatIfContext& context, const Chain& chain, const Problem& problem,
                                  const std::vector<Part>& plan, const TuneOptions& options);

/// qk > scale > mask > softmax > pv, without a mask step where nothing is masked. `plan`: as reports name it, or empty.
Result<WhatIfReport> whatif_attention(const WhatIfContext& context, const Problem& problem, const std::string& plan,
                                      const TuneOptions& options);

/// Candidates of the search that all gemms of a chain share, and of each part after it.
inline constexpr uint64_t kMainLoopEvals = 20;
inline constexpr uint64_t kPartEvals = 5;

}  // namespace roofgen
