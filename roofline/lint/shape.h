// Infers operators, dtypes and shapes from a kernel's name or a note when the table has no column for them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "roofline/device.h"
#include "roofline/work.h"

namespace roofgen {

/// The operator suggested by a kernel's name.
struct InferredOp {
  std::string op;            ///< operator in work/; empty when none fits
  bool matrix_work = false;  ///< runs on the matrix units
};
/// "kv_b_proj_mm" is a GEMM, "fused_add_rmsnorm" an RMSNorm; empty for unknown names.
std::optional<InferredOp> infer_op(const std::string& kernel_name, const std::map<std::string, WorkFormula>& formulas);

/// The only number format named in a text: "FP4 GEMM" -> "fp4"; empty when there is none or several.
std::string infer_dtype(const std::string& text);

/// The shape of a matrix product. A dimension given as a letter is open: it grows with the batch.
struct Shape {
  std::map<std::string, int64_t> dims;      ///< numeric dimensions: M, N, K, batch
  std::map<std::string, std::string> open;  ///< lettered dimensions: {"M", "B"}
};
/// Finds "[B, K] -> [B, N]", "[M, K] x [K, N]" or "[batch, M, K] x [batch, K, N]" in a text; also with the Unicode
/// arrow and multiplication sign. Empty when there is none, or when the inner dimensions disagree.
std::optional<Shape> find_shape(const std::string& text);

/// The products that a name may mean: an exact match, else every product whose name has all words of `name` ("A100"
/// matches four products). Words consist of letters and digits. "NVIDIA", "GeForce", "Tensor", "Core" and "GPU" are
/// ignored; "80GB" equals "80", "SXM5" equals "SXM". Empty when nothing matches.
std::vector<const Device*> devices_named(const std::vector<Device>& catalogue, const std::string& name);

}  // namespace roofgen
