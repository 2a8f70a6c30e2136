// The dimensions of one attention problem as plain numbers, and what follows from them. Private to
// this folder.
#pragma once

#include <algorithm>
#include <cstdint>

#include "roofgen/pipeline.h"

namespace roofgen::attention {

struct Shape {
  int64_t q_len = 0, kv_len = 0, d = 0, batch = 0, heads = 0, kv_heads = 0;
  bool causal = false, lse = false;
  double scale = 0;
  DType dtype = DType::kBf16;

  explicit Shape(const Problem& p)
      : q_len(p.dims.at("L")),
        kv_len(p.dims.at("kv_len")),
        d(p.dims.at("d")),
        batch(p.dims.at("batch")),
        heads(p.dims.at("heads")),
        kv_heads(p.dims.at("kv_heads")),
        causal(p.flags.at("causal")),
        lse(p.flags.at("lse")),
        scale(p.reals.at("scale")),
        dtype(p.dtype) {}

  int64_t group() const { return heads / kv_heads; }
  /// Elements per row of S and P: rows stay 16-byte aligned.
  int64_t kv_pitch() const { return (kv_len + 7) / 8 * 8; }
  /// Row r sees keys 0 .. allowed(r) - 1. A causal mask is aligned to the last row and the last key.
  int64_t allowed(int64_t row) const {
    return causal ? std::clamp<int64_t>(row + kv_len - q_len + 1, 0, kv_len) : kv_len;
  }
  /// Sum of allowed(r) over all rows.
  double allowed_pairs() const {
    if (!causal) return static_cast<double>(q_len) * static_cast<double>(kv_len);
    const double rows = static_cast<double>(std::min(q_len, kv_len));
    return rows * static_cast<double>(std::max<int64_t>(kv_len - q_len, 0)) + rows * (rows + 1) / 2;
  }
};

}  // namespace roofgen::attention
