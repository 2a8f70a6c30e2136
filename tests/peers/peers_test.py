"""bench/peers without a GPU: its parts, and the whole comparison on a made-up GPU and on a fake cuda.

peers_test.py [FAKE_CUDA.so [FAKE_CUBLASLT.so]]"""
import contextlib
import copy
import ctypes
import gc
import io
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH / "peers"), str(BENCH.parent / "tests/visit")]

import attention  # noqa: E402
import compare  # noqa: E402
import cuda  # noqa: E402
import forms  # noqa: E402
import gemm  # noqa: E402

FAKE_CUDA, FAKE_CUBLASLT = (sys.argv.pop(1) if sys.argv[1:] and sys.argv[1].endswith(".so") else None for _ in range(2))
NUMBER, OTHERS = forms.NUMBER, {"...": object}
TIMING = {**dict.fromkeys(("median_ns", "q1_ns", "q3_ns", "min_ns", "low_ns", "high_ns", "tflops"), NUMBER),
          "samples": int, "times_ns": [NUMBER], "ratio": (dict, None)}
PEER = {"name": str, "what": str, "reason": str, "state": ("timed", "wrong", "failed", "missing"), **OTHERS,
        "error_over_tolerance": (*NUMBER, None), "rows_checked": int}
SCHEMA = {
    **dict.fromkeys(("time", "command", "op", "flop_convention"), str), "schema": ("roofgen.peers.1",),
    **dict.fromkeys(("problem", "gpu", "versions", "protocol"), dict), "origin": ("measured",), "flops": NUMBER,
    "baseline": (str, None), "interrupted": bool, "bundles": list, "notes": [str],
    "modes": [{"mode": ("burst", "steady"), "ways": [str], "rounds": int, "stopped": str, "state": dict}],
    "peers": [PEER]}


def check(doc):
    """Raises Wrong when the document is not of the form of roofgen.peers.1."""
    forms.check(doc, SCHEMA)
    for timing in (way for p in doc["peers"] for mode in p.get("timings", {}).values() for way in mode.values()):
        forms.check(timing, TIMING)


class Statistics(unittest.TestCase):
    def test_a_summary(self):
        t = compare.summarize([4, 1, 3, 2])
        self.assertEqual(t, {"median_ns": 2.5, "q1_ns": 1.75, "q3_ns": 3.25, "min_ns": 1, "low_ns": 1, "high_ns": 4,
                             "samples": 4, "times_ns": [4, 1, 3, 2]})
        self.assertEqual(compare.summarize([7])["q3_ns"], 7)

    def test_the_interval_is_that_of_published_tables(self):
        # Ranks of the 95 % interval of a median in tables of nonparametric statistics.
        for n, low, high in ((1, 1, 1), (3, 1, 3), (6, 1, 6), (10, 2, 9), (20, 6, 15), (50, 18, 33), (100, 40, 61),
                             (1000, 469, 532)):
            self.assertEqual(compare.median_interval(list(range(1, n + 1))), (low, high), n)

    def test_the_interval_covers_the_median_often_enough(self):
        made, hits = random.Random(1), 0
        for _ in range(400):
            low, high = compare.median_interval(sorted(made.expovariate(1) for _ in range(25)))
            hits += low <= math.log(2) <= high
        self.assertGreaterEqual(hits, 0.93 * 400)

    def test_ratios_are_of_the_same_round(self):
        ratio = compare.paired_ratio([20, None, 30, 44], [10, 10, None, 11])
        self.assertEqual(ratio, {"median": 3, "low": 2, "high": 4, "pairs": 2})
        self.assertIsNone(compare.paired_ratio([None], [1]))


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
        protocol = compare.Protocol("steady", warmup_s=0, **more)
        return compare.take(gpu, contenders, 3, protocol, lambda: gpu.clock, lambda s: None)

    def test_contenders_take_turns_and_buffers_rotate(self):
        gpu = FakeGpu({"a": 1, "b": 2, "c": 3})
        taken = self.take(gpu, "abc", rounds=3, ways=("cold",))
        self.assertEqual([call[0] for call in gpu.calls], list("abcbcacab"))
        self.assertEqual([call[1] for call in gpu.calls], [0, 0, 0, 1, 1, 1, 2, 2, 2])
        self.assertEqual([len(t) for t in taken.times["cold"].values()], [3, 3, 3])
        self.assertEqual(taken.stopped, "most rounds")

    def test_cold_and_hot_are_apart(self):
        taken = self.take(FakeGpu({"a": 1000}), "a", rounds=5)
        self.assertGreater(min(taken.times["cold"]["a"]), max(taken.times["hot"]["a"]))

    def test_a_failure_affects_one_contender(self):
        taken = self.take(FakeGpu({"a": 1, "b": 2}, fail={"b": 5}), "ab", rounds=8, settled=0)
        self.assertEqual(taken.failed, {"b": "ValueError: first line"})
        self.assertEqual(sum(t is not None for t in taken.times["cold"]["a"]), 8)
        self.assertEqual([t is None for t in taken.times["cold"]["b"]], [False] * 3 + [True] * 5)

    def test_a_lost_gpu_ends_the_rounds(self):
        taken = self.take(FakeGpu({"a": 1, "b": 2}, lose="b"), "ab", rounds=100)
        self.assertEqual((taken.stopped, taken.rounds), ("GPU lost", 2))

    def test_an_interrupt_keeps_the_finished_rounds(self):
        gpu = FakeGpu({"a": 1, "b": 2})
        gpu.time = interrupting(gpu.time, 15)  # the fourth round, hot
        taken = self.take(gpu, "ab", rounds=100, settled=0)
        self.assertEqual((taken.stopped, taken.rounds, taken.failed), ("interrupted", 3, {}))
        self.assertEqual({len(row) for by in taken.times.values() for row in by.values()}, {3})
        self.assertTrue(gc.isenabled())

    def test_no_garbage_collection_during_the_rounds(self):
        gpu, seen = FakeGpu({"a": 1}), []
        gpu.state = lambda: seen.append(gc.isenabled()) or {}
        self.take(gpu, "a", rounds=2)
        self.assertEqual(seen, [False, False])
        self.assertTrue(gc.isenabled())

    def test_stops_when_settled_or_out_of_time(self):
        self.assertEqual(self.take(FakeGpu({"a": 1}), "a", settled=0.05).stopped, "settled")
        self.assertEqual(self.take(FakeGpu({"a": 1}), "a", settled=0, seconds=0.1).stopped, "out of time")

    def test_burst_is_short_and_rests(self):
        slept, gpu = [], FakeGpu({"a": 1})
        protocol = compare.Protocol.of("burst", types.SimpleNamespace(rounds=50, seconds=60, warmup=3, rest=1.0))
        taken = compare.take(gpu, [types.SimpleNamespace(name="a")], 3, protocol, lambda: gpu.clock, slept.append)
        self.assertLessEqual(taken.rounds, 10)
        self.assertEqual(slept, [1.0] * taken.rounds)


@contextlib.contextmanager
def fake_driver(script="", **more):
    """The fake driver as the machine's, obeying a script of tests/runtime/fake_cuda.c."""
    lib = ctypes.CDLL(FAKE_CUDA)
    lib.fake_cuda_log.restype = ctypes.c_char_p
    lib.fake_cuda_script(script.encode())
    with mock.patch.dict(os.environ, {"ROOFGEN_LIBCUDA": FAKE_CUDA, "ROOFGEN_LIBNVML": "/no/nvml.so", **more}):
        yield lib


@unittest.skipUnless(FAKE_CUDA, "no fake driver was named")
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
        with fake_driver("status 719") as lib, tempfile.TemporaryDirectory() as top:
            write_bundle(top)
            gpu = cuda.Gpu(0)
            launch = cuda.Kernel(gpu.driver, cuda.Bundle(top).kernels[0]).bind({"to": gpu.allocate(256, "a test")})
            with self.assertRaisesRegex(cuda.DriverError, "unspecified launch failure"):
                gpu.time(types.SimpleNamespace(name="a", run=lambda i: launch(gpu.stream)), 0, True)
            self.assertTrue(gpu.lost)
            lib.fake_cuda_script(b"")

    def test_nothing_to_run_on(self):
        for script, code, text in (("none", 3, "finds no GPU"), ("no device", 3, "finds no GPU"), ("", 2, "no GPU 7")):
            with fake_driver(script), self.assertRaisesRegex(compare.Stop, text) as caught:
                cuda.Gpu(7)
            self.assertEqual(caught.exception.code, code)
        simulated = types.SimpleNamespace(roofgen_simulated_driver=1)
        with mock.patch.object(ctypes, "CDLL", lambda name: simulated):
            self.assertRaisesRegex(compare.Stop, "simulated", cuda.Driver)


def fake_torch():
    cuda = types.SimpleNamespace(synchronize=lambda: None, is_available=lambda: True, device_count=lambda: 1)
    backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91900))
    return types.SimpleNamespace(__version__="2.11.0", cuda=cuda, version=types.SimpleNamespace(cuda="13.0"),
                                 backends=backends)


def peer(name, error=0.5, raises=None, module=""):
    def build(work):
        if raises:
            raise raises
        return lambda i: error
    return compare.Peer(name, f"what {name} is", build, module)


def work_on(problem):
    return types.SimpleNamespace(problem=problem, shape=attention.Shape.of(problem), flops=1e9, sets=2, versions=dict,
                                 flop_convention="made up", error=lambda peer, i: (peer.run(i), 64), protocol={},
                                 notes=["made up"])


def named(name):
    return next(p for p in attention.all_peers() if p.name == name)


class Flow(unittest.TestCase):
    def compare(self, peers, gpu, mode="steady", bundles=(), **problem):
        args = types.SimpleNamespace(mode=mode, rounds=8, seconds=10, warmup=3, rest=1, prepare=5, seed=0,
                                     argv=["--L", "512"], bundles=bundles)
        problem = attention.problem_of(512, 64, **{"batch": 1, "heads": 2, **problem})
        doc = compare.compare(gpu, work_on(problem), peers, args, lambda: gpu.clock, lambda s: None)
        check(json.loads(json.dumps(doc, allow_nan=False)))
        return doc

    def finish(self, doc, path=None):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            return compare.finish([doc], path), out.getvalue()

    def test_each_peer_ends_in_one_state_and_wrong_ones_are_not_timed(self):
        gpu = FakeGpu({"good": 1e5, "slow": 2e5, "flaky": 1e5, "wrong": 1e3}, fail={"flaky": 3})
        doc = self.compare([peer("good"), peer("slow"), peer("wrong", error=40.0), peer("nan", error=math.inf),
                            peer("absent", module="no_such"), peer("unfit", raises=compare.Unfit("not this")),
                            peer("broken", raises=RuntimeError("No available kernel")), peer("flaky")], gpu)
        self.assertEqual({p["name"]: p["state"] for p in doc["peers"]},
                         {"good": "timed", "slow": "timed", "wrong": "wrong", "nan": "wrong", "absent": "missing",
                          "unfit": "missing", "broken": "failed", "flaky": "failed"})
        self.assertNotIn("wrong", {call[0] for call in gpu.calls})
        code, text = self.finish(doc)
        self.assertEqual(code, 0)
        for line in ("wrong: wrong: its error is 40 times the tolerance", "absent: missing: no_such cannot be imported",
                     "broken: failed: RuntimeError: No available kernel", "1500 MHz",
                     "note: made up"):
            self.assertIn(line, text)

    def test_an_interrupted_comparison_is_written(self):
        gpu = FakeGpu({"good": 1e5, "slow": 2e5})
        gpu.state = interrupting(lambda: {}, 13)  # in the second mode: burst had eight rounds
        doc = self.compare([peer("good"), peer("slow")], gpu, mode="both")
        self.assertEqual((doc["modes"][-1]["mode"], doc["modes"][-1]["stopped"]), ("steady", "interrupted"))
        self.assertIn("note: interrupted: the finished rounds stand", compare.table(doc))
        good = doc["peers"][0]
        self.assertEqual(good["state"], "timed")
        self.assertEqual(good["timings"]["steady"]["cold"]["samples"], doc["modes"][-1]["rounds"])
        with tempfile.TemporaryDirectory() as top:
            self.assertEqual(self.finish(doc, f"{top}/out.json")[0], 130)
            self.assertTrue(json.loads(Path(top, "out.json").read_text())["interrupted"])

    def test_an_interrupt_before_the_rounds_is_one_line(self):
        with self.assertRaises(KeyboardInterrupt):
            self.compare([peer("p", raises=KeyboardInterrupt())], FakeGpu({}))

    def test_sdpa_leaves_out_problems_that_it_does_not_support(self):
        doc = self.compare([named("sdpa-efficient"), peer("good")], FakeGpu({"good": 1e5}), heads=4, kv_heads=2)
        self.assertEqual((doc["peers"][0]["state"], doc["peers"][0]["reason"]),
                         ("missing", "its kernels do not support grouped keys (enable_gqa)"))
        doc = self.compare([named("sdpa-flash"), peer("good")], FakeGpu({"good": 1e5}), causal=True, kv_len=600)
        self.assertIn("is_causal aligns the mask to the first key", doc["peers"][0]["reason"])

    def test_ratios_are_against_the_first_bundle(self):
        gpu = FakeGpu({"roofgen:fused": 1e5, "roofgen:fused'": 3e5, "p": 2e5})
        doc = self.compare([peer("roofgen:fused"), peer("roofgen:fused'"), peer("p")], gpu, mode="both")
        self.assertEqual(doc["baseline"], "roofgen:fused")
        by = {p["name"]: p for p in doc["peers"]}
        self.assertAlmostEqual(by["p"]["timings"]["steady"]["cold"]["ratio"]["median"], 2, delta=0.1)
        self.assertAlmostEqual(by["roofgen:fused'"]["timings"]["steady"]["cold"]["ratio"]["median"], 3, delta=0.1)
        self.assertIsNone(by["roofgen:fused"]["timings"]["burst"]["hot"]["ratio"])
        self.assertEqual([mode["mode"] for mode in doc["modes"]], ["burst", "steady"])

    def test_a_peer_that_is_never_ready_affects_only_itself(self):
        slow = compare.Peer("slow", "compiles", lambda work: time.sleep(30))
        with mock.patch.object(compare, "at_most", lambda seconds, real=compare.at_most: real(0.05)):
            doc = self.compare([slow, peer("good")], FakeGpu({"good": 1e5}))
        self.assertEqual([p["state"] for p in doc["peers"]], ["failed", "timed"])
        self.assertIn("no time was left", doc["peers"][0]["reason"])

    def test_standard_output_has_only_the_result(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import os, compare\n"
                "with compare.nothing_on_stdout():\n print('noise'); os.system('echo more')\nprint('result')")
        command = [sys.executable, "-B", "-c", code, BENCH / "peers"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "result\n")
        self.assertIn("noise", done.stderr)

    def test_nothing_timed_is_a_failure(self):
        self.assertEqual(self.finish(self.compare([peer("absent", module="no_such")], FakeGpu({})))[0], 1)

    def test_the_schema_finds_faults(self):
        doc = self.compare([peer("good")], FakeGpu({"good": 1e5}))
        for change in (lambda d: d.pop("gpu"), lambda d: d.update(schema="x"), lambda d: d["peers"][0].pop("state"),
                       lambda d: d["peers"][0].update(state="great"), lambda d: d["modes"][0].pop("rounds"),
                       lambda d: d["peers"][0]["timings"]["steady"]["cold"].pop("median_ns")):
            bad = copy.deepcopy(doc)
            change(bad)
            self.assertRaises(forms.Wrong, check, bad)


class CommandLine(unittest.TestCase):
    def run_main(self, *argv, **modules):
        """Exit code, stdout and stderr with these entries in sys.modules."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.dict(sys.modules, modules):
            try:
                code = compare.guarded(attention.run, list(argv))
            except SystemExit as stop:
                code = stop.code
        return code, out.getvalue(), err.getvalue()

    def test_without_torch_or_a_gpu(self):
        code, out, err = self.run_main("--L", "128", "--d", "64", torch=None)
        self.assertEqual((code, out, err.count("\n")), (3, "", 1))
        self.assertIn("torch cannot be imported", err)
        torch = fake_torch()
        torch.cuda.is_available = lambda: False
        code, _, err = self.run_main("--L", "128", "--d", "64", torch=torch)
        self.assertEqual((code, err), (3, "peers: torch finds no GPU\n"))

    def test_unexpected_errors_are_one_line(self):
        for error, code, text in ((MemoryError("out of memory\ntrace"), 1, "error: MemoryError: out of memory"),
                                  (KeyboardInterrupt(), 130, "interrupted before anything was timed")):
            with mock.patch.object(attention, "arguments", side_effect=error):
                self.assertEqual(self.run_main(), (code, "", f"peers: {text}\n"))

    def test_list_gives_every_peer_a_reason(self):
        code, out, _ = self.run_main("--list", torch=None)
        self.assertEqual(code, 0)
        for p in attention.all_peers():
            self.assertRegex(out, rf"(?m)^{p.name} +no: torch cannot be imported")
        out = self.run_main("--list", torch=fake_torch(), flash_attn=None)[1]
        self.assertRegex(out, r"(?m)^sdpa-cudnn +yes ")
        self.assertRegex(out, r"(?m)^flash-attn-2 +no: flash_attn cannot be imported")

    @unittest.skipUnless(FAKE_CUDA, "no fake driver was named")
    def test_a_comparison_on_the_stream_of_torch(self):
        torch, stream = fake_torch(), ctypes.c_void_p()
        torch.cuda.set_device = lambda ordinal: None
        torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=stream.value)
        arguments = "--L 64 --d 64 --mode burst --rounds 2 --rest 0".split()
        with fake_driver() as lib, mock.patch.object(attention, "all_peers", lambda: [peer("p")]), mock.patch.object(
                attention, "Attention", lambda torch, gpu, problem, seed, mode: work_on(problem)):
            cuda.Gpu(0)  # the fake driver creates streams in a context only
            self.assertEqual(lib.cuStreamCreate(ctypes.byref(stream), 1), 0)
            code, out, err = self.run_main(*arguments, torch=torch)
        self.assertEqual((code, err), (0, ""))
        for text in ("attention on Fake GPU 0, bf16 L=64", "burst, hot (2 rounds, most rounds)", "note: no bundle"):
            self.assertIn(text, out)

    def test_usage(self):
        for text, argv in (("were expected", []), ("a number from 1", ["--L", "0"]), ("--what", ["--what"]),
                           ("sdpa-flash", ["--peer", "sdpa-flsh", "--L", "1", "--d", "64"]),
                           ("no replay.json", ["--bundle", "/nonexistent"]),
                           ("not a multiple", ["--L", "128", "--d", "64", "--heads", "3", "--kv-heads", "2"])):
            code, _, err = self.run_main(*argv)
            self.assertEqual(code, 2)
            self.assertIn(text, err)


class Problems(unittest.TestCase):
    def test_flops_count_the_allowed_pairs(self):
        for L, kv_len, causal, pairs in ((8, 12, False, 8 * 12), (8, 12, True, sum(r + 1 + 4 for r in range(8))),
                                         (12, 8, True, sum(max(0, r + 1 - 4) for r in range(12)))):
            problem = attention.problem_of(L, 64, kv_len=kv_len, batch=1, heads=1, causal=causal)
            self.assertEqual(attention.Shape.of(problem).flops(), 4 * 64 * pairs)

    def test_bands_reach_both_ends(self):
        b = attention.bands(attention.Shape.of(attention.problem_of(1000, 64, batch=4, heads=8)))
        self.assertTrue({(0, 0, 0, 64), (3, 7, 936, 1000)} <= set(b))
        self.assertEqual(len(attention.bands(attention.Shape.of(attention.problem_of(16, 64, batch=1, heads=1)))), 1)


LAUNCH = {"grid": [4, 1, 1], "block": [32, 1, 1], "cluster": [1, 1, 1], "smem_bytes": 1024, "overlap": False,
          "args": [{"name": "to", "buffer": True, "bytes": 8}, {"name": "value", "bits": 7, "bytes": 4},
                   {"name": "bytes", "bits": 100, "bytes": 8}]}


def write_bundle(folder, **changes):
    kernel = {"stage": "s", "entry": "fill", "arch": "sm_90", "digest": "d", "registers": 9, "cubin": "k0.cubin",
              "ptx": "k0.ptx", "launch": LAUNCH}
    doc = {"schema": "roofgen.replay.1", "problem": attention.problem_of(128, 64), "variant": "fused",
           "kernels": [kernel], "buffers": [{"name": "to", "dtype": "bf16", "bytes": 256, "role": "output"}], **changes}
    for name, data in (("replay.json", json.dumps(doc)), ("k0.cubin", "\x7fELF cubin"), ("k0.ptx", ".version 8.0")):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, name).write_text(data)


class Bundles(unittest.TestCase):
    def test_read_from_its_folder_or_the_output_of_emit(self):
        with tempfile.TemporaryDirectory() as top:
            write_bundle(f"{top}/replay")
            for path in (top, f"{top}/replay", f"{top}/replay/replay.json"):
                b = cuda.Bundle(path)
                self.assertEqual((b.variant, b.kernels[0]["cubin"][:4]), ("fused", b"\x7fELF"))

    def test_faults_are_one_line(self):
        for changes in ({"schema": "roofgen.tune.1"}, {"kernels": [{"cubin": "x"}]}, {"buffers": []},
                        {"buffers": [{}]}, {"kernels": None}):
            with tempfile.TemporaryDirectory() as top:
                write_bundle(top, **changes)
                with self.assertRaises(cuda.BadBundle) as caught:
                    cuda.Bundle(top)
                self.assertNotIn("\n", str(caught.exception))

    @unittest.skipUnless(FAKE_CUDA, "no fake driver was named")
    def test_kernels_run_through_the_driver(self):
        with fake_driver() as lib, tempfile.TemporaryDirectory() as top:
            write_bundle(top)
            kernel, gpu = cuda.Bundle(top).kernels[0], cuda.Gpu(0)
        address = gpu.allocate(256, "a test")
        gpu.fill(address, 0, 256)

        def launch(**changes):
            lib.fake_cuda_clear_log()
            cuda.Kernel(gpu.driver, {**kernel, **changes}).bind({"to": address})(gpu.stream)
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


class Products(unittest.TestCase):
    def test_formats(self):
        for dtype, bits, value in (("bf16", 0x3f80, 1), ("fp16", 0xc000, -2), ("fp16", 1, 2.0**-24), ("fp8", 0x38, 1),
                                   ("fp8", 0x7e, 448)):
            self.assertEqual(gemm.values(dtype)[bits], value)
        for dtype, bits in (("bf16", 0xffff), ("fp16", 0x7c00), ("fp8", 0x7f)):
            self.assertTrue(math.isnan(gemm.values(dtype)[bits]))
        self.assertEqual((gemm.ulp("bf16", 1.0), gemm.ulp("fp16", 0.0), gemm.ulp("fp16", 3.0)),
                         (2.0**-7, 2.0**-24, 2.0**-9))

    def test_inputs_are_normal(self):
        for dtype in gemm.FORMATS:
            data, numbers = gemm.tensor(dtype, 3, 100_000)
            self.assertEqual(len(data), 100_000 * (1 if dtype == "fp8" else 2))
            self.assertAlmostEqual(sum(numbers) / len(numbers), 0, delta=0.02)
            self.assertAlmostEqual(sum(x * x for x in numbers) / len(numbers), 1, delta=0.03)
        self.assertNotEqual(gemm.tensor("bf16", 1, 64)[0], gemm.tensor("bf16", 2, 64)[0])

    def test_attention_products_reach_every_element_once(self):
        for c in gemm.attention_cases(24, 20, 16, 2, 3):
            places = [gemm.offset(c.d, place) for place in itertools.product(*map(range, (c.outer, c.batch, c.m, c.n)))]
            self.assertEqual(len(set(places)), len(places))
            self.assertLess(max(places), c.outer * c.d[0])

    def test_bad_sizes_are_usage(self):
        for make, sizes in ((gemm.plain_case, (4, 8, 8)), (gemm.plain_case, (24, 24, 24, "fp8")),
                            (gemm.attention_cases, (0, 1, 16, 1, 1)), (gemm.attention_cases, (8, 8, 12, 1, 1))):
            with self.assertRaises(compare.Stop) as caught:
                make(*sizes)
            self.assertEqual(caught.exception.code, 2)
        self.assertEqual(len(gemm.suite("bf16")), 6)


@unittest.skipUnless(FAKE_CUBLASLT, "no fake cuBLASLt was named")
class CublasLt(unittest.TestCase):
    """bench/peers/gemm.py as a program, on a fake driver and a fake cuBLASLt."""

    def run_gemm(self, arguments, **environment):
        environment = {**os.environ, "ROOFGEN_LIBCUDA": FAKE_CUDA, "ROOFGEN_LIBNVML": "/no/nvml.so",
                       "ROOFGEN_CUBLASLT": FAKE_CUBLASLT, **environment}
        command = [sys.executable, "-B", BENCH / "peers/gemm.py", *arguments.split()]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        return done.returncode, done.stdout, done.stderr

    ONE = "--m 40 --n 24 --k 32 --mode burst --rounds 1 --rest 0"

    def test_help_and_usage(self):
        for code, arguments in ((0, "--help"), (2, "--what"), (2, "--m 7 --n 8 --k 8"), (2, "--epilogue swish"),
                                (2, "--bundle /no/such")):
            self.assertEqual(self.run_gemm(arguments)[0], code)

    def test_nothing_to_run_on_is_3_and_one_line(self):
        for name, text in (("ROOFGEN_LIBCUDA", "no CUDA driver"), ("ROOFGEN_CUBLASLT", "no cuBLASLt")):
            code, _, err = self.run_gemm(self.ONE, **{name: "/no/such.so"})
            self.assertEqual((code, err.count("\n")), (3, 1))
            self.assertIn(f"peers: {text}", err)

    def test_every_epilogue_is_checked(self):
        for epilogue in gemm.EPILOGUES:
            code, out, err = self.run_gemm(f"{self.ONE} --json - --epilogue {epilogue}")
            self.assertEqual(code, 0, err)
            doc = json.loads(out)
            check(doc)
            entry = doc["peers"][0]
            self.assertEqual((entry["state"], doc["versions"]["cublaslt"]), ("timed", "13.1.2"))
            self.assertLessEqual(entry["error_over_tolerance"], 1)
            self.assertEqual(entry["timings"]["burst"]["cold"]["samples"], 1)
            self.assertEqual(doc["notes"], ["roofgen has no matrix product of its own yet: the peers alone"])

    def test_attention_products_lie_where_ours_do(self):
        code, out, err = self.run_gemm("--attention 24 20 16 2 3 --mode burst --rounds 1 --rest 0 --json -")
        self.assertEqual(code, 0, err)
        self.assertEqual([(doc["peers"][0]["state"], doc["flops"]) for doc in json.loads(out)],
                         [("timed", 2.0 * 24 * 20 * 16 * 6)] * 2)

    def test_a_bundle_is_the_base(self):
        with tempfile.TemporaryDirectory() as top:
            s, q, k = ({"name": name, "buffer": True, "bytes": 8} for name in "SQK")
            launch = {**LAUNCH, "args": [s, *LAUNCH["args"][1:], q, k]}
            kernel = {"stage": "s", "entry": "fill", "arch": "sm_90", "cubin": "k0.cubin", "ptx": "k0.ptx",
                      "launch": launch}
            buffers = [{"name": name, "dtype": "bf16", "bytes": 256, "role": "input"} for name in "QKS"]
            write_bundle(top, kernels=[kernel], buffers=buffers,
                         problem=attention.problem_of(24, 16, batch=2, heads=3))
            code, out, err = self.run_gemm(f"--bundle {top} --mode burst --rounds 1 --rest 0 --json -")
        self.assertEqual(code, 1, err)  # it fills S with sevens
        first, second = json.loads(out)
        self.assertEqual([(p["name"], p["state"]) for p in first["peers"]],
                         [("roofgen:s", "wrong"), ("cublaslt", "timed")])
        self.assertEqual((first["baseline"], second["baseline"]), ("roofgen:s", None))
        self.assertEqual(second["notes"], ["roofgen: the bundle has no kernel for it"])

    def test_wrong_is_reported_and_not_timed(self):
        code, out, _ = self.run_gemm(self.ONE, ROOFGEN_FAKE_CUBLASLT="wrong")
        self.assertEqual(code, 1)
        self.assertIn("cublaslt: wrong: its error is", out)
        code, out, _ = self.run_gemm(self.ONE, ROOFGEN_FAKE_CUBLASLT="nothing")
        self.assertEqual(code, 1)
        self.assertIn("cublaslt: missing: cuBLASLt has no algorithm for it on this GPU", out)


class Sources(unittest.TestCase):
    def test_every_file_compiles(self):  # triton_attention.py cannot be imported here
        for path in (BENCH / "peers").glob("*.py"):
            compile(path.read_text(encoding="utf-8"), path, "exec")


if __name__ == "__main__":
    unittest.main()
