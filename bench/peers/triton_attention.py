"""A plain flash-attention forward in Triton, one of roofgen's peers: online softmax in base 2, a loop without and one
with the mask, tile sizes chosen by Triton's autotuner."""

import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BM": bm, "BN": bn}, num_warps=warps, num_stages=stages)
    for bm, bn, warps, stages in ((128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 3),
                                  (64, 32, 4, 4))
]


@triton.jit
def _keys(acc, top, total, q, k_at, v_at, kv_row, low, high, rows, cols_d, kv_len, shift, scale_log2, D: tl.constexpr,
          BN: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    in_d = cols_d < D
    for first in range(low, high, BN):
        cols = first + tl.arange(0, BN)
        k = tl.load(k_at + cols[None, :] * kv_row + cols_d[:, None], mask=in_d[:, None] & (cols[None, :] < kv_len),
                    other=0.0)
        s = tl.dot(q, k) * scale_log2
        if MASKED:
            seen = cols[None, :] < kv_len
            if CAUSAL:
                seen = seen & (cols[None, :] <= rows[:, None] + shift)
            s = tl.where(seen, s, -1.0e30)
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new_top[:, None])
        if MASKED:
            p = tl.where(s > -0.5e30, p, 0.0)
        rescale = tl.exp2(top - new_top)
        total = total * rescale + tl.sum(p, 1)
        v = tl.load(v_at + cols[:, None] * kv_row + cols_d[None, :], mask=(cols[:, None] < kv_len) & in_d[None, :],
                    other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None])
        top = new_top
    return acc, top, total


@triton.autotune(configs=CONFIGS, key=["q_len", "kv_len", "heads", "D", "CAUSAL"])
@triton.jit
def _forward(Q, K, V, O, q_len, kv_len, heads, scale_log2, GROUP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr,
             CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    tile = tl.program_id(0)
    if CAUSAL:
        tile = tl.num_programs(0) - 1 - tile  # the longest rows first
    batch, head = (tl.program_id(1) // heads).to(tl.int64), tl.program_id(1) % heads
    rows = tile * BM + tl.arange(0, BM)
    cols_d = tl.arange(0, DP)
    here = (rows[:, None] < q_len) & (cols_d[None, :] < D)
    q_row, kv_row = heads * D, heads // GROUP * D
    # 64 bits for the batch, 32 within one element of it.
    q_at, kv_at = batch * q_len * q_row + head * D, batch * kv_len * kv_row + head // GROUP * D
    tile_at = rows[:, None] * q_row + cols_d[None, :]
    q = tl.load(Q + q_at + tile_at, mask=here, other=0.0)
    acc = tl.zeros([BM, DP], dtype=tl.float32)
    top = tl.full([BM], -1.0e30, dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    # The causal mask is aligned to the last row and the last key.
    shift = kv_len - q_len
    if CAUSAL:
        high = tl.minimum(tl.maximum((tile + 1) * BM + shift, 0), kv_len)
        clear = tl.maximum(tl.minimum(tile * BM + shift + 1, kv_len), 0) // BN * BN
    else:
        high = kv_len
        clear = kv_len // BN * BN
    acc, top, total = _keys(acc, top, total, q, K + kv_at, V + kv_at, kv_row, 0, clear, rows, cols_d, kv_len, shift,
                            scale_log2, D, BN, False, CAUSAL)
    acc, top, total = _keys(acc, top, total, q, K + kv_at, V + kv_at, kv_row, clear, high, rows, cols_d, kv_len, shift,
                            scale_log2, D, BN, True, CAUSAL)
    acc = acc / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(O + q_at + tile_at, acc.to(O.dtype.element_ty), mask=here)


def attention(q, k, v, out, scale, causal):
    """Contiguous tensors (batch, row, head, d)."""
    batch, q_len, heads, d = q.shape
    assert all(t.is_contiguous() for t in (q, k, v, out))

    def grid(meta):
        return triton.cdiv(q_len, meta["BM"]), batch * heads

    log2_e = 1.4426950408889634
    _forward[grid](q, k, v, out, q_len, k.shape[1], heads, scale * log2_e, GROUP=heads // k.shape[2], D=d,
                   DP=triton.next_power_of_2(d), CAUSAL=causal)
    return out
