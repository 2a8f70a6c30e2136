"""bench/gpu_visit.sh with a stand-in of the driver and of roofgen: order, budget, resuming, results."""
import gzip
import json
import os
import shutil
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
sys.path.insert(0, str(ROOT / "bench" / "visit"))
import files  # noqa: E402
import forms  # noqa: E402
import judge  # noqa: E402
import plan  # noqa: E402

FAKE = HERE / "fake_roofgen.sh"
SMI = """#!/bin/sh
case "$*" in
  *--loop=*) echo $$ >>"$FAKE_LOG.holder"; exec sleep 1000 ;;
  *driver_version*) echo "580.01, 96.00, 00000000:01:00.0, 141000, 1980, 3201, 700.00, Enabled, Enabled, [N/A]" ;;
  *) echo "1830, 3201, 512.25, 700.00, 61, 0x0000000000000004" ;;
esac
"""


def step(name, *scenes, **more):
    """A step whose tasks play these scenes of the fake roofgen; without scenes one task of the given command."""
    entry = {"name": name, "limit_s": 20, "least_s": 0.05, "judge": "tune",
             "command": ["roofgen", "tune", "{problem}", "--json"]}
    if scenes:
        entry["problems"] = [{"name": scene, "op": scene} for scene in scenes]
    return {**entry, **more}


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


class VisitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.log, self.archive, self.results = self.top / "calls", self.top / "out.tar.gz", self.top / "results"
        write(self.top / "bin" / "nvidia-smi", SMI, 0o755)
        (self.top / "home").mkdir()
        self.environment = {"PATH": f"{self.top}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": f"{self.top}/home",
                            "FAKE_LOG": str(self.log), "ROOFGEN": str(FAKE), "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self, steps, *arguments, seconds=60, **streams):
        write(self.top / "plan.json", json.dumps({"schema": "roofgen.visit-plan.1", "steps": steps}))
        command = [sys.executable, ROOT / "bench/visit/visit.py", str(seconds), "--plan", self.top / "plan.json",
                   "--results", self.results, *arguments]
        streams = streams or {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env=self.environment, text=True, **streams)

    def visit(self, steps, *arguments, seconds=60, code=0):
        """Runs a visit to its end; returns its stdout and stderr."""
        self.log.unlink(missing_ok=True)
        child = self.start(steps, *arguments, seconds=seconds, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = child.communicate(timeout=100)
        self.assertEqual(child.returncode, code, err)
        return out, err

    def refused(self, steps, *arguments, code, **more):
        """The stderr of a visit that ends before it begins, as one line."""
        err = self.visit(steps, *arguments, code=code, **more)[1]
        self.assertEqual(err.count("\n"), 1, err)
        return err

    def killed(self, steps, *arguments):
        """Kills a visit in its task `asked`."""
        visit = self.start(steps, *arguments)
        self.wait_for(f"{self.log}.asked")
        visit.kill()
        visit.wait()

    def calls(self):
        """The scenes played, in order."""
        return [line.split()[1] for line in self.log.read_text().splitlines() if line.startswith("tune ")]

    def folder(self):
        found, = self.results.glob("fake-gpu-9000/*-f0f1f2f3")
        return found

    def result(self, name):
        return files.read_json(self.folder() / f"{name}.json")

    def check_files(self):
        """All JSON satisfies its schema and names no path of this machine; no file is half-written."""
        found = list(self.folder().glob("*.json"))
        for path in found:
            document = files.read_json(path)
            forms.check(document, forms.SCHEMAS[document["schema"]])
            self.assertNotIn(str(self.top), path.read_text())
        self.assertEqual(list(self.folder().rglob("*.part")), [])
        return len(found)

    def wait_for(self, path):
        for _ in range(600):
            if os.path.exists(path):
                return
            time.sleep(0.05)
        self.fail(f"{path} did not appear")

    def check_gone(self, pid):
        """The process is gone, or dead and not yet reaped. It gets five seconds."""
        for _ in range(100):
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                return
            if state == "Z":
                return
            time.sleep(0.05)
        self.fail(f"{pid} still runs")

    def archived(self):
        with tarfile.open(self.archive) as tar:
            return {name.split("/", 1)[1]: json.load(tar.extractfile(name)) for name in tar.getnames()}

    def test_steps_in_order_with_provenance(self):
        out, _ = self.visit([step("first", "ok-a", "ok-b"), step("second", "ok-c")], "--archive", self.archive)
        self.assertEqual(self.calls(), ["ok-a", "ok-b", "ok-c"])
        self.assertIn("3 done, 0 failed, 0 cut off, 0 not begun", out)
        self.assertEqual(self.check_files(), 4)
        result = self.result("first.ok-a")
        self.assertEqual((result["status"], result["exit_code"], result["message"]), ("ok", 0, ""))
        gpu = {"name": "Fake GPU 9000", "uuid": "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff", "driver": "580.01",
               "cuda": "13.0", "power_limit_w": 700.0, "max_sm_mhz": 1980}
        self.assertEqual({name: result["gpu"][name] for name in gpu}, gpu)
        self.assertNotIn("mig", result["gpu"])
        self.assertEqual((result["state_before"]["sm_mhz"], result["state_after"]["power_w"]), (1830, 512.25))
        self.assertEqual((result["versions"]["roofgen"], result["versions"]["nvrtc"]), ("9.9.9", "13.0"))
        self.assertEqual(result["command"], ["roofgen", "tune", "ok-a", "--json"])
        self.assertRegex(result["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(result["result"]["best_variant"], "fused")
        self.assertEqual(self.result("visit")["doctor"]["cache"], "{home}/.cache")
        names = ["first.ok-a.json", "first.ok-b.json", "second.ok-c.json", "visit.json"]
        self.assertEqual(sorted(self.archived()), names)

    def test_a_failure_affects_only_its_task(self):
        out, _ = self.visit([step("a", "fails", "dies", "garbage", "silent"), step("b", "ok")], code=1)
        self.assertEqual(self.calls(), ["fails", "dies", "garbage", "silent", "ok"])
        self.assertIn("failed: a.fails: exit 2: one line; roofgen: the flag is not there (see {home}/notes)", out)
        self.assertEqual(self.result("a.dies")["exit_code"], 137)
        self.assertIn("not JSON", self.result("a.garbage")["message"])
        self.assertEqual(self.result("a.silent")["message"], "it printed nothing")
        self.assertEqual(self.result("b.ok")["status"], "ok")
        log = (self.folder() / "logs" / "a.fails.txt").read_text()
        self.assertEqual(log, "one line\nroofgen: the flag is not there (see {home}/notes)\n")
        self.check_files()

    def test_a_hanging_step_takes_only_its_slice(self):
        start = time.monotonic()
        self.visit([step("a", "hangs", "asked"), step("b", "ok", share=2)], seconds=3)
        self.assertLess(time.monotonic() - start, 20)  # the scene lasts 1000 s
        self.assertEqual((self.result("a.hangs")["status"], self.result("a.hangs")["exit_code"]), ("cut", 137))
        self.assertEqual(self.result("b.ok")["status"], "ok")
        self.assertLess(self.calls().index("hangs"), self.calls().index("ok"))
        self.check_files()

    def test_at_its_limit_a_command_can_still_print_its_result(self):
        self.visit([step("a", "asked", limit_s=1)])
        result = self.result("a.asked")
        self.assertEqual((result["status"], result["exit_code"]), ("cut", 130))
        self.assertEqual(result["result"]["best_variant"], "fused")
        self.assertEqual(self.calls(), ["asked"])  # it had its whole limit: no second attempt

    def test_a_later_visit_continues(self):
        steps = [step("a", "ok-a", "fails"), step("b", "ok-b")]
        self.visit(steps, "--only", "a", code=1)
        self.assertEqual(self.calls(), ["ok-a", "fails"])
        self.visit(steps, code=1)
        self.assertEqual(self.calls(), ["fails", "ok-b"])
        steps[0]["command"].append("--more")  # another command is another measurement
        self.visit(steps, code=1)
        self.assertEqual(self.calls(), ["ok-a", "fails"])
        self.visit(steps, "--again", "--only", "b")
        self.assertEqual(self.calls(), ["ok-b"])
        self.assertEqual(len(self.result("visit")["visits"]), 4)
        self.visit(steps, "--new", "--only", "b")
        self.assertEqual(len(list(self.results.glob("fake-gpu-9000/*"))), 2)
        self.visit([step("c", "ok-c")])  # continues the new folder, not the old one
        self.assertEqual(len(list(self.results.glob("fake-gpu-9000/*-f0f1f2f3-2/c.ok-c.json"))), 1)

    def test_a_failure_does_not_replace_a_good_result(self):
        self.visit([step("a", "once")])
        self.visit([step("a", "once")], "--again", code=1)
        self.assertEqual(self.calls(), ["once"])
        self.assertEqual(self.result("a.once")["status"], "ok")
        self.assertEqual(self.result("visit")["tasks"]["a.once"]["status"], "failed")

    def test_killed_in_the_middle(self):
        steps = [step("a", "ok-a", "asked"), step("b", "ok-b")]
        visit = self.start(steps)
        self.wait_for(f"{self.log}.asked")
        log = self.log.read_text()
        self.assertIn("another visit is running", self.refused(steps, code=1))
        self.log.write_text(log)
        visit.kill()
        visit.wait()
        self.check_files()
        self.assertEqual(self.result("visit")["tasks"]["a.asked"]["status"], "cut")
        orphan = Path(f"{self.log}.asked").read_text().strip()
        self.visit([step("a", "ok-a", "asked", limit_s=1), steps[1]])
        self.assertEqual(self.calls(), ["asked", "ok-b"])
        self.check_gone(orphan)

    def test_interrupted(self):
        visit = self.start([step("a", "asked"), step("b", "ok")], "--archive", self.archive)
        self.wait_for(f"{self.log}.asked")
        visit.send_signal(signal.SIGTERM)
        self.assertEqual(visit.wait(), 130)
        self.assertEqual(self.result("a.asked")["status"], "cut")
        self.assertEqual(self.result("visit")["visits"][0]["stopped"], "interrupted")
        self.assertEqual(self.calls(), ["asked"])
        self.assertTrue(self.archive.exists())

    def test_the_archive_of_a_killed_visit_has_the_finished_results(self):
        self.killed([step("a", "ok-a", "asked")], "--archive", self.archive)
        found = self.archived()
        self.assertEqual(sorted(found), ["a.ok-a.json", "visit.json"])
        self.assertEqual(found["a.ok-a.json"]["status"], "ok")
        self.assertEqual(list(found["visit.json"]["tasks"]), ["a.ok-a"])
        self.assertFalse(Path(f"{self.archive}.part").exists())

    def test_a_visit_continues_an_unpacked_archive(self):
        self.visit([step("a", "ok-a")], "--archive", self.archive)
        shutil.rmtree(self.results)
        with tarfile.open(self.archive) as tar:
            tar.extractall(self.results / "fake-gpu-9000")
        self.visit([step("a", "ok-a", "ok-b")])
        self.assertEqual(self.calls(), ["ok-b"])
        self.check_files()

    def test_an_archive_that_cannot_be_written_costs_no_result(self):
        Path(f"{self.log}.d").mkdir()
        _, err = self.visit([step("a", "blocks", "ok-b")], "--archive", f"{self.log}.d/out.tar.gz")
        self.assertIn("no archive was written", err)
        self.assertEqual(self.calls(), ["blocks", "ok-b"])

    def test_unwritable_places_are_refused_at_the_start(self):
        steps, file = [step("a", "ok")], self.top / "file"
        write(file, "")
        for option, path, reason in (("--archive", self.top / "out.zip", "not the name of a .tar.gz"),
                                     ("--archive", self.top / "none" / "out.tar.gz", "No such file"),
                                     ("--archive", file / "out.tar.gz", "Not a directory"),
                                     ("--results", file / "r", f"results cannot be written in {file}/r: Not a dir")):
            self.assertIn(reason, self.refused(steps, option, path, code=2))
        self.assertFalse(self.results.exists() or (self.top / "none").exists())
        write(self.results / "fake-gpu-9000", "")  # found only when the name of the GPU is known
        self.assertIn(f"results cannot be written in {self.results}", self.refused(steps, code=2))

    def test_the_reason_why_nothing_was_verified_is_reported(self):
        record = step("b", command=["roofgen", "tune", "nothing", "{record}"])
        self.visit([step("a", "nothing"), record], code=1)
        why = "nothing was verified: verify: row 3 is off by 2; 7 candidates rejected: verify"
        self.assertEqual(self.result("a.nothing")["message"], f"exit 1: roofgen: {why}")
        self.assertEqual(self.result("b.b")["attachments"], [])
        self.assertEqual(list(self.folder().glob("*.t4.json.gz")), [])

    def test_a_driver_without_persistence_is_held_open(self):
        self.assertNotIn("persistence", self.visit([step("a", "ok")])[1])
        write(self.top / "bin" / "nvidia-smi", SMI.replace("Enabled, Enabled", "Disabled, Enabled"), 0o755)
        self.assertIn("persistence mode is off", self.visit([step("a", "held", "held-b")])[1])
        result, log = self.result("a.held"), Path(f"{self.log}.holder")
        self.assertEqual((result["status"], result["leftover_processes"]), ("ok", 0))
        holder, = log.read_text().split()  # one for the whole visit
        self.check_gone(holder)
        self.killed([step("a", "asked")])  # a killed visit holds nothing
        self.check_gone(log.read_text().split()[1])

    def test_nothing_simulated_is_kept(self):
        _, err = self.visit([step("a", "ok", "simulated"), step("b", "ok-b")], code=3)
        self.assertIn("refused: a.simulated: the result says that it is simulated", err)
        self.assertEqual(self.calls(), ["ok", "simulated"])
        self.assertEqual(sorted(path.name for path in self.folder().glob("*.json")), ["a.ok.json", "visit.json"])
        self.assertEqual(self.result("visit")["visits"][0]["stopped"], "refused")

    def test_a_command_that_timed_nothing_is_a_failure(self):
        self.visit([step("a", "untimed", "ok")], code=1)
        self.assertEqual(self.calls(), ["untimed", "ok"])
        self.assertEqual((self.result("a.untimed")["status"], self.result("a.untimed")["result"]), ("failed", None))
        self.assertEqual(self.result("a.ok")["status"], "ok")

    def test_several_documents_are_one_result(self):
        several = step("a", judge="json", command=["roofgen", "tune", "several"])
        self.visit([several, step("p", judge="json", command=["absent", "--json", "-"])], code=1)
        self.assertEqual(len(self.result("a.a")["result"]["documents"]), 2)
        self.assertIn("absent: No such file", self.result("p.p")["message"])
        self.assertEqual(self.result("p.p")["command"][0], "absent")
        several["command"].append("simulated")
        self.visit([several], code=3)

    def test_a_result_of_another_form_is_a_failure(self):
        self.visit([step("a", "numbers"), step("b", "ok")], code=1)
        self.assertIn("not of the expected form", self.result("a.numbers")["message"])
        self.assertEqual(self.result("b.ok")["status"], "ok")

    def test_refusals_name_the_cause(self):
        steps = [step("a", "ok"), step("b", "ok")]
        self.assertIn("there is no step c; steps: a, b", self.refused(steps, "--only", "a,c", code=2))
        self.assertIn("--only names no step", self.visit(steps, "--only", ",", code=2)[1])
        self.visit(steps, seconds=-1, code=2)
        self.assertIn("ok is there twice", self.refused([step("a", "ok", "ok")], code=2))
        self.assertIn("names consist of", self.refused([step("a", "../ok")], code=2))
        self.assertIn("not of the form of a plan", self.refused([{"name": "a"}], code=2))
        self.assertIn("there is no GPU 1: the driver has 1", self.refused(steps, "--gpu", "1", code=3))
        for gpu, cause in (("no doctor", "doctor --json failed (exit 2): no option --json; try --help\n"),
                           ("none", "no CUDA driver: libnone.so.1"), ("busy", "cannot be used: in exclusive use"),
                           ("simulated", "the CUDA driver is simulated")):
            self.environment["FAKE_GPU"] = gpu
            self.assertIn(cause, self.refused(steps, code=3))
        self.assertEqual(self.calls(), [])
        self.environment["ROOFGEN"] = str(self.top / "none")
        self.assertIn("bench/portable.sh builds it", self.refused(steps, code=3))
        self.assertFalse(self.results.exists())

    def test_a_result_of_another_gpu_is_refused(self):
        (self.top / "bin" / "nvidia-smi").unlink()
        self.visit([step("a", "here", "elsewhere")], code=1)
        self.assertEqual(self.result("a.here")["status"], "ok")
        self.assertIn("measured on another GPU, GPU-0000", self.result("a.elsewhere")["message"])
        gpu = self.result("a.here")["gpu"]  # without nvidia-smi from roofgen doctor
        self.assertEqual((gpu["driver"], gpu["max_sm_mhz"], gpu.get("power_limit_w")), ("570.99", 1500, None))
        self.check_files()

    def test_no_process_is_left_behind(self):
        self.visit([step("a", "leaves")])
        self.assertEqual(self.result("a.leaves")["leftover_processes"], 1)
        self.check_gone(Path(f"{self.log}.left").read_text().strip())

    def test_recorded_spaces_are_attached(self):
        good, bad, none = (step(name, command=["roofgen", "tune", scene, "{record}", *more])
                           for name, scene, *more in (("a", "record"), ("b", "record", "cut"), ("c", "ok")))
        self.visit([good, bad, none], code=1)
        self.assertEqual(self.result("a.a")["attachments"], ["a.a.attention.t4.json.gz"])
        with gzip.open(self.folder() / "a.a.attention.t4.json.gz") as file:
            self.assertEqual(json.load(file)["schema_version"], "1.0.0")
        self.assertIn("a record that cannot be read", self.result("b.b")["message"])
        self.assertEqual(self.result("c.c")["message"], "no tuning space was recorded")
        self.visit([{**none, "name": "a"}], code=1)  # records of an earlier command do not count
        self.assertEqual(self.result("visit")["tasks"]["a.a"]["message"], "no tuning space was recorded")

    def test_first_prepares_the_schedule_found_by_tuning(self):
        peers = step("peers", "ok-a", "ok-b", "fails", command=["roofgen", "tune", "{problem}", "{bundle}"],
                     first=["roofgen", "emit", "{problem}", "{winner}", "-o", "{bundle}"])
        self.visit([step("tune", "ok-a"), peers], "--gpu", "0", code=1)
        calls = self.log.read_text().replace(f"{self.folder()}/.work", "WORK").splitlines()
        self.assertEqual(calls[1:], [
            "tune ok-a --json",
            "emit ok-a --variant fused --set BM=128,swizzle=true,q_in=shared --evals 1 -o WORK/bundles/peers.ok-a",
            "tune ok-a WORK/bundles/peers.ok-a",
            "emit ok-b -o WORK/bundles/peers.ok-b",
            "tune ok-b WORK/bundles/peers.ok-b",
            "emit fails -o WORK/bundles/peers.fails"])
        self.assertEqual(self.result("peers.fails")["message"], "exit 3: roofgen: nothing to emit")
        self.assertEqual(self.result("peers.ok-b")["first_command"][:3], ["roofgen", "emit", "ok-b"])

    def test_dry_run_runs_nothing(self):
        self.environment["FAKE_GPU"] = "none"
        out, _ = self.visit([step("a", "ok"), step("b", "fails", share=3)], "--dry-run", seconds=400)
        for line in (r"a +0s +100s +1 ", r"b +100s +400s +1 ", r"b.fails \(at most 20 s\): roofgen tune fails --json",
                     r"program +/.*fake_roofgen.sh\n", r"(missing here: .*No error|nothing is missing here)"):
            self.assertRegex(out, line)
        self.environment["ROOFGEN"] = str(self.top / "none")
        out, _ = self.visit([step("a", "ok")], "--dry-run")
        self.assertRegex(out, r"program +missing: [^$]*missing here: program.* No error")
        self.assertFalse(self.results.exists())


class JudgeTest(unittest.TestCase):
    def check(self, **changes):
        variant = {"name": "fused", "available": True, "verified": True,
                   "verification": {"rows_checked": 9, "error_over_tolerance": 0.5}}
        document = {"device": {"origin": "measured"}, "best_variant": "fused", "variants": [variant],
                    "rejected": {"constraint": 3, "spill": 1}}
        for name, value in changes.items():
            (document if name in document else variant)[name] = value
        return judge.JUDGES["check"](document, plan.Task("check", "x", ["x"], wants=["fused"]))

    def test_check(self):
        self.assertEqual(self.check(), "")
        for fault, changes in (("does not say that it was measured", {"device": {"origin": "datasheet"}}),
                               ("no variant", {"best_variant": None}),
                               ("could not be made", {"variants": []}),
                               ("too big", {"available": False, "rejected_because": "too big"}),
                               ("fused is wrong: off", {"verified": False, "verification": {"failure": "off"}}),
                               ("nothing shows", {"verification": {"rows_checked": 9, "error_over_tolerance": 1.5}}),
                               ("nothing shows", {"verification": {"rows_checked": 0, "error_over_tolerance": 0.5}}),
                               ("nothing shows", {"verification": {}}),
                               ("2 candidates rejected: verify", {"rejected": {"verify": 2}}),
                               ("gpu fault", {"rejected": {"gpu fault": 1}})):
            self.assertIn(fault, self.check(**changes))

    def test_why_nothing_passed(self):
        bad = {"best_variant": None, "rejected": {"constraint": 90, "spill": 2, "compile": 5}, "variants": [
            {"rejected_because": "no nvcc"}, {"rejected_because": "no room"}, {"verification": {"failure": "no room"}}]}
        said = "x\nroofgen: nothing was verified: spill: 9 bytes\n"
        for document, stderr, why in (
                (bad, "", "5 candidates rejected: compile; no room"),
                (bad, said, "5 candidates rejected: compile; spill: 9 bytes"),
                ({"rejected": {"constraint": 3}, "variants": []}, "", "3 candidates rejected: constraint"),
                ({**bad, "best_variant": "fused"}, "", ""),
                ({"rejected": {}, "variants": [{}]}, "", "")):
            self.assertEqual(judge.why_nothing_passed(document, stderr), why)

    def test_last_words(self):
        for stderr, words in (("a\n b  c\n\nroofgen: warning: w\nroofgen: note: n\nd\nwarning: v\n", "b c; d"),
                              ("u\rroofgen: warning: w\r", "u"), (" \n", ""),
                              ("roofgen: warning: w\n", "roofgen: warning: w")):
            self.assertEqual(judge.last_words(stderr), words)

    def test_ceilings(self):
        good, ceilings = {"ceilings": [{"origin": "measured"}, {"missing": "no"}]}, judge.JUDGES["ceilings"]
        self.assertEqual(ceilings(good, None), "")
        self.assertIn("no measured ceiling", ceilings({"ceilings": [{"origin": "datasheet"}]}, None))
        self.assertIn("no measured ceiling", ceilings({"device": "h200-sxm"}, None))
        self.assertIn("fell off", ceilings({**good, "lost": "fell off"}, None))


class PlanTest(unittest.TestCase):
    STEPS = plan.load(ROOT / "bench/visit/plan.json")

    def test_the_plan_of_the_tree(self):
        self.assertEqual([each.name for each in self.STEPS][:4], ["smoke", "check", "ceilings", "counters"])
        values = {"record": "r", "time": 1, "bundle": "b", "roofgen": ROOT, "winner": ["--evals", "1"]}
        for task in (task for each in self.STEPS for task in each.tasks):
            self.assertIn(task.judge, judge.JUDGES)
            words = plan.fill([*task.first, *task.command], values)
            self.assertNotIn("{", " ".join(words))
            self.assertTrue(all(Path(word).exists() for word in words if word.startswith("/")))
        checks = next(each for each in self.STEPS if each.name == "check").tasks
        commands = [" ".join(task.command) for task in checks]
        for wanted in ("--causal", "--lse", "--kv-heads", "--kv-len", "fp16", "--d 32 ", "--d 256 ", "--L 333 ",
                       "tune gemm ", "tune rmsnorm ", "tune layernorm ", "tune softmax ", "--epilogue ", "--gated ",
                       "tf32", "fp8", "int8"):
            self.assertTrue(any(wanted in each for each in commands), wanted)

    def test_the_table_in_the_docs_is_of_this_plan(self):
        text = (ROOT / "docs/visit.md").read_text(encoding="utf-8")
        share = sum(each.share for each in self.STEPS)
        for each in self.STEPS:
            slices = " | ".join(f"{budget * each.share / share:.0f} s" for budget in (1500, 560))
            least, most = sum(task.least_s for task in each.tasks), sum(task.limit_s for task in each.tasks)
            row = f"| `{each.name}` | {len(each.tasks)} | {each.share} | {slices} | {least} s | {most} s |"
            self.assertIn(row, text.splitlines(), row)
        most = sum(task.limit_s for each in self.STEPS for task in each.tasks)
        self.assertRegex(text, rf"\b{most} s\b")

    def test_targets_name_their_source(self):
        for target in files.read_json(ROOT / "bench/targets.json")["problems"]:
            self.assertTrue(all(target["match"][name] for name in ("by", "gpu", "source")), target["name"])
            figures = [target["match"].get(unit, 0) > least for unit, least in (("tflop_s", 100), ("gb_s", 1000))]
            self.assertEqual(figures.count(True), 1, target["name"])


if __name__ == "__main__":
    unittest.main()
