#include "roofline/number_format.h"

#include <fmt/format.h>

#include "base/suggest.h"

namespace roofgen {

// Block scales: OCP Microscaling Formats 1.0 (mx*: one 8-bit exponent per 32 elements); NVIDIA's NVFP4 has one FP8
// scale per 16 elements. TF32 is an arithmetic, not a storage format: in memory it is fp32.
const std::vector<NumberFormat>& number_formats() {
  static const std::vector<NumberFormat> table = {
      {"fp4", 0.5, "fp4", 1, "bf16", "without its scales"},
      {"nvfp4", 0.5 + 1.0 / 16, "fp4", 1, "bf16", "one FP8 scale per 16 elements"},
      {"mxfp4", 0.5 + 1.0 / 32, "fp4", 1, "bf16", "one 8-bit scale per 32 elements"},
      {"int4", 0.5, "int4", 1, "int32", ""},
      {"fp8", 1, "fp8", 2, "bf16", "e4m3 or e5m2"},
      {"mxfp8", 1 + 1.0 / 32, "fp8", 2, "bf16", "one 8-bit scale per 32 elements"},
      {"int8", 1, "int8", 2, "int32", ""},
      {"bf16", 2, "bf16", 3, "bf16", ""},
      {"fp16", 2, "fp16", 3, "fp16", ""},
      {"tf32", 4, "tf32", 4, "fp32", "multiplied as TF32, stored as fp32"},
      {"fp32", 4, "fp32", 5, "fp32", ""},
      {"int32", 4, "int32", 5, "int32", ""},
      {"fp64", 8, "fp64", 6, "fp64", ""},
  };
  return table;
}

Result<const NumberFormat*> find_number_format(const std::string& name) {
  std::vector<std::string> known;
  for (const NumberFormat& f : number_formats()) {
    if (name == f.name) return &f;
    known.emplace_back(f.name);
  }
  return Error{Exit::kUsage, fmt::format("unknown dtype \"{}\"{}", name, did_you_mean(name, known))};
}

}  // namespace roofgen
