#!/usr/bin/env python3
"""cuBLASLt beside roofgen on one GPU: products with epilogues, and those of unfused attention, timed in turns.

  gemm.py                                  sizes at which products are commonly reported
  gemm.py --m M --n N --k K                one product
  gemm.py --attention L KV_LEN D BATCH HEADS
  gemm.py --bundle DIR                     DIR from `roofgen emit attention --variant unfused ... --replay -o DIR`

docs/peers.md describes the protocol. Needs cuBLASLt, which ROOFGEN_CUBLASLT may name. Exit codes: 0 done, 1 ours failed
or nothing could be timed, 2 usage, 3 no cuBLASLt or no GPU, 130 interrupted (the finished cases are written)."""
import argparse
import bisect
import ctypes
import dataclasses
import functools
import itertools
import math
import operator
import os
import platform
import random
import statistics
import struct
import sys

import compare
import cuda
from compare import UNAVAILABLE, USAGE, Peer, Stop, Unfit

WORKSPACE_BYTES, MOST_ALGORITHMS, TRIALS, PLACES = 64 << 20, 8, 5, 256
PERIOD = 65521  # a prime: the rows of an operand differ
COMPUTE_32F, R_32F, NOT_SUPPORTED = 68, 0, 15  # cublasComputeType_t, cudaDataType_t, cublasStatus_t
TRANSPOSE_A, EPILOGUE, BIAS, BIAS_TYPE = 3, 7, 8, 26  # cublasLtMatmulDescAttributes_t
BATCH, STRIDE, MOST_WORKSPACE = 5, 6, 1  # cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t
EPILOGUES = {"none": 1, "bias": 4, "relu": 2, "gelu-bias": 36}  # cublasLtEpilogue_t
# exponent bits, mantissa bits, cudaDataType_t, type of array elements. e4m3 has no infinity; its largest is 448.
FORMATS = {"bf16": (8, 7, 14, "H"), "fp16": (5, 10, 2, "H"), "fp8": (4, 3, 28, "B")}


# ---- Numbers ---------------------------------------------------------------------------------------------------------

@functools.lru_cache(None)
def values(dtype):
    """The value of every bit pattern. Infinities are NaN too: neither is an answer."""
    exponents, mantissas = FORMATS[dtype][:2]
    bias, top = 2 ** (exponents - 1) - 1, 2**exponents - 1
    found = []
    for field, mantissa in itertools.product(range(top + 1), range(2**mantissas)):
        nan = (field, mantissa) == (top, 7) if dtype == "fp8" else field == top
        hidden = 2**mantissas if field else 0
        found.append(math.nan if nan else math.ldexp(hidden + mantissa, max(field, 1) - bias - mantissas))
    return found + [-value for value in found]


def ulp(dtype, x):
    """The distance to the next number of the format at |x|."""
    exponents, mantissas = FORMATS[dtype][:2]
    least = 2 - 2 ** (exponents - 1)
    return 2.0 ** (max(math.frexp(x)[1] - 1 if x else least, least) - mantissas)


@functools.lru_cache(None)
def normal(dtype):
    """Bit patterns at equal steps of probability of N(0,1)."""
    known = [value for value in values(dtype)[:len(values(dtype)) // 2] if value == value]
    sign, found = len(values(dtype)) // 2, []
    for i in range(4096):
        x = statistics.NormalDist().inv_cdf((i + 0.5) / 4096)
        at = bisect.bisect(known, abs(x))
        near = min((at - 1, at), key=lambda bits: abs(known[bits] - abs(x)))
        found.append(near + (sign if x < 0 else 0))
    return found


def tensor(dtype, seed, count):
    """The bytes of `count` elements of N(0,1), and their values: PERIOD random elements, repeated."""
    bits = random.Random(seed).choices(normal(dtype), k=PERIOD)
    packed = struct.pack(f"<{PERIOD}{FORMATS[dtype][3]}", *bits)
    size = count * len(packed) // PERIOD
    return (packed * -(-count // PERIOD))[:size], [values(dtype)[each] for each in bits]


# ---- Cases -----------------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Case:
    """D[m, n] = epilogue(scale * sum over k of A[m, k] * B[n, k]). A call computes `batch` products; there are `outer`
    calls. An operand is its strides in elements, between (calls, products, rows, columns). B has the rows of keys and
    of the weights of a linear layer; those of values have a stride of 1."""
    name: str
    m: int
    n: int
    k: int
    dtype: str
    a: tuple
    b: tuple
    d: tuple
    epilogue: str = "none"
    batch: int = 1
    outer: int = 1
    scale: float = 1.0

    @property
    def result(self):
        return "fp16" if self.dtype == "fp16" else "bf16"

    @property
    def b_is_kn(self):
        return self.b[2] == 1

    @property
    def element_bytes(self):
        return struct.calcsize(FORMATS[self.dtype][3])

    def places(self):
        """Elements spread over the result as (call, product, row, column), its corners first."""
        spread, size = random.Random(0), (self.outer, self.batch, self.m, self.n)
        corners = list(itertools.product(*((0, each - 1) for each in size)))
        return corners + [tuple(map(spread.randrange, size)) for _ in range(PLACES - len(corners))]

    def exact(self, a, b, bias):
        """(values at the places, tolerances). Tolerance: one unit in the last place of the result + c x RMS of the
        sums: c = 2^-16 sqrt(k) for accumulation in fp32; fp8 units of sm_90 keep about 13 bits while they add 32
        products at a time, so c = 2^-13 k / 32 there."""
        sums = []
        for o, p, m, n in self.places():
            row, column = offset(self.a, (o, p, m, 0)), offset(self.b, (o, p, n, 0))
            sums.append(self.scale * math.fsum(
                a[(row + i) % PERIOD] * b[(column + i * self.b[3]) % PERIOD] for i in range(self.k)))
        rms = math.sqrt(math.fsum(x * x for x in sums) / len(sums))
        share = self.k / 32 * 2.0**-13 if self.dtype == "fp8" else math.sqrt(self.k) * 2.0**-16
        out = [epilogue(self.epilogue, x, bias[n % PERIOD]) for x, (_, _, _, n) in zip(sums, self.places())]
        return out, [ulp(self.result, x) + share * rms for x in out]


def offset(strides, index):
    return sum(map(operator.mul, strides, index))


def epilogue(kind, x, bias):
    """The exact epilogue; GELU in its tanh form, like cuBLASLt's."""
    x += bias if "bias" in kind else 0.0
    if kind == "gelu-bias":
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return max(x, 0.0) if kind == "relu" else x


def plain_case(m, n, k, dtype="bf16", kind="none"):
    """One product of contiguous tensors."""
    multiple = 16 if dtype == "fp8" else 8
    if any(size < multiple or size % multiple or size > 1 << 20 for size in (m, n, k)):
        raise Stop(USAGE, f"{m} x {n} x {k}: multiples of {multiple} up to {1 << 20} were expected")
    a, b, d = ((rows * columns, rows * columns, columns, 1) for rows, columns in ((m, k), (n, k), (m, n)))
    return Case(f"{m}x{n}x{k} {dtype} {kind}", m, n, k, dtype, a, b, d, kind)


def suite(dtype):
    """Sizes at which products are commonly reported."""
    square = [plain_case(size, size, size, dtype) for size in (4096, 8192)]
    return [*square, *(plain_case(4096, 4096, 4096, dtype, kind) for kind in ("bias", "relu", "gelu-bias")),
            plain_case(512, 12288, 3072, dtype, "gelu-bias")]


def attention_cases(length, kv_len, d, batch, heads, dtype="bf16", scale=None):
    """The products of unfused attention on tensors (batch, row, head, d): S = scale Q K^T and O = P V."""
    if dtype == "fp8":
        raise Stop(USAGE, "attention in fp8 is not there; bf16 or fp16 was expected")
    for size in (length, kv_len, d, batch, heads):
        if not 1 <= size <= 1 << 24:
            raise Stop(USAGE, f"{size}: a size from 1 to 2^24 was expected")
    if d % 8:
        raise Stop(USAGE, f"d is {d}; a multiple of 8 was expected")
    pitch, row = (kv_len + 7) // 8 * 8, heads * d
    q, k, v = (length * row, d, row, 1), (kv_len * row, d, row, 1), (kv_len * row, d, 1, row)  # O lies like Q
    s = (heads * length * pitch, length * pitch, pitch, 1)
    name = f"L={length} kv_len={kv_len} d={d} batch={batch} heads={heads} {dtype}"
    more = {"batch": heads, "outer": batch}
    return [Case(f"QK^T {name}", length, kv_len, d, dtype, q, k, s, scale=scale or 1 / math.sqrt(d), **more),
            Case(f"PV {name}", length, d, kv_len, dtype, s, v, q, **more)]


# ---- The work of compare.py ------------------------------------------------------------------------------------------

class Gemm:
    """One case on a GPU, with several copies of A, B and D to rotate through."""
    flop_convention = "2 x m x n x k x batch; the epilogue is not counted"
    protocol = {"places_checked": PLACES, "period": PERIOD}

    def __init__(self, gpu, lt, case, seed):
        self.gpu, self.lt, self.case, self.notes = gpu, lt, case, []
        c, self.flops = case, 2.0 * case.m * case.n * case.k * case.batch * case.outer
        dims = {"m": c.m, "n": c.n, "k": c.k, "batch": c.batch * c.outer}
        self.problem = {"op": "gemm", "name": c.name, "dtype": c.dtype, "epilogue": c.epilogue, "dims": dims,
                        "flags": {"b_is_kn": c.b_is_kn}}
        d_bytes = 2 * c.outer * c.d[0]
        each = c.element_bytes * c.outer * (c.a[0] + c.b[0]) + d_bytes
        self.sets, self.exact, self.addresses = min(8, max(2, math.ceil(3 * gpu.l2_bytes / each))), {}, []
        data, bias = tensor(c.result, f"{seed} bias", c.n)
        self.bias = gpu.upload(data, "bias")
        for i in range(self.sets):
            a, a_values = tensor(c.dtype, f"{seed} A {i}", c.outer * c.a[0])
            b, b_values = tensor(c.dtype, f"{seed} B {i}", c.outer * c.b[0])
            self.addresses.append((gpu.upload(a, "A"), gpu.upload(b, "B"), gpu.allocate(d_bytes, "D")))
            if i in (0, self.sets - 1):
                self.exact[i] = c.exact(a_values, b_values, bias)
        self.workspace = gpu.allocate(WORKSPACE_BYTES, "cuBLASLt's workspace")

    def free(self):
        for address in (self.bias, self.workspace, *itertools.chain(*self.addresses)):
            self.gpu.free(address)

    def error(self, peer, i):
        """Fills D with NaNs first."""
        c, to = self.case, self.addresses[i][2]
        self.gpu.fill(to, 0xff, 2 * c.outer * c.d[0])
        peer.run(i)
        self.gpu.wait(f"running {peer.name}")
        worst = 0.0
        for place, exact, tolerance in zip(c.places(), *self.exact[i]):
            bits, = struct.unpack("<H", self.gpu.download(to + 2 * offset(c.d, place), 2))
            error = abs(values(c.result)[bits] - exact) / tolerance
            worst = max(worst, math.inf if math.isnan(error) else error)
        return worst, PLACES

    def versions(self):
        return {"python": platform.python_version(), "cublaslt": self.lt.version, "cublaslt_library": self.lt.name}


# ---- cuBLASLt --------------------------------------------------------------------------------------------------------

class Algorithm(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""
    _fields_ = [("algo", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


class CublasLt(cuda.Library):
    """cuBLASLt in the current context. The numbers are cublasLt.h's."""

    def __init__(self):
        chosen = os.environ.get("ROOFGEN_CUBLASLT")
        try:
            super().__init__(*([chosen] if chosen else ["libcublasLt.so.13", "libcublasLt.so.12"]))
            number = self.status("cublasLtGetVersion")
        except (OSError, AttributeError) as error:
            raise Stop(UNAVAILABLE, f"no cuBLASLt: {error}; ROOFGEN_CUBLASLT can name it") from None
        self.version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
        self.handle = self.make("Create")

    def call(self, name, *arguments):
        status = self.status(f"cublasLt{name}", *arguments)
        if status == NOT_SUPPORTED:
            raise Unfit("cuBLASLt has no algorithm for it on this GPU")
        if status:
            raise RuntimeError(f"cublasLt{name}: status {status}")

    def make(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def set(self, name, handle, attributes):
        for number, value in attributes.items():
            self.call(f"{name}SetAttribute", handle, number, ctypes.byref(value), ctypes.sizeof(value))

    def algorithms(self, work):
        """The algorithms proposed for a case, in the order of the heuristic, as functions of a set's index."""
        c, i32, i64 = work.case, ctypes.c_int32, ctypes.c_int64
        # cuBLASLt is column-major: D^T [n, m] = op(B) [n, k] x A^T [k, m]. Its A is our B, its rows are our columns.
        desc = self.make("MatmulDescCreate", COMPUTE_32F, R_32F)
        self.set("MatmulDesc", desc, {TRANSPOSE_A: i32(not c.b_is_kn), EPILOGUE: i32(EPILOGUES[c.epilogue])})
        if "bias" in c.epilogue:
            self.set("MatmulDesc", desc, {BIAS: i64(work.bias), BIAS_TYPE: i32(FORMATS[c.result][2])})

        def layout(dtype, rows, columns, operand):
            made = self.make("MatrixLayoutCreate", FORMATS[dtype][2], rows, columns, max(operand[2:]))
            self.set("MatrixLayout", made, {BATCH: i32(c.batch), STRIDE: i64(operand[1])})
            return made

        b = layout(c.dtype, *((c.n, c.k) if c.b_is_kn else (c.k, c.n)), c.b)
        a, d = layout(c.dtype, c.k, c.m, c.a), layout(c.result, c.n, c.m, c.d)
        preference = self.make("MatmulPreferenceCreate")
        self.set("MatmulPreference", preference, {MOST_WORKSPACE: i64(WORKSPACE_BYTES)})
        found, count = (Algorithm * MOST_ALGORITHMS)(), ctypes.c_int()
        self.call("MatmulAlgoGetHeuristic", self.handle, desc, b, a, d, d, preference, MOST_ALGORITHMS, found,
                  ctypes.byref(count))
        scale, zero = ctypes.c_float(c.scale), ctypes.c_float(0)
        steps = c.b[0] * c.element_bytes, c.a[0] * c.element_bytes, c.d[0] * 2

        def runner(algorithm):
            def run(i):
                at_a, at_b, at_d = work.addresses[i]
                for o in range(c.outer):
                    to_b, to_a, to_d = (at + o * step for at, step in zip((at_b, at_a, at_d), steps))
                    self.call("Matmul", self.handle, desc, ctypes.byref(scale), to_b, b, to_a, a, ctypes.byref(zero),
                              to_d, d, to_d, d, ctypes.byref(algorithm), work.workspace, algorithm.workspace,
                              work.gpu.stream)
            return run
        runners = [runner(each) for each in found[:count.value] if each.state == 0]
        if not runners:
            raise Unfit("cuBLASLt has no algorithm for it on this GPU")
        return runners


def library_peers(gpu, lt, work):
    """The fastest of the proposed algorithms, and the first, which callers get by default."""
    try:
        runners = lt.algorithms(work)
    except (Unfit, RuntimeError) as error:
        def refuse(_, reason=error):
            raise reason
        return [Peer("cublaslt", "cuBLASLt", refuse)]
    times = []
    for number, run in enumerate(runners):
        trial = Peer(f"{work.case.name}, algorithm {number}", "", None, run=run)
        try:
            times.append(statistics.median(gpu.time(trial, 0, True) for _ in range(TRIALS)))
        except Exception:  # an algorithm that fails is no candidate
            times.append(math.inf)
    best = times.index(min(times))
    what = f"cuBLASLt, the fastest of {len(runners)} proposed algorithms (number {best + 1})"
    first = Peer("cublaslt-first", "cuBLASLt, the first proposed algorithm", lambda _: runners[0])
    return [Peer("cublaslt", what, lambda _: runners[best]), *([first] if best else [])]


# ---- roofgen's kernels -----------------------------------------------------------------------------------------------

def ours(bundle, work):
    """The kernel of an unfused bundle for this case: QK^T writes S, PV reads P. Raises Unfit."""
    if bundle.problem["flags"].get("causal"):
        raise Unfit("the bundle is causal: its kernels skip masked elements, cuBLASLt computes all")
    wanted = ("P", "V", "O") if work.case.b_is_kn else ("Q", "K", "S")
    for kernel in bundle.kernels:
        names = {each["name"] for each in kernel["launch"]["args"] if each.get("buffer")}
        if {"Q", "V"} <= names:
            raise Unfit("the bundle's kernel is fused: it has no product of its own to compare")
        if set(wanted[:2]) <= names:
            def build(_, kernel=kernel, others=dict.fromkeys(names, 0)):
                loaded = cuda.Kernel(work.gpu.driver, kernel)
                bound = [loaded.bind({**others, **dict(zip(wanted, at))}) for at in work.addresses]
                return lambda i: bound[i](work.gpu.stream)
            return Peer(f"roofgen:{kernel['stage']}", kernel["entry"], build)
    raise Unfit("the bundle has no kernel for it")


def arguments(argv):
    p = argparse.ArgumentParser(prog="gemm.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    for name, text in (("m", "rows of A and of the result"), ("n", "columns of the result"), ("k", "depth")):
        p.add_argument(f"--{name}", type=int, default=0, help=text)
    p.add_argument("--dtype", choices=list(FORMATS), default="bf16")
    p.add_argument("--epilogue", choices=list(EPILOGUES), default="none")
    p.add_argument("--attention", type=int, nargs=5, metavar=("L", "KV_LEN", "D", "BATCH", "HEADS"))
    compare.add_options(p)
    return p.parse_args(argv, argparse.Namespace(argv=argv))


def chosen_cases(args):
    if args.bundles:
        problem, dims = args.bundles[0].problem, args.bundles[0].problem["dims"]
        if problem["op"] != "attention":
            raise Stop(USAGE, f"no product of {problem['op']} to compare; a bundle of unfused attention was expected")
        if dims["heads"] != dims["kv_heads"]:
            raise Stop(USAGE, "the bundle has grouped keys, which a batched product of cuBLASLt cannot express")
        sizes = [dims[name] for name in ("L", "kv_len", "d", "batch", "heads")]
        return attention_cases(*sizes, problem["dtype"], problem["reals"]["scale"])
    if args.attention:
        return attention_cases(*args.attention, args.dtype)
    if args.m or args.n or args.k:
        return [plain_case(args.m, args.n, args.k, args.dtype, args.epilogue)]
    return suite(args.dtype)


def run(argv):
    args = arguments(argv)
    args.bundles = [cuda.Bundle(path) for path in args.bundle[:1]]
    cases = chosen_cases(args)
    gpu = cuda.Gpu(args.gpu)
    lt = CublasLt()

    def documents():
        for case in cases:
            work, peers = Gemm(gpu, lt, case, args.seed), []
            try:
                peers += [ours(args.bundles[0], work)] if args.bundles else []
            except Unfit as unfit:
                work.notes.append(f"roofgen: {unfit}")
            if not args.bundles:
                work.notes.append("no bundle of roofgen's was given: the peers alone" if args.attention else
                                  "roofgen has no matrix product of its own yet: the peers alone")
            yield compare.compare(gpu, work, [*peers, *library_peers(gpu, lt, work)], args)
            work.free()
    return compare.finish(documents(), args.json)


if __name__ == "__main__":
    sys.exit(compare.guarded(run, sys.argv[1:]))
