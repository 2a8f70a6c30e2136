#!/usr/bin/env python3
"""Builds programs that are right, runs them with `roofgen run`, and tells what it finds in them.

  samples.py COLLECTION FOLDER [--roofgen PROGRAM] [--only TEXT] [--skip FILE] [--seconds N]

COLLECTION is cuda_samples or llm_c, FOLDER its unpacked repository; or plain, and each .cu file in FOLDER is a program
(lab/suites/right; docs/evidence/check-suites.md, "Programs that are right"). Needs nvcc. Sizes and repetitions are
reduced (EDITS, ARGUMENTS). A program's result is one of: clean, findings, orders (clean, but in one order of threads),
refused (a call or a kernel that the simulated driver does not support), failed (the program's own exit code), waived
(the program wants another device), no kernel, slow (more than N seconds), library (needs another one), not built.
Prints each program, the counts, and the calls that are refused by their number of programs. --skip names an earlier
output: its programs are left out, except the slow and the failed ones."""
import argparse
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = re.compile(r"#\s*include\s*[<\"](cublas|cufft|curand\.h|cusparse|cusolver|npp|nvjpeg|GL/|helper_gl|"
                       r"rendercheck_gl|EGL|d3d|vulkan|GLFW|nvJitLink|mpi\.h|nvsci|FreeImage|drm|DirectX)", re.I)
TEXTURES = re.compile(r"cuda(Create(Texture|Surface)Object|Malloc(3D|Mipmapped)?Array)|cuTexRef|cuTexObject|cuArray")
ARGUMENTS = {
    "matrixMul": ["-wA=64", "-hA=64", "-wB=64", "-hB=64"], "reduction": ["--n=65536"],
    "reductionMultiBlockCG": ["--n=65536"], "threadFenceReduction": ["--n=65536"],
    "cdpAdvancedQuicksort": ["size=1000"], "p2pBandwidthLatencyTest": ["--numElems=1000"],
    "transpose": ["-dimX=128", "-dimY=128"], "globalToShmemAsyncCopy": ["-wA=256", "-hA=256", "-wB=256", "-hB=256"],
    "FDTD3d": ["--dimx=32", "--dimy=32", "--dimz=32", "--timesteps=2"]}
EDITS = {  # (pattern, text) for all files of the sample
    "BlackScholes": [(r"OPT_N +=.*;", "OPT_N = 40000;"), (r"NUM_ITERATIONS +=.*;", "NUM_ITERATIONS = 1;")],
    "HSOpticalFlow": [(r"nSolverIters = 500", "nSolverIters = 2"), (r"nWarpIters = 3", "nWarpIters = 1")],
    "MonteCarloMultiGPU": [(r"int PATH_N = 262144", "int PATH_N = 16384"), (r"OPT_N *= *[^;]*;", "OPT_N = 32;")],
    "NV12toBGRandResize": [(r"TEST_LOOP 20", "TEST_LOOP 1"), (r"batch += 24", "batch = 1")],
    "SobolQRNG": [(r"n_vectors += +\d+", "n_vectors = 1000")],
    "StreamPriorities": [(r"(TOTAL_SIZE) .*", r"\1 (1 << 20)"), (r"(EACH_SIZE) .*", r"\1 (1 << 19)")],
    "alignedTypes": [(r"MEM_SIZE += 50000000", "MEM_SIZE = 500000"), (r"NUM_ITERATIONS += \d+", "NUM_ITERATIONS = 1")],
    "binomialOptions": [(r"MAX_OPTIONS 1024", "MAX_OPTIONS 4"), (r"NUM_STEPS 2048", "NUM_STEPS 512")],
    "convolutionSeparable": [(r"iterations = 16", "iterations = 1"), (r"3072", "384")],
    "convolutionTexture": [(r"iterations = 10", "iterations = 1"), (r"3072", "384")],
    "cudaCompressibleMemory": [(r"10485760", "10240")],
    "eigenvalues": [(r"iters_timing = 100", "iters_timing = 1"), (r"mat_size += 2048", "mat_size = 128")],
    "fastWalshTransform": [(r"log2Data += \d+", "log2Data = 14"), (r"log2Kernel += \d+", "log2Kernel = 7")],
    "globalToShmemAsyncCopy": [(r"nIter = 100", "nIter = 1")],
    "graphMemoryNodes": [(r"8000000", "80000")],
    "histogram": [(r"64 \* 1048576", "1048576"), (r"numRuns += 16", "numRuns = 1")],
    "interval": [(r"GRID_SIZE += 1024", "GRID_SIZE = 4"), (r"NUM_RUNS += \d+", "NUM_RUNS = 1")],
    "matrixMul": [(r"nIter = 300", "nIter = 1")],
    "nbody": [(r"numBodies += +16384", "numBodies = 1024")],
    "p2pBandwidthLatencyTest": [(r"repeat += 100", "repeat = 1")],
    "quasirandomGenerator": [(r"N = 1048576", "N = 16384")],
    "radixSortThrust": [(r"numElements = 1048576", "numElements = 16384"), (r"10 : 100", "1 : 1")],
    "reduction": [(r"testIterations = 100", "testIterations = 1")],
    "reductionMultiBlockCG": [(r"testIterations = 100", "testIterations = 1")],
    "scalarProd": [(r"VECTOR_N = 256", "VECTOR_N = 64")],
    "scan": [(r"13 \* 1048576 / 2", "1048576 / 4"), (r"iCycles += 100", "iCycles = 1")],
    "simplePitchLinearTexture": [(r"NUM_REPS 100", "NUM_REPS 1"), (r"2048", "256")],
    "simpleStreams": [(r"nreps += 10", "nreps = 1"), (r"16 \* 1024 \* 1024", "256 * 1024")],
    "sortingNetworks": [(r"N += 1048576", "N = 16384")],
    "threadFenceReduction": [(r"testIterations = 100", "testIterations = 1")],
    "transpose": [(r"NUM_REPS 100", "NUM_REPS 1")],
    "warpAggregatedAtomicsCG": [(r"10000000", "100000")]}
for sample in ("bf16", "cuda", "dmma", "imma", "tf32"):
    EDITS[sample + "TensorCoreGemm"] = [(r"([MNK]_TILES) \d+", r"\1 16")]
LLM = [(r"(int|int64_t) B = \d+;", r"\1 B = 2;"), (r"(int|int64_t) T = \d+;", r"\1 T = 128;"),
       (r"(int|int64_t) V = \d+;", r"\1 V = 1031;"), (r"int L = \d+;", "int L = 1;"),
       (r"repeat_times = \d+", "repeat_times = 1"), (r"= 1048576", "= 65537"),
       (r"block_sizes\[\] = \{[^}]*\}", "block_sizes[] = {32, 64, 128}"),  # B T rows are a multiple of each
       (r"    cublasCheck\(cublas(Lt)?(Create|SetMathMode)\(.*", "")]


@dataclass
class Program:
    name: str
    folder: Path  # is copied
    sources: list
    include: list
    edit: list
    arguments: list
    libraries: tuple = ()
    fatbins: tuple = ()
    textures: bool = False


def cuda_samples(folder):
    for at in sorted((folder / "Samples").glob("[0-6]_*/*/")):
        sources = sorted(file.relative_to(at) for end in ("*.cu", "*.cpp", "src/*.cu", "src/*.cpp")
                         for file in at.glob(end))
        texts = {file: file.read_text(errors="replace") for end in ("*.cu", "*.cpp", "*.h", "*.cuh", "*.c")
                 for file in at.rglob(end)}
        loaded = [file for file in sources if file.suffix == ".cu" and any(
            f"{file.stem}64" in text or f'"{file.name}"' in text for text in texts.values())]
        # A .cu that another file includes, or that is loaded as a module, is no source of the program.
        needs = sorted({found[1] for text in texts.values() for found in LIBRARIES.finditer(text)})
        yield Program(at.name, at, [file for file in sources if file not in loaded],
                      [folder / "Common", "inc", "."], EDITS.get(at.name, []), [ARGUMENTS.get(at.name, [])],
                      tuple(needs), tuple(file for file in loaded if "kernel" in file.name),
                      any(TEXTURES.search(text) for text in texts.values()))


def llm_c(folder):
    for file in sorted((folder / "dev/cuda").glob("*.cu")):
        numbers = sorted({int(at) for at in re.findall(r"case (\d\d?):", file.read_text())} - {32, 64}) or [1]
        needs = ("nccl",) if "nccl" in file.name else ()
        for number in numbers:
            yield Program(f"{file.stem} {number}", file.parent, [Path(file.name)], [], LLM, [[str(number)]], needs)


def plain(folder):
    for file in sorted(folder.glob("*.cu")):
        yield Program(file.stem, folder, [Path(file.name)], [], [], [[]])


def build(program, folder):
    """Builds in `folder`, a copy; the reason why not, or an empty text."""
    for file in folder.rglob("*"):
        if program.edit and file.suffix in (".cu", ".cpp", ".h", ".cuh"):
            text = file.read_text(errors="replace")
            for pattern, to in program.edit:
                text = re.sub(pattern, to, text)
            file.write_text(text)
    flags = ["nvcc", "-lineinfo", "-std=c++17", "--extended-lambda", "-w", "-gencode",
             "arch=compute_90,code=compute_90", *(f"-I{at}" for at in program.include)]
    commands = [[*flags, "-fatbin", file, "-o", f"{file.stem}64.fatbin"] for file in program.fatbins]
    commands.append([*flags, "-cudart", "shared", "-Xcompiler", "-fopenmp", *program.sources, "-o", "program", "-lcuda",
                     "-lnvrtc", *(["-lcublas", "-lcublasLt"] if program.edit is LLM else [])])
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            lines = (done.stderr + done.stdout).splitlines()
            return next((at for at in lines if "error" in at or "undefined" in at), lines[-1] if lines else "?")
    return ""


def run(options, program, folder):
    """Result, findings, refused calls, lines for the reader."""
    findings, calls, notes, result = [], {}, [], "clean"
    for arguments in program.arguments:
        report = folder / "report.json"
        report.unlink(missing_ok=True)
        process = subprocess.Popen([options.roofgen, "run", "--keep-going", "--jobs", str(options.jobs), "--output",
                                    report, "--", "./program", *arguments], cwd=folder, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            out, errors = process.communicate(timeout=options.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the program, too
            process.communicate()
            return "slow", [], {}, []
        if not report.exists():
            return "failed", [], {}, [(errors.strip().splitlines() or ["no report"])[-1]]
        report = json.loads(report.read_text())
        findings += report["findings"]
        status = report["exit_status"]
        for call in report["failed_calls"]:
            if call["call"] not in ("cuGetExportTable", "cuGetProcAddress_v2"):
                calls[call["call"], call["error"]] = call["message"]
        unsupported = [at for at in report["failed_calls"] if at["call"] != "cuGetExportTable" and  # cuBLAS asks for it
                       re.search("NOT_SUPPORTED|NotSupported|PTX|BINARY", at["error"])]
        if status or report["signal"]:
            notes.append(f"exit {status} signal {report['signal']}: " +
                         " | ".join((out.strip().splitlines() or [""])[-2:])[:300])
        if "[cuBLAS ERROR]" in out:
            here = "library"
        elif unsupported:
            here = "refused"
        elif status and ("Invalid kernel number" in out or "only supported for fp32" in errors):
            here = "no kernel"
        elif report["findings"]:
            here = "findings"
        elif status or report["signal"]:
            here = "waived" if status == 2 else "failed"
        else:
            here = "no kernel" if not report["kernels"] else "orders" if report["deciding"] else "clean"
        result = here if result == "clean" or here != "clean" and result != "refused" else result
    return result, findings, calls, notes


def main(collections_):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", choices=collections_)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--roofgen", default="roofgen")
    parser.add_argument("--only", default="", help="a regular expression that the whole name matches")
    parser.add_argument("--skip", type=Path)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.roofgen = Path(shutil.which(options.roofgen) or parser.error("no program " + options.roofgen)).resolve()
    earlier = options.skip.read_text() if options.skip else ""
    done = set(re.findall(r"^(?!slow|failed)\w[^:\n]*: ([^:\n]+)", earlier, re.M))
    counts, refused = collections.Counter(), collections.defaultdict(set)
    built, folder, why = None, None, ""
    for program in collections_[options.collection](options.folder.resolve()):
        if (options.only and not re.fullmatch(options.only, program.name)) or program.name in done:
            continue
        findings, calls, notes = [], {}, []
        if program.libraries:
            result, notes = "library", [" ".join(program.libraries)]
        else:
            try:
                if built != (program.folder, program.sources):  # the programs of one file are built once
                    folder = tempfile.TemporaryDirectory()
                    shutil.copytree(program.folder, Path(folder.name) / "copy")
                    why = build(program, Path(folder.name) / "copy")
                    built = (program.folder, program.sources)
                if why:
                    result, notes = "not built", [why]
                else:
                    result, findings, calls, notes = run(options, program, Path(folder.name) / "copy")
            except subprocess.TimeoutExpired:
                result, notes = "not built", ["slow"]
        counts[result] += 1
        print(f"{result}: {program.name}{': textures' * program.textures}", flush=True)
        for at in findings[:8]:
            place = at["source"] or {"file": "", "line": 0}
            print(f"    {Path(place['file']).name}:{place['line']}: {at['kind']}: {at['message']} [{at['kernel']}, "
                  f"{at['count']}]")
        for (call, error), message in list(calls.items())[:5]:
            message = re.sub(r"\w{40,}", "...", message.splitlines()[0]) if message else ""
            print(f"    {call}: {error}: {message[:200]}")
            refused[call, error].add(program.name)
        print("".join(f"    {at[:300]}\n" for at in notes), end="", flush=True)
    print(f"{options.collection}: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    for (call, error), names in sorted(refused.items(), key=lambda at: -len(at[1])):
        print(f"    {len(names)} {call} {error}: {' '.join(sorted(names))}")


if __name__ == "__main__":
    main({at.__name__: at for at in (cuda_samples, llm_c, plain)})
