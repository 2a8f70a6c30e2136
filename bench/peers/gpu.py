"""One GPU through torch: timing with events behind a gate, the L2 flush; and its state through NVML."""
import ctypes
import os
import time

MOST_GATE_CYCLES = 2_000_000_000
MOST_ATTEMPTS = 6


class GateFactor:
    """A factor of the gate's length, as in runtime/cuda/gate.h: a late attempt doubles it for the next attempt at the
    sample; two in a row double it for later samples, until a hundred samples in time halve it again."""
    MOST, FORGETS = 64, 100

    def __init__(self):
        self.kept, self.late_in_a_row, self.in_time = 1, 0, 0

    def of_attempt(self, attempt):
        return self.kept << attempt

    def ended(self, late):
        """Ends a sample that had `late` late attempts."""
        if late:
            self.in_time = 0
            self.late_in_a_row += late
            if self.late_in_a_row >= 2:
                self.kept, self.late_in_a_row = min(2 * self.kept, self.MOST), 0
        else:
            self.late_in_a_row = 0
            self.in_time += 1
            if self.kept > 1 and self.in_time >= self.FORGETS:
                self.kept, self.in_time = self.kept // 2, 0


class Nvml:
    """SM clock, power and temperature through the driver's NVML. What it does not tell is absent."""

    def __init__(self, uuid):
        self.device = None
        try:
            self.lib = ctypes.CDLL(os.environ.get("ROOFGEN_LIBNVML") or "libnvidia-ml.so.1")
            device, by_uuid = ctypes.c_void_p(), self.lib.nvmlDeviceGetHandleByUUID
            if self.lib.nvmlInit_v2() == 0 and by_uuid(uuid.encode(), ctypes.byref(device)) == 0:
                self.device = device
        except (OSError, AttributeError):  # no NVML
            pass

    def _numbers(self, calls):
        found, value = {}, ctypes.c_uint()
        for name, (function, *selector, scale) in calls.items() if self.device else ():
            if getattr(self.lib, function)(self.device, *selector, ctypes.byref(value)) == 0:
                found[name] = value.value * scale
        return found

    def state(self):
        return self._numbers({"sm_mhz": ("nvmlDeviceGetClockInfo", 1, 1.0),  # NVML_CLOCK_SM
                              "power_w": ("nvmlDeviceGetPowerUsage", 1e-3),
                              "temperature_c": ("nvmlDeviceGetTemperature", 0, 1.0)})  # NVML_TEMPERATURE_GPU

    def facts(self):
        facts = self._numbers({"max_sm_mhz": ("nvmlDeviceGetMaxClockInfo", 1, 1.0),
                               "power_limit_w": ("nvmlDeviceGetPowerManagementLimit", 1e-3)})
        text = ctypes.create_string_buffer(80)
        if self.device and self.lib.nvmlSystemGetDriverVersion(text, len(text)) == 0:
            facts["driver"] = text.value.decode()
        return facts


class TorchGpu:
    """Times calls of contenders on torch's current stream; the `gpu` of rounds.take."""

    def __init__(self, torch, device=0):
        self.torch, self.buffer_sets = torch, 1
        torch.cuda.set_device(device)
        self.properties = torch.cuda.get_device_properties(device)
        self.l2_bytes = self.properties.L2_cache_size
        # Two buffers of at least twice L2: one as large as L2 leaves parts of the old contents in it. The first is
        # written; reading the second evicts the dirty lines, which the sample would otherwise have to write back.
        words = 2 * max(self.l2_bytes, 32 << 20) // 4
        self.written, self.read = (torch.zeros(words, dtype=torch.float32, device="cuda") for _ in range(2))
        self.sum = torch.zeros((), dtype=torch.float32, device="cuda")
        self.flush_bytes = self.written.nbytes + self.read.nbytes
        self.gates = {}  # by contender: cycles, factor
        self.lost = False
        self.uuid = f"GPU-{self.properties.uuid}"
        self.nvml = Nvml(self.uuid)
        self.state = self.nvml.state

    def settle(self):
        """After an error: waits, and finds out whether the context is lost."""
        try:
            self.torch.cuda.synchronize()
        except Exception:
            self.lost = True

    def time(self, contender, set_index, cold):
        """Nanoseconds of one call. A gate holds the stream until all is queued, so that the host's launch rate does not
        show. A sample whose gate opened too early is repeated with a longer gate."""
        try:
            if contender.name not in self.gates:
                self.gates[contender.name] = self.first_gate(contender, set_index), GateFactor()
            cycles, factor = self.gates[contender.name]
            for late in range(MOST_ATTEMPTS):
                ns = self.attempt(contender, set_index, cold, min(cycles * factor.of_attempt(late), MOST_GATE_CYCLES))
                if ns is not None:
                    factor.ended(late)
                    return ns
            factor.ended(MOST_ATTEMPTS)
            raise RuntimeError("the host could not queue the launches while the stream was held: it waits for the GPU"
                               " inside the call")
        except Exception:
            self.settle()
            raise

    def attempt(self, contender, set_index, cold, gate_cycles):
        """None when the gate opened before everything was queued."""
        cuda = self.torch.cuda
        opened, start, stop = cuda.Event(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        if cold:
            self.written.add_(1)
            self.torch.sum(self.read, dim=0, out=self.sum)
        else:
            contender.run(set_index)
        cuda._sleep(gate_cycles)
        opened.record()
        start.record()
        contender.run(set_index)
        stop.record()
        late = opened.query()
        stop.synchronize()
        return None if late else start.elapsed_time(stop) * 1e6

    def first_gate(self, contender, set_index):
        """Twice the time in which the host queues one call, in cycles of a clock that no GPU exceeds."""
        contender.run(set_index)
        self.torch.cuda.synchronize()
        began = time.perf_counter()
        contender.run(set_index)
        took = time.perf_counter() - began
        self.torch.cuda.synchronize()
        return min(int((2 * took + 50e-6) * 2.5e9), MOST_GATE_CYCLES)

    def describe(self):
        p = self.properties
        return {"name": p.name, "sms": p.multi_processor_count, "l2_bytes": self.l2_bytes,
                "memory_bytes": p.total_memory, "cc": f"{p.major}.{p.minor}", "uuid": self.uuid, **self.nvml.facts()}
