"""The machine of a visit: driver, GPU, clocks, and the versions of everything that shapes a number.

As a program it probes the driver and prints JSON, or with `--hold UUID` keeps the driver loaded. visit.py does both in
processes of their own: a broken driver may hang or crash, and the visit itself must not occupy the GPU.
"""
import ctypes
import importlib.metadata
import json
import os
import platform
import re
import select
import shutil
import subprocess
import sys
import uuid as uuids
from pathlib import Path

# The symbol that a library exports when it offers the driver's API without a GPU. Results of such a driver are refused.
SIMULATED_SYMBOL = "roofgen_simulated_driver"


def probe(ordinal):
    """What the driver says of the GPU, or {"reason": ...} when there is nothing to measure on."""
    name = os.environ.get("ROOFGEN_LIBCUDA") or "libcuda.so.1"  # as roofgen itself chooses
    try:
        cuda = ctypes.CDLL(name)
        if hasattr(cuda, SIMULATED_SYMBOL):
            return {"reason": f"{name} is a simulated driver (it exports {SIMULATED_SYMBOL}) and measures nothing"}
        status = cuda.cuInit(0)
        if status != 0:
            return {"reason": f"the CUDA driver does not start: error {status}"}
        version, count, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        cuda.cuDriverGetVersion(ctypes.byref(version))
        cuda.cuDeviceGetCount(ctypes.byref(count))
        if ordinal >= count.value:
            return {"reason": f"there is no GPU {ordinal}: the driver has {count.value}"}
        text, uuid = ctypes.create_string_buffer(256), ctypes.create_string_buffer(16)
        cuda.cuDeviceGet(ctypes.byref(device), ordinal)
        cuda.cuDeviceGetName(text, len(text), device)
        if cuda.cuDeviceGetUuid_v2(uuid, device) != 0:
            return {"reason": "the CUDA driver does not tell the GPU's UUID"}
    except OSError as error:
        return {"reason": f"no CUDA driver: {error}"}
    except AttributeError as error:
        return {"reason": f"{name} is not a CUDA driver: {error}"}
    return {"name": text.value.decode(errors="replace"), "uuid": f"GPU-{uuids.UUID(bytes=uuid.raw)}",
            "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}"}


def run_probe(ordinal, limit_s):
    try:
        done = subprocess.run([sys.executable, __file__, str(ordinal)], capture_output=True, text=True, timeout=limit_s)
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"reason": f"the CUDA driver did not answer within {limit_s:g} s"}
    except ValueError:
        return {"reason": f"the CUDA driver crashed when asked (exit {done.returncode})"}


def hold(uuid):
    """Prints what it opened of the GPU's driver and keeps that open until standard input ends. Without persistence mode
    the driver shuts a GPU down when its last user ends, and starts it again for the next, which takes seconds. This is
    not a compute process: it has no context and no GPU memory."""
    held, device, minor = [], ctypes.c_void_p(), ctypes.c_uint()
    try:
        nvml = ctypes.CDLL(os.environ.get("ROOFGEN_LIBNVML") or "libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)) == 0:
            held.append("NVML")
            if nvml.nvmlDeviceGetMinorNumber(device, ctypes.byref(minor)) == 0:
                file = open(f"/dev/nvidia{minor.value}", "rb", buffering=0)
                held.append(file.name)
    except (OSError, AttributeError):  # no NVML, no such device file, no permission
        pass
    print(", ".join(held), flush=True)
    if held:
        sys.stdin.read()


class Holder:
    """hold() in a process that ends with this one."""

    def __init__(self, uuid, environment, limit_s):
        self.child = subprocess.Popen([sys.executable, __file__, "--hold", uuid], stdin=subprocess.PIPE, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        ready = select.select([self.child.stdout], [], [], limit_s)[0]  # the driver's start may take some seconds
        self.held = self.child.stdout.readline().strip() if ready else ""

    def close(self):
        self.child.kill()
        self.child.communicate()


# Fields of nvidia-smi by their names in results.
FACTS = {"driver": "driver_version", "vbios": "vbios_version", "pci": "pci.bus_id", "memory_mib": "memory.total",
         "max_sm_mhz": "clocks.max.sm", "max_memory_mhz": "clocks.max.memory", "power_limit_w": "power.limit",
         "persistence": "persistence_mode", "ecc": "ecc.mode.current", "mig": "mig.mode.current"}
STATE = {"sm_mhz": "clocks.sm", "memory_mhz": "clocks.mem", "power_w": "power.draw", "power_limit_w": "power.limit",
         "temperature_c": "temperature.gpu", "limits": "clocks_event_reasons.active"}


def ask(uuid, fields):
    """FACTS or STATE from nvidia-smi; empty when there is no such tool or it does not know a field."""
    try:
        done = subprocess.run(["nvidia-smi", f"--id={uuid}", f"--query-gpu={','.join(fields.values())}",
                               "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=15)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = dict(zip(fields, map(str.strip, done.stdout.split(",")))) if done.returncode == 0 else {}
    for name in [each for each in values if re.search("_(mhz|mib|w|c)$", each)]:  # a unit: a number
        try:
            values[name] = float(values[name]) if "." in values[name] else int(values[name])
        except ValueError:
            pass
    return {name: value for name, value in values.items() if value not in ("", "[N/A]")}


def facts(doctor, uuid):
    """The GPU according to `roofgen doctor`, and, where nvidia-smi is installed, according to that."""
    names = {"driver": "driver", "pci": "pci_bus_id", "max_sm_mhz": "max_sm_mhz", "max_memory_mhz": "max_memory_mhz",
             "power_limit_w": "power_limit_w"}
    gpu = next((each for each in doctor.get("gpus", []) if each["uuid"].lower() == uuid.lower()), {})
    return {"driver": "", **{name: gpu[field] for name, field in names.items() if gpu.get(field)}, **ask(uuid, FACTS)}


def program(named, root):
    """The roofgen that was named (a path, or a name on PATH), else the one of bench/portable.sh."""
    path = named or os.path.join(root, "build-portable", "cli", "roofgen")
    return os.path.abspath(path if os.sep in path else shutil.which(path) or path)


def peer(roofgen, root):
    """The cublaslt_peer of the same build as roofgen, else the one of bench/portable.sh."""
    builds = Path(roofgen).parents[1], Path(root, "build-portable")
    places = [build / "bench/peers/cublaslt_peer" for build in builds]
    return str(next((place for place in places if os.access(place, os.X_OK)), places[0]))


def _ncu():
    return shutil.which("ncu") or next(map(str, sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), "")


def _package(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def describe(named, root):
    """What a visit would find here, for --dry-run."""
    roofgen = program(named, root)
    rival, torch = peer(roofgen, root), _package("torch")
    rows = [
        ("program", os.access(roofgen, os.X_OK) and roofgen, "bench/portable.sh builds it; no step runs without it"),
        ("peer", os.access(rival, os.X_OK) and rival, "cublaslt_peer of the same build; the step gemm needs it"),
        ("torch", torch and f"{torch}, of {sys.executable}", f"{sys.executable} has none; the step peers needs it"),
        ("ncu", _ncu(), "the step counters needs it")]
    lines = [f"{name:9} {found or 'missing: ' + needed_by}\n" for name, found, needed_by in rows]
    missing = ", ".join(name for name, found, _ in rows if not found)
    end = f"missing here: {missing}. No error: only the machine of the visit needs it" if missing else \
        "nothing is missing here"
    return "\n" + "".join(lines) + end + "\n"


def versions():
    """Empty texts for programs and packages that are not installed. `roofgen doctor` adds roofgen's and NVRTC's."""
    try:
        ncu = subprocess.run([_ncu(), "--version"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        ncu = ""
    ncu = re.search(r"Version (\S+)|$", ncu)[1] or ""
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


if __name__ == "__main__":
    if sys.argv[1] == "--hold":
        hold(sys.argv[2])
    else:
        print(json.dumps(probe(int(sys.argv[1]))))
