"""What is measured on: the driver, the GPU, its clocks, the versions of everything that shapes a number.

Run as a program it probes the driver and prints JSON; visit.py does so in a process of its own, for a broken driver
may hang or crash, and so that the visit itself holds no GPU. `machine.py --hold UUID` keeps the driver started.
"""
import ctypes
import glob
import importlib.metadata
import json
import os
import platform
import re
import select
import shutil
import subprocess
import sys

# What a library exports that speaks the driver's API without a GPU behind it. No result of such a driver is kept.
SIMULATED_SYMBOL = "roofgen_simulated_driver"


def driver_library():
    """The library that roofgen loads: the same variable, the same name."""
    return os.environ.get("ROOFGEN_LIBCUDA") or "libcuda.so.1"


def probe(ordinal):
    """{"reason": ...} where there is nothing to measure on, else what the driver says of the GPU."""
    name = driver_library()
    try:
        cuda = ctypes.CDLL(name)
    except OSError as error:
        return {"reason": f"no CUDA driver: {error}"}
    if hasattr(cuda, SIMULATED_SYMBOL):
        return {"simulated": True, "reason": f"{name} is a simulated driver (it exports {SIMULATED_SYMBOL}): nothing it times is measured"}
    try:
        status = cuda.cuInit(0)
        if status != 0:
            return {"reason": f"the CUDA driver does not start: error {status}"}
        version, count = ctypes.c_int(), ctypes.c_int()
        cuda.cuDriverGetVersion(ctypes.byref(version))
        cuda.cuDeviceGetCount(ctypes.byref(count))
        if ordinal >= count.value:
            return {"reason": f"there is no GPU {ordinal}: the driver has {count.value}"}
        device = ctypes.c_int()
        text, raw = ctypes.create_string_buffer(256), (ctypes.c_ubyte * 16)()
        cuda.cuDeviceGet(ctypes.byref(device), ordinal)
        cuda.cuDeviceGetName(text, len(text), device)
        by_uuid = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
        if by_uuid(ctypes.byref(raw), device) != 0:
            return {"reason": "the CUDA driver does not tell the GPU's UUID"}
    except AttributeError as error:
        return {"reason": f"{name} is no CUDA driver: {error}"}
    digits = bytes(raw).hex()
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return {"simulated": False, "name": text.value.decode(errors="replace"), "uuid": f"GPU-{uuid}", "gpus": count.value,
            "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}"}


def run_probe(ordinal, limit_s=60):
    """probe() in a process of its own."""
    try:
        done = subprocess.run([sys.executable, os.path.abspath(__file__), str(ordinal)], capture_output=True, text=True, timeout=limit_s)
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"reason": f"the CUDA driver did not answer within {limit_s:g} s"}
    except ValueError:
        return {"reason": f"the CUDA driver crashed when asked (exit {done.returncode})"}


def hold(uuid):
    """Keeps the GPU's driver state loaded until standard input ends, by having it open; prints what it could open.
    Where persistence mode is off the driver shuts a GPU down when the last process lets go of it and starts it again for
    the next, which takes seconds. This is no compute process: it makes no context and takes no memory of the GPU."""
    held, minor = [], ctypes.c_uint()
    try:
        nvml = ctypes.CDLL(os.environ.get("ROOFGEN_LIBNVML") or "libnvidia-ml.so.1")
        device = ctypes.c_void_p()
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)) == 0:
            held.append("NVML")
            if nvml.nvmlDeviceGetMinorNumber(device, ctypes.byref(minor)) == 0:
                held.append(open(f"/dev/nvidia{minor.value}", "rb", buffering=0))
    except (OSError, AttributeError):  # no NVML, no such file here, not permitted: what is held is held
        pass
    print(", ".join(each if isinstance(each, str) else each.name for each in held), flush=True)
    if held:
        sys.stdin.read()


class Holder:
    """hold() in a process of its own, which ends with this one."""

    def __init__(self, uuid, environment, limit_s):
        self.child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--hold", uuid], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        ready = select.select([self.child.stdout], [], [], limit_s)[0]  # the driver's start may take some seconds
        self.held = self.child.stdout.readline().strip() if ready else ""
        if not self.held:
            self.close()

    def close(self):
        self.child.kill()
        self.child.communicate()


# Fields of nvidia-smi, and what they are called here. The first are facts, the rest a state.
_FACTS = {"driver_version": "driver", "vbios_version": "vbios", "pci.bus_id": "pci", "memory.total": "memory_mib",
          "clocks.max.sm": "max_sm_mhz", "clocks.max.memory": "max_memory_mhz", "power.limit": "power_limit_w",
          "persistence_mode": "persistence", "ecc.mode.current": "ecc", "mig.mode.current": "mig"}
_STATE = {"clocks.sm": "sm_mhz", "clocks.mem": "memory_mhz", "power.draw": "power_w", "power.limit": "power_limit_w",
          "temperature.gpu": "temperature_c", "clocks_event_reasons.active": "limits"}


def _value(name, text):
    """What is named with a unit is a number; versions, which look like some, are not."""
    if not name.endswith(("_mhz", "_w", "_c", "_mib")):
        return text
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _ask(uuid, fields):
    """One line of nvidia-smi as a dictionary; empty where there is no such tool, or it does not know a field."""
    if not shutil.which("nvidia-smi"):
        return {}
    try:
        done = subprocess.run(["nvidia-smi", f"--id={uuid}", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=15)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = [value.strip() for value in done.stdout.strip().split(",")]
    if done.returncode != 0 or len(values) != len(fields):
        return {}
    return {name: _value(name, value) for name, value in zip(fields.values(), values) if value and value != "[N/A]"}


def facts_of_doctor(doctor, uuid):
    """What roofgen's doctor knows of the same GPU through NVML: all there is where nvidia-smi is not installed."""
    gpus = doctor.get("gpus")
    for gpu in gpus if isinstance(gpus, list) else []:
        if isinstance(gpu, dict) and str(gpu.get("uuid", "")).lower() == uuid.lower():
            names = {"driver": "driver", "pci_bus_id": "pci", "max_sm_mhz": "max_sm_mhz", "max_memory_mhz": "max_memory_mhz", "power_limit_w": "power_limit_w"}
            return {ours: gpu[theirs] for theirs, ours in names.items() if gpu.get(theirs)}
    return {}


def facts(uuid):
    return _ask(uuid, _FACTS)


def state(uuid):
    return _ask(uuid, _STATE)


def _first(pattern, text):
    match = re.search(pattern, text)
    return match[1] if match else ""


def program(named, root):
    """roofgen: what was named (a path or a name of PATH), or the one of bench/portable.sh."""
    path = named or os.path.join(root, "build-portable", "cli", "roofgen")
    if os.sep not in path:
        path = shutil.which(path) or path
    return os.path.abspath(path)


def peer(roofgen, root):
    """cublaslt_peer: of the build that the program is of, or the one of bench/portable.sh."""
    builds = os.path.dirname(os.path.dirname(roofgen)), os.path.join(root, "build-portable")
    places = [os.path.join(build, "bench", "peers", "cublaslt_peer") for build in builds]
    return next((place for place in places if os.access(place, os.X_OK)), places[0])


def _ncu():
    return shutil.which("ncu") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/ncu"))), "")


def describe(named, root):
    """What a visit would find here, for --dry-run."""
    roofgen = program(named, root)
    rival, torch = peer(roofgen, root), _package("torch")
    lines = [("program", os.access(roofgen, os.X_OK) and roofgen, "bench/portable.sh builds it; no step runs without it"),
             ("peer", os.access(rival, os.X_OK) and rival, "cublaslt_peer of the same build; the step gemm fails without it"),
             ("torch", torch and f"{torch}, of {sys.executable}", f"{sys.executable} has none; the step peers needs it"),
             ("ncu", _ncu(), "the step counters needs it")]
    missing = [name for name, found, _ in lines if not found]
    last = f"missing here: {', '.join(missing)}. No error: it must be there where the visit is" if missing else "nothing is missing here"
    return "\n" + "".join(f"{name:9} {found or 'missing: ' + without}\n" for name, found, without in lines) + last + "\n"


def _ncu_version():
    tool = _ncu()
    if not tool:
        return ""
    try:
        done = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return _first(r"Version (\S+)", done.stdout)


def _package(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def versions():
    """Empty where something is not there. roofgen's and NVRTC's come from `roofgen doctor`."""
    return {"torch": _package("torch"), "triton": _package("triton"), "ncu": _ncu_version(), "python": platform.python_version(),
            "glibc": platform.libc_ver()[1], "kernel": platform.release()}


def host():
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            model = _first(r"model name\s*:\s*(.+)", file.read())
    except OSError:
        pass
    return {"machine": platform.machine(), "cpu": model, "cores": os.cpu_count() or 0}


def nvrtc_of_wheels():
    """NVRTC of the wheels that this Python would import, for roofgen looks in toolkits and active environments only."""
    for folder in sys.path:
        for part in ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"):
            found = os.path.join(folder, part, "libnvrtc.so.13")
            if os.path.exists(found):
                return os.path.abspath(found)
    return ""


if __name__ == "__main__":
    if sys.argv[1] == "--hold":
        hold(sys.argv[2])
    else:
        print(json.dumps(probe(int(sys.argv[1]))))
