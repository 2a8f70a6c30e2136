"""The Python package on the simulated driver: python_test.py [TESTS...] FOLDER"""
import copy
import ctypes
import importlib.util
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
import types
import unittest
import warnings
from pathlib import Path

import roofgen
from roofgen import _tensors

FOLDER = Path(sys.argv.pop())
SKIPPED = 77  # the exit code by which ctest knows that a test did not run
HERE = Path(__file__).resolve().parent


class Device:
    """Device memory by the CUDA driver."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        for call, *arguments in (("cuInit", 0), ("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0),
                                 ("cuCtxSetCurrent", self.context)):
            if getattr(self.cuda, call)(*arguments):
                raise OSError(f"{call} failed")

    def allocate(self, size):
        at = ctypes.c_uint64()
        assert self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)) == 0
        return at.value

    def write(self, at, data):
        assert self.cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(at), data, ctypes.c_size_t(len(data))) == 0

    def read(self, at, size):
        data = ctypes.create_string_buffer(size)
        assert self.cuda.cuCtxSynchronize() == 0
        assert self.cuda.cuMemcpyDtoH_v2(data, ctypes.c_uint64(at), ctypes.c_size_t(size)) == 0
        return data.raw

    def stream(self):
        stream = ctypes.c_void_p()
        assert self.cuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
        return stream.value


def bf16(value):
    """The bits, rounded to nearest even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def of_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


class Memory:
    """A bf16 tensor of seeded numbers from -2 to 2 on the device, and as they are there."""

    def __init__(self, shape, seed, strides=None):
        self.shape, self.strides = tuple(shape), strides or _tensors.contiguous(tuple(shape))
        self.count = 1 + sum((side - 1) * stride for side, stride in zip(self.shape, self.strides))
        numbers = random.Random(seed)
        halves = [bf16(numbers.uniform(-2, 2)) for _ in range(self.count)]
        self.values = [of_bf16(h) for h in halves]
        self.at = device.allocate(2 * self.count)
        device.write(self.at, struct.pack(f"<{self.count}H", *halves))

    def fetch(self):
        return [of_bf16(h) for h in struct.unpack(f"<{self.count}H", device.read(self.at, 2 * self.count))]


class ByArrayInterface:
    def __init__(self, memory, typestr="<V2", **more):
        size = int(typestr[2:])
        self.__cuda_array_interface__ = {
            "shape": memory.shape, "typestr": typestr, "data": (memory.at, False), "version": 3,
            "strides": tuple(stride * size for stride in memory.strides), **more}


def int32(numbers):
    """A tensor of index data."""
    at = device.allocate(4 * max(1, len(numbers)))
    device.write(at, struct.pack(f"<{len(numbers)}i", *numbers))
    memory = types.SimpleNamespace(shape=(len(numbers),), strides=(1,), at=at)
    return ByArrayInterface(memory, "<i4")


class DLManaged(ctypes.Structure):
    _fields_ = [("tensor", _tensors._DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ByDLPack:
    """As a library exports it; `streams` are those for which it was asked."""
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    def __init__(self, memory, code=4, bits=16, kind=2, ordinal=0, offset=0, strides=True):
        self.kind, self.ordinal, self.streams = kind, ordinal, []
        sides = ctypes.c_int64 * len(memory.shape)
        self.shape, self.strides = sides(*memory.shape), sides(*memory.strides)
        pointer = ctypes.POINTER(ctypes.c_int64)
        self.managed = DLManaged(_tensors._DLTensor(
            memory.at - offset, kind, ordinal, len(memory.shape), code, bits, 1, ctypes.cast(self.shape, pointer),
            ctypes.cast(self.strides, pointer) if strides else None, offset))

    def __dlpack_device__(self):
        return self.kind, self.ordinal

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return self.new_capsule(ctypes.addressof(self.managed), b"dltensor", None)


def fake_torch(test):
    """Stands for the module during a test; it has no more than the package and the example use."""
    torch = types.ModuleType("torch")
    torch.queue, torch.asked, torch.allocated = device.stream(), [], []

    class Tensor:
        requires_grad = True  # as it may be inside a custom op; both interfaces refuse such tensors

        def __init__(self, memory, dtype="torch.bfloat16", device_type="cuda"):
            self.memory, self.dtype, self.shape = memory, dtype, memory.shape
            self.device = types.SimpleNamespace(type=device_type, index=0)

        def data_ptr(self):
            return self.memory.at

        def stride(self):
            return self.memory.strides

        def element_size(self):
            return 2 if "16" in self.dtype else 1

        def contiguous(self):
            return self

        def view(self, rows, cols):
            memory = copy.copy(self.memory)
            memory.shape, memory.strides = (memory.count // cols, cols), (cols, 1)
            return Tensor(memory)

    def empty(size, dtype, device):
        torch.allocated.append(size)
        return Tensor(Memory([-(-size // 2)], 1))

    def current_stream(where):
        torch.asked.append(where.index)
        return types.SimpleNamespace(cuda_stream=torch.queue)

    class Operator:
        def __init__(self, function):
            self.call = function

        def __call__(self, *arguments):
            return self.call(*arguments)

        def register_fake(self, function):
            self.fake = function
            return function

    torch.Tensor, torch.empty, torch.uint8, torch.contiguous_format = Tensor, empty, None, None
    torch.empty_like = lambda like, memory_format=None: Tensor(Memory(like.shape, 3))
    torch.library = types.SimpleNamespace(custom_op=lambda name, mutates_args: Operator)
    torch.cuda = types.SimpleNamespace(current_stream=current_stream, is_initialized=lambda: True,
                                       current_device=lambda: 0)
    sys.modules["torch"] = torch
    test.addCleanup(sys.modules.pop, "torch")
    return torch


def rmsnorm(x, weight, rows, cols, eps=1e-6):
    out = []
    for m in range(rows):
        row = x[m * cols:(m + 1) * cols]
        scale = 1 / math.sqrt(sum(v * v for v in row) / cols + eps)
        out += [v * scale * w for v, w in zip(row, weight)]
    return out


def attention(q, k, v, heads, scale):
    """q, k and v are Memory of [1, rows, heads, d], of any strides; the result is contiguous."""
    (_, L, _, d), keys = q.shape, range(k.shape[1])

    def row(t, l, h):
        begin = l * t.strides[1] + h * t.strides[2]
        return t.values[begin:begin + d]

    out = []
    for i in range(L):
        for h in range(heads):
            query = row(q, i, h)
            scores = [scale * sum(a * b for a, b in zip(query, row(k, j, h))) for j in keys]
            most = max(scores)
            weights = [math.exp(s - most) for s in scores]
            total = sum(weights)
            out += [sum(w * row(v, j, h)[e] for j, w in enumerate(weights)) / total for e in range(d)]
    return out


def error(values, expected):
    """Relative to numbers of at least 1; bf16 rounds to half a unit, 1/256."""
    assert len(values) == len(expected)
    return max(abs(a - b) / (abs(b) + 1) if a == a else math.inf for a, b in zip(values, expected))


COLS = 256
TOLERANCE = 1 / 128
UNFUSED_TOLERANCE = 1 / 64  # scores and probabilities are rounded to bf16, too


class Launches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = roofgen.Session(cache=FOLDER / "cache", store=FOLDER / "store")
        cls.kernel = cls.session.jit("rmsnorm", rows=64, cols=COLS, executor="sim", evals=1)
        cls.weight = Memory([COLS], 2)

    def check(self, rows, wrap, kernel=None, /, **more):
        x, y = Memory([rows, COLS], 1), Memory([rows, COLS], 3)
        (kernel or self.kernel)(x=wrap(x), weight=wrap(self.weight), y=wrap(y), **more)
        self.assertLess(error(y.fetch(), rmsnorm(x.values, self.weight.values, rows, COLS)), TOLERANCE)

    def test_array_interface(self):
        for rows in (64, 3, 1):
            self.check(rows, ByArrayInterface)
        self.check(5, lambda m: ByArrayInterface(m, "<u2", strides=None))

    def test_dlpack(self):
        asked = []

        def wrap(memory):
            asked.append(ByDLPack(memory))
            return asked[-1]

        self.check(7, wrap)
        self.assertEqual([t.streams for t in asked], [[1]] * 3)  # the default stream
        stream = device.stream()
        asked.clear()
        self.check(6, wrap, stream=stream)
        self.assertEqual([t.streams for t in asked], [[stream]] * 3)
        self.check(4, lambda m: ByDLPack(m, strides=False, offset=32))

    def test_addresses_and_sizes(self):
        self.check(64, lambda m: m.at)
        self.check(9, lambda m: m.at, rows=9)
        with self.assertRaisesRegex(roofgen.Error, r"x.shape\[0\] is 8, but rows is 9"):
            self.kernel(x=ByDLPack(Memory([8, COLS], 1)), weight=self.weight.at, y=Memory([8, COLS], 1).at, rows=9)

    def test_numbers(self):
        x, y = Memory([2, COLS], 1), Memory([2, COLS], 3)
        self.kernel({"x": ByDLPack(x), "weight": ByDLPack(self.weight)}, y=ByDLPack(y), eps=0.5)
        self.assertLess(error(y.fetch(), rmsnorm(x.values, self.weight.values, 2, COLS, 0.5)), TOLERANCE)
        self.assertGreater(error(y.fetch(), rmsnorm(x.values, self.weight.values, 2, COLS)), TOLERANCE)

    def test_streams(self):
        stream = device.stream()
        for form in (stream, types.SimpleNamespace(cuda_stream=stream), types.SimpleNamespace(ptr=stream)):
            self.check(3, ByArrayInterface, stream=form)
        protocol = type("Stream", (), {"__cuda_stream__": lambda _: (0, stream)})
        self.check(3, ByArrayInterface, stream=protocol())
        # Data of another stream is waited for.
        producer = device.stream()
        self.check(3, lambda m: ByArrayInterface(m, stream=producer))
        self.check(3, lambda m: ByArrayInterface(m, stream=producer), stream=stream)
        with self.assertRaisesRegex(roofgen.Error, "cannot wait for its stream"):
            self.check(3, lambda m: ByArrayInterface(m, stream=0xDEAD0))
        with self.assertRaises(roofgen.Error):
            self.check(3, ByArrayInterface, stream=0xDEAD0)
        with self.assertRaisesRegex(roofgen.Error, "stream is of type str"):
            self.check(3, ByArrayInterface, stream="default")

    def test_misuses(self):
        rows = 8
        x, y = Memory([rows, COLS], 1), Memory([rows, COLS], 3)
        right = {"x": ByDLPack(x), "weight": ByDLPack(self.weight), "y": ByDLPack(y)}
        usage, unavailable = roofgen.USAGE, roofgen.UNAVAILABLE
        table = [
            ({"x": ByDLPack(x, code=2)}, usage, "x has elements of fp16; bf16 was expected"),
            ({"x": ByDLPack(x, code=2, bits=64)}, usage, "x has elements of DLPack's type 2, 64 bits; bf16 was expected"),
            ({"x": ByArrayInterface(x, "<f4")}, usage, "x has elements of fp32"),
            ({"x": ByArrayInterface(x, ">u2")}, usage, "x has elements of >u2"),
            ({"x": ByDLPack(x, kind=1)}, usage, "x is on a device of DLPack's type 1; CUDA"),
            ({"x": ByDLPack(x, ordinal=1)}, usage, "x is on the CUDA device 1; the kernels are on 0"),
            ({"x": ByDLPack(Memory([rows * COLS], 1))}, usage, "x has 1 dimensions; 2 were expected: rows, cols"),
            ({"x": ByDLPack(Memory([rows + 1, COLS], 1))}, usage, "y.shape[0] is 8, but x.shape[0] is 9"),
            ({"weight": ByDLPack(Memory([COLS + 8], 1))}, usage, "weight.shape[0] is 264, but x.shape[1] is 256"),
            ({"x": ByDLPack(Memory([rows, COLS], 1, (2 * COLS, 1)))}, usage,
             "x has the strides (512, 1); (256, 1) elements were expected"),
            ({"x": ByDLPack(Memory([rows, COLS], 1, (1, rows)))}, usage, "x has the strides (1, 8)"),
            ({"x": ByArrayInterface(x, mask=right["x"])}, usage, "x has a mask"),
            ({"x": ByArrayInterface(x, strides=(2 * COLS + 1, 2))}, usage, "which are no multiples of its 2"),
            ({"y": ByArrayInterface(y, data=(y.at, True))}, usage, "y is an output, but its tensor is read-only"),
            ({"y": right["x"]}, usage, "x shares memory with y"),
            ({"y": y.at + 2}, usage, "y is not aligned to 16 bytes"),
            ({"y": 0}, usage, "y is null"),
            ({"y": 2**64 + y.at}, usage, "which is no address"),
            ({"y": -16}, usage, "y is -16, which is no address"),
            ({"x": "abc"}, usage, "x is of type str; a tensor with"),
            ({"x": None}, usage, "x is of type NoneType"),
            ({"x": 1.5}, usage, "x is of type float"),
            ({"wieght": ByDLPack(self.weight)}, usage, 'no argument wieght; did you mean "weight"?'),
            ({"row": 8}, usage, 'no argument row; did you mean "rows"?'),
            ({"rows": right["x"]}, usage, "rows is a size, no tensor"),
            ({"rows": 8.0}, usage, "rows: a whole number was expected"),
            ({"rows": 2**70}, usage, "has no 64 bits"),
            ({"rows": 7}, usage, "x.shape[0] is 8, but rows is 7"),
            ({"eps": "small"}, usage, "eps is a real, no tensor"),
        ]
        for change, status, part in table:
            with self.subTest(part), self.assertRaises(roofgen.Error) as raised:
                self.kernel({**right, **change})
            self.assertEqual(raised.exception.status, status)
            self.assertIn(part, str(raised.exception))
        with self.assertRaises(roofgen.Error) as raised:
            self.kernel(x=right["x"], y=right["y"])
        self.assertIn("weight is null or missing", str(raised.exception))
        # Kernels of rows of this length are not these.
        wide = {name: ByDLPack(Memory(s, 1)) for name, s in (("x", [2, 99999]), ("weight", [99999]), ("y", [2, 99999]))}
        with self.assertRaises(roofgen.Error) as raised:
            self.kernel(wide)
        self.assertEqual(raised.exception.status, unavailable)
        self.kernel(right)

    def test_strides_stages_and_workspace(self):
        heads, L, d = 2, 64, 64
        kernel = self.session.jit("attention", L=L, d=d, heads=heads, batch=1, variant="unfused", executor="sim", evals=1)
        shape = (1, L, heads, d)
        q = Memory(shape, 1, (1 << 20, heads * d + 16, d, 1))  # the stride of one sequence matters to nobody
        k, v, o = (Memory(shape, seed) for seed in (2, 3, 4))
        arguments = {name: ByDLPack(m) for name, m in zip("QKVO", (q, k, v, o))}
        needed = kernel.workspace_bytes(arguments)
        self.assertGreaterEqual(needed, L * L * heads * 2)
        with self.assertRaisesRegex(roofgen.Error, "workspace is null"):
            kernel(arguments)
        workspace = Memory([needed // 2], 5)
        expected = attention(q, k, v, heads, 1 / math.sqrt(d))
        for form in (ByArrayInterface(workspace), ByDLPack(workspace), workspace.at):
            device.write(o.at, bytes(2 * o.count))
            kernel(arguments, workspace=form)
            self.assertLess(error(o.fetch(), expected), UNFUSED_TOLERANCE)
        with self.assertRaisesRegex(roofgen.Error, "were expected"):
            kernel(arguments, workspace=ByDLPack(Memory([needed // 2 - 1], 5)))
        with self.assertRaisesRegex(roofgen.Error, r"Q.shape\[3\] is 32; 64 was expected") as raised:
            kernel({**arguments, "Q": ByDLPack(Memory((1, L, heads, 32), 1))})
        self.assertEqual(raised.exception.status, roofgen.UNAVAILABLE)
        with self.assertRaisesRegex(roofgen.Error, "a stride of Q is 130 elements"):
            kernel({**arguments, "Q": ByDLPack(Memory(shape, 1, (1 << 20, heads * d + 2, d, 1)))}, workspace=workspace.at)

    def test_torch(self):
        """The part for torch, with a module that has no more than the package uses."""
        torch = fake_torch(self)
        Tensor = torch.Tensor
        self.check(5, Tensor)
        self.assertEqual(torch.asked, [0])
        torch.asked.clear()
        self.check(5, Tensor, stream=torch.queue)
        self.check(5, ByDLPack)  # the default stream
        self.assertEqual(torch.asked, [])
        good, torch.queue = torch.queue, 0xDEAD0
        with self.assertRaises(roofgen.Error):
            self.check(5, Tensor)
        torch.queue = good
        for wrap, part in ((lambda m: Tensor(m, "torch.float16"), "x has elements of fp16"),
                           (lambda m: Tensor(m, "torch.float64"), "x has elements of float64"),
                           (lambda m: Tensor(m, device_type="cpu"), "; a CUDA device was expected")):
            with self.assertRaises(roofgen.Error) as raised:
                self.check(5, wrap)
            self.assertIn(part, str(raised.exception))
        kernel = self.session.jit("attention", L=64, d=64, heads=2, batch=1, variant="unfused", executor="sim", evals=1)
        q, k, v, o = (Memory([1, 64, 2, 64], seed) for seed in (1, 2, 3, 4))
        kernel(Q=Tensor(q), K=Tensor(k), V=Tensor(v), O=Tensor(o))
        self.assertEqual(torch.allocated, [kernel.workspace_bytes()])
        self.assertLess(error(o.fetch(), attention(q, k, v, 2, 0.125)), UNFUSED_TOLERANCE)

    def test_packed_sequences(self):
        """With other sequences than in the request, and tensors of three and of four sides."""
        kernel = self.session.jit("attention", lengths="20,12", d=64, heads=2, variant="fused", executor="sim", evals=1)
        for lengths, sides in (((20, 12), ()), ((20, 7), (1,)), ((3, 20, 1), ()), ((5,), ())):
            tokens = sum(lengths)
            q, k, v, o = (Memory([*sides, tokens, 2, 64], seed) for seed in (1, 2, 3, 4))
            starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
            kernel(Q=ByDLPack(q), K=ByDLPack(k), V=ByDLPack(v), O=ByDLPack(o), cu_seqlens=int32(starts))
            expected = []
            for first, rows in zip(starts, lengths):
                part = [types.SimpleNamespace(shape=(1, rows, 2, 64), strides=(0, 128, 64, 1),
                                              values=m.values[128 * first:128 * (first + rows)]) for m in (q, k, v)]
                expected += attention(*part, 2, 0.125)
            self.assertLess(error(o.fetch(), expected), TOLERANCE)
        with self.assertRaisesRegex(roofgen.Error, r"tokens must be at most batch \* L; L is 20; batch is 2; tokens is 41"):
            big = ByDLPack(Memory([41, 2, 64], 1))
            kernel(Q=big, K=big, V=big, O=ByDLPack(Memory([41, 2, 64], 2)), cu_seqlens=int32([0, 20, 41]))

    def test_caches(self):
        """Other sequences, capacities and page tables than in the request; an empty sequence has O = 0."""
        for variant, page in (("fused", 0), ("unfused", 0), ("merged4", 16), ("warpgroup", 16)):
            kernel = self.session.jit("attention", L=1, d=64, heads=2, kv_lengths="40,512", variant=variant,
                                      executor="sim", evals=1, **({"page": page} if page else {}))
            for lengths, capacity in (((40, 512), 512), ((5,), 32), ((100, 0, 33), 112)):
                batch, shape = len(lengths), (len(lengths), capacity, 2, 64)
                q, o = (Memory((batch, 1, 2, 64), seed) for seed in (1, 4))
                k, v = (Memory(shape, seed) for seed in (2, 3))
                tensors = {"Q": q, "K": k, "V": v, "O": o}
                if page:  # in their order, each sequence in pages of its own
                    for m in (k, v):
                        m.shape = (batch * capacity // page, page, 2, 64)
                        m.strides = _tensors.contiguous(m.shape)
                arguments = {name: ByDLPack(m) for name, m in tensors.items()}
                arguments["kv_lengths"] = int32(lengths)
                if page:
                    table = int32(range(batch * capacity // page))
                    table.__cuda_array_interface__.update(shape=(batch, capacity // page), strides=None)
                    arguments["block_table"] = table
                workspace = device.allocate(max(256, kernel.workspace_bytes(arguments)))
                kernel(arguments, workspace=workspace)
                expected = []
                for b, keys in enumerate(lengths):
                    part = [types.SimpleNamespace(shape=(1, rows, 2, 64), strides=(0, 128, 64, 1),
                                                  values=m.values[128 * first * b:128 * (first * b + rows)])
                            for m, first, rows in ((q, 1, 1), (k, capacity, keys), (v, capacity, keys))]
                    expected += attention(*part, 2, 0.125) if keys else [0] * 128
                self.assertLess(error(o.fetch(), expected), UNFUSED_TOLERANCE, (variant, page, lengths))
        with self.assertRaisesRegex(roofgen.Error, r"kv_len must be at most pages_per_sequence \* page; kv_len is 113"):
            kernel(arguments, workspace=workspace, kv_len=113)

    def test_experts(self):
        """Other rows, tokens and experts than in the request; rows of no expert stay as they are."""
        for variant in ("fused", "warpgroup"):
            kernel = self.session.jit("grouped_gemm", tokens=20, topk=2, experts=2, N=64, K=64, gather=True,
                                      variant=variant, executor="sim", evals=1)
            for rows_of, tokens in (((20, 20), 20), ((0, 3, 1), 2), ((70, 0), 40), ((0, 0), 3)):
                experts, rows = len(rows_of), sum(rows_of)
                a, b, c = Memory((tokens, 64), 1), Memory((experts * 64, 64), 2), Memory((rows + 2, 64), 3)
                routed = [(7 * i) % tokens for i in range(rows + 2)]
                offsets = [sum(rows_of[:e]) for e in range(experts + 1)]
                before = c.fetch()
                kernel(A=ByDLPack(a), B=ByDLPack(b), C=ByDLPack(c), offsets=int32(offsets), row_tokens=int32(routed))
                expected = []
                for e in range(experts):
                    for m in range(offsets[e], offsets[e + 1]):
                        row = a.values[64 * routed[m]:64 * routed[m] + 64]
                        expected += [sum(x * y for x, y in zip(row, b.values[64 * n:64 * n + 64]))
                                     for n in range(64 * e, 64 * e + 64)]
                got = c.fetch()
                self.assertLess(error(got[:64 * rows], expected) if rows else 0, TOLERANCE, (variant, rows_of))
                self.assertEqual(got[64 * rows:], before[64 * rows:])

    def test_capture(self):
        """Captured calls of other lengths and experts are requests; calls of nothing are none."""
        file = FOLDER / "launches.jsonl"
        os.environ["ROOFGEN_CAPTURE"] = str(file)
        self.addCleanup(os.environ.pop, "ROOFGEN_CAPTURE")
        common = {"N": 64, "K": 64, "variant": "fused", "executor": "sim", "evals": 1}
        kernel = self.session.jit("grouped_gemm", sizes="20,20", **common)
        for rows, experts in ((40, 2), (5, 3), (0, 3)):
            a, b, c = (Memory((max(side, 1), 64), 1) for side in (rows, experts * 64, rows))
            offsets = int32([0, *[rows] * experts])
            kernel(A=a.at, B=b.at, C=c.at, offsets=offsets, M=rows)
        kernel.close()
        common = {"d": 64, "heads": 2, "variant": "fused", "executor": "sim", "evals": 1}
        kernel = self.session.jit("attention", L=1, kv_lengths="0,40", **common)
        for batch, keys in ((2, 40), (3, 32), (1, 64)):
            m = Memory((batch, keys, 2, 64), 1)
            q, o = (ByDLPack(Memory((batch, 1, 2, 64), seed)) for seed in (1, 4))
            kernel(Q=q, K=ByDLPack(m), V=ByDLPack(m), O=o, kv_lengths=int32([keys] * batch))
        kernel.close()
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        captured = [tuple(line.get(name) for name in ("M", "experts", "kv-lengths", "batch")) for line in lines]
        self.assertEqual(captured, [(40, 2, None, None), (5, 3, None, None), (None, None, "40,0", 2),
                                    (None, None, "32,0,32", 3), (None, None, 40, 1)])
        for line in lines:
            line.pop("count")
            self.session.generate(line.pop("op"), **line)

    def test_empty(self):
        """Without rows, tokens or sequences nothing is launched, and no tensor needs an address."""
        def empty(*shape):
            memory = types.SimpleNamespace(shape=shape, strides=_tensors.contiguous(shape), at=0, count=0)
            return ByArrayInterface(memory)

        x = empty(0, COLS)
        self.kernel(x=x, weight=ByDLPack(self.weight), y=x)
        self.assertEqual(self.kernel.workspace_bytes(x=x), 0)
        kernel = self.session.jit("attention", L=64, d=64, heads=2, batch=1, variant="unfused", executor="sim", evals=1)
        for shape in ((0, 64, 2, 64), (0, 0, 2, 64)):
            kernel(Q=empty(*shape), K=empty(*shape), V=empty(*shape), O=empty(*shape))
        keys = ByDLPack(Memory((3, 64, 2, 64), 1))
        kernel(Q=empty(3, 0, 2, 64), K=keys, V=keys, O=empty(3, 0, 2, 64))
        with self.assertRaisesRegex(roofgen.Error, "kv_len is 0; 1 to 2147483647 was expected"):
            kernel(Q=keys, K=empty(3, 0, 2, 64), V=empty(3, 0, 2, 64), O=ByDLPack(Memory((3, 64, 2, 64), 1)))

    def test_torch_example(self):
        """Without torch it is skipped; with the module of the tests its operator computes."""
        path = HERE / "../../examples/torch/rmsnorm.py"
        program = [sys.executable, "-S", str(path)]  # -S: no torch, where there is one
        run = subprocess.run(program, capture_output=True, text=True)
        self.assertEqual(run.returncode, SKIPPED, run.stderr)
        self.assertRegex(run.stderr, "^skipped: No module named 'torch'")
        torch = fake_torch(self)
        spec = importlib.util.spec_from_file_location("rmsnorm_example", path)
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        for shape in ((16, COLS), (2, 3, COLS), (1, 16, COLS)):
            x = torch.Tensor(Memory(shape, 1))
            y = example.rmsnorm(x, torch.Tensor(self.weight))
            self.assertEqual((y.shape, example.rmsnorm.fake(x, None).shape), (shape, shape))
            expected = rmsnorm(x.memory.values, self.weight.values, math.prod(shape[:-1]), COLS)
            self.assertLess(error(y.memory.fetch(), expected), TOLERANCE)
        self.assertLessEqual(len(example.kernels[0, COLS]), 2)

    def test_threads(self):
        failures = []

        def work(first):
            try:
                for rows in range(first, first + 6):
                    self.check(rows, ByDLPack)  # without a context of its own
                    self.session.generate("softmax", rows=rows, cols=COLS)
            except BaseException as failure:
                failures.append(failure)

        def with_context(first):
            device.cuda.cuCtxSetCurrent(device.context)
            work(first)

        threads = [threading.Thread(target=with_context, args=(first,)) for first in (10, 12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_life(self):
        session = roofgen.Session(cache=FOLDER / "cache", store=FOLDER / "store")
        kernel = session.jit("rmsnorm", rows=64, cols=COLS, executor="sim", evals=1)
        session.close()
        session.close()
        with self.assertRaisesRegex(roofgen.Error, "the session is closed"):
            session.generate("rmsnorm", rows=64, cols=COLS)
        session.cancel()
        self.check(2, ByDLPack, kernel)  # outlives its session
        kernel.close()
        kernel.close()
        with self.assertRaisesRegex(roofgen.Error, "the pipeline is closed"):
            self.check(2, ByDLPack, kernel)
        with roofgen.Session(cache="", store="") as scoped:
            self.assertTrue(scoped.explain("gemm", M=128, N=4096, K=4096).report)
        with self.assertRaises(roofgen.Error):
            scoped.explain("gemm", M=128, N=4096, K=4096)


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = roofgen.Session(cache=FOLDER / "cache", store=FOLDER / "store")

    def test_results(self):
        tuned = self.session.tune("rmsnorm", rows=64, cols=COLS, evals=2, executor="sim")
        self.assertEqual(tuned.report["problem"]["op"], "rmsnorm")
        self.assertIn(": ", tuned.verdict)
        kernel, = tuned.kernels
        self.assertIn(kernel.entry, kernel.source)
        self.assertIn(kernel.entry, kernel.ptx)
        self.assertTrue(kernel.cubin.startswith(b"\x7fELF"))
        self.assertGreater(kernel.registers, 0)
        self.assertEqual(len(kernel.digest), 64)
        chosen = self.session.compile("rmsnorm", rows=64, cols=COLS, set={"row_threads": 32, "threads": 128})
        self.assertIn("row_threads=32 threads=128", chosen.kernels[0].schedule)
        self.assertEqual(chosen.text, chosen.kernels[0].ptx)
        source = self.session.generate("rmsnorm", rows=64, cols=COLS, quant=None)
        self.assertEqual((source.text, source.kernels[0].cubin), (source.kernels[0].source, b""))
        emitted = self.session.emit("rmsnorm", FOLDER / "bundle", rows=64, cols=COLS, evals=2, executor="sim")
        self.assertTrue((FOLDER / "bundle" / "manifest.json").exists(), emitted.text)
        self.assertEqual(self.session.explain("attention", L=64, d=64, kv_len=128).report["dims"]["kv_len"], 128)

    def test_errors(self):
        for method, flags, status, part in (
                ("tune", dict(op="rmsnrom", rows=64, cols=COLS), roofgen.USAGE, "rmsnorm"),
                ("tune", dict(op="rmsnorm", rows=64, col=COLS), roofgen.USAGE, "did you mean --cols?"),
                ("tune", dict(op="rmsnorm", rows=object(), cols=COLS), roofgen.USAGE, "no JSON"),
                ("jit", dict(op="rmsnorm", rowz=64), roofgen.USAGE, "--rows"),
                ("compile", dict(op="rmsnorm", rows=64, cols=COLS, arch="sm_70"), roofgen.UNAVAILABLE, "sm_70"),
                ("generate", dict(op="rmsnorm", rows=64, cols=COLS, set={"threadz": 1}), roofgen.USAGE, "no such")):
            with self.subTest(part), self.assertRaises(roofgen.Error) as raised:
                getattr(self.session, method)(**flags)
            self.assertEqual(raised.exception.status, status)
            self.assertIn(part, str(raised.exception))
        with self.assertRaises(roofgen.Error) as raised:
            self.session.tune("rmsnorm", rows=64, cols=COLS, evals={})
        self.assertEqual((raised.exception.line, raised.exception.column > 1), (1, True))
        with self.assertRaises(roofgen.Error) as raised:
            self.session.tune("rmsnorm", rows=64, cols=COLS, evals=2, executor="sim", min_score=0.999)
        self.assertEqual(raised.exception.status, roofgen.BELOW_SCORE)
        self.assertTrue(raised.exception.result.kernels)

    def test_warnings(self):
        request = dict(rows=64, cols=COLS, evals=2, executor="sim", gpu=0)
        with self.assertWarnsRegex(roofgen.RoofgenWarning, "--gpu has no effect") as caught:
            self.session.tune("rmsnorm", **request)
        self.assertEqual(caught.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(roofgen.RoofgenWarning):
                self.session.tune("rmsnorm", **request)

    def test_cancel(self):
        """Another thread's call, and Ctrl-C in the main thread; both once the search runs. Later calls run."""
        began = threading.Event()
        session = roofgen.Session(cache=FOLDER / "cancelled", store="", progress=lambda *_: began.set())
        request = dict(L=2048, d=64, executor="sim", evals=400)
        outcome = []

        def search():
            try:
                outcome.append(session.tune("attention", **request))
            except roofgen.Error as stopped:
                outcome.append(stopped)

        thread = threading.Thread(target=search)
        thread.start()
        self.assertTrue(began.wait(60))
        session.cancel()
        thread.join(60)
        self.assertEqual(outcome[0].status, roofgen.INTERRUPTED)
        began.clear()

        def interrupt():
            began.wait()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            session.tune("attention", **request)
        self.assertTrue(began.is_set())
        self.assertTrue(session.generate("rmsnorm", rows=64, cols=COLS).text)
        began = time.monotonic()
        session.close()  # no call runs any more
        self.assertLess(time.monotonic() - began, 5)

    def test_interrupts(self):
        """At any place of a call."""
        numbers = random.Random(1)
        for _ in range(50):
            timer = threading.Timer(numbers.uniform(0, 0.02), os.kill, (os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                while True:
                    self.session.generate("rmsnorm", rows=64, cols=COLS)
            timer.join()
        self.assertTrue(self.session.generate("rmsnorm", rows=64, cols=COLS).text)
        self.assertEqual(self.session._calls, 0)

    def test_names(self):
        for name in roofgen.__all__:
            self.assertTrue(getattr(roofgen, name).__doc__ or isinstance(getattr(roofgen, name), int), name)
        self.assertRegex(roofgen.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    try:
        device = Device()
        roofgen.compile("rmsnorm", rows=64, cols=COLS)
    except (OSError, roofgen.Error) as missing:
        print(f"skipped: {missing}", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
