"""lab/visit/timing.py and cuda.py: statistics, turns, samples and launches, on a made-up GPU and on a fake driver."""
import contextlib
import ctypes
import gc
import math
import os
import random
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab/visit"))
import cuda  # noqa: E402
import timing  # noqa: E402

FAKE_CUDA = os.environ["ROOFGEN_FAKE_CUDA"]


class Statistics(unittest.TestCase):
    def test_a_summary(self):
        t = timing.summarize([4, 1, 3, 2])
        self.assertEqual(t, {"median_ns": 2.5, "q1_ns": 1.75, "q3_ns": 3.25, "min_ns": 1, "low_ns": 1, "high_ns": 4,
                             "samples": 4})
        self.assertEqual(timing.summarize([7])["q3_ns"], 7)

    def test_the_interval_is_that_of_published_tables(self):
        # Ranks of the 95 % interval of a median in tables of nonparametric statistics.
        for n, low, high in ((1, 1, 1), (3, 1, 3), (6, 1, 6), (10, 2, 9), (20, 6, 15), (50, 18, 33), (100, 40, 61),
                             (1000, 469, 532)):
            self.assertEqual(timing.median_interval(list(range(1, n + 1))), (low, high), n)

    def test_the_interval_covers_the_median_often_enough(self):
        made, hits = random.Random(1), 0
        for _ in range(400):
            low, high = timing.median_interval(sorted(made.expovariate(1) for _ in range(25)))
            hits += low <= math.log(2) <= high
        self.assertGreaterEqual(hits, 0.93 * 400)

    def test_ratios_are_of_the_same_round(self):
        ratio = timing.paired_ratio([20, None, 30, 44], [10, 10, None, 11])
        self.assertEqual(ratio, {"median": 3, "low": 2, "high": 4, "pairs": 2})
        self.assertIsNone(timing.paired_ratio([None], [1]))


class FakeGpu:
    """Made-up times, and a record of the calls."""
    flush_bytes, cuda_version = 1, "13.0"

    def __init__(self, times, fail=None, lose=None):
        self.times, self.fail, self.lose, self.lost = times, fail or {}, lose, False
        self.calls, self.clock = [], 0.0

    def settle(self):
        pass

    def state(self):
        return {"sm_mhz": 1500.0, "power_w": 600.0}

    def describe(self):
        return {"name": "Fake GPU"}

    def time(self, contender, set_index, cold):
        self.calls.append((contender.name, set_index, cold))
        self.clock += 0.01
        n = sum(1 for call in self.calls if call[0] == contender.name)
        if contender.name == self.lose and n > 4:
            self.lost = True
            raise RuntimeError("unspecified launch failure")
        if n > self.fail.get(contender.name, math.inf):
            raise ValueError("first line\nsecond line")
        return self.times[contender.name] * (1 + 0.01 * ((n * 7) % 5)) * (1 if cold else 0.8)


def interrupting(function, at):
    """The function, but its call number `at` raises KeyboardInterrupt."""
    calls = []

    def call(*arguments):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return function(*arguments)
    return call


class Rounds(unittest.TestCase):
    def take(self, gpu, names, **more):
        contenders = [types.SimpleNamespace(name=name) for name in names]
        protocol = timing.Protocol(**{"seconds": 60, "warmup_s": 0, **more})
        return timing.take(gpu, contenders, 3, protocol, lambda: gpu.clock)

    def test_contenders_take_turns_and_buffers_rotate(self):
        gpu = FakeGpu({"a": 1, "b": 2, "c": 3})
        taken = self.take(gpu, "abc", most_rounds=3, ways=("cold",))
        self.assertEqual([call[0] for call in gpu.calls], list("abcbcacab"))
        self.assertEqual([call[1] for call in gpu.calls], [0, 0, 0, 1, 1, 1, 2, 2, 2])
        self.assertEqual([len(t) for t in taken.times["cold"].values()], [3, 3, 3])
        self.assertEqual(taken.stopped, "most rounds")

    def test_cold_and_hot_are_apart(self):
        taken = self.take(FakeGpu({"a": 1000}), "a", most_rounds=5)
        self.assertGreater(min(taken.times["cold"]["a"]), max(taken.times["hot"]["a"]))

    def test_a_failure_affects_one_contender(self):
        taken = self.take(FakeGpu({"a": 1, "b": 2}, fail={"b": 5}), "ab", most_rounds=8, settled=0)
        self.assertEqual(taken.failed, {"b": "ValueError: first line"})
        self.assertEqual(sum(t is not None for t in taken.times["cold"]["a"]), 8)
        self.assertEqual([t is None for t in taken.times["cold"]["b"]], [False] * 3 + [True] * 5)

    def test_a_lost_gpu_ends_the_rounds(self):
        taken = self.take(FakeGpu({"a": 1, "b": 2}, lose="b"), "ab", most_rounds=100)
        self.assertEqual((taken.stopped, taken.rounds), ("GPU lost", 2))

    def test_an_interrupt_keeps_the_finished_rounds(self):
        gpu = FakeGpu({"a": 1, "b": 2})
        gpu.time = interrupting(gpu.time, 15)  # the fourth round, hot
        taken = self.take(gpu, "ab", most_rounds=100, settled=0)
        self.assertEqual((taken.stopped, taken.rounds, taken.failed), ("interrupted", 3, {}))
        self.assertEqual({len(row) for by in taken.times.values() for row in by.values()}, {3})
        self.assertTrue(gc.isenabled())

    def test_no_garbage_collection_during_the_rounds(self):
        gpu, seen = FakeGpu({"a": 1}), []
        gpu.state = lambda: seen.append(gc.isenabled()) or {}
        self.take(gpu, "a", most_rounds=2)
        self.assertEqual(seen, [False, False])
        self.assertTrue(gc.isenabled())

    def test_stops_when_settled_or_out_of_time(self):
        self.assertEqual(self.take(FakeGpu({"a": 1}), "a", settled=0.05).stopped, "settled")
        self.assertEqual(self.take(FakeGpu({"a": 1}), "a", settled=0, seconds=0.1).stopped, "out of time")


@contextlib.contextmanager
def fake_driver(script="", **more):
    """The fake driver as the machine's, obeying a script of tests/runtime/fake_cuda.c."""
    lib = ctypes.CDLL(FAKE_CUDA)
    lib.fake_cuda_log.restype = ctypes.c_char_p
    lib.fake_cuda_script(script.encode())
    with mock.patch.dict(os.environ, {"ROOFGEN_LIBCUDA": FAKE_CUDA, "ROOFGEN_LIBNVML": "/no/nvml.so", **more}):
        yield lib


class Samples(unittest.TestCase):
    A = types.SimpleNamespace(name="a", run=lambda i: None)

    def sample(self, lib, gpu, cold):
        """The calls of the driver in one sample."""
        lib.fake_cuda_clear_log()
        gpu.time(self.A, 0, cold)
        return lib.fake_cuda_log().decode().splitlines()

    def test_a_cold_sample_finds_no_dirty_lines_in_l2(self):
        with fake_driver() as lib:
            gpu = cuda.Gpu(1)
            gpu.gates["a"] = 100
            sample = ["launch roofgen_gate", "record", "record", "synchronize"]
            self.assertEqual(self.sample(lib, gpu, True),
                             ["launch roofgen_sweep write", "launch roofgen_sweep read", *sample])
            self.assertEqual(self.sample(lib, gpu, False), sample)
            facts = {"name": "Fake GPU 1", "cc": "9.0", "sms": 64, "uuid": "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"}
            self.assertEqual({name: gpu.describe()[name] for name in facts}, facts)

    def test_a_late_host_is_given_another_try(self):
        for late, lengths in ((1, [100, 200]), (3, [100, 200, 400, 800])):
            with fake_driver(f"late host {late}") as lib:
                gpu, seen = cuda.Gpu(0), []
                gpu.gates["a"], attempt = 100, gpu.attempt
                gpu.attempt = lambda *arguments: seen.append(arguments[-1]) or attempt(*arguments)
                counts = [self.sample(lib, gpu, True).count("launch roofgen_gate") for _ in range(2)]
                self.assertEqual(counts, [late + 1, 1])
                # One late attempt lengthens no later gate, two in a row do.
                self.assertEqual(seen, [*lengths, 100 if late == 1 else 200])
        with fake_driver("late host 100"):
            with self.assertRaisesRegex(RuntimeError, "could not queue"):
                cuda.Gpu(0).time(self.A, 0, True)

    def test_a_fault_loses_the_gpu(self):
        with fake_driver("status 719") as lib:
            gpu = cuda.Gpu(0)
            launch = cuda.Kernel(gpu.driver, KERNEL).bind({"to": gpu.allocate(256, "a test")})
            with self.assertRaisesRegex(cuda.DriverError, "unspecified launch failure"):
                gpu.time(types.SimpleNamespace(name="a", run=lambda i: launch(gpu.stream)), 0, True)
            self.assertTrue(gpu.lost)
            lib.fake_cuda_script(b"")

    def test_nothing_to_run_on(self):
        for script, code, text in (("none", 3, "finds no GPU"), ("no device", 3, "finds no GPU"), ("", 2, "no GPU 7")):
            with fake_driver(script), self.assertRaisesRegex(timing.Stop, text) as caught:
                cuda.Gpu(7)
            self.assertEqual(caught.exception.code, code)
        simulated = types.SimpleNamespace(roofgen_simulated_driver=1)
        with mock.patch.object(ctypes, "CDLL", lambda name: simulated):
            self.assertRaisesRegex(timing.Stop, "simulated", cuda.Driver)


LAUNCH = {"grid": [4, 1, 1], "block": [32, 1, 1], "cluster": [1, 1, 1], "smem_bytes": 1024, "overlap": False,
          "args": [{"name": "to", "buffer": True, "bytes": 8}, {"name": "value", "bits": 7, "bytes": 4},
                   {"name": "bytes", "bits": 100, "bytes": 8}]}


KERNEL = {"entry": "fill", "arch": "sm_90", "cubin": b"\x7fELF cubin", "ptx": b".version 8.0", "launch": LAUNCH}


class Kernels(unittest.TestCase):
    def test_kernels_run_through_the_driver(self):
        with fake_driver() as lib:
            gpu = cuda.Gpu(0)
        address = gpu.allocate(256, "a test")
        gpu.fill(address, 0, 256)

        def launch(**changes):
            lib.fake_cuda_clear_log()
            cuda.Kernel(gpu.driver, {**KERNEL, **changes}).bind({"to": address})(gpu.stream)
            gpu.wait("running")
            return lib.fake_cuda_log().decode()

        launch()
        self.assertEqual(gpu.download(address, 256), b"\x07" * 100 + b"\0" * 156)
        log = launch(launch={**LAUNCH, "cluster": [2, 1, 1], "overlap": True})
        self.assertRegex(log, r"launch fill.*cluster=2x1x1.*overlap")
        tensor_map = {"dtype": "bf16", "dims": [64, 2], "stride_bytes": [128], "box": [64, 2], "swizzle_bytes": 128,
                      "nan_fill": True, "l2_promotion_bytes": 256}
        mapped = {**LAUNCH, "args": [{"name": "to", "buffer": True, "bytes": 8, "map": tensor_map}]}
        self.assertIn("launch mapped", launch(entry="mapped", launch=mapped))
        with self.assertRaisesRegex(cuda.DriverError, "finding absent: named symbol not found"):
            launch(entry="absent")

    def test_structures_are_those_of_cuda_h(self):
        config, attribute = cuda.Config, cuda.Attribute
        self.assertEqual((ctypes.sizeof(attribute), attribute.value.offset), (72, 8))
        self.assertEqual((ctypes.sizeof(config), config.stream.offset, config.attributes.offset, config.count.offset),
                         (56, 32, 40, 48))


if __name__ == "__main__":
    unittest.main()
