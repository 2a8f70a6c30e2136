"""Recipes: from one configuration of a recorded tuning space to one launch that `roofgen profile` can run.

Each recipe restates what the host program beside the published kernel does: problem size, grid divisors, block, macros,
contents of the buffers. The kernels themselves stay in checkouts outside this repository:
  hub   AutoTuningAssociation/benchmark_hub (commit 8eeb99e): kernels/, currently_unused/kernels/
  ktt   HiPerCoRe/KTT (commit 931c415): Examples/
  milo  MiloLurati/AutoTuning_AMD_vs_Nvidia_GPUs (commit 9a7dcca): cache_scripts/; optional
"""
import hashlib
import json
import math
import os
import random
import re
import struct
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

PRELUDE = Path(__file__).resolve().parent / "opencl_as_cuda.h"


class Bad(Exception):
    """Bad input, told in one line."""

    def __init__(self, message, code=2):
        super().__init__(message)
        self.code = code


def guarded(program, main, arguments):
    """main(arguments), or the exit code of its failure, which is one line on stderr."""
    try:
        return main(arguments)
    except (Bad, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return getattr(error, "code", 1)
    except KeyboardInterrupt:
        print(f"{program}: interrupted; the same command goes on", file=sys.stderr)
        return 130


@dataclass
class Launch:
    """Everything that `roofgen profile` (and `check`) needs besides the device."""
    source: Path
    kernel: str
    grid: tuple
    block: tuple
    args: list
    defines: dict = field(default_factory=dict)
    includes: list = field(default_factory=list)
    smem: int = 0

    def command(self, args_file):
        """The arguments after `roofgen profile`."""
        line = [str(self.source), "--kernel", self.kernel, "--grid", commas(self.grid), "--block", commas(self.block),
                "--smem", str(self.smem), "--args", str(args_file)]
        for name, value in self.defines.items():
            line += ["-D", f"{name}={value}"]
        for folder in self.includes:
            line += ["-I", str(folder)]
        return line


@dataclass
class Checkouts:
    """Where the published kernels lie, and a folder for sources that have to be put together first."""
    hub: Path
    ktt: Path
    work: Path
    milo: Path = None

    def file(self, root, name):
        folder = getattr(self, root)
        if folder is None:
            raise Bad(f"--{root} is missing: {name} comes from that checkout")
        if not (folder / name).is_file():
            raise Bad(f"--{root} {folder}: no {name} in it")
        return folder / name


def commas(numbers):
    return ",".join(str(n) for n in numbers)


def ceil_div(size, *divisors):
    """Kernel Tuner divides by the product of the divisors and rounds up; KTT's modifier rounds up after each, which is
    the same number."""
    product = 1
    for divisor in divisors:
        product *= divisor
    return -(-size // product)


def buffer(name, kind, size, **contents):
    return {"name": name, "type": kind, "size": size, **contents}


def scalar(name, kind, value):
    return {"name": name, "type": kind, "value": value}


def keep(work, name, text):
    """Writes a source that no checkout holds in this form; the name carries a digest, so that a file never changes."""
    stem, suffix = os.path.splitext(name)
    path = work / f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:8]}{suffix}"
    if not path.is_file():
        work.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{os.getpid()}-{threading.get_ident()}-{path.name}")
        part.write_text(text)
        part.replace(path)
    return path


def kernel_tuner_macros(config, grid, block):
    """What Kernel Tuner puts before the source (prepare_kernel_string): grid and block sizes, the parameters, its own
    name. A parameter of the same name comes later and wins."""
    macros = dict(zip(("grid_size_x", "grid_size_y", "grid_size_z"), grid))
    macros.update(zip(("block_size_x", "block_size_y", "block_size_z"), block))
    macros.update(config)
    macros["kernel_tuner"] = 1
    return macros


# Convolution: a 4096 x 4096 image and a 15 x 15 filter in constant memory. ------------------------------------------

IMAGE = 4096
FILTER = 15
PADDED = IMAGE + FILTER - 1


def convolution_args(low, high):
    """Output, padded input, the filter that the kernel ignores (it reads constant memory)."""
    return [buffer("output", "f32", IMAGE * IMAGE, fill=0),
            buffer("input", "f32", PADDED * PADDED, fill="random", range=[low, high], seed=1),
            buffer("filter", "f32", FILTER * FILTER, fill="random", range=[low, high], seed=2)]


def hub_convolution(config, checkouts):
    """kernels/convolution_milo.py. The hub's source ignores use_shmem, so only points with use_shmem=1 are its own. The
    source of the day of the measurements (milo, a commit of that day) obeys it, and stores to shared memory outside the
    image too, where the hub's branches. Random numbers there are normal; no branch or address depends on them."""
    source = (checkouts.file("milo", "cache_scripts/convolution/convolution.cu") if checkouts.milo else
              checkouts.file("hub", "kernels/convolution_milo.cu"))
    block = (config["block_size_x"], config["block_size_y"], 1)
    grid = (ceil_div(IMAGE, block[0], config["tile_size_x"]), ceil_div(IMAGE, block[1], config["tile_size_y"]), 1)
    weights = {"symbol": "d_filter", "type": "f32", "size": 33 * 33, "fill": "random", "seed": 3}
    return Launch(source=source, kernel="convolution_kernel", grid=grid, block=block,
                  args=convolution_args(-3, 3) + [weights], defines=kernel_tuner_macros(config, grid, block))


def ktt_convolution(config, checkouts):
    """Examples/KernelTunerConvolution. KTT never uploads d_filter, so it stays zero; nothing depends on its values."""
    block = (config["BLOCK_SIZE_X"], config["BLOCK_SIZE_Y"], 1)
    grid = (ceil_div(IMAGE, block[0], config["TILE_SIZE_X"]), ceil_div(IMAGE, block[1], config["TILE_SIZE_Y"]), 1)
    source = checkouts.file("ktt", "Examples/KernelTunerConvolution/KernelTunerConvolution.cu")
    return Launch(source=source, kernel="Convolution", grid=grid, block=block, args=convolution_args(-2, 2),
                  defines=dict(config))


# Point in polygon: 20 million points, 600 vertices in constant memory. ----------------------------------------------

POINTS = 20_000_000
VERTICES = 600


def pnpoly_args(low, high):
    return [buffer("bitmap", "i32", POINTS, fill=0),
            buffer("points", "f32", 2 * POINTS, fill="random", range=[low, high], seed=1)]


def circle_vertices():
    """The polygon of Kernel Tuner's own example: random points of the unit circle, by falling angle."""
    draw = random.Random(1)
    angles = sorted((draw.uniform(0, 2 * math.pi) for _ in range(VERTICES)), reverse=True)
    return [round(f(angle), 7) for angle in angles for f in (math.cos, math.sin)]


def hub_pnpoly(config, checkouts):
    """currently_unused/kernels/pnpoly.py with the inputs of Kernel Tuner's own example. Points are normal there; here
    uniform over [-1.5, 1.5), which puts about as many between two neighbouring vertices."""
    block = (config["block_size_x"], 1, 1)
    grid = (ceil_div(POINTS, block[0], config["tile_size"]), 1, 1)
    vertices = {"symbol": "d_vertices", "type": "f32", "size": 2 * VERTICES, "values": circle_vertices()}
    return Launch(source=checkouts.file("hub", "currently_unused/kernels/pnpoly.cu"), kernel="cn_pnpoly", grid=grid,
                  block=block, args=pnpoly_args(-1.5, 1.5) + [scalar("n", "i32", POINTS), vertices],
                  defines=kernel_tuner_macros(config, grid, block))


def ktt_pnpoly(config, checkouts):
    """Examples/KernelTunerPnpoly. The kernel reads d_vertices, which KTT never uploads: all zero, so that every
    division is 0/0 and takes the slow path, and no point lies between two vertices."""
    block = (config["BLOCK_SIZE_X"], 1, 1)
    grid = (ceil_div(POINTS, block[0], config["TILE_SIZE"]), 1, 1)
    arguments = pnpoly_args(0, 1)
    arguments += [buffer("vertices", "f32", 2 * VERTICES, fill="random", range=[0, 1], seed=2),
                  scalar("n", "i32", POINTS)]
    source = checkouts.file("ktt", "Examples/KernelTunerPnpoly/KernelTunerPnpoly.cu")
    return Launch(source=source, kernel="Pnpoly", grid=grid, block=block, args=arguments, defines=dict(config))


# Dedispersion: 2048 trial measures, 25000 samples, 1536 channels. ---------------------------------------------------

SAMPLES, MEASURES, CHANNELS, MAX_SHIFT = 25000, 2048, 1536, 650


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def dedispersion_shifts():
    """get_shifts() of dedispersion_milo.py: the delay of each channel against the highest, in samples, in single
    precision as there. 4148.808 is the dispersion constant in MHz^2 pc^-1 cm^3 s."""
    low, width, sampling = 1425.0, 0.1953125, 0.00004096
    inverse_high = 1 / (low + (CHANNELS - 1) * width) ** 2
    shifts = []
    for channel in range(CHANNELS):
        frequency = f32(f32(low) + f32(channel * width))
        difference = f32(f32(1 / f32(frequency * frequency)) - f32(inverse_high))
        shifts.append(f32(f32(f32(4148.808) * difference) * f32(SAMPLES) / f32(SAMPLES * sampling)))
    shifts[-1] = 0.0
    return shifts


def dedispersion(config, checkouts):
    """kernels/dedisp_milo. tune_kernel gets no grid divisors, so Kernel Tuner divides by the block alone: with tiles,
    most CTAs lie outside and leave at once. (The T1 file beside it divides by the tiles too.)
    Kernel Tuner strips `#pragma unroll loop_unroll_factor_X` where the factor is 0, and defines no such macro."""
    block = (config["block_size_x"], config["block_size_y"], config["block_size_z"])
    grid = (ceil_div(SAMPLES, block[0]), ceil_div(MEASURES, block[1]), 1)
    source = checkouts.file("hub", "kernels/dedisp_milo/dedispersion.cu")
    text = re.sub(r"\n\s*#pragma\s+unroll\s+loop_unroll_factor_channel", "\n", source.read_text())
    macros = kernel_tuner_macros(config, grid, block)
    if macros.pop("loop_unroll_factor_channel") != 0:
        raise Bad("dedispersion: loop_unroll_factor_channel is not 0")
    size = (SAMPLES + MAX_SHIFT) * CHANNELS
    arguments = [buffer("input", "u8", size, fill="random", seed=1),
                 buffer("output", "f32", SAMPLES * MEASURES, fill=0),
                 buffer("shifts", "f32", CHANNELS, values=dedispersion_shifts())]
    return Launch(source=keep(checkouts.work, "dedispersion.cu", text), kernel="dedispersion_kernel", grid=grid,
                  block=block, args=arguments, defines=macros, includes=[source.parent])


# Matrix product: CLBlast SGEMM, 4096^3, measured through OpenCL. ----------------------------------------------------

MATRIX = 4096


def through_element_aligned(call):
    return re.sub(r"\b([ab]lm)\b", r"element_aligned(\1, kSizeK)", call)


def gemm_source(checkouts):
    """The four OpenCL files behind a prelude that maps OpenCL to CUDA. To compile as in OpenCL (see the prelude), the
    arrays in local memory pass through element_aligned(), and a macro says whether the loop over a tile unrolls."""
    parts = [PRELUDE.read_text()]
    for name in ("common", "xgemm_part1", "xgemm_part2", "xgemm_part3"):
        text = checkouts.file("hub", f"currently_unused/kernels/gemm/{name}.opencl").read_text()
        text = re.sub(r"__local (real[MN]\*)", r"\1", text)
        text = re.sub(r"XgemmBody\(kSize.*", lambda call: through_element_aligned(call[0]), text)
        parts.append(re.sub(r"(?=for \(int pwi=0;)", "\n#if TILE_UNROLLS\n#pragma unroll\n#endif\n", text))
    return keep(checkouts.work, "xgemm.cu", "\n".join(parts))


def gemm(config, checkouts):
    """currently_unused/kernels/gemm.py: alpha = beta = 1, C zero, column-major 4096 x 4096."""
    block = (config["MDIMC"], config["NDIMC"], 1)
    grid = (ceil_div(MATRIX, config["MWG"]), ceil_div(MATRIX, config["NWG"]), 1)
    arguments = [scalar(name, "i32", MATRIX) for name in ("kSizeM", "kSizeN", "kSizeK")]
    arguments += [scalar("alpha", "f32", 1), scalar("beta", "f32", 1)]
    arguments += [buffer(name, "f32", MATRIX * MATRIX, fill="random", seed=seed)
                  for seed, name in enumerate(("agm", "bgm"), 1)]
    arguments += [buffer("cgm", "f32", MATRIX * MATRIX, fill=0)]
    return Launch(source=gemm_source(checkouts), kernel="Xgemm", grid=grid, block=block, args=arguments,
                  defines=dict(config))


RECIPES = {"hub-convolution": hub_convolution, "ktt-convolution": ktt_convolution, "hub-pnpoly": hub_pnpoly,
           "ktt-pnpoly": ktt_pnpoly, "dedispersion": dedispersion, "gemm": gemm}


def args_file(launch, work):
    """The arguments as a file that many configurations share."""
    return keep(work, f"{launch.kernel}.json", json.dumps(launch.args))


def digest(launch, device, extra):
    """Names everything that a prediction depends on, besides the model: contents, not paths."""
    headers = sorted(path for folder in (launch.source.parent, *launch.includes) for path in folder.glob("*.h"))
    facts = [launch.source.read_text(), [path.read_text() for path in headers], launch.kernel, launch.grid,
             launch.block, launch.smem, launch.args, launch.defines, device, extra]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
