// A matrix product with its epilogue: sizes and layout, inputs, and the tolerance of a result. No CUDA here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "roofgen/result.h"

namespace roofgen::peers {

enum class Epilogue { kNone, kBias, kRelu, kGeluBias };
enum class Format { kBf16, kFp16, kFp8 };  ///< of A and B; the result is bf16 for fp8 (e4m3), else the same

const char* to_string(Epilogue epilogue);                  ///< "none", "bias", "relu", "gelu-bias"
const char* to_string(Format format);                      ///< "bf16", "fp16", "fp8"
Result<Epilogue> parse_epilogue(const std::string& text);  ///< Exit::kUsage
Result<Format> parse_format(const std::string& text);      ///< Exit::kUsage
size_t element_bytes(Format format);

/// D[m, n] = epilogue(scale * sum over k of A[m, k] * B), row-major. B is [n, k], like the weights of a linear layer
/// and like keys, or [k, n] (`b_is_kn`), like values. A call computes `batch` products, `*_stride` elements apart, with
/// rows
/// `*_pitch` elements apart; `outer` calls are `*_outer` elements apart.
struct GemmCase {
  std::string name;
  int64_t m = 0, n = 0, k = 0;
  Format format = Format::kBf16;
  Epilogue epilogue = Epilogue::kNone;
  bool b_is_kn = false;
  int64_t batch = 1, outer = 1;
  int64_t a_pitch = 0, b_pitch = 0, d_pitch = 0;     ///< elements
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;  ///< between products of a batch
  int64_t a_outer = 0, b_outer = 0, d_outer = 0;     ///< between calls; an operand has outer x this
  float scale = 1;

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(batch * outer);
  }
  int64_t a_elements() const { return outer * a_outer; }
  int64_t b_elements() const { return outer * b_outer; }
  int64_t d_elements() const { return outer * d_outer; }
};

/// One product, tensors contiguous. Exit::kUsage for sizes that are not positive or not multiples of 8 (16 for fp8).
Result<GemmCase> plain_case(int64_t m, int64_t n, int64_t k, Format format, Epilogue epilogue);
/// Sizes at which GEMMs are commonly reported.
std::vector<GemmCase> suite(Format format);
/// The two products of unfused attention on tensors (batch, row, head, d): S = scale Q K^T and O = P V, without
/// grouped keys.
Result<std::vector<GemmCase>> attention_cases(int64_t length, int64_t kv_length, int64_t d, int64_t batch,
                                              int64_t heads, Format format);

/// N(0,1) rounded to the format, the same on every machine: element `index` of stream `seed`.
uint16_t normal_bits(Format format, uint64_t seed, uint64_t index);
double value_of(Format format, uint16_t bits);
Format result_format(Format format);

/// The exact epilogue; GELU in its tanh form, like cuBLASLt's.
double apply(Epilogue epilogue, double sum, double bias);

/// The index of one element of the result.
struct Place {
  int64_t outer = 0, product = 0, m = 0, n = 0;
};
/// `count` elements spread over the result, its corners first.
std::vector<Place> places(const GemmCase& c, int count);

/// Worst |y - exact| / tolerance at the places. Tolerance: one unit in the last place of the result at the exact value
/// + c x RMS of the sums: c = 2^-16 sqrt(k) for accumulation in fp32; fp8 units of sm_90 keep about 13 bits while they
/// add 32 products at a time, so c = 2^-13 k / 32 there.
struct Operands {
  const std::vector<uint16_t>&a, &b, &bias, &d;  ///< bits; bias may be empty
};
double error_over_tolerance(const GemmCase& c, const Operands& operands, const std::vector<Place>& where);

}  // namespace roofgen::peers
