// Storage size of each number format and the arithmetic that consumes it. One table: a new format is a new row.
#pragma once

#include <string>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

struct NumberFormat {
  const char* name;    ///< "bf16"
  double bytes;        ///< per element, including block scales
  const char* math;    ///< the arithmetic that multiplies it: `<math>` in a device's peak_<math>_tflops cells
  int rank;            ///< wider formats rank higher; a product of two formats runs at the rate of the wider one
  const char* result;  ///< default format of products' results; narrow inputs do not imply narrow outputs
  const char* note;    ///< remark for users
};

const std::vector<NumberFormat>& number_formats();
/// Exit::kUsage with the nearest name.
Result<const NumberFormat*> find_number_format(const std::string& name);

}  // namespace roofgen
