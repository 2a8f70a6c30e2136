// What a table says about an operator without saying so in columns: a kernel's name, a shape in a note.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace roofgen {

/// What a kernel's name gives away.
struct InferredOp {
  std::string op;            ///< of work/; empty when none fits
  bool matrix_work = false;  ///< runs on the matrix units
};
/// "kv_b_proj_mm" is a GEMM, "fused_add_rmsnorm" an RMSNorm; none for what is not in the table.
std::optional<InferredOp> infer_op(const std::string& kernel_name);

/// The name of a number format in a text: "FP4 GEMM" -> "fp4"; empty when there is none or several.
std::string infer_dtype(const std::string& text);

/// A matrix product by its shapes. A dimension with a letter instead of a number is open: it grows with the
/// batch.
struct Shape {
  std::map<std::string, int64_t> dims;      ///< M, N, K, batch: those with numbers
  std::map<std::string, std::string> open;  ///< those with letters: {"M", "B"}
};
/// "[B, K] -> [B, N]", "[M, K] x [K, N]", "[batch, M, K] x [batch, K, N]", anywhere in a text; also with the
/// Unicode arrow and multiplication sign. None when there is no such thing, or its inner dimensions disagree.
std::optional<Shape> find_shape(const std::string& text);

}  // namespace roofgen
