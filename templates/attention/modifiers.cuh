// What a problem does to scores: the score expression and the mask, the tensors that they read, and which tiles of
// scores a mask leaves anything of. A query's position q is its row counted so that the last row stands at the last key.
{% macro loads(level, use) %}
{% for t in formula.tensors %}
{% if t.level == level and t[use] %}
    e.{{ t.field }} = value({{ t.param }} + {{ t.offset }});
{% endif %}
{% endfor %}
{% endmacro %}
{% include "lib/convert.cuh" %}
{% if formula.has_score or formula.has_mask %}
{% include "lib/pointwise.cuh" %}

{{ formula.cuda }}
/// The tensors that the expressions read. Some hold one value for the whole CTA, some one for each row of S, some one
/// for each column, some one for each element: each is loaded where it changes.
struct Tables {
{% for t in formula.tensors %}
{% if t.level != "sequence" %}
  const Element_{{ t.dtype }}* {{ t.param }};
{% endif %}
{% endfor %}
  int heads, positions, b, h, last_key;

  template <class T>
  static __device__ __forceinline__ float value(const T* from) {
    float x[1];
    load_as<T, 1>(from, x);
    return x[0];
  }
  /// Rows and keys past the end count as the last ones: no table goes on behind them.
  __device__ __forceinline__ int position(int q) const { return {{ "min(q, last_key)" if formula.by_row else "q" }}; }
  __device__ __forceinline__ int key(int k) const { return {{ "min(k, last_key)" if formula.by_column else "k" }}; }

  __device__ __forceinline__ void load_once(FormulaElement& e) const {
{{ loads("once", "used") }}  }
  __device__ __forceinline__ void load_row(FormulaElement& e, int q) const {
{{ loads("row", "used") }}  }
  /// kScore: what the score reads, else what the mask does.
  template <bool kScore>
  __device__ __forceinline__ void load_column(FormulaElement& e, int k) const {
    if constexpr (kScore) {
{{ loads("column", "in_score") }}    } else {
{{ loads("column", "in_mask") }}    }
  }
  template <bool kScore>
  __device__ __forceinline__ void load_pair(FormulaElement& e, int q, int k) const {
    if constexpr (kScore) {
{{ loads("pair", "in_score") }}    } else {
{{ loads("pair", "in_mask") }}    }
  }
  /// The values of a row and of a column, for the element where they meet.
  static __device__ __forceinline__ FormulaElement join(const FormulaElement& row, const FormulaElement& column) {
    FormulaElement e = row;
{% for t in formula.tensors %}
{% if t.level == "column" %}
    e.{{ t.field }} = column.{{ t.field }};
{% endif %}
{% endfor %}
    return e;
  }
};

/// Calls body(score, its tables, position, key) for each score of a lane's accumulators; `position` and `key` are those
/// of the first. kScore: with the tables that the score reads, else with those of the mask.
template <bool kScore, int MT, int NT, class Body>
__device__ __forceinline__ void for_each_score(float (&s)[MT][NT][4], const Tables& tables, const FormulaElement (&rows)[MT][2],
                                               int position, int key, const Body& body) {
#pragma unroll
  for (int n = 0; n < NT; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int k = tables.key(key + 8 * n + e);
      FormulaElement column;
      tables.template load_column<kScore>(column, k);
#pragma unroll
      for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          FormulaElement element = Tables::join(rows[i][h], column);
          const int q = tables.position(position + 16 * i + 8 * h);
          tables.template load_pair<kScore>(element, q, k);
          body(s[i][n][2 * h + e], element, q, k);
        }
    }
}
/// The same for N scores of one row, from `key` on.
template <bool kScore, int N, class Body>
__device__ __forceinline__ void for_each_of_row(float (&s)[N], const Tables& tables, const FormulaElement& row, int position,
                                                int key, const Body& body) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int k = tables.key(key + i);
    FormulaElement column;
    tables.template load_column<kScore>(column, k);
    FormulaElement element = Tables::join(row, column);
    tables.template load_pair<kScore>(element, position, k);
    body(s[i], element, position, k);
  }
}
{% if formula.has_score %}

__device__ __forceinline__ float modified_score(float s, const FormulaElement& e, const Tables& t, int q, int k) {
  return formula_score(s, e, FormulaRow{}, FormulaScalars{}, t.b, t.h, q, k);
}
{% endif %}
{% if formula.has_mask %}
{% include "lib/bounds.cuh" %}

__device__ __forceinline__ bool is_visible(const FormulaElement& e, const Tables& t, int q, int k) {
  return formula_mask(0.0f, e, FormulaRow{}, FormulaScalars{}, t.b, t.h, q, k) != 0.0f;
}

/// How much of a box of positions and keys is visible: never too little, and no more for a part than for the whole, so
/// that kernels with different tiles agree on what nobody writes or reads. In tiles that are written, what the mask
/// hides is -inf in S and 0 in P.
__device__ __forceinline__ Truth visible_part(const FormulaElement& e, const Tables& t, Bounds<int> q, Bounds<int> k) {
  const int b = t.b, h = t.h;
  return {{ formula.bounds }};
}

/// Walks over the tiles that something of is visible, judging 32 of them at a time: each lane takes one.
struct VisibleTiles {
  int tiles, lane;       // how many there are, visible or not
  int block = -32;       // tiles block .. block + 31 are judged
  unsigned some = 0, all = 0;  // of those, the ones not walked over yet that are visible in part, and entirely
  int tile = -1;
  bool whole = false;

  __device__ __forceinline__ VisibleTiles(int tiles, int lane) : tiles(tiles), lane(lane) {}
  /// judge(tile) gives a Truth. False: there is no other tile.
  template <class Judge>
  __device__ __forceinline__ bool next(const Judge& judge) {
    while (some == 0) {
      block += 32;
      tile = tiles;
      if (block >= tiles) return false;
      const Truth mine = block + lane < tiles ? judge(block + lane) : Truth{false, false};
      some = __ballot_sync(kAllLanes, mine.some);
      all = __ballot_sync(kAllLanes, mine.all);
    }
    const unsigned first = some & (0u - some);
    const int bit = 31 - __clz(first);
    some ^= first;
    tile = block + bit;
    whole = (all & first) != 0;
    return true;
  }
};
{% endif %}
{% endif %}
