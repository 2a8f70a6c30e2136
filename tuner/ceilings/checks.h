// Checks that the output of a micro-kernel results from all of its work. Private to this folder.
#pragma once

#include "tuner/ceilings/kernels.h"

namespace roofgen::ceilings {

Result<std::string> check_read(const MicroKernel& kernel, const OutputReader& read);  ///< exact: the sum of all words
Result<std::string> check_write(const MicroKernel& kernel,
                                const OutputReader& read);  ///< exact, in samples of large arrays
Result<std::string> check_copy(const MicroKernel& kernel, const OutputReader& read);
Result<std::string> check_triad(const MicroKernel& kernel, const OutputReader& read);
Result<std::string> check_smem(const MicroKernel& kernel, const OutputReader& read);  ///< exact
Result<std::string> check_fma(const MicroKernel& kernel, const OutputReader& read);   ///< exact
Result<std::string> check_mufu(const MicroKernel& kernel, const OutputReader& read);  ///< within a thousandth
Result<std::string> check_mma(const MicroKernel& kernel,
                              const OutputReader& read);  ///< INT8 exact, others within a hundredth

}  // namespace roofgen::ceilings
