"""Readers of recorded tuning spaces, and the table of the spaces that are used and how.

Two formats: cachefiles of Kernel Tuner (milliseconds) and outputs of KTT (their metadata name the unit). Both become
points: a configuration, one time in microseconds, and what the compiler and the counters said where recorded.
"""
import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path

from kernels import Bad


@dataclass
class Point:
    """One measured configuration. compiled: registers, shared and local bytes; counters: by their names at NVIDIA."""
    config: dict
    time_us: float
    compiled: dict = field(default_factory=dict)
    counters: dict = field(default_factory=dict)

    @property
    def key(self):
        return ",".join(f"{name}={value}" for name, value in self.config.items())


# A space is for fitting, for reporting (never fitted to), or aside: not run unless named.
FIT, REPORT, ASIDE = "fit", "report", "aside"

# Kinds have goals: the limit of each statistic. The times of a flat space lie within a factor of two.
GOALS = {"compute and shared memory": {"rho": 0.95, "tau": 0.85, "mape": 0.08, "regret_10": 0.01, "regret_1": 0.05},
         "gemm": {"rho": 0.85, "mape": 0.18, "regret_10": 0.02},
         "flat": {"mape": 0.04, "regret_1": 0.01}}


@dataclass
class Space:
    """compiler: the NVRTC whose registers equal the recorded ones (KTT); elsewhere the same, which is of the year of
    the measurements (2023). "" is the one that roofgen finds.
    keep: names a function of this module that drops or merges points. file: of another space, if not its own."""
    name: str
    recipe: str
    device: str
    role: str
    kind: str
    keep: str = "keep_all"
    compiler: str = ""
    note: str = ""
    file: str = ""


SPACES = [
    Space("convolution_A100", "hub-convolution", "a100-pcie-40", FIT, "compute and shared memory", "keep_twins",
          compiler="12.2", note="use_shmem=1; pairs of points that differ in read_only alone agree within 10 %"),
    Space("ktt_convolution_2080Ti", "ktt-convolution", "rtx-2080-ti", FIT, "compute and shared memory",
          "merge_padding", compiler="12.2", note="points that differ in PADDING alone are one point, their mean"),
    Space("ktt_pnpoly_3090", "ktt-pnpoly", "rtx-3090", FIT, "compute and shared memory", compiler="12.2",
          note="vertices all zero, as in the measurement"),
    Space("gemm_RTX_3090", "gemm", "rtx-3090", FIT, "gemm", compiler="12.2", note="measured through OpenCL"),
    Space("dedispersion_A100", "dedispersion", "a100-pcie-40", FIT, "flat", compiler="12.2"),
    Space("ktt_convolution_3090", "ktt-convolution", "rtx-3090", REPORT, "compute and shared memory",
          "merge_padding", compiler="12.2", note="points that differ in PADDING alone are one point, their mean"),
    Space("convolution_A4000", "hub-convolution", "rtx-a4000", REPORT, "compute and shared memory", "keep_twins",
          compiler="12.2", note="use_shmem=1; pairs of points that differ in read_only alone agree within 10 %"),
    Space("gemm_RTX_2080_Ti", "gemm", "rtx-2080-ti", REPORT, "gemm", compiler="12.2", note="measured through OpenCL"),
    Space("convolution_A100_all", "hub-convolution", "a100-pcie-40", ASIDE, "compute and shared memory", "keep_own",
          compiler="12.2", note="use_shmem=1, no other filter", file="convolution_A100"),
    Space("pnpoly_RTX_3090", "hub-pnpoly", "rtx-3090", ASIDE, "compute and shared memory", "times_not_time",
          compiler="12.2", note="the file's `time` is that of ktt_pnpoly_3090; its `times` include transfers by PCIe"),
]


def load_json(path):
    try:
        raw = path.read_bytes()
        return json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except FileNotFoundError as error:
        raise Bad(f"{path}: no such file") from error
    except (OSError, EOFError, ValueError) as error:
        raise Bad(f"{path}: not a gzipped JSON file: {error}") from error


def read(path):
    """All measured points of a file, in the order of their measurement."""
    document = load_json(Path(path))
    try:
        if "cache" in document:
            return read_kernel_tuner(document)
        if "Results" in document:
            return read_ktt(document)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise Bad(f"{path}: a result is not of the form expected: {error!r}") from error
    raise Bad(f"{path}: neither a Kernel Tuner cachefile nor an output of KTT")


def read_kernel_tuner(document):
    """A failed point has a string as its time (new files: an `__error__`). `times` goes along for times_not_time."""
    names, points = document["tune_params_keys"], []
    for entry in document["cache"].values():
        if "__error__" in entry or not isinstance(entry["time"], (int, float)):
            continue
        repeats = entry.get("times") or [entry["time"]]
        points.append(Point({name: entry[name] for name in names}, 1e3 * entry["time"],
                            {"mean_of_times_us": 1e3 * sum(repeats) / len(repeats)}))
    return points


KTT_UNITS = {"Nanoseconds": 1e-3, "Microseconds": 1.0, "Milliseconds": 1e3, "Seconds": 1e6}


def read_ktt(document):
    """Duration is the kernel alone. Despite their names, LocalMemorySize is static shared memory (CUDA) and
    PrivateMemorySize is local memory, that is spills."""
    unit = document["Metadata"]["TimeUnit"]
    if unit not in KTT_UNITS:
        raise Bad(f"KTT time unit {unit!r} is unknown")
    points = []
    for result in document["Results"]:
        if result["Status"] != "Ok":
            continue
        if len(result["ComputationResults"]) != 1:
            raise Bad("a KTT result with several kernels")
        run = result["ComputationResults"][0]
        compiled = run.get("CompilationData", {})
        counters = run.get("ProfilingData", {}).get("Counters", [])
        points.append(Point({each["Name"]: each["Value"] for each in result["Configuration"]},
                            KTT_UNITS[unit] * run["Duration"],
                            {ours: compiled[theirs] for ours, theirs in COMPILED.items() if theirs in compiled},
                            {each["Name"]: each["Value"] for each in counters}))
    return points


COMPILED = {"registers": "RegistersCount", "shared_bytes": "LocalMemorySize", "local_bytes": "PrivateMemorySize"}


# What to keep. Each takes and returns a list of points. -------------------------------------------------------------

def keep_all(points):
    return points


def without(config, name):
    return tuple(sorted((key, value) for key, value in config.items() if key != name))


def keep_own(points):
    """The source that the hub publishes ignores use_shmem, the times do not."""
    return [point for point in points if point.config["use_shmem"] == 1]


def keep_twins(points):
    """Of the pairs on the A100 that differ in read_only alone, 15 % differ by more than a quarter, although their code
    is nearly the same. The likely cause is the clock: most points are as slow as at the base clock (765 MHz), some are
    not. Pairs must agree within 10 %. What the rule drops is not random: hardly any pair with tile_size_x above 2
    (unless tile_size_y is 3), but about half of those with tile_size_x=1 and with tiles of 2 x 1 and 2 x 4."""
    own = keep_own(points)
    pairs = {}
    for point in own:
        pairs.setdefault(without(point.config, "read_only"), []).append(point.time_us)
    def agrees(times):
        return len(times) == 2 and max(times) <= 1.1 * min(times)
    return [point for point in own if agrees(pairs[without(point.config, "read_only")])]


def merge_padding(points):
    """The kernel does not use PADDING: two measurements of one point. The first keeps its counters."""
    merged = {}
    for point in points:
        merged.setdefault(without(point.config, "PADDING"), []).append(point)
    return [Point(twins[0].config, sum(each.time_us for each in twins) / len(twins), twins[0].compiled,
                  twins[0].counters) for twins in merged.values()]


def times_not_time(points):
    """Takes the mean of `times`: `time` was overwritten with another tuner's measurement in these files."""
    return [Point(point.config, point.compiled["mean_of_times_us"]) for point in points]


def load(space, folder):
    """(points to use in the order of their keys, number of measured points)."""
    measured = read(Path(folder) / f"{space.file or space.name}.json.gz")
    kept = globals()[space.keep](measured)
    return sorted(kept, key=lambda point: point.key), len(measured)


def named(names):
    """The spaces with these names in table order; without names, all that are not aside."""
    known = {space.name: space for space in SPACES}
    for name in names:
        if name not in known:
            raise Bad(f"no space {name!r}; there are {', '.join(known)}")
    return [space for space in SPACES if (space.name in names if names else space.role != ASIDE)]
