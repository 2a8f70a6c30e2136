"""cuBLASLt's matrix products through ctypes, on the tensors of a case. ROOFGEN_CUBLASLT may name the library. The
numbers are cublasLt.h's."""
import ctypes
import functools
import math
import os
import statistics
import types

import cuda
from timing import Unfit

WORKSPACE_BYTES, MOST_ALGORITHMS, TRIALS = 64 << 20, 8, 5
COMPUTE_32F, R_32F, NOT_SUPPORTED = 68, 0, 15  # cublasComputeType_t, cudaDataType_t, cublasStatus_t
TRANSPOSE_A, EPILOGUE, BIAS, BIAS_TYPE = 3, 7, 8, 26  # cublasLtMatmulDescAttributes_t
MOST_WORKSPACE = 1  # cublasLtMatmulPreferenceAttributes_t
EPILOGUES = {"acc": 1, "acc + bias[n]": 4, "relu(acc)": 2, "gelu_tanh(acc + bias[n])": 36}  # cublasLtEpilogue_t
DATA_TYPES = {"bf16": 14, "fp16": 2, "fp8": 28}  # cudaDataType_t


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
            raise Unfit(f"no cuBLASLt: {error}; ROOFGEN_CUBLASLT can name it") from None
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

    def algorithms(self, case):
        """The algorithms proposed for a case, in the order of the heuristic, as functions of a copy's index."""
        problem, dims, texts = case.problem, case.problem["dims"], case.problem["texts"]
        result = problem.get("dtypes", {}).get("out") or problem["dtype"]
        if texts["epilogue"] not in EPILOGUES or texts.get("gated") or texts["a_layout"] != "row" or \
                problem["dtype"] not in DATA_TYPES or result not in DATA_TYPES:
            raise Unfit(f"cuBLASLt has no such product: {texts['epilogue']}")
        m, n, k, i32 = dims["M"], dims["N"], dims["K"], ctypes.c_int32
        b_by_columns = texts["b_layout"] == "col"
        # cuBLASLt is column-major: D^T [n, m] = op(B) [n, k] x A^T [k, m]. Its A is our B, its rows are our columns.
        desc = self.make("MatmulDescCreate", COMPUTE_32F, R_32F)
        self.set("MatmulDesc", desc, {TRANSPOSE_A: i32(b_by_columns), EPILOGUE: i32(EPILOGUES[texts["epilogue"]])})

        def layout(dtype, rows, columns):
            return self.make("MatrixLayoutCreate", DATA_TYPES[dtype], rows, columns, rows)

        b = layout(problem["dtype"], *((k, n) if b_by_columns else (n, k)))
        a, d = layout(problem["dtype"], k, m), layout(result, n, m)
        preference = self.make("MatmulPreferenceCreate")
        self.set("MatmulPreference", preference, {MOST_WORKSPACE: ctypes.c_int64(WORKSPACE_BYTES)})
        bias = [copy.get("bias") for copy in case.copies]
        if bias[0]:
            bias_type = i32(DATA_TYPES[case.buffers["bias"]["dtype"]])
            self.set("MatmulDesc", desc, {BIAS: ctypes.c_int64(bias[0]), BIAS_TYPE: bias_type})
        found, count = (Algorithm * MOST_ALGORITHMS)(), ctypes.c_int()
        self.call("MatmulAlgoGetHeuristic", self.handle, desc, b, a, d, d, preference, MOST_ALGORITHMS, found,
                  ctypes.byref(count))
        workspace = case.allocate(WORKSPACE_BYTES, "cuBLASLt's workspace")
        one, zero = ctypes.c_float(1), ctypes.c_float(0)

        def runner(algorithm):
            def run(i):
                at = case.copies[i]
                if bias[0]:
                    self.set("MatmulDesc", desc, {BIAS: ctypes.c_int64(bias[i])})
                self.call("Matmul", self.handle, desc, ctypes.byref(one), at["B"], b, at["A"], a, ctypes.byref(zero),
                          at["C"], d, at["C"], d, ctypes.byref(algorithm), workspace, algorithm.workspace,
                          case.gpu.stream)
            return run
        runners = [runner(each) for each in found[:count.value] if each.state == 0]
        if not runners:
            raise Unfit("cuBLASLt has no algorithm for it on this GPU")
        return runners


@functools.lru_cache(None)
def library():
    return CublasLt()


def build(_, case, contender):
    """cublaslt: the fastest of the proposed algorithms; cublaslt-first: what a caller gets without a search."""
    runners = library().algorithms(case)
    best = 0
    if contender.name != "cublaslt-first":
        times = []
        for number, run in enumerate(runners):
            name = f"{case.document['name']}, algorithm {number}"
            trial = types.SimpleNamespace(name=name, run=run)
            try:
                times.append(statistics.median(case.gpu.time(trial, 0, True) for _ in range(TRIALS)))
            except Exception:  # an algorithm that fails is no candidate
                times.append(math.inf)
        best = times.index(min(times))
    contender.facts["algorithm"] = f"{best + 1} of {len(runners)}"
    contender.facts["version"] = library().version
    contender.run, contender.place = runners[best], lambda buffer, i: case.copies[i][buffer] if buffer == "C" else None
