// The dimensions of an attention problem and the quantities that follow from them. Private to this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "generator/ops/attention_cache.h"
#include "generator/ops/attention_modifiers.h"
#include "generator/ops/attention_prologue.h"
#include "generator/ops/float16.h"
#include "roofgen/pipeline.h"

namespace roofgen::attention {

/// A dimension that verification adds to a problem: Shape::spread.
inline constexpr const char* kSpread = "spread";
/// Likewise: S and P are inputs of the kernels that read them.
inline constexpr const char* kFed = "fed";
/// Rows of the gap after each head, at least those of the largest tile of keys. A page of a cache ends with its rows.
inline constexpr int64_t kSpreadRows = 256, kSpreadRowsOfPage = 2;

/// Gaps begin and end at multiples of 16 bytes, which kernels copy at a time.
inline constexpr size_t kGapBytes = 16;

/// Places in memory of the rows of Q, K, V or O, in elements. Blocks are sequences, or pages; with lengths there is
/// one.
struct Layout {
  int64_t block, head, row;  ///< strides; block is 0 with lengths
  int64_t rows, heads;       ///< of a block
  bool head_major;           ///< whether rows of a head are neighbours, rather than heads of a row
  int64_t elements;
};

/// Relative error of a sum of products in fp32: one rounding (truncation on tensor cores) of 2^-24 per step of 16.
inline double fp32_sum_error(double terms) { return (terms / 16 + 2) * 0x1p-24; }

/// What the numbers of attention follow from, wherever they lie in memory. Inputs and references read no more, so that
/// equal ones have equal values.
struct Numbers {
  int64_t q_len = 0, kv_len = 0, d = 0, batch = 0, heads = 0, kv_heads = 0;
  bool causal = false;
  double scale = 0;
  DType dtype = DType::kBf16;                  ///< of O, and of Q, K and V unless they are e4m3
  bool fp8_products = false;                   ///< Q is e4m3 too, and so is P
  std::shared_ptr<const Modifiers> modifiers;  ///< nullptr without modifiers
  std::shared_ptr<const KvCache> cache;        ///< nullptr without lengths of caches and pages
  std::shared_ptr<const Prologue> prologue;    ///< nullptr without rotary positions, appended keys and fp8

  explicit Numbers(const Problem& p)
      : q_len(p.dims.at("L")),
        kv_len(p.dims.at("kv_len")),
        d(p.dims.at("d")),
        batch(p.dims.at("batch")),
        heads(p.dims.at("heads")),
        kv_heads(p.dims.at("kv_heads")),
        causal(p.flags.at("causal")),
        scale(p.reals.at("scale")),
        dtype(p.dtype == DType::kFp8 ? DType::kBf16 : p.dtype),
        fp8_products(p.dtype == DType::kFp8),
        modifiers(Modifiers::of(p)),
        cache(KvCache::of(p)),
        prologue(Prologue::of(p)) {}
  bool operator==(const Numbers&) const = default;

  int64_t group() const { return heads / kv_heads; }
  /// Whether the query heads that share K and V may be rows of one tile in every kernel.
  bool packs() const { return group() > 1 && q_len * group() <= 64; }
  /// Elements per row of S and P: rows stay 16-byte aligned.
  int64_t kv_pitch() const { return (kv_len + 7) / 8 * 8; }

  bool varlen() const { return modifiers && !modifiers->lengths().empty(); }
  bool has_mask() const { return modifiers && modifiers->has_mask(); }
  bool has_score() const { return modifiers && modifiers->has_score(); }
  int64_t rows(int64_t b) const { return varlen() ? modifiers->lengths()[static_cast<size_t>(b)] : q_len; }
  int64_t keys(int64_t b) const { return varlen() ? rows(b) : cache ? cache->keys(b) : kv_len; }
  bool ragged() const { return cache && cache->ragged(); }
  bool paged() const { return cache && cache->page() > 0; }
  DType q_dtype() const { return fp8_products ? DType::kFp8 : dtype; }
  DType kv_dtype() const { return fp8() ? DType::kFp8 : dtype; }  ///< of K and V
  bool fp8() const { return prologue && prologue->kv_fp8(); }
  /// Whether elements of Q (of a query head), or else of K and V, are numbers times a scale.
  bool scaled(bool q) const { return q ? fp8_products : fp8(); }
  bool append() const { return prologue && prologue->append(); }
  bool rotary() const { return prologue && prologue->rotary_dim() > 0; }
  bool rotates_keys() const { return prologue && prologue->rotates_keys(); }
  /// The first key of a sequence that is in K_new and V_new; its number of keys if none is.
  int64_t first_new(int64_t b) const { return keys(b) - (append() ? q_len : 0); }
  /// Whether products may have errors far above those of fp32: of operands that kernels round first and near ties
  /// either way (rotated ones, new keys and values of a cache in fp8), or of sums in e4m3.
  bool has_product_errors() const { return rotary() || (append() && fp8()) || fp8_products; }
  /// The format to which kernels round P before its product with V, and the p of a row's maximum in it: e4m3 has few
  /// small numbers.
  Format16 p_format() const { return fp8_products ? Format16{4, -6} : format_of(dtype); }
  double largest_p() const { return fp8_products ? 256 : 1; }
  /// Relative error of a sum of products. In e4m3, tensor cores of sm_90 cut it off at 13 fraction bits after each step
  /// of 32 products.
  double sum_error(double terms) const { return fp8_products ? (terms / 32 + 2) * 0x1p-13 : fp32_sum_error(terms); }
  /// Variance of what tensor cores of sm_90 cut off in a sum of products in e4m3, as a share of the sum of their
  /// squares (docs/internals/verification.md, "Sums of products").
  double cut_off(double terms) const { return fp8_products ? 5.7 * 0x1p-26 * (terms / 32 + 1) : 0; }
  /// The position of a query among the keys: the last row is at the last key.
  int64_t position(int64_t b, int64_t row) const { return row + keys(b) - rows(b); }
  /// Keys from allowed(b, r) on are hidden from row r; with --causal that is after the row's own position. A mask may
  /// hide earlier keys as well.
  int64_t allowed(int64_t b, int64_t row) const {
    return causal ? std::clamp<int64_t>(position(b, row) + 1, 0, keys(b)) : keys(b);
  }
  /// Clears the keys of [first, first + visible.size()) that are hidden from a row.
  void mask(InputPattern pattern, int64_t b, int64_t head, int64_t row, int64_t first, std::span<char> visible) const {
    const int64_t end = std::clamp<int64_t>(allowed(b, row) - first, 0, static_cast<int64_t>(visible.size()));
    std::fill(visible.begin() + end, visible.end(), char{0});
    if (has_mask() && end > 0)
      modifiers->mask(pattern, b, head, position(b, row), first, visible.first(static_cast<size_t>(end)));
  }
  /// Visible pairs of rows [begin, end).
  double pairs(int64_t b, int64_t head, int64_t begin, int64_t end) const {
    end = std::min(end, rows(b));
    if (begin >= end) return 0;
    if (has_mask()) return modifiers->pairs(b, head, position(b, begin), position(b, end), keys(b), causal);
    if (!causal) return static_cast<double>(end - begin) * static_cast<double>(keys(b));
    // Rows at positions 0, 1, ... see 1, 2, ... keys.
    const auto triangle = [](int64_t n) {
      return n > 0 ? static_cast<double>(n) * static_cast<double>(n + 1) / 2 : 0.0;
    };
    return triangle(position(b, end)) - triangle(position(b, begin));
  }
  /// Visible pairs of all batches and heads.
  double all_pairs() const {
    const bool by_batch = varlen() || ragged() || (has_mask() && modifiers->depends_on("b")),
               by_head = has_mask() && modifiers->depends_on("h");
    double sum = 0;
    for (int64_t b = 0; b < (by_batch ? batch : 1); ++b)
      for (int64_t h = 0; h < (by_head ? heads : 1); ++h) sum += pairs(b, h, 0, q_len);
    return sum * static_cast<double>(by_batch ? 1 : batch) * static_cast<double>(by_head ? 1 : heads);
  }
};

/// An attention problem: its numbers, and their places in memory.
struct Shape : Numbers {
  bool lse = false;
  bool spread = false;  ///< heads before rows, with gaps between rows, heads and batches
  bool hnd = false;     ///< K and V have heads before rows

  explicit Shape(const Problem& p)
      : Numbers(p), lse(p.flags.at("lse")), spread(p.dims.count(kSpread) > 0), hnd(p.texts.count("kv_layout") > 0) {}

  /// Rows of Q and O are [token, head]; with lengths, sequences are contiguous.
  int64_t first_token(int64_t b) const {
    return varlen() ? modifiers->first_tokens()[static_cast<size_t>(b)] : b * q_len;
  }
  int64_t q_tokens() const { return varlen() ? modifiers->first_tokens().back() : batch * q_len; }
  Layout layout_of_q() const { return layout(batch, q_len, heads, false, kSpreadRows, 16 / size_of(q_dtype())); }
  /// Spread layouts of O and V have other strides than those of Q and K.
  Layout layout_of_o() const { return layout(batch, q_len, heads, false, kSpreadRows, 32 / size_of(dtype)); }
  Layout layout_of_k() const { return layout_of_kv(16 / size_of(kv_dtype())); }
  Layout layout_of_v() const { return layout_of_kv(32 / size_of(kv_dtype())); }
  Layout layout_of_kv(int64_t gap) const {
    return paged() ? layout(cache->pages(), cache->page(), kv_heads, hnd, kSpreadRowsOfPage, gap)
                   : layout(batch, kv_len, kv_heads, hnd, kSpreadRows, gap);
  }
  Layout layout_of_new() const { return layout(batch, q_len, kv_heads, false, kSpreadRows); }  ///< of K_new and V_new
  /// The element of K, or of V, at which the row of a key begins.
  int64_t place_of_key(bool v, int64_t b, int64_t head, int64_t key) const {
    const Layout l = v ? layout_of_v() : layout_of_k();
    if (varlen()) return head * l.head + (first_token(b) + key) * l.row;
    if (!paged()) return b * l.block + head * l.head + key * l.row;
    return cache->table(b, key / cache->page()) * l.block + head * l.head + key % cache->page() * l.row;
  }
  /// LSE is [batch, head, row], with lengths [head, token].
  int64_t lse_index(int64_t b, int64_t head, int64_t row) const {
    return varlen() ? head * q_tokens() + first_token(b) + row : (b * heads + head) * q_len + row;
  }

  /// `gap`: rows after each head; `row_gap`: elements after each row, 16 bytes. Both in spread layouts only.
  Layout layout(int64_t blocks, int64_t rows, int64_t n_heads, bool head_major, int64_t gap,
                int64_t row_gap = 8) const {
    if (varlen()) blocks = 1, rows = q_tokens();
    Layout out{rows * n_heads * d, d, n_heads * d, rows, n_heads, head_major || spread, 0};
    if (out.head_major) out.head = rows * d, out.row = d;
    // Behind a head lies a gap longer than a tile.
    if (spread) {
      out.row = d + row_gap;
      out.head = (rows + gap) * out.row + 16;
      out.block = n_heads * out.head + 32;
    }
    out.elements = blocks * out.block;
    if (varlen()) out.block = 0;
    return out;
  }
};

/// Heads at which every likely wrong map from a query head to its K/V head differs from the right one, head / group.
/// The last head is the last of them.
std::vector<int64_t> telling_heads(int64_t heads, int64_t kv_heads);

}  // namespace roofgen::attention
