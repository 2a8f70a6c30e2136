// How a number lies in memory and which arithmetic consumes it. One table: adding a format is adding a row.
#pragma once

#include <string>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

struct NumberFormat {
  const char* name;    ///< "bf16"
  double bytes;        ///< per element; block scales included
  const char* math;    ///< the arithmetic that multiplies it: the `<math>` of a device's peak_<math>_tflops cells
  int rank;            ///< wider formats rank higher: a product of two runs at the rate of the wider
  const char* result;  ///< what products of it are written as, unless one says otherwise: narrow inputs do not make
                       ///< narrow outputs
  const char* note;    ///< what a reader may not know
};

const std::vector<NumberFormat>& number_formats();
/// Exit::kUsage with the nearest name.
Result<const NumberFormat*> find_number_format(const std::string& name);

}  // namespace roofgen
