"""bench/peers without a GPU: its parts, and the whole comparison on a made-up GPU.

peers_test.py [path of the fake CUDA driver]"""
import contextlib
import copy
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
from pathlib import Path
from unittest import mock

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH / "peers"), str(BENCH / "visit")]

import attention  # noqa: E402
import bundle  # noqa: E402
import driver  # noqa: E402
import files  # noqa: E402
import gpu as torch_gpu  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402
import run  # noqa: E402
import stats  # noqa: E402

FAKE_CUDA = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].endswith(".so") else None
SCHEMA = files.read_json(Path(__file__).with_name("schema.json"))


class Statistics(unittest.TestCase):
    def test_a_summary(self):
        t = stats.summarize([4, 1, 3, 2])
        self.assertEqual(t, {"median_ns": 2.5, "q1_ns": 1.75, "q3_ns": 3.25, "min_ns": 1, "low_ns": 1, "high_ns": 4,
                             "samples": 4, "times_ns": [4, 1, 3, 2]})
        self.assertEqual(stats.summarize([7])["q3_ns"], 7)

    def test_the_interval_is_that_of_published_tables(self):
        # Ranks of the 95 % interval of a median in tables of nonparametric statistics.
        for n, low, high in ((1, 1, 1), (3, 1, 3), (6, 1, 6), (10, 2, 9), (20, 6, 15), (50, 18, 33), (100, 40, 61),
                             (1000, 469, 532)):
            self.assertEqual(stats.median_interval(list(range(1, n + 1))), (low, high), n)

    def test_the_interval_covers_the_median_often_enough(self):
        made, hits = random.Random(1), 0
        for _ in range(400):
            low, high = stats.median_interval(sorted(made.expovariate(1) for _ in range(25)))
            hits += low <= math.log(2) <= high
        self.assertGreaterEqual(hits, 0.93 * 400)

    def test_ratios_are_of_the_same_round(self):
        ratio = stats.paired_ratio([20, None, 30, 44], [10, 10, None, 11])
        self.assertEqual(ratio, {"median": 3, "low": 2, "high": 4, "pairs": 2})
        self.assertIsNone(stats.paired_ratio([None], [1]))


class FakeGpu:
    """Made-up times, and a record of the calls."""
    buffer_sets, flush_bytes = 3, 1

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
        protocol = rounds.Protocol("steady", warmup_s=0, **more)
        return rounds.take(gpu, contenders, protocol, lambda: gpu.clock, lambda s: None)

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
        self.assertEqual((gc.isenabled(), gc.get_freeze_count()), (True, 0))

    def test_stops_when_settled_or_out_of_time(self):
        self.assertEqual(self.take(FakeGpu({"a": 1}), "a", settled=0.05).stopped, "settled")
        self.assertEqual(self.take(FakeGpu({"a": 1}), "a", settled=0, seconds=0.1).stopped, "out of time")

    def test_burst_is_short_and_rests(self):
        slept, gpu = [], FakeGpu({"a": 1})
        protocol = rounds.Protocol.of("burst", rounds=50)
        taken = rounds.take(gpu, [types.SimpleNamespace(name="a")], protocol, lambda: gpu.clock, slept.append)
        self.assertLessEqual(taken.rounds, 10)
        self.assertEqual(slept, [1.0] * taken.rounds)


class FakeStream:
    """The part of torch that TorchGpu uses: a log, and late attempts as scripted."""

    def __init__(self, late=()):
        self.log, self.late, self.gates = [], list(late), []
        made = types.SimpleNamespace(L2_cache_size=50 << 20, uuid="f0f1")
        self.cuda = types.SimpleNamespace(set_device=lambda d: None, get_device_properties=lambda d: made,
                                          Event=self.event, synchronize=lambda: None, _sleep=self.gate)
        self.float32 = "float32"

    def sum(self, x, dim, out):
        self.log.append(f"read {x.nbytes >> 20}")

    def zeros(self, words, dtype, device):
        x = types.SimpleNamespace(nbytes=4 * words if words else 4)
        x.add_ = lambda one: self.log.append(f"write {x.nbytes >> 20}")
        return x

    def gate(self, cycles):
        self.gates.append(cycles)
        self.log.append("gate")

    def event(self, enable_timing=False):
        return types.SimpleNamespace(record=lambda: self.log.append("event" if enable_timing else "opened"),
                                     query=lambda: bool(self.late and self.late.pop(0)), synchronize=lambda: None,
                                     elapsed_time=lambda stop: 0.25)


class Gates(unittest.TestCase):
    def gpu(self, late=()):
        stream = FakeStream(late)
        gpu = torch_gpu.TorchGpu(stream)
        gpu.gates["a"] = 100, torch_gpu.GateFactor()
        return stream, gpu, types.SimpleNamespace(name="a", run=lambda i: stream.log.append("run"))

    def test_a_cold_sample_finds_no_dirty_lines_in_l2(self):
        stream, gpu, a = self.gpu()
        self.assertEqual(gpu.time(a, 0, True), 250000)
        self.assertEqual(stream.log, ["write 100", "read 100", "gate", "opened", "event", "run", "event"])
        stream.log.clear()
        gpu.time(a, 0, False)
        self.assertEqual(stream.log, ["run", "gate", "opened", "event", "run", "event"])

    def test_one_late_attempt_lengthens_no_later_gate(self):
        stream, gpu, a = self.gpu([True, False, False] + [True, True, False, False])
        for _ in range(4):
            gpu.time(a, 0, True)
        self.assertEqual(stream.gates, [100, 200, 100, 100, 200, 400, 200])
        for _ in range(99):
            gpu.time(a, 0, True)
        self.assertEqual(stream.gates[-1], 200)
        gpu.time(a, 0, True)
        self.assertEqual(stream.gates[-1], 100)
        stream.late = [True] * 100
        with self.assertRaisesRegex(RuntimeError, "could not queue"):
            gpu.time(a, 0, True)


def fake_torch():
    cuda = types.SimpleNamespace(synchronize=lambda: None, is_available=lambda: True, device_count=lambda: 1)
    backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91900))
    return types.SimpleNamespace(__version__="2.11.0", cuda=cuda, version=types.SimpleNamespace(cuda="13.0"),
                                 backends=backends)


def peer(name, error=0.5, raises=None, module=""):
    def build(env, shape, sets):
        if raises:
            raise raises
        return lambda i: error
    return attention.Peer(name, f"what {name} is", build, module)


def named(name):
    return next(p for p in attention.all_peers() if p.name == name)


class Flow(unittest.TestCase):
    def compare(self, peers, gpu, mode="steady", bundles=(), **problem):
        args = types.SimpleNamespace(mode=mode, rounds=8, seconds=10, prepare=5, seed=0, argv=["--L", "512"])
        problem = attention.problem_of(512, 64, **{"batch": 1, "heads": 2, **problem})
        with mock.patch.object(attention, "error_over_tolerance", lambda torch, s, data, out, rounds_scores: (out, 64)):
            doc = run.compare(run.Env(fake_torch()), gpu, args, problem, bundles, peers, [{}, {}], lambda: gpu.clock,
                              lambda s: None)
        files.check(json.loads(json.dumps(doc, allow_nan=False)), SCHEMA)
        return doc

    def finish(self, doc, path=None):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            return run.finish(doc, path), out.getvalue()

    def test_each_peer_ends_in_one_state_and_wrong_ones_are_not_timed(self):
        gpu = FakeGpu({"good": 1e5, "slow": 2e5, "flaky": 1e5, "wrong": 1e3}, fail={"flaky": 3})
        doc = self.compare([peer("good"), peer("slow"), peer("wrong", error=40.0), peer("nan", error=math.inf),
                            peer("absent", module="no_such"), peer("unfit", raises=attention.Unfit("not this")),
                            peer("broken", raises=RuntimeError("No available kernel")), peer("flaky")], gpu)
        self.assertEqual({p["name"]: p["state"] for p in doc["peers"]},
                         {"good": "timed", "slow": "timed", "wrong": "wrong", "nan": "wrong", "absent": "missing",
                          "unfit": "missing", "broken": "failed", "flaky": "failed"})
        self.assertNotIn("wrong", {call[0] for call in gpu.calls})
        code, text = self.finish(doc)
        self.assertEqual(code, 0)
        for line in ("wrong: wrong: its error is 40 times the tolerance", "absent: missing: no_such cannot be imported",
                     "broken: failed: RuntimeError: No available kernel", "1500 MHz",
                     "note: no bundle of roofgen's was given: the peers alone"):
            self.assertIn(line, text)

    def test_an_interrupted_comparison_is_written(self):
        gpu = FakeGpu({"good": 1e5, "slow": 2e5})
        gpu.state = interrupting(lambda: {}, 13)  # in the second mode: burst had eight rounds
        doc = self.compare([peer("good"), peer("slow")], gpu, mode="both")
        self.assertEqual((doc["modes"][-1]["mode"], doc["modes"][-1]["stopped"]), ("steady", "interrupted"))
        self.assertIn("note: interrupted: the finished rounds stand", report.table(doc))
        good = doc["peers"][0]
        self.assertEqual(good["state"], "timed")
        self.assertEqual(good["timings"]["steady"]["cold"]["samples"], doc["modes"][-1]["rounds"])
        with tempfile.TemporaryDirectory() as top:
            self.assertEqual(self.finish(doc, f"{top}/out.json")[0], 130)
            self.assertTrue(files.read_json(f"{top}/out.json")["interrupted"])

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
        one = types.SimpleNamespace(variant="fused", describe=lambda: {})
        with mock.patch.object(run, "ours", lambda b, number, notes: peer("roofgen:fused" + "'" * number)):
            doc = self.compare([peer("p")], gpu, mode="both", bundles=[one, one])
        self.assertEqual(doc["baseline"], "roofgen:fused")
        by = {p["name"]: p for p in doc["peers"]}
        self.assertAlmostEqual(by["p"]["timings"]["steady"]["cold"]["ratio"]["median"], 2, delta=0.1)
        self.assertAlmostEqual(by["roofgen:fused'"]["timings"]["steady"]["cold"]["ratio"]["median"], 3, delta=0.1)
        self.assertIsNone(by["roofgen:fused"]["timings"]["burst"]["hot"]["ratio"])
        self.assertEqual([mode["mode"] for mode in doc["modes"]], ["burst", "steady"])

    def test_a_peer_that_is_never_ready_affects_only_itself(self):
        slow = attention.Peer("slow", "compiles", lambda env, shape, sets: time.sleep(30))
        with mock.patch.object(run, "at_most", lambda seconds, real=run.at_most: real(0.05)):
            doc = self.compare([slow, peer("good")], FakeGpu({"good": 1e5}))
        self.assertEqual([p["state"] for p in doc["peers"]], ["failed", "timed"])
        self.assertIn("no time was left", doc["peers"][0]["reason"])

    def test_standard_output_has_only_the_result(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import os, run\n"
                "with run.nothing_on_stdout():\n print('noise'); os.system('echo more')\nprint('result')")
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
            self.assertRaises(files.Bad, files.check, bad, SCHEMA)


class CommandLine(unittest.TestCase):
    def run_main(self, *argv, **modules):
        """Exit code, stdout and stderr with these entries in sys.modules."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.dict(sys.modules, modules):
            try:
                code = run.main(list(argv))
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
            with mock.patch.object(run, "run", side_effect=error):
                self.assertEqual(self.run_main(), (code, "", f"peers: {text}\n"))

    def test_list_gives_every_peer_a_reason(self):
        code, out, _ = self.run_main("--list", torch=None)
        self.assertEqual(code, 0)
        for p in attention.all_peers():
            self.assertRegex(out, rf"(?m)^{p.name} +no: torch cannot be imported")
        out = self.run_main("--list", torch=fake_torch(), flash_attn=None)[1]
        self.assertRegex(out, r"(?m)^sdpa-cudnn +yes ")
        self.assertRegex(out, r"(?m)^flash-attn-2 +no: flash_attn cannot be imported")

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
        files.write(Path(folder, name), data)


class Bundles(unittest.TestCase):
    def test_read_from_its_folder_or_the_output_of_emit(self):
        with tempfile.TemporaryDirectory() as top:
            write_bundle(f"{top}/replay")
            for path in (top, f"{top}/replay", f"{top}/replay/replay.json"):
                b = bundle.Bundle(path)
                self.assertEqual((b.variant, b.kernels[0]["cubin"][:4]), ("fused", b"\x7fELF"))

    def test_faults_are_one_line(self):
        for changes in ({"schema": "roofgen.tune.1"}, {"kernels": [{"cubin": "x"}]}, {"buffers": []},
                        {"buffers": [{}]}, {"kernels": None}):
            with tempfile.TemporaryDirectory() as top:
                write_bundle(top, **changes)
                with self.assertRaises(bundle.BadBundle) as caught:
                    bundle.Bundle(top)
                self.assertNotIn("\n", str(caught.exception))

    @unittest.skipUnless(FAKE_CUDA, "no fake driver was named")
    def test_kernels_run_through_the_driver(self):
        lib = ctypes.CDLL(FAKE_CUDA)
        context, address, stream, device = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_int()
        lib.cuInit(0)
        lib.cuDeviceGet(ctypes.byref(device), 0)
        lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        lib.cuCtxSetCurrent(context)
        self.assertEqual(lib.cuStreamCreate(ctypes.byref(stream), 1), 0)
        self.assertEqual(lib.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(256)), 0)
        ctypes.memset(address.value, 0, 256)
        with tempfile.TemporaryDirectory() as top, mock.patch.dict(os.environ, {"ROOFGEN_LIBCUDA": FAKE_CUDA}):
            write_bundle(top)
            kernel, cu = bundle.Bundle(top).kernels[0], driver.Driver()
        lib.fake_cuda_log.restype = ctypes.c_char_p

        def launch(**changes):
            lib.fake_cuda_clear_log()
            driver.Kernel(cu, {**kernel, **changes}).bind({"to": address.value})(stream.value)
            lib.cuStreamSynchronize(stream)
            return lib.fake_cuda_log().decode()

        launch()
        self.assertEqual(ctypes.string_at(address.value, 256), b"\x07" * 100 + b"\0" * 156)
        log = launch(launch={**LAUNCH, "cluster": [2, 1, 1], "overlap": True})
        self.assertRegex(log, r"launch fill.*cluster=2x1x1.*overlap")
        tensor_map = {"dtype": "bf16", "dims": [64, 2], "stride_bytes": [128], "box": [64, 2], "swizzle_bytes": 128,
                      "nan_fill": True, "l2_promotion_bytes": 256}
        mapped = {**LAUNCH, "args": [{"name": "to", "buffer": True, "bytes": 8, "map": tensor_map}]}
        self.assertIn("launch mapped", launch(entry="mapped", launch=mapped))
        with self.assertRaisesRegex(driver.DriverError, "finding absent: named symbol not found"):
            launch(entry="absent")

    def test_structures_are_those_of_cuda_h(self):
        config, attribute = driver.Config, driver.Attribute
        self.assertEqual((ctypes.sizeof(attribute), attribute.value.offset), (72, 8))
        self.assertEqual((ctypes.sizeof(config), config.stream.offset, config.attributes.offset, config.count.offset),
                         (56, 32, 40, 48))


class Sources(unittest.TestCase):
    def test_every_file_compiles(self):  # triton_attention.py cannot be imported here
        for path in (BENCH / "peers").glob("*.py"):
            compile(path.read_text(encoding="utf-8"), path, "exec")


if __name__ == "__main__":
    unittest.main()
