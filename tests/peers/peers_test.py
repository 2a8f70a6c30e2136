"""The parts of bench/peers that need no GPU, and the whole flow on a pretended one. Run by ctest:
peers_test.py [path of the fake CUDA driver]"""

import contextlib
import ctypes
import gc
import io
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
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peers"))

import attention  # noqa: E402
import bundle  # noqa: E402
import driver  # noqa: E402
import gpu as torch_gpu  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402
import run  # noqa: E402
import stats  # noqa: E402

FAKE_CUDA = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].endswith(".so") else None


class Statistics(unittest.TestCase):
    def test_quantiles_are_linear_between_neighbours(self):
        self.assertEqual(stats.quantile([1, 2, 3, 4], 0.5), 2.5)
        self.assertEqual(stats.quantile([1, 2, 3, 4, 5], 0.25), 2)
        self.assertEqual(stats.quantile([7], 0.9), 7)
        self.assertTrue(math.isnan(stats.quantile([], 0.5)))

    def test_interval_is_that_of_the_tables(self):
        # Ranks of the 95 % interval of a median, as tables of nonparametric statistics have them.
        for n, low, high in ((6, 1, 6), (10, 2, 9), (20, 6, 15), (50, 18, 33), (100, 40, 61)):
            self.assertEqual(stats.median_interval(list(range(1, n + 1))), (low, high), n)
        self.assertEqual(stats.median_interval([1, 2, 3]), (1, 3))

    def test_large_samples_agree_with_the_binomial(self):
        low, high = stats.median_interval(list(range(1, 1001)))
        self.assertEqual((low, high), (469, 532))

    def test_interval_covers_the_median_often_enough(self):
        made, hits = random.Random(1), 0
        for _ in range(400):
            low, high = stats.median_interval(sorted(made.expovariate(1) for _ in range(25)))
            hits += low <= math.log(2) <= high
        self.assertGreaterEqual(hits, 0.93 * 400)

    def test_ratios_are_of_the_same_round(self):
        ratio = stats.paired_ratio([20, None, 30, 44], [10, 10, None, 11])
        self.assertEqual((ratio["median"], ratio["low"], ratio["high"], ratio["pairs"]), (3, 2, 4, 2))
        self.assertIsNone(stats.paired_ratio([None], [1]))

    def test_rotation(self):
        self.assertEqual([stats.rotated("abc", i) for i in range(4)], [list("abc"), list("bca"), list("cab"), list("abc")])
        self.assertEqual(stats.rotated([], 3), [])


class PretendedGpu:
    """Times that are made up, and a record of who ran when."""

    def __init__(self, times, fail=None, lose=None):
        self.times, self.fail, self.lose, self.lost = times, fail or {}, lose, False
        self.buffer_sets, self.calls, self.clock, self.flush_bytes = 3, [], 0.0, 1

    def alive(self):
        return not self.lost

    def state(self):
        return {"sm_mhz": 1500.0, "power_w": 600.0}

    def describe(self):
        return {"name": "Pretended GPU"}

    def time(self, contender, set_index, cold):
        self.calls.append((contender.name, set_index, cold))
        self.clock += 0.01
        n = sum(1 for c in self.calls if c[0] == contender.name)
        if contender.name == self.lose and n > 4:
            self.lost = True
            raise RuntimeError("unspecified launch failure")
        if n > self.fail.get(contender.name, math.inf):
            raise ValueError("first line\nsecond line")
        return self.times[contender.name] * (1 + 0.01 * ((n * 7) % 5)) * (1 if cold else 0.8)


def contenders(names):
    return [run.Contender(n, n, lambda i: i) for n in names]


class Rounds(unittest.TestCase):
    def take(self, gpu, names, **more):
        protocol = rounds.Protocol("steady", warmup_s=0, **more)
        return rounds.take(gpu, contenders(names), protocol, lambda: gpu.clock, lambda s: None)

    def test_contenders_take_turns_and_buffers_rotate(self):
        gpu = PretendedGpu({"a": 1, "b": 2, "c": 3})
        taken = self.take(gpu, "abc", rounds=3, ways=("cold",))
        self.assertEqual([c[0] for c in gpu.calls], list("abcbcacab"))
        self.assertEqual([c[1] for c in gpu.calls], [0, 0, 0, 1, 1, 1, 2, 2, 2])
        self.assertEqual([len(t) for t in taken.times["cold"].values()], [3, 3, 3])
        self.assertEqual(taken.stopped, "most rounds")

    def test_cold_and_hot_are_apart(self):
        taken = self.take(PretendedGpu({"a": 1000}), "a", rounds=5)
        self.assertGreater(min(taken.times["cold"]["a"]), max(taken.times["hot"]["a"]))

    def test_failure_costs_one(self):
        taken = self.take(PretendedGpu({"a": 1, "b": 2}, fail={"b": 5}), "ab", rounds=8, settled=0)
        self.assertEqual(taken.failed, {"b": "ValueError: first line"})
        self.assertEqual(sum(t is not None for t in taken.times["cold"]["a"]), 8)
        self.assertEqual([t is None for t in taken.times["cold"]["b"]], [False] * 3 + [True] * 5)

    def test_lost_gpu_ends_it(self):
        taken = self.take(PretendedGpu({"a": 1, "b": 2}, lose="b"), "ab", rounds=100)
        self.assertEqual(taken.stopped, "GPU lost")
        self.assertEqual(taken.rounds, 2)

    def test_an_interrupt_keeps_the_rounds_before_it(self):
        gpu = PretendedGpu({"a": 1, "b": 2})
        time, calls = gpu.time, []

        def interrupted(contender, set_index, cold):
            calls.append(cold)
            if len(calls) == 15:  # the fourth round, hot
                raise KeyboardInterrupt
            return time(contender, set_index, cold)

        gpu.time = interrupted
        taken = self.take(gpu, "ab", rounds=100, settled=0)
        self.assertEqual((taken.stopped, taken.rounds, taken.failed), ("interrupted", 3, {}))
        self.assertEqual({len(row) for by in taken.times.values() for row in by.values()}, {3})
        self.assertTrue(gc.isenabled())

    def test_the_collector_rests_during_the_rounds(self):
        gpu, seen = PretendedGpu({"a": 1}), []
        gpu.state = lambda: seen.append(gc.isenabled()) or {}
        self.take(gpu, "a", rounds=2)
        self.assertEqual(seen, [False, False])
        self.assertEqual((gc.isenabled(), gc.get_freeze_count()), (True, 0))

    def test_stops_when_settled_or_out_of_time(self):
        self.assertEqual(self.take(PretendedGpu({"a": 1}), "a", rounds=300, settled=0.05).stopped, "settled")
        late = self.take(PretendedGpu({"a": 1}), "a", rounds=300, settled=0, seconds=0.1)
        self.assertEqual(late.stopped, "out of time")

    def test_burst_is_short_and_rests(self):
        slept, gpu = [], PretendedGpu({"a": 1})
        taken = rounds.take(gpu, contenders("a"), rounds.Protocol.of("burst", rounds=50), lambda: gpu.clock, slept.append)
        self.assertLessEqual(taken.rounds, 10)
        self.assertEqual(slept, [1.0] * taken.rounds)


def fake_torch():
    torch = types.SimpleNamespace(__version__="2.11.0")
    torch.cuda = types.SimpleNamespace(synchronize=lambda: None, is_available=lambda: True, device_count=lambda: 1)
    torch.version = types.SimpleNamespace(cuda="13.0")
    torch.backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91900))
    return torch


def peer(name, missing="", error=0.5, raises=None):
    def build(env, shape, sets):
        if raises:
            raise raises
        return lambda i: error

    return attention.Peer(name, f"what {name} is", lambda env: missing, build)


class FakeStream:
    """As much of torch as TorchGpu queues on: a log, and a host that is late when told so."""

    def __init__(self, late=()):
        self.log, self.late, self.gates = [], list(late), []
        made = types.SimpleNamespace(L2_cache_size=50 << 20, multi_processor_count=132)
        cuda = types.SimpleNamespace(set_device=lambda d: None, get_device_properties=lambda d: made, synchronize=lambda: None, _sleep=self.gate, Event=self.event)
        self.torch = types.SimpleNamespace(cuda=cuda, float32="float32", zeros=self.zeros, sum=lambda x, dim, out: self.log.append(f"read {x.nbytes >> 20}"))

    def zeros(self, words, dtype, device):
        x = types.SimpleNamespace(nbytes=4 * words if words else 4)
        x.add_ = lambda one: self.log.append(f"change {x.nbytes >> 20}")
        return x

    def gate(self, cycles):
        self.gates.append(cycles)
        self.log.append("gate")

    def event(self, enable_timing=False):
        return types.SimpleNamespace(record=lambda: self.log.append("event" if enable_timing else "opened"), query=lambda: bool(self.late and self.late.pop(0)),
                                     synchronize=lambda: None, elapsed_time=lambda stop: 0.25)


class Gates(unittest.TestCase):
    def gpu(self, late=()):
        stream = FakeStream(late)
        with mock.patch.object(torch_gpu, "StateSource", lambda device: None):
            return stream, torch_gpu.TorchGpu(stream.torch, 1)

    def test_cold_leaves_no_changed_lines_in_l2(self):
        stream, gpu = self.gpu()
        c = run.Contender("a", "a", lambda i: stream.log.append("run"))
        gpu.gate_cycles["a"] = 100
        self.assertEqual(gpu.time(c, 0, True), 250000)
        self.assertEqual(stream.log, ["change 100", "read 100", "gate", "opened", "event", "run", "event"])
        stream.log.clear()
        gpu.time(c, 0, False)
        self.assertEqual(stream.log, ["run", "gate", "opened", "event", "run", "event"])

    def test_one_late_host_lengthens_no_later_gate(self):
        stream, gpu = self.gpu([True, False, False] + [True, True, False, False])
        c = run.Contender("a", "a", lambda i: None)
        gpu.gate_cycles["a"] = 100
        for _ in range(4):
            gpu.time(c, 0, True)
        self.assertEqual(stream.gates, [100, 200, 100, 100, 200, 400, 200])
        for _ in range(99):
            gpu.time(c, 0, True)
        self.assertEqual(stream.gates[-1], 200)
        gpu.time(c, 0, True)
        self.assertEqual(stream.gates[-1], 100)
        stream.late = [True] * 100
        with self.assertRaisesRegex(RuntimeError, "could not queue"):
            gpu.time(c, 0, True)


class Flow(unittest.TestCase):
    def compare(self, peers, gpu, mode="steady"):
        problem = attention.problem_of(512, 64, batch=1, heads=2)
        args = types.SimpleNamespace(mode=mode, rounds=8, seconds=10, prepare=5, seed=0, argv=["--L", "512"])
        env = run.Env(fake_torch(), {})
        with mock.patch.object(attention, "error_over_tolerance", lambda torch, s, data, out, rounds_scores: (out, 64)):
            return run.compare(env, gpu, args, problem, [], peers, [{}, {}], lambda: gpu.clock, lambda s: None)

    def test_each_peer_ends_in_one_state_and_wrong_ones_are_not_timed(self):
        gpu = PretendedGpu({"good": 1e5, "slow": 2e5, "flaky": 1e5, "wrong": 1e3}, fail={"flaky": 3})
        doc = self.compare([peer("good"), peer("slow"), peer("wrong", error=40.0), peer("nan", error=math.inf), peer("absent", missing="no module"), peer("unfit", raises=attention.Unfit("not this")),
                            peer("broken", raises=RuntimeError("No available kernel")), peer("flaky")], gpu)
        self.assertEqual(report.faults(doc), [])
        state = {p["name"]: p["state"] for p in doc["peers"]}
        self.assertEqual(state, {"good": "timed", "slow": "timed", "wrong": "wrong", "nan": "wrong", "absent": "missing", "unfit": "missing", "broken": "failed", "flaky": "failed"})
        self.assertNotIn("wrong", {c[0] for c in gpu.calls})
        json.dumps(doc, allow_nan=False)
        text = report.table(doc)
        for line in ("wrong: wrong: its error is 40 times the tolerance", "absent: missing: no module", "broken: failed: RuntimeError: No available kernel",
                     "note: no bundle of roofgen's was given: the peers alone", "1500 MHz"):
            self.assertIn(line, text)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(run.finish(doc, types.SimpleNamespace(json=None)), 0)

    def test_an_interrupted_comparison_is_written_and_says_so(self):
        gpu = PretendedGpu({"good": 1e5, "slow": 2e5})
        rounds_seen = []

        def state():
            rounds_seen.append(1)
            if len(rounds_seen) == 13:  # in the second mode: burst had eight
                raise KeyboardInterrupt
            return {}

        gpu.state = state
        doc = self.compare([peer("good"), peer("slow")], gpu, mode="both")
        self.assertEqual(report.faults(doc), [])
        self.assertEqual([(m["mode"], m["stopped"]) for m in doc["modes"]][-1], ("steady", "interrupted"))
        self.assertTrue(doc["interrupted"])
        self.assertIn("note: interrupted: the rounds that were finished stand", report.table(doc))
        good = doc["peers"][0]
        self.assertEqual((good["state"], good["timings"]["steady"]["cold"]["samples"]), ("timed", doc["modes"][-1]["rounds"]))
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "out.json")
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(run.finish(doc, types.SimpleNamespace(json=path)), 130)
            with open(path, encoding="utf-8") as f:
                self.assertTrue(json.load(f)["interrupted"])

    def test_interrupted_before_the_rounds_is_one_line(self):
        def build(env, shape, sets):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.compare([attention.Peer("p", "p", lambda env: "", build)], PretendedGpu({}))
        err = io.StringIO()
        with mock.patch.object(run, "run", side_effect=KeyboardInterrupt), contextlib.redirect_stderr(err):
            self.assertEqual(run.main([]), 130)
        self.assertEqual(err.getvalue(), "peers: interrupted before anything was timed\n")

    def test_memory_efficient_attention_has_no_grouped_keys(self):
        efficient = next(p for p in attention.PEERS if p.name == "sdpa-efficient")
        gpu = PretendedGpu({"good": 1e5})
        problem = attention.problem_of(512, 64, batch=1, heads=4, kv_heads=2)
        args = types.SimpleNamespace(mode="steady", rounds=8, seconds=10, prepare=5, seed=0, argv=[])
        with mock.patch.object(attention, "error_over_tolerance", lambda *a: (0.1, 64)):
            doc = run.compare(run.Env(fake_torch(), {}), gpu, args, problem, [], [efficient, peer("good")], [{}, {}], lambda: gpu.clock, lambda s: None)
        self.assertEqual((doc["peers"][0]["state"], doc["peers"][0]["reason"]), ("missing", "its kernels do not do grouped keys (enable_gqa)"))

    def test_ours_is_the_base_of_the_ratios(self):
        gpu = PretendedGpu({"roofgen:fused": 1e5, "p": 2e5})
        one = types.SimpleNamespace(variant="fused", buffers={}, kernels=[1], directory="d", describe=lambda: {})
        with mock.patch.object(run, "build_ours", lambda env, b, shape, sets: (lambda i: 0.1, "")):
            with mock.patch.object(attention, "error_over_tolerance", lambda *a: (0.1, 64)):
                args = types.SimpleNamespace(mode="both", rounds=8, seconds=10, prepare=5, seed=0, argv=[])
                doc = run.compare(run.Env(fake_torch(), {}), gpu, args, attention.problem_of(512, 64), [one], [peer("p")], [{}, {}], lambda: gpu.clock, lambda s: None)
        self.assertEqual(doc["baseline"], "roofgen:fused")
        by = {p["name"]: p for p in doc["peers"]}
        self.assertAlmostEqual(by["p"]["timings"]["steady"]["cold"]["ratio"]["median"], 2, delta=0.1)
        self.assertIsNone(by["roofgen:fused"]["timings"]["burst"]["hot"]["ratio"])
        self.assertEqual([m["mode"] for m in doc["modes"]], ["burst", "steady"])

    def test_peer_that_is_never_ready_costs_only_itself(self):
        def build(env, shape, sets):
            time.sleep(30)

        slow = attention.Peer("slow", "compiles", lambda env: "", build)
        with mock.patch.object(run, "at_most", lambda seconds, real=run.at_most: real(0.05)):
            doc = self.compare([slow, peer("good")], PretendedGpu({"good": 1e5}))
        self.assertEqual({p["name"]: p["state"] for p in doc["peers"]}, {"slow": "failed", "good": "timed"})
        self.assertIn("no time was left", doc["peers"][0]["reason"])

    def test_standard_output_is_the_results_alone(self):
        code = "import sys; sys.path.insert(0, sys.argv[1]); import os, run\nwith run.nothing_on_stdout(True):\n print('noise'); os.system('echo more')\nprint('result')"
        folder = os.path.join(HERE, "..", "..", "bench", "peers")
        done = subprocess.run([sys.executable, "-B", "-c", code, folder], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "result\n")
        self.assertIn("noise", done.stderr)

    def test_nobody_timed_is_a_failure(self):
        doc = self.compare([peer("absent", missing="no module")], PretendedGpu({}))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(run.finish(doc, types.SimpleNamespace(json=None)), 1)

    def test_schema_check_sees_what_is_wrong(self):
        doc = self.compare([peer("good")], PretendedGpu({"good": 1e5}))
        self.assertEqual(report.faults(doc), [])
        for change in (lambda d: d.pop("gpu"), lambda d: d.update(schema="x"), lambda d: d["peers"][0].update(state="great"), lambda d: d["peers"].append(d["peers"][0]),
                       lambda d: d["peers"][0].update(state="wrong"), lambda d: d["peers"][0]["timings"]["steady"]["cold"].pop("median_ns")):
            bad = json.loads(json.dumps(doc))
            change(bad)
            self.assertNotEqual(report.faults(bad), [])


class CommandLine(unittest.TestCase):
    def run_main(self, argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = run.main(argv)
            except SystemExit as stop:
                code = stop.code
        return code, out.getvalue(), err.getvalue()

    def without_torch(self):
        return mock.patch.dict(sys.modules, {"torch": None})

    def test_no_torch_is_one_line_and_3(self):
        with self.without_torch():
            code, out, err = self.run_main(["--L", "128", "--d", "64"])
        self.assertEqual((code, out), (3, ""))
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("torch cannot be imported", err)

    def test_no_gpu_is_3(self):
        torch = fake_torch()
        torch.cuda.is_available = lambda: False
        with mock.patch.dict(sys.modules, {"torch": torch}):
            code, _, err = self.run_main(["--L", "128", "--d", "64"])
        self.assertEqual((code, err), (3, "peers: torch finds no GPU\n"))

    def test_what_nobody_foresaw_is_one_line_and_1(self):
        with mock.patch.object(run, "run", side_effect=MemoryError("CUDA out of memory\ntrace")):
            code, _, err = self.run_main([])
        self.assertEqual((code, err), (1, "peers: error: MemoryError: CUDA out of memory\n"))

    def test_list_names_everybody_with_a_reason(self):
        with self.without_torch():
            code, out, _ = self.run_main(["--list"])
        self.assertEqual(code, 0)
        for p in attention.PEERS:
            self.assertRegex(out, rf"(?m)^{p.name} +no: torch cannot be imported")
        with mock.patch.dict(sys.modules, {"torch": fake_torch(), "flash_attn": None}):
            _, out, _ = self.run_main(["--list"])
        self.assertRegex(out, r"(?m)^sdpa-cudnn +yes ")
        self.assertRegex(out, r"(?m)^flash-attn-2 +no: flash_attn cannot be imported")

    def test_usage(self):
        self.assertEqual(self.run_main([])[0], 2)
        self.assertEqual(self.run_main(["--L", "0"])[0], 2)
        self.assertEqual(self.run_main(["--what"])[0], 2)
        code, _, err = self.run_main(["--peer", "sdpa-flsh", "--L", "1", "--d", "64"])
        self.assertEqual(code, 2)
        self.assertIn("did you mean sdpa-flash?", err)
        self.assertIn("no replay.json", self.run_main(["--bundle", "/nonexistent"])[2])
        self.assertEqual(self.run_main(["--L", "128", "--d", "64", "--heads", "3", "--kv-heads", "2"])[0], 2)


class Problems(unittest.TestCase):
    def test_flops_count_the_allowed_pairs(self):
        full = attention.Shape.of(attention.problem_of(8, 64, kv_len=12, batch=1, heads=1))
        causal = attention.Shape.of(attention.problem_of(8, 64, kv_len=12, batch=1, heads=1, causal=True))
        self.assertEqual(full.flops(), 4 * 8 * 12 * 64)
        self.assertEqual(causal.flops(), 4 * 64 * sum(r + 1 + 4 for r in range(8)))
        shorter = attention.Shape.of(attention.problem_of(12, 64, kv_len=8, batch=1, heads=1, causal=True))
        self.assertEqual(shorter.flops(), 4 * 64 * sum(max(0, r + 1 - 4) for r in range(12)))

    def test_bands_reach_both_ends(self):
        b = attention.bands(attention.Shape.of(attention.problem_of(1000, 64, batch=4, heads=8)))
        self.assertIn((0, 0, 0, 64), b)
        self.assertIn((3, 7, 936, 1000), b)
        self.assertEqual(len(attention.bands(attention.Shape.of(attention.problem_of(16, 64, batch=1, heads=1)))), 1)


LAUNCH = {"grid": [4, 1, 1], "block": [32, 1, 1], "cluster": [1, 1, 1], "smem_bytes": 1024, "overlap": False,
          "args": [{"name": "to", "buffer": True, "bytes": 8}, {"name": "value", "bits": 7, "bytes": 4}, {"name": "bytes", "bits": 100, "bytes": 8}]}


def write_bundle(folder, **changes):
    doc = {"schema": "roofgen.replay.1", "problem": attention.problem_of(128, 64), "pattern": "normal", "variant": "fused",
           "buffers": [{"name": "to", "dtype": "bf16", "bytes": 256, "role": "output"}],
           "kernels": [{"stage": "s", "entry": "fill", "arch": "sm_90", "digest": "d", "registers": 9, "cubin": "k0.cubin", "ptx": "k0.ptx", "launch": LAUNCH}]}
    doc.update(changes)
    with open(os.path.join(folder, "replay.json"), "w", encoding="utf-8") as f:
        json.dump(doc, f)
    for name, data in (("k0.cubin", b"\x7fELF cubin"), ("k0.ptx", b".version 8.0")):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


class Bundles(unittest.TestCase):
    def test_read_from_the_folder_or_from_what_emit_wrote(self):
        with tempfile.TemporaryDirectory() as top:
            os.mkdir(os.path.join(top, "replay"))
            write_bundle(os.path.join(top, "replay"))
            for path in (top, os.path.join(top, "replay"), os.path.join(top, "replay", "replay.json")):
                b = bundle.read(path)
                self.assertEqual((b.variant, b.cubins[0][:4], b.kernels[0]["entry"]), ("fused", b"\x7fELF", "fill"))

    def test_faults_are_one_line(self):
        for changes in ({"schema": "roofgen.tune.1"}, {"kernels": [{"cubin": "../x"}]}, {"buffers": []}, {"buffers": [{"name": "to"}]}, {"kernels": None}):
            with tempfile.TemporaryDirectory() as top:
                write_bundle(top, **changes)
                with self.assertRaises(bundle.BadBundle) as caught:
                    bundle.read(top)
                self.assertNotIn("\n", str(caught.exception))

    @unittest.skipUnless(FAKE_CUDA, "no fake driver was named")
    def test_kernels_run_through_the_driver(self):
        lib = ctypes.CDLL(FAKE_CUDA)
        context, address, stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
        device = ctypes.c_int()
        lib.cuInit(0)
        lib.cuDeviceGet(ctypes.byref(device), 0)
        lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        lib.cuCtxSetCurrent(context)
        if hasattr(lib, "cuStreamCreate"):
            self.assertEqual(lib.cuStreamCreate(ctypes.byref(stream), 1), 0)
        self.assertEqual(lib.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(256)), 0)
        ctypes.memset(address.value, 0, 256)
        with tempfile.TemporaryDirectory() as top:
            write_bundle(top)
            b = bundle.read(top)
        cu = driver.Driver(FAKE_CUDA)
        kernel = cu.kernel(b.cubins[0], b.ptx[0], b.kernels[0])
        kernel.bind({"to": address.value})(stream.value)
        if stream.value and hasattr(lib, "cuStreamSynchronize"):
            lib.cuStreamSynchronize(stream)
        self.assertEqual(ctypes.string_at(address.value, 256), b"\x07" * 100 + b"\0" * 156)
        lib.fake_cuda_log.restype = ctypes.c_char_p
        lib.fake_cuda_clear_log()
        clustered = dict(b.kernels[0], launch=dict(LAUNCH, cluster=[2, 1, 1], overlap=True))
        cu.kernel(b.cubins[0], b.ptx[0], clustered).bind({"to": address.value})(stream.value)
        self.assertRegex(lib.fake_cuda_log().decode(), r"launch fill.*cluster=2x1x1.*overlap")
        mapped = {"name": "to", "buffer": True, "bytes": 8, "map": {"dtype": "bf16", "dims": [64, 2], "stride_bytes": [128], "box": [64, 2], "swizzle_bytes": 128, "nan_fill": True, "l2_promotion_bytes": 256}}
        with_map = dict(b.kernels[0], entry="mapped", launch=dict(LAUNCH, args=[mapped]))
        cu.kernel(b.cubins[0], b.ptx[0], with_map).bind({"to": address.value})(stream.value)
        self.assertIn("launch mapped", lib.fake_cuda_log().decode())
        with self.assertRaisesRegex(driver.DriverError, "finding absent: named symbol not found"):
            cu.kernel(b.cubins[0], b.ptx[0], dict(b.kernels[0], entry="absent"))


class Layouts(unittest.TestCase):
    def test_structures_are_those_of_cuda_h(self):
        self.assertEqual(ctypes.sizeof(driver.Attribute), 72)
        self.assertEqual(driver.Attribute.value.offset, 8)
        self.assertEqual((ctypes.sizeof(driver.Config), driver.Config.stream.offset, driver.Config.attributes.offset, driver.Config.count.offset), (56, 32, 40, 48))


class Sources(unittest.TestCase):
    def test_every_file_compiles_and_is_short(self):
        folder = os.path.join(HERE, "..", "..", "bench", "peers")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    text = f.read()
                compile(text, name, "exec")
                self.assertLess(text.count("\n"), 400, name)


if __name__ == "__main__":
    unittest.main()
