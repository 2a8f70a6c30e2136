"""The machine of a visit: GPU, clocks, and the versions of everything that shapes a number."""
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

# Fields of nvidia-smi by their names in results.
FACTS = {"driver": "driver_version", "vbios": "vbios_version", "pci": "pci.bus_id", "memory_mib": "memory.total",
         "max_sm_mhz": "clocks.max.sm", "max_memory_mhz": "clocks.max.memory", "power_limit_w": "power.limit",
         "persistence": "persistence_mode", "ecc": "ecc.mode.current", "mig": "mig.mode.current"}


def _output(*command):
    """The output of a program; "" where the program is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=15)
        return "" if done.returncode else done.stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def ask(uuid, fields):
    """FACTS from nvidia-smi; empty when there is no such tool or it does not know a field."""
    text = _output("nvidia-smi", f"--id={uuid}", f"--query-gpu={','.join(fields.values())}",
                   "--format=csv,noheader,nounits")
    values = {name: value.strip() for name, value in zip(fields, text.split(","))}
    for name, value in values.items():
        if re.search("_(mhz|mib|w|c)$", name) and re.fullmatch(r"\d+(\.\d+)?", value):  # a unit: a number
            values[name] = float(value) if "." in value else int(value)
    return {name: value for name, value in values.items() if value not in ("", "[N/A]")}


def gpu(number):
    """The GPU by nvidia-smi: FACTS with its name and UUID. None without one."""
    uuids = _output("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader").split()
    if number >= len(uuids):
        return None
    return {"uuid": uuids[number], **ask(uuids[number], {"name": "name", **FACTS})}


def _ncu():
    return shutil.which("ncu") or next(map(str, sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), "")


def _package(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def versions():
    """Empty texts for programs and packages that are not installed."""
    ncu = re.search(r"Version (\S+)|$", _output(_ncu(), "--version"))[1] or ""
    return {"torch": _package("torch"), "triton": _package("triton"), "ncu": ncu, "python": platform.python_version(),
            "glibc": platform.libc_ver()[1], "kernel": platform.release()}


def host():
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(errors="replace"))
    return {"machine": platform.machine(), "cpu": model[1] if model else "", "cores": os.cpu_count()}
