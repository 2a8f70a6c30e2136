// Lines of device memory that the CTAs of a launch write.
#pragma once

#include "runtime/sass/stream.h"

namespace roofgen::timing {

/// Whether a step stores to device memory, or operates there.
bool writes_device(const sass::Code& code, const sass::WarpStream& warp, const sass::Step& step);

/// Different sectors that a CTA writes, over all: L2 joins the parts of a sector before DRAM has them.
double distinct_writes(const sass::Code& code, const sass::CtaStream& cta);

}  // namespace roofgen::timing
