"""The GPU through torch: timing with events behind a gate, the L2 flush, clock and power."""

import shutil
import subprocess
import time as clock

GATE_MOST_CYCLES = 2_000_000_000
TAINTED_RETRIES = 6
GATE_MOST_FACTOR, GATE_FORGETS = 64, 100


class GateFactor:
    """Multiplies a gate's length, as runtime/cuda/gate.h does: each late attempt doubles it for the next attempt at the
    same sample, two late ones in a row for the samples after too, until a hundred in time halve it again."""

    def __init__(self):
        self.kept, self.late_in_a_row, self.in_time = 1, 0, 0

    def of_attempt(self, attempt):
        return self.kept << attempt

    def ended(self, late):
        """A sample is over; so many attempts at it were late."""
        if not late:
            self.late_in_a_row = 0
            self.in_time += 1
            if self.kept > 1 and self.in_time >= GATE_FORGETS:
                self.kept, self.in_time = self.kept // 2, 0
            return
        self.in_time = 0
        self.late_in_a_row += late
        if self.late_in_a_row >= 2:
            self.kept, self.late_in_a_row = min(2 * self.kept, GATE_MOST_FACTOR), 0


class TorchGpu:
    """gpu of rounds.take: times one call of a contender on the current stream."""

    def __init__(self, torch, buffer_sets, device=0):
        self.torch, self.buffer_sets, self.device = torch, buffer_sets, device
        torch.cuda.set_device(device)
        self.props = torch.cuda.get_device_properties(device)
        self.l2_bytes = int(getattr(self.props, "L2_cache_size", 0) or (64 << 20))
        # Each at least twice L2: one as large as L2 leaves parts of the old contents in it. The first is changed, then
        # the second only read: that throws the changed lines out before the sample, which else would write them back.
        words = 2 * max(self.l2_bytes, 32 << 20) // 4
        self.flush_written, self.flush_read = (torch.zeros(words, dtype=torch.float32, device="cuda") for _ in range(2))
        self.flush_sum = torch.zeros((), dtype=torch.float32, device="cuda")
        self.flush_bytes = self.flush_written.nbytes + self.flush_read.nbytes
        self.gate_cycles, self.gate_factors = {}, {}
        self.lost = False
        self.state_source = StateSource(device)

    def alive(self):
        return not self.lost

    def state(self):
        return self.state_source.read()

    def time(self, contender, set_index, cold):
        """Nanoseconds of one call. A gate holds the stream until everything is queued, so that the host's launch
        rate does not show; when it opened too early the sample is thrown away and the gate made longer."""
        try:
            return self.timed(contender, set_index, cold)
        except Exception:
            try:
                self.torch.cuda.synchronize()
            except Exception:
                self.lost = True  # a fault that sticks: the context went with it
            raise

    def timed(self, contender, set_index, cold):
        torch = self.torch
        if contender.name not in self.gate_cycles:
            self.gate_cycles[contender.name] = self.first_gate(contender, set_index)
        factor = self.gate_factors.setdefault(contender.name, GateFactor())
        for late in range(TAINTED_RETRIES):
            opened = torch.cuda.Event()
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            if cold:
                self.flush()
            else:
                contender.run(set_index)
            torch.cuda._sleep(min(self.gate_cycles[contender.name] * factor.of_attempt(late), GATE_MOST_CYCLES))
            opened.record()
            start.record()
            contender.run(set_index)
            stop.record()
            queued_in_time = not opened.query()
            stop.synchronize()
            if queued_in_time:
                factor.ended(late)
                return start.elapsed_time(stop) * 1e6
        factor.ended(TAINTED_RETRIES)
        raise RuntimeError("the host could not queue the launches while the stream was held: it waits for the GPU inside the call")

    def flush(self):
        self.flush_written.add_(1)
        self.torch.sum(self.flush_read, dim=0, out=self.flush_sum)

    def first_gate(self, contender, set_index):
        """Twice the time the host needs to queue one call, at a clock no GPU exceeds."""
        contender.run(set_index)
        self.torch.cuda.synchronize()
        began = clock.perf_counter()
        contender.run(set_index)
        took = clock.perf_counter() - began
        self.torch.cuda.synchronize()
        return min(int((2 * took + 50e-6) * 2.5e9), GATE_MOST_CYCLES)

    def describe(self):
        torch = self.torch
        out = {"name": torch.cuda.get_device_name(self.device), "sms": self.props.multi_processor_count, "l2_bytes": self.l2_bytes,
               "memory_bytes": self.props.total_memory, "cc": ".".join(map(str, torch.cuda.get_device_capability(self.device)))}
        out.update(self.state_source.describe())
        return out


class StateSource:
    """SM clock, power and temperature: by pynvml, else by nvidia-smi (at most once a second), else nothing."""

    FIELDS = ("clocks.sm", "power.draw", "temperature.gpu")

    def __init__(self, device):
        self.handle, self.nvml, self.smi = None, None, shutil.which("nvidia-smi")
        self.device, self.last, self.at = device, {}, 0.0
        try:
            import pynvml

            pynvml.nvmlInit()
            self.handle, self.nvml = pynvml.nvmlDeviceGetHandleByIndex(device), pynvml
        except Exception:  # not installed, no library, no permission: nvidia-smi may still do
            pass

    def read(self):
        if self.nvml:
            try:
                n, h = self.nvml, self.handle
                return {"sm_mhz": float(n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)), "power_w": n.nvmlDeviceGetPowerUsage(h) / 1e3,
                        "temperature_c": float(n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU))}
            except Exception:
                self.nvml = None
        if not self.smi or clock.monotonic() - self.at < 1:
            return self.last
        self.at = clock.monotonic()
        values = self.query(",".join(self.FIELDS))
        self.last = {name: number for name, number in zip(("sm_mhz", "power_w", "temperature_c"), map(as_number, values)) if number is not None}
        return self.last

    def query(self, fields):
        try:
            run = subprocess.run([self.smi, f"--id={self.device}", f"--query-gpu={fields}", "--format=csv,noheader,nounits"],
                                 capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.SubprocessError):
            self.smi = None
            return []
        return [v.strip() for v in run.stdout.splitlines()[0].split(",")] if run.returncode == 0 and run.stdout else []

    def describe(self):
        if not self.smi:
            return {}
        names = ("driver", "uuid", "max_sm_mhz", "power_limit_w")
        values = self.query("driver_version,uuid,clocks.max.sm,power.limit")
        return {n: (as_number(v) if n[0] in "mp" else v) for n, v in zip(names, values)}


def as_number(text):
    try:
        return float(text)
    except ValueError:
        return None
