"""A whole visit without a GPU: lab/visit/package.py with the real program, then visit.py on the simulated driver,
with a fake torch and a fake cuBLASLt that can hang, crash and be wrong."""
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "lab/visit"))
import cublaslt  # noqa: E402
import files  # noqa: E402
import package  # noqa: E402
import rows  # noqa: E402
import torch_peers  # noqa: E402

ROOFGEN = os.environ["ROOFGEN_PROGRAM"]
CUBLASLT = os.environ.get("ROOFGEN_CUBLASLT")


def case(step, name, op, flags, *variants, **more):
    return {"step": step, "name": name, "op": op, "flags": flags, **more,
            "schedules": [each if isinstance(each, dict) else {"variant": each} for each in variants]}


ATTENTION = {"L": 64, "d": 32, "batch": 1, "heads": 1}
GEMM = {"M": 32, "N": 32, "K": 64}
PLAN = {
    "steps": [{"name": "peers", "about": "ours and others", "seconds": 30, "row_s": 3},
              {"name": "new", "about": "variants", "seconds": 20, "row_s": 30},
              {"name": "told", "about": "a program", "seconds": 5, "command": ["echo", "{{\"a\": 1}}"]},
              {"name": "babble", "about": "nonsense", "seconds": 5, "command": ["echo", "{{nonsense"]},
              {"name": "short", "about": "a search that runs out of time", "seconds": 5,
               "command": ["echo", "{{\"interrupted\": true, \"best_variant\": null}}"]},
              {"name": "absent", "about": "needs a program", "seconds": 5, "command": ["{package}/probe"]}],
    "cases": [case("peers", "attention", "attention", ATTENTION, "fused", peers=["sdpa-cudnn"]),
              case("peers", "gemm", "gemm", {**GEMM, "epilogue": "gelu_tanh(acc + bias[n])"}, "fused",
                   {"variant": "fused", "set": "stages=2", "why": "a longer ring"},
                   peers=["cublaslt-first", "cublaslt", "torch-scaled-mm"], use="fit"),
              case("new", "paged", "attention", {"L": 1, "kv-len": 100, "page": 16, "d": 64, "batch": 2, "heads": 4,
                                                 "kv-heads": 2}, "fused"),
              case("new", "grouped", "grouped_gemm", {"sizes": "20,0,33", "N": 64, "K": 64}, "fused")],
}


class Rehearsal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.top = Path(cls.folder.name)
        cls.package = cls.top / "package"
        files.write(cls.top / "cases.json", json.dumps(PLAN))
        made = cls.make(cls)
        assert made.returncode == 1, made.stderr
        cls.made = made.stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def make(self, *more):
        return subprocess.run(
            [sys.executable, ROOT / "lab/visit/package.py", self.package, "--cases", self.top / "cases.json", "--ptx",
             "--roofgen", ROOFGEN, "--portable", ROOFGEN, "--probe", "/no/probe", *more],
            capture_output=True, text=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name, "out")

    def start(self, *arguments, seconds=60, **environment):
        environment = {**os.environ, "PYTHONPATH": str(HERE / "fake_torch"), "HOME": str(self.out.parent),
                       **environment}
        return subprocess.Popen(
            [sys.executable, self.package / "visit.py", str(seconds), "--out", self.out, "--rehearse", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def visit(self, *arguments, code=0, **more):
        child = self.start(*arguments, **more)
        out, err = child.communicate(timeout=100)
        self.assertEqual(child.returncode, code, out + err)
        return out, err

    def rows(self, step):
        return {line["case"]: line for line in files.lines(self.out / f"{step}.jsonl") if "case" in line}

    def entries(self, step, name):
        return {entry["name"]: entry for entry in self.rows(step)[name]["entries"]}

    def test_everything_is_checked_and_timed(self):
        self.visit("--only", "peers,new,told", "--archive", f"{self.out}.tar.gz")
        self.assertEqual(list(self.rows("new")), ["paged", "grouped"])
        for step, name in (("peers", "attention"), ("peers", "gemm"), ("new", "paged"), ("new", "grouped")):
            row = self.rows(step)[name]
            self.assertEqual((row["status"], row["origin"], row["schema"]), ("ok", "rehearsal", "roofgen.visit-row.1"))
            first = row["entries"][0]
            self.assertEqual((first["state"], first["timings"]["cold"]["ratio"]["median"]), ("timed", 1))
            self.assertLessEqual(first["error_over_tolerance"], 1)
            self.assertGreater(first["elements_checked"], 50)
            self.assertGreater(first["predicted_us"], 0)
        self.assertEqual(self.entries("peers", "attention")["sdpa-cudnn"]["state"], "timed")
        gemm = self.entries("peers", "gemm")
        self.assertEqual((gemm["roofgen:1:fused"]["state"], gemm["roofgen:1:fused"]["why"]), ("timed", "a longer ring"))
        self.assertEqual(self.rows("peers")["gemm"]["use"], "fit")
        self.assertEqual(gemm["torch-scaled-mm"]["state"], "missing")
        if CUBLASLT:
            for name, algorithm in (("cublaslt", r"[12] of 2"), ("cublaslt-first", "1 of 2")):
                self.assertEqual(gemm[name]["state"], "timed", gemm[name]["reason"])
                self.assertRegex(gemm[name]["algorithm"], algorithm)
        told = files.read_json(self.out / "told.json")
        self.assertEqual((told["status"], told["result"]), ("ok", {"a": 1}))
        summary = files.read_json(self.out / "visit.json")
        self.assertEqual((summary["rehearsal"], summary["faults"]), (True, []))
        self.assertEqual(summary["steps"]["peers"]["rows"], 2)
        with tarfile.open(f"{self.out}.tar.gz") as tar:
            names = {Path(name).name for name in tar.getnames()}
        self.assertLessEqual({"visit.json", "peers.jsonl", "new.jsonl", "told.json"}, names)
        # A second visit measures nothing again.
        before = (self.out / "peers.jsonl").read_text()
        self.assertIn("goes on in", self.visit("--only", "peers")[1])
        self.assertEqual((self.out / "peers.jsonl").read_text(), before)
        self.assertEqual(set(files.read_json(self.out / "visit.json")["steps"]), {"peers", "new", "told"})

    def test_a_case_that_hangs_is_cut_and_the_rest_runs(self):
        began = time.monotonic()
        out, _ = self.visit("--only", "peers", code=1, FAKE_TORCH="hang")
        self.assertLess(time.monotonic() - began, 40)  # the fake hangs for 1000 s
        self.assertEqual(out.splitlines()[0], "peers.attention: cut: it hung, crashed, or the time was over")
        self.assertEqual(list(self.rows("peers")), ["gemm"])

    def test_a_case_that_crashes_is_cut_and_the_rest_runs(self):
        self.assertIn("peers.attention: cut", self.visit("--only", "peers", code=1, FAKE_TORCH="crash")[0])
        self.assertEqual(list(self.rows("peers")), ["gemm"])

    def test_a_wrong_peer_is_not_timed(self):
        self.visit("--only", "peers", FAKE_TORCH="wrong")
        entry = self.entries("peers", "attention")["sdpa-cudnn"]
        self.assertEqual((entry["state"], entry["timings"]), ("wrong", {}))
        self.assertIn("times the tolerance", entry["reason"])

    @unittest.skipUnless(CUBLASLT, "no header of cuBLASLt was found")
    def test_a_wrong_library_is_not_timed(self):
        self.visit("--only", "peers", ROOFGEN_FAKE_CUBLASLT="wrong")
        self.assertEqual(self.entries("peers", "gemm")["cublaslt"]["state"], "wrong")

    def test_a_wrong_kernel_of_ours_is_a_fault(self):
        """Its expected elements are of another problem."""
        document = files.read_json(self.package / "package.json")
        text = files.to_json(document)
        self.addCleanup(files.write, self.package / "package.json", text)
        case = document["cases"][2]
        expected = files.read_json(self.package / case["entries"][0]["expected"])
        for run in (run for runs in expected.values() for run in runs):
            run["expected"] = [each + 1 for each in run["expected"]]
        files.write(self.package / "expected/wrong.json", json.dumps(expected))
        case["entries"][0]["expected"] = "expected/wrong.json"
        files.write(self.package / "package.json", files.to_json(document))
        self.assertIn("new.paged: wrong: roofgen:0:fused: its error is", self.visit("--only", "new", code=1)[0])
        self.assertEqual(self.rows("new")["grouped"]["status"], "ok")

    def test_without_torch_and_a_library_ours_are_timed(self):
        self.visit("--only", "peers", PYTHONPATH=str(self.out), ROOFGEN_CUBLASLT="/no/library.so")
        for name, peer, reason in (("attention", "sdpa-cudnn", "torch cannot be imported"),
                                   ("gemm", "cublaslt", "no cuBLASLt")):
            entry = self.entries("peers", name)[peer]
            self.assertEqual(entry["state"], "missing")
            self.assertIn(reason, entry["reason"])
            self.assertEqual(self.rows("peers")[name]["status"], "ok")

    def test_programs_that_print_nonsense_or_run_out_of_time(self):
        out, _ = self.visit("--only", "babble,short", code=1)
        self.assertIn("babble: not JSON", out)
        self.assertNotIn("short", out.splitlines()[0])
        self.assertEqual(files.read_json(self.out / "short.json")["status"], "cut")

    def test_an_interrupt_keeps_the_rows(self):
        child = self.start("--only", "new,peers", FAKE_TORCH="hang")
        rows = self.out / "new.jsonl"  # the beginning of a case, and its row; the visit ends soon after the fourth
        while not rows.exists() or len(files.lines(rows)) < 2:
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(30), 130)
        child.communicate()
        self.assertEqual(list(self.rows("new"))[0], "paged")

    def test_a_simulated_driver_is_refused_unless_it_is_a_rehearsal(self):
        command = [sys.executable, self.package / "rows.py", self.package, "new", "--out", f"{self.out}.jsonl"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertRegex(done.stderr, "^rows: the CUDA driver is simulated.*\n$")

    def test_the_dry_run_lists_comparisons(self):
        out, _ = self.visit("--dry-run")
        self.assertRegex(out, r"peers +\d+ s  ours and others\n +attention +1 of ours, predicted [\d.]+ us beside sdp")
        self.assertNotIn("absent", out)  # the package has no probe
        self.assertFalse(self.out.exists())

    def test_refusals(self):
        self.assertIn("there is no step pears; steps: peers, new", self.visit("--only", "pears", code=2)[1])
        self.assertIn("not the name of a .tar.gz", self.visit("--archive", "x.zip", code=2)[1])
        self.visit(seconds=-1, code=2)

    def test_a_second_run_makes_nothing_again(self):
        self.assertRegex(self.made, r": 4 cases, 5 schedules, [\d.]+ MiB\n"
                                    r"not made: probe: .* steps that need it are left out\n$")
        self.assertNotIn("package: attention", self.make().stderr)
        self.assertIn("has no case x", self.make("--only", "x").stderr)
        table = subprocess.run([sys.executable, ROOT / "lab/visit/package.py", "--list", self.package],
                               capture_output=True, text=True, check=True).stdout
        self.assertRegex(table, r"- \*\*peers\*\*: .*gemm [\d.]+ \([\d.]+\)")
        self.assertRegex(table, r"- gemm, fused: `stages=2` [+-][\d.]+% \(a longer ring\)\n")


class Parts(unittest.TestCase):
    def test_elements(self):
        for dtype, data, value in (("bf16", b"\x80\x3f", 1), ("fp16", b"\x00\xc0", -2), ("fp8", b"\x38", 1),
                                   ("fp8", b"\x7e", 448), ("fp8", b"\x01", 2.0**-9), ("fp32", b"\0\0\x80\x3f", 1),
                                   ("int8", b"\xff", -1), ("int32", b"\x02\0\0\0", 2)):
            self.assertEqual(list(rows.decode(dtype, data)), [value])
        self.assertNotEqual(rows.decode("fp8", b"\x7f")[0], rows.decode("fp8", b"\x7f")[0])

    def test_errors(self):
        nan, inf = float("nan"), float("inf")
        for got, expected, tolerance, error in ((1, 1, 0, 0), (nan, nan, 0, 0), (-inf, -inf, 0, 0), (1.5, 1, 0.25, 2),
                                                (nan, 1, 9, inf), (1, nan, 9, inf), (inf, 1, 9, inf), (1, 2, 0, inf)):
            self.assertEqual(rows.error_over_tolerance(got, expected, tolerance), error)

    def test_the_cases_of_the_tree(self):
        plan = files.read_json(ROOT / "lab/visit/cases.json")
        steps, names = [step["name"] for step in plan["steps"]], [each["name"] for each in plan["cases"]]
        self.assertLessEqual(sum(step["seconds"] for step in plan["steps"]), 560)
        self.assertEqual(len(names), len(set(names)))
        known = {*torch_peers.PEERS, "cublaslt", "cublaslt-first"}
        for each in plan["cases"]:
            self.assertIn(each["step"], steps)
            self.assertLessEqual(set(each.get("peers", [])), known)
            self.assertIn(each.get("use", "report"), ("fit", "report"))
            self.assertTrue(each["step"] != "peers" or each["peers"])
            texts = [json.dumps(schedule) for schedule in each["schedules"]]
            self.assertEqual(len(texts), len(set(texts)), each["name"])
        words = " ".join(" ".join(package.words(each)) for each in plan["cases"])
        for wanted in ("--causal", "--lse", "--kv-heads", "fp16", "--d 64 ", "--d 256 ", "--page", "--rotary",
                       "--lengths", "grouped_gemm", "rmsnorm", "layernorm", "softmax", "--epilogue", "--gated", "tf32",
                       "fp8", "int8"):
            self.assertIn(wanted, words)
        self.assertEqual(set(cublaslt.EPILOGUES) & {"gelu_tanh(acc + bias[n])"}, {"gelu_tanh(acc + bias[n])"})


if __name__ == "__main__":
    unittest.main()
