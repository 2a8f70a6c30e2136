"""The machine of a visit: GPU, clocks, and the versions of everything that shapes a number."""
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Fields of nvidia-smi by their names in results.
FACTS = {"driver": "driver_version", "vbios": "vbios_version", "pci": "pci.bus_id", "memory_mib": "memory.total",
         "max_sm_mhz": "clocks.max.sm", "max_memory_mhz": "clocks.max.memory", "power_limit_w": "power.limit",
         "persistence": "persistence_mode", "ecc": "ecc.mode.current", "mig": "mig.mode.current"}
STATE = {"sm_mhz": "clocks.sm", "memory_mhz": "clocks.mem", "power_w": "power.draw", "power_limit_w": "power.limit",
         "temperature_c": "temperature.gpu", "limits": "clocks_event_reasons.active"}


def _output(*command):
    """The output of a program; "" where the program is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=15)
        return "" if done.returncode else done.stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def ask(uuid, fields):
    """FACTS or STATE from nvidia-smi; empty when there is no such tool or it does not know a field."""
    text = _output("nvidia-smi", f"--id={uuid}", f"--query-gpu={','.join(fields.values())}",
                   "--format=csv,noheader,nounits")
    values = {name: value.strip() for name, value in zip(fields, text.split(","))}
    for name, value in values.items():
        if re.search("_(mhz|mib|w|c)$", name) and re.fullmatch(r"\d+(\.\d+)?", value):  # a unit: a number
            values[name] = float(value) if "." in value else int(value)
    return {name: value for name, value in values.items() if value not in ("", "[N/A]")}


def facts(gpu):
    """The GPU according to `roofgen doctor` and, where nvidia-smi is installed, according to that."""
    names = ("name", "uuid", "cuda", "ordinal", "driver", "max_sm_mhz", "max_memory_mhz", "power_limit_w")
    known = {"pci": gpu["pci_bus_id"], **{name: gpu[name] for name in names if gpu[name] is not None}}
    return {**known, **ask(gpu["uuid"], FACTS)}


def program(named, root):
    """The roofgen that was named (a path, or a name on PATH), else the one of bench/portable.sh."""
    path = named or os.path.join(root, "build-portable", "cli", "roofgen")
    return os.path.abspath(path if os.sep in path else shutil.which(path) or path)


def _ncu():
    return shutil.which("ncu") or next(map(str, sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), "")


def _package(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def describe(named, root):
    """What a visit would find here, for --dry-run."""
    roofgen, torch = program(named, root), _package("torch")
    rows = [("program", os.access(roofgen, os.X_OK) and roofgen,
             "bench/portable.sh builds it; no step runs without it"),
            ("torch", torch and f"{torch}, of {sys.executable}", f"{sys.executable} has none; the step peers needs it"),
            ("ncu", _ncu(), "the step counters needs it")]
    missing = ", ".join(name for name, found, _ in rows if not found)
    end = f"missing here: {missing}. No error: only the machine of the visit needs it" if missing else \
        "nothing is missing here"
    return "".join(f"{name:9} {found or 'missing: ' + use}\n" for name, found, use in rows) + end + "\n"


def versions():
    """Empty texts for programs and packages that are not installed. `roofgen doctor` adds roofgen's and NVRTC's."""
    ncu = re.search(r"Version (\S+)|$", _output(_ncu(), "--version"))[1] or ""
    return {"torch": _package("torch"), "triton": _package("triton"), "ncu": ncu, "python": platform.python_version(),
            "glibc": platform.libc_ver()[1], "kernel": platform.release()}


def host():
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(errors="replace"))
    return {"machine": platform.machine(), "cpu": model[1] if model else "", "cores": os.cpu_count()}


def nvrtc_of_wheels():
    """NVRTC in the wheels that this Python would import. roofgen itself searches toolkits and active environments."""
    places = [Path(folder, part, "libnvrtc.so.13").absolute()
              for folder in sys.path for part in ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib")]
    return next((str(place) for place in places if place.exists()), "")
