#!/usr/bin/env python3
"""Runs `roofgen check` (or `run`) on public suites of kernels with known faults, and counts what is found.

  public.py SUITE FOLDER [--roofgen PROGRAM] [--schedules N] [--only TEXT] [--findings]

SUITE is scor, scor_plain, gpuverify, gpurepair, faial or simulee; with nvcc and `roofgen run`: samples, cusan, esbmc.
FOLDER is the unpacked repository (docs/evidence/check-suites.md). The suites' own lines give label, grid and block;
`roofgen check --emit-args` gives the arguments: buffers become long, and 0, 1, 2, ... fills them. Prints each kernel
that disagrees with its label, and the counts; --findings prints all kernels. A good kernel counts as flagged if there
is any finding, a bad one as found if there is one that can be its fault."""
import argparse
import collections
import json
import math
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

SIZE = 1 << 20  # elements of a buffer: more than any index
ORDER = {"race", "unfenced", "barrier-order", "deadlock", "divergent-barrier", "bad-barrier", "partial-warp",
         "bad-member-mask"}
MEMORY = {"out-of-bounds", "misaligned", "out-of-array", "write-to-input", "assert", "trap"}
# GPUVerify's annotations, and functions of CUDA that are gone.
PRELUDE = "using uint = unsigned;\n#include <cfloat>\n#define __axiom(...) struct gpuverify_axiom\n" \
    "#define __builtin_memcpy memcpy\n#define __builtin_memset memset\n" + "".join(
        f"#define {name}(...) ((void)0)\n" for name in (
            "__requires", "__ensures", "__invariant", "__global_invariant", "__assume", "__barrier_invariant",
            "__function_wide_invariant", "__requires_fresh_array"))
GROUPS = "#include <cooperative_groups.h>\n" \
    "namespace cooperative_groups { template <class G> __device__ void synchronize(G g) { g.sync(); } }\n"
# Headers that CuSan includes without need; of ESBMC-GPU, and those that CUDA 13 does not have.
STUBS = {at: "" for at in ("mpi.h", "mpi-ext.h", "call_kernel.h", "cutil.h", "device_functions.h", "math_functions.h",
                           "sm_atomic_functions.h", "host_defines.h")}
# What ESBMC-GPU's programs expect.
CUTIL = "".join(f"#include <{at}>\n" for at in ("cassert", "cstdio", "cstdlib", "cstring", "cuda.h"))
CUTIL += "".join(f"#define {name}\n" for name in (
    "cudaThreadSynchronize cudaDeviceSynchronize", "cudaThreadExit cudaDeviceReset", "CUDA_SAFE_CALL(at) at",
    "CUT_SAFE_CALL(at) at", "CUT_SAFE_MALLOC(at) at", "CUT_BANK_CHECKER(at, i) at[i]", "CUT_DEVICE_INIT(...)",
    "CUT_CHECK_ERROR(...)", "CUT_EXIT(...)", "cutCreateTimer(...) 0", "cutStartTimer(...) 0", "cutStopTimer(...) 0",
    "cutDeleteTimer(...) 0", "cutGetTimerValue(...) 0.0f"))


@dataclass
class Case:
    file: Path
    bad: bool
    kernel: str = ""  # empty: all kernels of the file
    grid: str = ""  # empty: as the file launches it
    block: str = ""
    set: dict = field(default_factory=dict)  # argument: keys of its JSON object that change
    prelude: str = ""
    edit: tuple = ()  # pairs for re.sub
    kinds: frozenset = frozenset(ORDER)  # what can be the labelled fault
    name: str = ""
    flags: tuple = ()
    structs: bool = False  # a struct by value is full of pointers
    program: bool = False  # compile it with nvcc and `roofgen run` it


def header(text, most=64):
    """Label, grid, block and macros of GPUVerify's first lines; at most `most` CTAs in a dimension, 1024 threads."""
    def limit(key, otherwise, top):
        found = re.search(rf"--{key}=\[?([\d, ]+)", text)
        dims = [min(int(at), top) for at in found[1].split(",")] if found else [otherwise]
        return ",".join(map(str, dims if key == "gridDim" or math.prod(dims) <= 1024 else [8] * len(dims)))

    label = re.match(r"//\s*(pass|xfail:?\w*)", text, re.I)
    defines = "".join(f"#define {name} {to}\n" for name, to in re.findall(r"-D(\w+)=(\w+)", text[:600]))
    return label[1].lower() if label else "", limit("gridDim", 1, most), limit("blockDim", 64, 1024), defines


def row(folder, line, **more):
    """FILE KERNEL GRID BLOCK bad|good [ARGUMENT=VALUE | ARGUMENT=fill:VALUE | ARGUMENT=random:TOP | ARGUMENT=A,B]"""
    file, kernel, grid, block, label, *values = line.split()
    change = {}
    for name, to in (at.split("=") for at in values):
        kind, _, value = to.rpartition(":")
        change[name] = {"fill": float(value) if "." in value else int(value)} if kind == "fill" else \
            {"fill": "random", "range": [0, int(value)]} if kind else \
            {"size": to.count(",") + 1, "values": list(map(int, to.split(",")))} if "," in to else {"value": int(to)}
    return Case(folder / file, label == "bad", kernel, grid, block, change, **more)


def scor(folder, edit=()):
    for file in sorted((folder / "microbenchmarks/src").glob("*.cu")):
        yield Case(file, file.name.startswith("race_"), set={"data": {"fill": 0}}, edit=edit)


def scor_plain(folder):
    """The same with plain accesses to the data: with `volatile` they do not race by the PTX memory model."""
    return scor(folder, (("volatile ", ""),))


def gpuverify(folder):
    for file in sorted((folder / "testsuite/CUDA").rglob("kernel.cu")):
        label, grid, block, defines = header(file.read_text(errors="replace"))
        if label in ("pass", "xfail:not_all_verified"):
            curand = "#include <curand_kernel.h>\n" if "curand" in str(file) else ""
            null = {"i": {"value": 0}} if "funcptr_to_ptr_add" in str(file) else {}  # with others there is no fault
            yield Case(file, label != "pass", grid=grid, block=block, structs=True, flags=("--cooperative",), set=null,
                       kinds=frozenset(ORDER | MEMORY | {"bad-branch"}), prelude=curand + PRELUDE + defines,
                       edit=((r"__assert\(([^_].*)\);", r"assert(\1);"), (r"__assert\(.*\);", ""),
                             (r"__requires\((\w+) == (\w+ByTwo).*\);", r"\1 = \2;")))


def gpurepair(folder):
    good = ("unnecessary_barrier", "race_syncthreads", "race_grid_group", "race_thread_block")
    for suite in ("Bugged", "Bugged_Cooperative", "MicroBenchmarks"):
        for file in sorted((folder / "tests/testsuite" / suite).rglob("kernel.cu")):
            _, grid, block, _ = header(file.read_text())
            yield Case(file, file.parent.name not in good, grid=grid, block=block, prelude=PRELUDE,
                       set={"N": {"value": 32}}, flags=("--cooperative",))


def faial(folder):
    """Labels of file names; they hold for one CTA."""
    special = {"drf-2d": {"block": "256", "set": {"x": {"type": "f32", "size": SIZE, "fill": 1}}},
               "drf-warp": {"block": "32"}, "racy-grid-level": {"grid": "2"},
               "racy-atomics": {"edit": ((r"int \*y", "unsigned *y"),)}, "racy-2d": {"edit": ((r"1024", "64"),)},
               "racy-device": {"edit": ((r"float \*y;", "float y[4096];"),)},
               "racy-template": {"kernel": "saxpy<float>"}, "racy-template-alias": {"kernel": "saxpy<float>"},
               "drf-template-index": {"kernel": "saxpy<int>"}, "racy-loop1": {"set": {"n": {"value": 0}}},
               "racy-loop2": {"set": {"n": {"value": 1}}},
               "racy-kernel-calls-return": {"set": {"array": {"fill": "random", "range": [0, 63]}}}}
    for file in sorted([*(folder / "examples/drf").glob("drf-*.cu"), *(folder / "examples/drf").glob("racy-*.cu")]):
        case = {"grid": "1", "block": header(file.read_text())[2], "prelude": PRELUDE} | special.get(file.stem, {})
        yield Case(file, file.name.startswith("racy"), **case)


SIMULEE = """kaldi-new-bug/new-func.cu _copy_low_upp 1 4,4 bad rows=4 stride=1
kaldi-new-bug/new-func.cu _copy_upp_low 1 4,4 bad rows=4 stride=1
kaldi-new-bug/new-func.cu _add_diag_vec_mat 1 4,4 bad rows=4 cols=4 stride=1
kaldi-new-bug/new-func.cu _copy_from_tp 1 4,4 bad dmat_cols=4 dmat_rows=4 dmat_stride=1
kaldi-new-bug/new-func.cu _copy_from_mat 1 4,4 bad d_out_stride=1 d_out_rows=4 d_out_cols=4 d_in_stride=4
kaldi-new-bug/new-func.cu _splice 1 4,4 bad d_out_cols=4 d_out_rows=4 d_out_stride=1 d_in_cols=4 d_in_rows=4 off=fill:0
kaldi-new-bug/new-func.cu _trace_mat_mat_trans 1 32,8 bad dA_rows=8 dA_cols=32 dA_stride=32 B_stride=32
kaldi-new-bug/fse-func.cu kernel 1 64 bad
kaldi-repair/_add_diag_mat.cu _add_diag_mat_mat 1 128 bad v_dim=16 M_cols=8
thundersvm-new-bug/new-fun.cu c_smo_solve_kernel 1 64 bad label=fill:1 working_set=random:3 Cp=100 Cn=100 max_t_iter=3
thundersvm-repair/smo_kernel.cu nu_smo_solve_kernel 1 64 bad label=fill:1 working_set=random:3 C=100 f_values=fill:1
gunrock/gunrock.cu Join 4 33 bad edges=2 iter=0 pos=2,100 counts=fill:2 intersect=random:3 froms=random:3 tos=random:3
cudaSift-new-bug/new-func.cu FindMaxCorr 2 16,16 bad numPts1=20 corrWidth=64 siftSize=1
cudaSift-new-bug/new-func.cu MatchSiftPoints 2,2 16,16 good numPts1=32 numPts2=32
cudaSift-new-bug/new-func.cu MatchSiftPoints2 2,2 16,16 good numPts1=32 numPts2=32
cudaSift-new-bug/new-func.cu MatchSiftPoints4 2,2 16,16 good numPts1=32 numPts2=32
cudpp-new-bug/new-func.cu sparseMatrixVectorSetFlags 2 32 good d_rowindx=random:63 numRows=512
cuda-cnn-new-bug/new-func.cu g_getCost_3 1 32 good wlen=32
cuda-convnet2-new-bug/new-func.cu kTile 2,2 3 good srcWidth=2 srcHeight=2 tgtWidth=4 tgtHeight=4
cuda-convnet2-new-bug/new-func.cu kDotProduct_r 2 512 bad numElements=2048
cuda-convnet2-new-bug/new-func.cu kReflectH 1,16 32,4 good imgSize=8 numCases=32 numColors=1 imgsPerThread=1
cudamat-new-bug/new-func.cu kMinColumnwise 2 32 good width=2 height=64
cudamat-new-bug/new-func.cu kRandomGaussian 96 128 good numElements=24576
arrayfire-repair/scan_dim.hpp scan_dim_kernel 2 16,16 bad blocks_x=2 blocks_y=2 lim=3
arrayfire-repair/scan_dim_by_key_impl.hpp scan_dim_nonfinal_kernel 2 32,5 bad blocks_x=2 blocks_y=2 lim=3
arrayfire-repair/scan_first_by_key_impl.hpp scan_nonfinal_kernel 1 5,5 bad blocks_x=2 blocks_y=2 lim=3
arrayfire-repair/reduce.cu warp_reduce 1 34 bad
arrayfire-repair/reducebd.cpp warp_reduce 1 34 bad
arrayfire-repair/homography.hpp computeEvalHomography 1 128 bad iterations=128
arrayfire-repair/hamming1.cu hamming_matcher_unroll 1 256 bad max_dist=100
arrayfire-repair/hamming2.cu hamming_matcher 1 256 bad max_dist=100
arrayfire-repair/hamming3.cu hamming_matcher 1 256 bad max_dist=100
arrayfire-repair/hamming4.cu hamming_matcher_unroll 1 256 bad max_dist=100
arrayfire-repair/hamming5.cu hamming_matcher_unroll 1 36 bad max_dist=100
arrayfire-repair/JacobiSVD.cu JacobiSVD 1 16,16 bad
arrayfire-repair/select_matches.cu select_matches 1 16,16 bad nfeat=16 nelem=16
arrayfire/arrayfire-Fix-syncthreads-in-cuda-nearest-neighbour.cu select_matches 1 16,16 bad nfeat=16 nelem=16
arrayfire-repair/Descriptor1.cu computeDescriptor 1 3,10 bad histsz=1 desc_len=6
gklee-test-repair/barrier1.cu dl 2 32 bad
gklee-test-repair/barrier2.cu dl 2 32 good
gklee-test-repair/barrier3.cu dl 1 64 bad
gklee-test-repair/conel.cu colonel 2 128 bad"""


def simulee(folder):
    """Kernels that EvolutionaryDetect.py tests. The labels are those of README.md and "Total Bugs.log", of the folders'
    names (a fix of the project), and read from the code where these are silent. Redundant barriers count as good."""
    for line in SIMULEE.splitlines():
        wrap = "\n__global__ void kernel(double* b) { _sum_reduce(b); }\n" if "fse-func" in line else ""
        yield row(folder, line, prelude=PRELUDE, edit=((r"\Z", wrap),), flags=("--max-instructions", "1000000"))


def samples(folder):
    """compute-sanitizer-samples: each has a fault."""
    for part in ("Memcheck", "Racecheck", "Synccheck", "Initcheck", "Suppressions"):
        for file in sorted((folder / part).glob("*.cu")):
            yield Case(file, True, program=True, kinds=frozenset(ORDER | MEMORY | {"uninitialised"}),
                       flags=("--keep-going",))


def cusan(folder):
    """The tests without MPI, as they are and with CUSAN_SYNC."""
    for file in sorted((folder / "test/pass").glob("*.c")):
        text = file.read_text()
        for define, label in (("", "CHECK"), ("#define CUSAN_SYNC\n", "CHECK-SYNC")):
            bad = bool(re.search(rf"// {label}(-DAG|-NEXT)?: .*data race", text))
            if "MPI_Init" not in text and (bad or f"// {label}-NOT: data race" in text):
                yield Case(file, bad, prelude=define, program=True, name=file.stem + " sync" * bool(define))


def esbmc(folder):
    """ESBMC-GPU: programs whose kernels a function of ESBMC launches; their own asserts are faults as well. The labels
    are those of test.desc."""
    launch = r"(?:ESBMC_)?verify_kernel\w*\s*\(\s*([\w<>]+)\s*,([^,;]+),([^,;]+?)(?:,|(?=\)\s*;))"
    for label in sorted((folder / "regression/cuda").rglob("test.desc")):
        text = label.read_text(errors="replace")
        for file in sorted(label.parent.glob("*.cu")):
            yield Case(file, "VERIFICATION FAILED" in text, program=True, prelude=CUTIL, flags=("--keep-going",),
                       name=str(label.parent.relative_to(folder / "regression/cuda")),
                       kinds=frozenset(ORDER | MEMORY | {"uninitialised", "bad-branch", "own-assert"}),
                       edit=((launch, r"\1<<<\2,\3>>>("), (r"__global__\s+void\s*\*", "__global__ void "),
                             (r"__ESBMC_assert\((.*),.*\);", r"assert(\1);")))


def run(options, case, source, folder):
    for name, text in STUBS.items():
        (folder / name).write_text(text)
    built = subprocess.run(["nvcc", "-cudart", "shared", "-lineinfo", "--extended-lambda", "-gencode",
                            "arch=compute_90,code=compute_90", "-I", folder, "-I", case.file.parent, "-x", "cu", source,
                            "-o", folder / "program"], capture_output=True, text=True)
    if built.returncode:
        raise ValueError(next(at for at in (built.stderr + built.stdout).splitlines() if "error" in at))
    done = subprocess.run([options.roofgen, "run", "--jobs", "1", *case.flags, "--output", folder / "report.json", "--",
                           folder / "program"], cwd=folder, capture_output=True, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, timeout=60)
    report = json.loads((folder / "report.json").read_text())
    own = [{"kind": "own-assert", "message": at} for at in done.stderr.splitlines() if "Assertion" in at][:1]
    if not report["kernels"]:
        raise ValueError("no kernel ran: " + done.stderr.strip()[-200:])
    return report["findings"] + own


def arguments(options, case, source, kernel, folder):
    """A file of the arguments that --emit-args writes, with long buffers and the case's values; grid and block."""
    given = folder / "args.json"
    done = subprocess.run([options.roofgen, "check", source, "-I", case.file.parent, "--kernel", kernel, "--emit-args",
                           given], capture_output=True, text=True)
    if done.returncode:
        raise ValueError((done.stderr + done.stdout).strip())
    values = json.loads(given.read_text())
    for at in values:
        change = case.set.get(at.get("name"), {})
        if "size" in at:
            small = at["type"][1:] in ("8", "16")
            at |= {"size": SIZE} | ({} if "fill" in at else {"fill": 1 if small else "iota"})
        if at["type"] == "bytes" and case.structs and len(at["value"]) % 24 == 23:
            fields = [{"type": "i64", "size": SIZE // 8, "fill": "iota"}] * (len(at.pop("value")) // 24 + 1)
            at |= {"type": "struct", "fields": fields}
        for key in ("range", "fill") if change.keys() & {"fill", "values"} else ():
            at.pop(key, None)
        at |= change
        if "size" in change:  # a pointer to an array, which --emit-args takes for a struct
            at.pop("value", None)
    given.write_text(json.dumps(values))
    launch = dict(re.findall(r"--(grid|block) (\S+)", done.stdout.split("\nrun", 1)[1]))
    return given, case.grid or launch["grid"], case.block or launch["block"]


def check(options, case):
    """The findings of all kernels of a file; ValueError says why there is no report."""
    text = case.file.read_text(errors="replace")
    for name, to in re.findall(r"(?:__requires\(|^//)(\w+) ==? ([\d*]+|blockDim\.x)", text, re.M):
        factors = to.replace("blockDim.x", case.block.split(",")[0]).split("*")
        case.set.setdefault(name, {"value": math.prod(map(int, factors))})
    for pattern, to in case.edit:
        text = re.sub(pattern, to, text)
    prelude = GROUPS * ("cooperative_groups" in text) + case.prelude
    kernels = re.findall(r"__global__[^;{]*?(\w+)\s*\((?!\()", re.sub(r"__launch_bounds__\s*\([^)]*\)", "", text))
    findings = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "kernel.cu"
        source.write_text(prelude + text)
        if case.program:
            return run(options, case, source, folder)
        for kernel in [case.kernel] if case.kernel else sorted(set(kernels)):
            given, grid, block = arguments(options, case, source, kernel, folder)
            smem = ["--smem", "48K"] if re.search(r"extern\s+(volatile\s+)?__shared__", prelude + text) else []
            done = subprocess.run(
                [options.roofgen, "check", source, "-I", case.file.parent, "--kernel", kernel, "--grid", grid,
                 "--block", block, "--args", given, "--json", "--jobs", "1", "--schedules", str(options.schedules),
                 *smem, *case.flags], capture_output=True, text=True, timeout=60)
            if not done.stdout:
                raise ValueError(done.stderr.strip())
            for at in json.loads(done.stdout)["findings"]:
                line = (at.get("source") or {}).get("line") or 0
                findings.append(at | {"line": max(0, line - prelude.count("\n"))})
    return findings


def main(suites):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=suites)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--roofgen", default="roofgen")
    parser.add_argument("--schedules", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--findings", action="store_true")
    options = parser.parse_args()
    options.roofgen = Path(shutil.which(options.roofgen) or parser.error("no program " + options.roofgen)).resolve()
    counts = collections.Counter()
    for case in suites[options.suite](options.folder):
        name = case.name or (f"{case.file.stem} {case.kernel}" if case.file.stem != "kernel" else
                             "/".join(case.file.parts[-3:-1]))
        if options.only not in name:
            continue
        try:
            findings = check(options, case)
        except (ValueError, subprocess.TimeoutExpired) as why:
            counts["not run"] += 1
            print(f"not run: {name}: {str(why).splitlines()[0]}")
            continue
        kinds = {at["kind"] for at in findings}
        found = bool(kinds & case.kinds) if case.bad else bool(kinds)
        counts[case.bad, found] += 1
        if options.findings or case.bad != found:
            print(f"{'bad' if case.bad else 'good'}, {'found' if found else 'not found'}: {name}: {sorted(kinds)}")
            print("".join(f"    {at.get('line', '')}: {at['kind']}: {at['message']}\n" for at in findings[:3]), end="")
    print(f"{options.suite}: bad {counts[True, True]} found, {counts[True, False]} missed; good {counts[False, False]} "
          f"clean, {counts[False, True]} flagged; {counts['not run']} not run")


if __name__ == "__main__":
    main({at.__name__: at for at in (scor, scor_plain, gpuverify, gpurepair, faial, simulee, samples, cusan,
                                  esbmc)})
