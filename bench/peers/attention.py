"""Attention: the problem, its inputs, what is right, and who can do it besides roofgen. Tensors are (batch, row, head, d)."""

import dataclasses
import importlib
import math
from typing import Callable

FLOP_CONVENTION = "4 x allowed (query, key) pairs x d; causal counts the allowed pairs; exp is not a FLOP"


@dataclasses.dataclass
class Shape:
    L: int
    kv_len: int
    d: int
    batch: int
    heads: int
    kv_heads: int
    causal: bool
    scale: float
    dtype: str

    @staticmethod
    def of(problem):
        n = problem["dims"]
        return Shape(n["L"], n["kv_len"], n["d"], n["batch"], n["heads"], n["kv_heads"], problem["flags"].get("causal", False),
                     problem["reals"]["scale"], problem["dtype"])

    def flops(self):
        if not self.causal:
            pairs = self.L * self.kv_len
        else:  # row r sees keys 0 .. r + kv_len - L
            rows = min(self.L, self.kv_len)
            pairs = rows * max(self.kv_len - self.L, 0) + rows * (rows + 1) // 2
        return 4.0 * self.batch * self.heads * pairs * self.d

    def scores_bytes(self):
        return 2 * self.batch * self.heads * self.L * self.kv_len


def problem_of(L, d, kv_len=None, batch=None, heads=None, kv_heads=None, causal=False, dtype="bf16", scale=None):
    """With roofgen's defaults: 16 k tokens in all, a model dimension of 2048."""
    kv_len = kv_len or L
    heads = heads or max(1, 2048 // d)
    dims = {"L": L, "kv_len": kv_len, "d": d, "batch": batch or max(1, 16384 // max(L, kv_len)), "heads": heads, "kv_heads": kv_heads or heads}
    if dims["heads"] % dims["kv_heads"]:
        raise ValueError(f"heads ({heads}) is not a multiple of kv_heads ({kv_heads})")
    return {"op": "attention", "dtype": dtype, "dims": dims, "flags": {"causal": causal, "lse": False}, "reals": {"scale": scale or 1 / math.sqrt(d)}}


def inputs(torch, s, sets, seed=0):
    """`sets` copies of Q, K, V, all different: N(0,1), as tuned kernels are measured."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[s.dtype]
    made = torch.Generator(device="cuda").manual_seed(seed)

    def normal(rows, heads):
        return torch.randn(s.batch, rows, heads, s.d, generator=made, device="cuda", dtype=torch.float32).to(dtype)

    return [{"Q": normal(s.L, s.heads), "K": normal(s.kv_len, s.kv_heads), "V": normal(s.kv_len, s.kv_heads)} for _ in range(sets)]


def bands(s, rows=64):
    """Which rows of which (batch, head) pairs are checked: first, middle and last of each."""
    pairs = sorted({(0, 0), (s.batch // 2, s.heads // 2), (s.batch - 1, s.heads - 1)})
    starts = sorted({0, max(0, s.L // 2 - rows // 2), max(0, s.L - rows)})
    return [(b, h, r, min(r + rows, s.L)) for b, h in pairs for r in starts]


def error_over_tolerance(torch, s, data, out, rounds_scores):
    """Worst |y - reference| / tolerance over the bands; the reference in float64. The tolerance: one unit in the last
    place of the output, plus six standard deviations of what rounding P to 16 bits does (and S, for those who store it)."""
    bits = 8 if s.dtype == "bf16" else 11
    smallest = 2.0**-126 if s.dtype == "bf16" else 2.0**-24
    worst, rows_checked = 0.0, 0
    for b, h, first, last in bands(s):
        g = h // (s.heads // s.kv_heads)
        q, k, v = (t.double() for t in (data["Q"][b, first:last, h], data["K"][b, :, g], data["V"][b, :, g]))
        scores = (q @ k.T) * s.scale
        if s.causal:
            row = torch.arange(first, last, device=scores.device)[:, None]
            key = torch.arange(s.kv_len, device=scores.device)[None, :]
            scores = scores.masked_fill(key > row + (s.kv_len - s.L), float("-inf"))
        p = torch.softmax(scores, dim=-1).nan_to_num(0.0)
        exact = p @ v
        # Rounding x moves it by at most half an ulp, 2^-bits |x|: evenly spread, a variance of (2^(1-bits) x)^2 / 12.
        variance = ((2.0 ** (1 - bits) * p).square() + smallest**2) / 12
        if rounds_scores:
            # With the scale before or after: a relative error of the score is an absolute one of its exponent.
            finite = scores.masked_fill(torch.isinf(scores), 0.0)
            variance = variance + 2 * (p * finite * 2.0 ** (1 - bits)).square() / 12
        sigma = (variance @ v.square() + variance.sum(-1, keepdim=True) * exact.square()).sqrt()
        ulp = exact.abs() * 2.0 ** (1 - bits) + smallest
        got = out[b, first:last, h].double()
        ratio = (got - exact).abs() / (ulp + 6 * sigma + 1e-6 * v.abs().max())
        worst = max(worst, float(torch.nan_to_num(ratio, nan=math.inf, posinf=math.inf).max()))
        rows_checked += last - first
    return worst, rows_checked


@dataclasses.dataclass
class Peer:
    name: str
    what: str
    missing: Callable  # (env) -> reason, or "" where it can run
    build: Callable  # (env, shape, sets) -> function of a set's index that returns the output
    rounds_scores: bool = False  # stores scores in 16 bits


def importable(name):
    def missing(env):
        try:
            env.modules[name] = importlib.import_module(name)
            return ""
        except Exception as error:  # packages with native parts fail in many ways
            return f"{name} cannot be imported: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")

    return missing


def sdpa(backend):
    def build(env, s, sets):
        torch = env.torch
        if s.causal and s.kv_len != s.L:
            raise Unfit("is_causal aligns the mask to the first key, this problem's is aligned to the last")
        if backend == "EFFICIENT_ATTENTION" and s.heads != s.kv_heads:
            raise Unfit("its kernels do not do grouped keys (enable_gqa)")
        from torch.nn.attention import SDPBackend, sdpa_kernel

        chosen = getattr(SDPBackend, backend)
        views = [tuple(x[n].transpose(1, 2) for n in "QKV") for x in sets]
        more = {"enable_gqa": True} if s.heads != s.kv_heads else {}

        def run(i):
            with sdpa_kernel([chosen]):
                return torch.nn.functional.scaled_dot_product_attention(*views[i], is_causal=s.causal, scale=s.scale, **more).transpose(1, 2)

        return run

    return build


class Unfit(Exception):
    """A peer that does not do this problem."""


def build_compiled(env, s, sets):
    torch = env.torch
    if 8 * s.scores_bytes() > torch.cuda.mem_get_info()[0]:
        raise Unfit(f"its scores need {s.scores_bytes() / 1e9:.1f} GB and more than that once again")
    group = s.heads // s.kv_heads

    def naive(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
        scores = (q @ k.transpose(-1, -2)) * s.scale
        if s.causal:
            row = torch.arange(s.L, device=q.device)[:, None]
            key = torch.arange(s.kv_len, device=q.device)[None, :]
            scores = scores.masked_fill(key > row + (s.kv_len - s.L), float("-inf"))
        return (torch.softmax(scores.float(), dim=-1).to(q.dtype) @ v).transpose(1, 2)

    compiled = torch.compile(naive, dynamic=False, mode=env.compile_mode)
    return lambda i: compiled(sets[i]["Q"], sets[i]["K"], sets[i]["V"])


def build_triton(env, s, sets):
    kernel = importlib.import_module("triton_attention")
    if max(s.L * s.heads, s.kv_len * s.kv_heads) * s.d >= 2**31:
        raise Unfit("it indexes one batch element with 32 bits")
    outs = [env.torch.empty_like(x["Q"]) for x in sets]
    return lambda i: kernel.attention(sets[i]["Q"], sets[i]["K"], sets[i]["V"], outs[i], s.scale, s.causal)


def build_flash(module):
    def build(env, s, sets):
        function = env.modules[module].flash_attn_func

        def run(i):
            out = function(sets[i]["Q"], sets[i]["K"], sets[i]["V"], softmax_scale=s.scale, causal=s.causal)
            return out[0] if isinstance(out, tuple) else out

        return run

    return build


def build_flashinfer(env, s, sets):
    torch, wrapper_type = env.torch, env.modules["flashinfer"].BatchPrefillWithRaggedKVCacheWrapper
    workspace = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    wrapper = wrapper_type(workspace, "NHD")
    starts = torch.arange(s.batch + 1, dtype=torch.int32, device="cuda")
    dtype = sets[0]["Q"].dtype
    wrapper.plan(starts * s.L, starts * s.kv_len, s.heads, s.kv_heads, s.d, causal=s.causal, sm_scale=s.scale, q_data_type=dtype, kv_data_type=dtype)
    flat = [tuple(x[n].flatten(0, 1) for n in "QKV") for x in sets]
    return lambda i: wrapper.run(*flat[i]).view(s.batch, s.L, s.heads, s.d)


def always(env):
    return ""


PEERS = [
    Peer("sdpa-flash", "torch scaled_dot_product_attention, FLASH_ATTENTION", always, sdpa("FLASH_ATTENTION")),
    Peer("sdpa-cudnn", "torch scaled_dot_product_attention, CUDNN_ATTENTION", always, sdpa("CUDNN_ATTENTION")),
    Peer("sdpa-efficient", "torch scaled_dot_product_attention, EFFICIENT_ATTENTION", always, sdpa("EFFICIENT_ATTENTION")),
    Peer("sdpa-math", "torch scaled_dot_product_attention, MATH: not fused", always, sdpa("MATH"), True),
    Peer("compiled", "torch.compile of softmax(QK^T)V; Inductor may put its own fused attention there", always, build_compiled, True),
    Peer("triton", "bench/peers/triton_attention.py, autotuned by Triton", importable("triton"), build_triton),
    Peer("flash-attn-2", "flash_attn.flash_attn_func", importable("flash_attn"), build_flash("flash_attn")),
    Peer("flash-attn-3", "flash_attn_interface.flash_attn_func", importable("flash_attn_interface"), build_flash("flash_attn_interface")),
    Peer("flashinfer", "BatchPrefillWithRaggedKVCacheWrapper", importable("flashinfer"), build_flashinfer),
]
