"""Attention: the problem, its inputs, the reference, and the peers. Tensors are (batch, row, head, d)."""
import dataclasses
import importlib
import math
from typing import Callable

from rounds import first_line

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
        return Shape(**problem["dims"], causal=problem["flags"].get("causal", False), scale=problem["reals"]["scale"],
                     dtype=problem["dtype"])

    def flops(self):
        pairs = self.L * self.kv_len
        if self.causal:  # row r attends to keys 0 .. r + kv_len - L
            rows = min(self.L, self.kv_len)
            pairs = rows * max(self.kv_len - self.L, 0) + rows * (rows + 1) // 2
        return 4.0 * self.batch * self.heads * pairs * self.d

    def hidden(self, torch, rows, device):
        """The causal mask of these rows: true where a key is hidden."""
        keys = torch.arange(self.kv_len, device=device)
        return keys[None, :] > rows[:, None] + (self.kv_len - self.L)


def problem_of(L, d, kv_len=None, batch=None, heads=None, kv_heads=None, causal=False, dtype="bf16"):
    """With roofgen's defaults: 16 k tokens in all, a model dimension of 2048."""
    kv_len, heads = kv_len or L, heads or max(1, 2048 // d)
    dims = {"L": L, "kv_len": kv_len, "d": d, "batch": batch or max(1, 16384 // max(L, kv_len)), "heads": heads,
            "kv_heads": kv_heads or heads}
    if heads % dims["kv_heads"]:
        raise ValueError(f"heads ({heads}) is not a multiple of kv_heads ({kv_heads})")
    return {"op": "attention", "dtype": dtype, "dims": dims, "flags": {"causal": causal, "lse": False},
            "reals": {"scale": 1 / math.sqrt(d)}}


def inputs(torch, s, sets, seed=0):
    """`sets` different copies of Q, K, V from N(0,1), the inputs that roofgen tunes on."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[s.dtype]
    made = torch.Generator(device="cuda").manual_seed(seed)
    shapes = {"Q": (s.L, s.heads), "K": (s.kv_len, s.kv_heads), "V": (s.kv_len, s.kv_heads)}
    return [{name: torch.randn(s.batch, rows, heads, s.d, generator=made, device="cuda").to(dtype)
             for name, (rows, heads) in shapes.items()} for _ in range(sets)]


def bands(s, rows=64):
    """The checked rows as (batch, head, first, end): first, middle and last rows of three (batch, head) pairs."""
    pairs = sorted({(0, 0), (s.batch // 2, s.heads // 2), (s.batch - 1, s.heads - 1)})
    starts = sorted({0, max(0, s.L // 2 - rows // 2), max(0, s.L - rows)})
    return [(b, h, first, min(first + rows, s.L)) for b, h in pairs for first in starts]


def error_over_tolerance(torch, s, data, out, rounds_scores):
    """(worst |y - reference| / tolerance over the bands, rows checked), with the reference in float64. Tolerance: one
    unit in the last place of the output plus six standard deviations of the effect of rounding P to 16 bits (and of
    rounding S, for kernels that store S)."""
    bits, smallest = (8, 2.0**-126) if s.dtype == "bf16" else (11, 2.0**-24)
    worst, rows_checked = 0.0, 0
    for b, h, first, end in bands(s):
        g = h // (s.heads // s.kv_heads)
        q, k, v = (t.double() for t in (data["Q"][b, first:end, h], data["K"][b, :, g], data["V"][b, :, g]))
        scores = (q @ k.T) * s.scale
        if s.causal:
            hidden = s.hidden(torch, torch.arange(first, end, device=scores.device), scores.device)
            scores = scores.masked_fill(hidden, float("-inf"))
        p = torch.softmax(scores, dim=-1).nan_to_num(0.0)
        exact = p @ v
        # Rounding moves x by at most half an ulp, 2^-bits |x|, evenly distributed: a variance of (2^(1-bits) x)^2 / 12.
        variance = ((2.0 ** (1 - bits) * p).square() + smallest**2) / 12
        if rounds_scores:
            # Before and after scaling: a relative error of the score is an absolute error of the exponent.
            finite = scores.masked_fill(torch.isinf(scores), 0.0)
            variance = variance + 2 * (p * finite * 2.0 ** (1 - bits)).square() / 12
        sigma = (variance @ v.square() + variance.sum(-1, keepdim=True) * exact.square()).sqrt()
        ulp = exact.abs() * 2.0 ** (1 - bits) + smallest
        ratio = (out[b, first:end, h].double() - exact).abs() / (ulp + 6 * sigma + 1e-6 * v.abs().max())
        worst = max(worst, float(torch.nan_to_num(ratio, nan=math.inf, posinf=math.inf).max()))
        rows_checked += end - first
    return worst, rows_checked


class Unfit(Exception):
    """The peer does not support this problem."""


@dataclasses.dataclass
class Peer:
    """An implementation, and what became of it: an entry of the document's `peers`."""
    name: str
    what: str
    build: Callable  # (env, shape, sets) -> run
    module: str = ""  # the package it needs besides torch
    rounds_scores: bool = False  # stores scores in 16 bits
    run: Callable = None  # of a set's index; returns the output
    state: str = "timed"  # or wrong, failed, missing, with a reason
    reason: str = ""
    error: float = 0.0  # over the tolerance; infinite when the answer has NaNs
    rows_checked: int = 0
    timings: dict = dataclasses.field(default_factory=dict)

    def drop(self, state, reason):
        self.state, self.reason = state, reason

    def missing(self):
        """The reason why its package cannot be used, or ""."""
        try:
            if self.module:
                importlib.import_module(self.module)
            return ""
        except Exception as error:  # packages with native parts fail in many ways
            return f"{self.module} cannot be imported: {first_line(error)}"

    def document(self):
        error = self.error if self.rows_checked and math.isfinite(self.error) else None
        entry = {"name": self.name, "what": self.what, "state": self.state, "reason": self.reason,
                 "error_over_tolerance": error, "rows_checked": self.rows_checked}
        return {**entry, "timings": self.timings} if self.state == "timed" else entry


def sdpa(backend):
    def build(env, s, sets):
        if s.causal and s.kv_len != s.L:
            raise Unfit("is_causal aligns the mask to the first key, this problem's is aligned to the last")
        if backend == "EFFICIENT_ATTENTION" and s.heads != s.kv_heads:
            raise Unfit("its kernels do not support grouped keys (enable_gqa)")
        from torch.nn.attention import SDPBackend, sdpa_kernel
        views = [tuple(x[n].transpose(1, 2) for n in "QKV") for x in sets]
        grouped = {"enable_gqa": True} if s.heads != s.kv_heads else {}

        def run(i):
            with sdpa_kernel([getattr(SDPBackend, backend)]):
                return env.torch.nn.functional.scaled_dot_product_attention(
                    *views[i], is_causal=s.causal, scale=s.scale, **grouped).transpose(1, 2)
        return run
    return build


def compiled(env, s, sets):
    torch, group, scores_bytes = env.torch, s.heads // s.kv_heads, 2 * s.batch * s.heads * s.L * s.kv_len
    if 8 * scores_bytes > torch.cuda.mem_get_info()[0]:
        raise Unfit(f"its scores need {scores_bytes / 1e9:.1f} GB and more than that once again")

    def naive(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
        scores = (q @ k.transpose(-1, -2)) * s.scale
        if s.causal:
            hidden = s.hidden(torch, torch.arange(s.L, device=q.device), q.device)
            scores = scores.masked_fill(hidden, float("-inf"))
        return (torch.softmax(scores.float(), dim=-1).to(q.dtype) @ v).transpose(1, 2)

    function = torch.compile(naive, dynamic=False, mode=env.compile_mode)
    return lambda i: function(*sets[i].values())


def triton(env, s, sets):
    kernel = importlib.import_module("triton_attention")
    if max(s.L * s.heads, s.kv_len * s.kv_heads) * s.d >= 2**31:
        raise Unfit("it indexes one batch element with 32 bits")
    outs = [env.torch.empty_like(x["Q"]) for x in sets]
    return lambda i: kernel.attention(*sets[i].values(), outs[i], s.scale, s.causal)


def flash(module):
    def build(env, s, sets):
        function = importlib.import_module(module).flash_attn_func

        def run(i):
            out = function(*sets[i].values(), softmax_scale=s.scale, causal=s.causal)
            return out[0] if isinstance(out, tuple) else out
        return run
    return build


def flashinfer(env, s, sets):
    torch, dtype = env.torch, sets[0]["Q"].dtype
    workspace = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    wrapper = importlib.import_module("flashinfer").BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD")
    starts = torch.arange(s.batch + 1, dtype=torch.int32, device="cuda")
    wrapper.plan(starts * s.L, starts * s.kv_len, s.heads, s.kv_heads, s.d, causal=s.causal, sm_scale=s.scale,
                 q_data_type=dtype, kv_data_type=dtype)
    flat = [tuple(x[n].flatten(0, 1) for n in "QKV") for x in sets]
    return lambda i: wrapper.run(*flat[i]).view(s.batch, s.L, s.heads, s.d)


def all_peers():
    sdp, flash3 = "torch scaled_dot_product_attention,", "flash_attn_interface"
    return [
        Peer("sdpa-flash", f"{sdp} FLASH_ATTENTION", sdpa("FLASH_ATTENTION")),
        Peer("sdpa-cudnn", f"{sdp} CUDNN_ATTENTION", sdpa("CUDNN_ATTENTION")),
        Peer("sdpa-efficient", f"{sdp} EFFICIENT_ATTENTION", sdpa("EFFICIENT_ATTENTION")),
        Peer("sdpa-math", f"{sdp} MATH: not fused", sdpa("MATH"), rounds_scores=True),
        Peer("compiled", "torch.compile of softmax(QK^T)V; Inductor may substitute its own fused attention", compiled,
             rounds_scores=True),
        Peer("triton", "bench/peers/triton_attention.py, autotuned by Triton", triton, "triton"),
        Peer("flash-attn-2", "flash_attn.flash_attn_func", flash("flash_attn"), "flash_attn"),
        Peer("flash-attn-3", f"{flash3}.flash_attn_func", flash(flash3), flash3),
        Peer("flashinfer", "BatchPrefillWithRaggedKVCacheWrapper", flashinfer, "flashinfer"),
    ]
