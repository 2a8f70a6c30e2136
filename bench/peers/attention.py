#!/usr/bin/env python3
"""roofgen's tuned attention and its peers on one GPU: same inputs, timed in turns, each checked before it is timed.

  attention.py --bundle DIR [--bundle DIR2]      DIR from `roofgen emit attention ... --replay -o DIR`
  attention.py --L 4096 --d 128 --causal         the peers alone
  attention.py --list                            the peers, and why some cannot run here

docs/peers.md describes the peers and the protocol. Tensors are (batch, row, head, d). Exit codes: 0 done, 1 ours failed
or nothing could be timed, 2 usage, 3 no torch or no GPU, 130 interrupted (the finished rounds are written)."""
import argparse
import dataclasses
import importlib
import math
import platform
import sys

import compare
import cuda
from compare import OK, UNAVAILABLE, USAGE, Peer, Stop, Unfit, first_line


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
        raise Stop(USAGE, f"heads ({heads}) is not a multiple of kv_heads ({kv_heads})")
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


class Attention:
    """One problem on a GPU: the `work` of compare.py."""
    VERSIONS = ("torch", "triton", "flash_attn", "flash_attn_interface", "flashinfer")
    flop_convention = "4 x allowed (query, key) pairs x d; causal counts the allowed pairs; exp is not a FLOP"

    def __init__(self, torch, gpu, problem, seed, compile_mode):
        self.torch, self.gpu, self.problem, self.compile_mode = torch, gpu, problem, compile_mode
        self.shape = s = Shape.of(problem)
        # Two to eight copies of the inputs, together at least three times L2 and at most a quarter of the free memory.
        each = 4 * s.d * s.batch * (s.L * s.heads + s.kv_len * s.kv_heads)
        free = torch.cuda.mem_get_info()[0] // 4 // each
        self.sets = max(1, min(8, max(2, math.ceil(3 * gpu.l2_bytes / each)), free))
        self.data = inputs(torch, s, self.sets, seed)
        self.flops, self.protocol, self.notes = s.flops(), {"compile_mode": compile_mode}, []

    def error(self, peer, i):
        out = peer.run(i)
        self.gpu.wait("running")
        return error_over_tolerance(self.torch, self.shape, self.data[i], out, peer.rounds_scores)

    def versions(self):
        loaded = {name: sys.modules[name] for name in self.VERSIONS if sys.modules.get(name)}
        return {"python": platform.python_version(), "cuda": str(self.torch.version.cuda),
                "cudnn": str(self.torch.backends.cudnn.version()),
                **{name: str(getattr(module, "__version__", "unknown")) for name, module in loaded.items()}}


def ours(bundle, number=0):
    """The bundle as a peer: its kernels on torch's tensors and stream, through the driver."""
    name = f"roofgen:{bundle.variant}" + "'" * number

    def build(work):
        torch, bound, temporaries = work.torch, [], {}
        kernels = [cuda.Kernel(work.gpu.driver, kernel) for kernel in bundle.kernels]
        if any(kernel.from_ptx for kernel in kernels):
            work.notes.append(f"{bundle.variant}: the driver compiled its PTX, the CUBIN is of another architecture")
        for x in work.data:
            tensors = {**x, "O": torch.full_like(x["Q"], float("nan"))}
            for name, buffer in bundle.buffers.items():
                place = temporaries if buffer["role"] == "temporary" else tensors  # temporaries: one for all sets
                if name not in place:
                    place[name] = torch.empty(buffer["bytes"], dtype=torch.uint8, device="cuda")
                if place[name].nbytes != buffer["bytes"]:
                    raise ValueError(f"{name}: {buffer['bytes']} bytes in the bundle, {place[name].nbytes} here")
            tensors.update(temporaries)
            addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
            bound.append(([kernel.bind(addresses) for kernel in kernels], tensors))

        def run(i):
            launches, tensors = bound[i]
            for launch in launches:
                launch(work.gpu.stream)
            return tensors["O"]
        return run

    stores_scores = any(each["role"] == "temporary" and each["dtype"] != "fp32" for each in bundle.buffers.values())
    return Peer(name, f"{len(bundle.kernels)} kernel(s) of {bundle.directory}", build, rounds_scores=stores_scores)


def sdpa(backend):
    def build(work):
        s = work.shape
        if s.causal and s.kv_len != s.L:
            raise Unfit("is_causal aligns the mask to the first key, this problem's is aligned to the last")
        if backend == "EFFICIENT_ATTENTION" and s.heads != s.kv_heads:
            raise Unfit("its kernels do not support grouped keys (enable_gqa)")
        from torch.nn.attention import SDPBackend, sdpa_kernel
        views = [tuple(x[n].transpose(1, 2) for n in "QKV") for x in work.data]
        grouped = {"enable_gqa": True} if s.heads != s.kv_heads else {}

        def run(i):
            with sdpa_kernel([getattr(SDPBackend, backend)]):
                return work.torch.nn.functional.scaled_dot_product_attention(
                    *views[i], is_causal=s.causal, scale=s.scale, **grouped).transpose(1, 2)
        return run
    return build


def compiled(work):
    torch, s = work.torch, work.shape
    group, scores_bytes = s.heads // s.kv_heads, 2 * s.batch * s.heads * s.L * s.kv_len
    if 8 * scores_bytes > torch.cuda.mem_get_info()[0]:
        raise Unfit(f"its scores need {scores_bytes / 1e9:.1f} GB and more than that once again")

    def naive(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
        scores = (q @ k.transpose(-1, -2)) * s.scale
        if s.causal:
            hidden = s.hidden(torch, torch.arange(s.L, device=q.device), q.device)
            scores = scores.masked_fill(hidden, float("-inf"))
        return (torch.softmax(scores.float(), dim=-1).to(q.dtype) @ v).transpose(1, 2)

    function = torch.compile(naive, dynamic=False, mode=work.compile_mode)
    return lambda i: function(*work.data[i].values())


def triton(work):
    s, sets = work.shape, work.data
    kernel = importlib.import_module("triton_attention")
    if max(s.L * s.heads, s.kv_len * s.kv_heads) * s.d >= 2**31:
        raise Unfit("it indexes one batch element with 32 bits")
    outs = [work.torch.empty_like(x["Q"]) for x in sets]
    return lambda i: kernel.attention(*sets[i].values(), outs[i], s.scale, s.causal)


def flash(module):
    def build(work):
        s, sets = work.shape, work.data
        function = importlib.import_module(module).flash_attn_func

        def run(i):
            out = function(*sets[i].values(), softmax_scale=s.scale, causal=s.causal)
            return out[0] if isinstance(out, tuple) else out
        return run
    return build


def flashinfer(work):
    torch, s, dtype = work.torch, work.shape, work.data[0]["Q"].dtype
    workspace = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    wrapper = importlib.import_module("flashinfer").BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD")
    starts = torch.arange(s.batch + 1, dtype=torch.int32, device="cuda")
    wrapper.plan(starts * s.L, starts * s.kv_len, s.heads, s.kv_heads, s.d, causal=s.causal, sm_scale=s.scale,
                 q_data_type=dtype, kv_data_type=dtype)
    flat = [tuple(x[n].flatten(0, 1) for n in "QKV") for x in work.data]
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


# ---- The command line ------------------------------------------------------------------------------------------------

def arguments(argv):
    p = argparse.ArgumentParser(prog="attention.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("--list", action="store_true", help="list the peers and whether they can run")
    p.add_argument("--peer", action="append", choices=[p.name for p in all_peers()], help="only these [all]")
    for name, text in (("L", "rows of Q"), ("kv-len", "rows of K and V [L]"), ("d", "head dimension"),
                       ("batch", "[16384 / L]"), ("heads", "[2048 / d]"), ("kv-heads", "[heads]")):
        p.add_argument(f"--{name}", type=compare.positive, help=text)
    p.add_argument("--causal", action="store_true")
    p.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    p.add_argument("--max-autotune", action="store_true", help="torch.compile tries more and takes minutes")
    compare.add_options(p)
    return p.parse_args(argv, argparse.Namespace(argv=argv))


def load_torch():
    """torch that has a GPU. Raises Stop."""
    try:
        torch = importlib.import_module("torch")
        available = torch.cuda.is_available()
    except Exception as error:
        raise Stop(UNAVAILABLE, f"torch cannot be imported: {first_line(error)}") from None
    if not available:
        raise Stop(UNAVAILABLE, "torch finds no GPU")
    return torch


def list_peers(peers):
    try:
        blocked = load_torch() and ""
    except Stop as stop:
        blocked = str(stop)
    reasons = [(p, blocked or p.missing()) for p in peers]
    rows = [[p.name, f"no: {reason}" if reason else "yes", p.what] for p, reason in reasons]
    return compare.columns([["peer", "here", "what"], *rows], left=3)


def the_problem(args, bundles):
    if not bundles:
        if not args.L or not args.d:
            raise Stop(USAGE, "--bundle DIR, or --L and --d, were expected")
        return problem_of(args.L, args.d, args.kv_len, args.batch, args.heads, args.kv_heads, args.causal, args.dtype)
    if any(b.problem != bundles[0].problem for b in bundles):
        raise Stop(USAGE, "the bundles are of different problems")
    if bundles[0].problem["op"] != "attention":
        raise Stop(USAGE, f"no peers for {bundles[0].problem['op']}; attention was expected")
    return bundles[0].problem


def run(argv):
    args = arguments(argv)
    peers = [p for p in all_peers() if not args.peer or p.name in args.peer]
    if args.list:
        sys.stdout.write(list_peers(peers))
        return OK
    args.bundles = [cuda.Bundle(path) for path in args.bundle]
    problem = the_problem(args, args.bundles)
    torch = load_torch()
    variants = [b.variant for b in args.bundles]
    peers = [*(ours(b, variants[:i].count(b.variant)) for i, b in enumerate(args.bundles)), *peers]

    def documents():
        gpu = cuda.Gpu(args.gpu)
        torch.cuda.set_device(args.gpu)
        gpu.stream = torch.cuda.current_stream().cuda_stream
        mode = "max-autotune-no-cudagraphs" if args.max_autotune else "default"
        work = Attention(torch, gpu, problem, args.seed, mode)
        if not args.bundles:
            work.notes.append("no bundle of roofgen's was given: the peers alone")
        yield compare.compare(gpu, work, peers, args)
    return compare.finish(documents(), args.json)


if __name__ == "__main__":
    sys.exit(compare.guarded(run, sys.argv[1:]))
