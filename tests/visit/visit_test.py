"""bench/gpu_visit.sh against a driver and a program that are made up: order, budget, resuming, what is kept."""
import glob
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

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench", "visit"))
import files  # noqa: E402
import judge  # noqa: E402
import machine  # noqa: E402
import plan  # noqa: E402

SMI = """#!/bin/sh
case "$2" in
  *driver_version*) echo "580.01, 96.00, 00000000:01:00.0, 141000, 1980, 3201, 700.00, Enabled, Enabled, [N/A]" ;;
  *) echo "1830, 3201, 512.25, 700.00, 61, 0x0000000000000004" ;;
esac
"""


def step(name, *scenes, **more):
    """A step whose tasks play these scenes, each `tune SCENE`."""
    tasks = [{"name": scene, "op": scene} for scene in scenes]
    return {"name": name, "share": 1, "limit_s": 20, "least_s": 0.05, "judge": "tune", "command": ["roofgen", "tune", "{problem}", "--json"],
            "problems": tasks, **more}


class VisitTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.home = self.path("home")
        os.makedirs(self.path("bin"))
        os.makedirs(self.home)
        with open(self.path("bin", "nvidia-smi"), "w", encoding="utf-8") as file:
            file.write(SMI)
        os.chmod(self.path("bin", "nvidia-smi"), 0o755)
        self.log = self.path("calls")
        self.environment = {"PATH": f"{self.path('bin')}:/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "FAKE_LOG": self.log,
                            "ROOFGEN": os.path.join(HERE, "fake_roofgen.sh"), "ROOFGEN_LIBCUDA": os.environ["ROOFGEN_FAKE_DRIVER"],
                            "PYTHONDONTWRITEBYTECODE": "1"}

    def path(self, *parts):
        return os.path.join(self.folder.name, *parts)

    def command(self, steps, seconds, *arguments):
        with open(self.path("plan.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "roofgen.visit-plan.1", "steps": steps}, file)
        return [sys.executable, os.path.join(ROOT, "bench", "visit", "visit.py"), str(seconds), "--plan", self.path("plan.json"),
                "--results", self.path("results"), *arguments]

    def visit(self, steps, *arguments, seconds=60, code=0):
        if os.path.exists(self.log):
            os.unlink(self.log)
        done = subprocess.run(self.command(steps, seconds, *arguments), capture_output=True, text=True, env=self.environment, timeout=100)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def calls(self):
        """The scenes played, in order."""
        with open(self.log, encoding="utf-8") as file:
            return [line.split()[1] for line in file if line.startswith("tune ")]

    def run_folder(self):
        found = glob.glob(self.path("results", "fake-gpu-9000", "*-f0f1f2f3"))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def result(self, name):
        return files.read_json(os.path.join(self.run_folder(), f"{name}.json"))

    def check_files(self):
        """All JSON holds to its schema, nothing is half-written, and no path of this machine is told."""
        schemas = files.read_json(os.path.join(ROOT, "bench", "visit", "schema.json"))
        found = glob.glob(os.path.join(self.run_folder(), "*.json"))
        for path in found:
            document = files.read_json(path)
            files.check(document, schemas[document["schema"]])
            with open(path, encoding="utf-8") as file:
                self.assertNotIn(self.folder.name, file.read())
        self.assertEqual(glob.glob(os.path.join(self.run_folder(), "**", "*.part"), recursive=True), [])
        return len(found)

    def test_steps_in_order_with_provenance(self):
        done = self.visit([step("first", "ok-a", "ok-b"), step("second", "ok-c")], "--archive", self.path("out.tar.gz"))
        self.assertEqual(self.calls(), ["ok-a", "ok-b", "ok-c"])
        self.assertIn("3 done, 0 failed, 0 cut off, 0 not begun", done.stdout)
        self.assertEqual(self.check_files(), 4)
        result = self.result("first.ok-a")
        self.assertEqual((result["status"], result["exit_code"], result["message"]), ("ok", 0, ""))
        self.assertEqual(result["gpu"]["name"], "Fake GPU 9000")
        self.assertEqual(result["gpu"]["uuid"], "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff")
        self.assertEqual((result["gpu"]["driver"], result["gpu"]["cuda"], result["gpu"]["power_limit_w"]), ("580.01", "13.0", 700.0))
        self.assertNotIn("mig", result["gpu"])
        self.assertEqual((result["state_before"]["sm_mhz"], result["state_after"]["power_w"]), (1830, 512.25))
        self.assertEqual((result["versions"]["roofgen"], result["versions"]["nvrtc"]), ("9.9.9", "13.0"))
        self.assertEqual(result["command"], ["roofgen", "tune", "ok-a", "--json"])
        self.assertRegex(result["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(result["result"]["best_variant"], "fused")
        self.assertEqual(self.result("visit")["doctor"]["cache"], "{home}/.cache")
        with tarfile.open(self.path("out.tar.gz")) as tar:
            names = [name.split("/", 1)[1] for name in tar.getnames()]
        self.assertEqual(sorted(names), ["first.ok-a.json", "first.ok-b.json", "second.ok-c.json", "visit.json"])

    def test_a_failure_stops_nothing_and_is_told(self):
        done = self.visit([step("a", "fails", "dies", "garbage", "silent"), step("b", "ok")], code=1)
        self.assertEqual(self.calls(), ["fails", "dies", "garbage", "silent", "ok"])
        self.assertIn("failed: a.fails: exit 2: one line; roofgen: the flag is not there (see {home}/notes)", done.stdout)
        self.assertEqual(self.result("a.dies")["exit_code"], 137)
        self.assertIn("not JSON", self.result("a.garbage")["message"])
        self.assertEqual(self.result("a.silent")["message"], "it printed nothing")
        self.assertEqual(self.result("b.ok")["status"], "ok")
        with open(os.path.join(self.run_folder(), "logs", "a.fails.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "one line\nroofgen: the flag is not there (see {home}/notes)\n")
        self.check_files()

    def test_a_hanging_step_has_its_slice_only(self):
        start = time.monotonic()
        self.visit([step("a", "hangs", "asked"), step("b", "ok", share=2)], seconds=3)
        self.assertLess(time.monotonic() - start, 20)  # a thousand, had it been left alone
        self.assertEqual(self.result("a.hangs")["status"], "cut")
        self.assertEqual(self.result("a.hangs")["exit_code"], 137)
        self.assertEqual(self.result("b.ok")["status"], "ok")
        self.assertLess(self.calls().index("hangs"), self.calls().index("ok"))
        self.check_files()

    def test_at_its_limit_a_command_may_put_its_result_away(self):
        self.visit([step("a", "asked", limit_s=1)])
        result = self.result("a.asked")
        self.assertEqual((result["status"], result["exit_code"]), ("cut", 130))
        self.assertEqual(result["result"]["best_variant"], "fused")
        self.assertEqual(self.calls(), ["asked"])  # it had all it may have: not begun again

    def test_goes_on_where_it_stopped(self):
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
        self.assertEqual(len(glob.glob(self.path("results", "fake-gpu-9000", "*"))), 2)

    def test_a_good_result_is_not_lost_to_a_failure(self):
        self.visit([step("a", "once")])
        self.visit([step("a", "once")], "--again", code=1)
        self.assertEqual(self.calls(), ["once"])
        self.assertEqual(self.result("a.once")["status"], "ok")
        self.assertEqual(self.result("visit")["tasks"]["a.once"]["status"], "failed")

    def wait_for(self, path):
        for _ in range(600):
            if os.path.exists(path):
                return
            time.sleep(0.05)
        self.fail(f"{path} did not come")

    def test_killed_in_the_middle(self):
        steps = [step("a", "ok-a", "asked"), step("b", "ok-b")]
        visit = subprocess.Popen(self.command(steps, 60), env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(f"{self.log}.asked")
        second = subprocess.run(self.command(steps, 60), env=self.environment, capture_output=True, text=True)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another visit is running", second.stderr)
        visit.kill()
        visit.wait()
        with open(f"{self.log}.asked", encoding="utf-8") as file:
            orphan = file.read().strip()
        self.check_files()
        self.assertEqual(self.result("visit")["tasks"]["a.asked"]["status"], "cut")
        self.visit([step("a", "ok-a", "asked", limit_s=1), steps[1]])
        self.assertEqual(self.calls(), ["asked", "ok-b"])
        self.check_gone(orphan)

    def test_interrupted(self):
        steps = [step("a", "asked"), step("b", "ok")]
        visit = subprocess.Popen(self.command(steps, 60, "--archive", self.path("out.tar.gz")), env=self.environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.wait_for(f"{self.log}.asked")
        visit.send_signal(signal.SIGTERM)
        visit.communicate()
        self.assertEqual(visit.returncode, 130)
        self.assertEqual(self.result("a.asked")["status"], "cut")
        self.assertEqual(self.result("visit")["visits"][0]["stopped"], "interrupted")
        self.assertEqual(self.calls(), ["asked"])
        self.assertTrue(os.path.exists(self.path("out.tar.gz")))

    def test_killed_from_outside_the_archive_has_what_was_finished(self):
        visit = subprocess.Popen(self.command([step("a", "ok-a", "asked")], 60, "--archive", self.path("out.tar.gz")), env=self.environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(f"{self.log}.asked")
        visit.kill()
        visit.wait()
        with tarfile.open(self.path("out.tar.gz")) as tar:
            names = [name.split("/", 1)[1] for name in tar.getnames()]
            results = {name: json.load(tar.extractfile(member)) for name, member in zip(names, tar.getmembers())}
        self.assertEqual(sorted(names), ["a.ok-a.json", "visit.json"])
        self.assertEqual(results["a.ok-a.json"]["status"], "ok")
        self.assertEqual(list(results["visit.json"]["tasks"]), ["a.ok-a"])
        self.assertFalse(os.path.exists(self.path("out.tar.gz.part")))

    def test_an_unpacked_archive_is_gone_on_with(self):
        self.visit([step("a", "ok-a")], "--archive", self.path("out.tar.gz"))
        shutil.rmtree(self.path("results"))
        with tarfile.open(self.path("out.tar.gz")) as tar:
            tar.extractall(self.path("results", "fake-gpu-9000"))
        self.visit([step("a", "ok-a", "ok-b")])
        self.assertEqual(self.calls(), ["ok-b"])
        self.check_files()

    def test_an_archive_that_cannot_be_written_costs_no_result(self):
        os.makedirs(f"{self.log}.d")
        done = self.visit([step("a", "blocks", "ok-b")], "--archive", os.path.join(f"{self.log}.d", "out.tar.gz"))
        self.assertIn("no archive was written", done.stderr)
        self.assertEqual(self.calls(), ["blocks", "ok-b"])

    def test_places_that_cannot_be_written_are_told_at_the_start(self):
        steps = [step("a", "ok")]
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        for arguments, said in ((["--archive", self.path("out.zip")], "not the name of a .tar.gz"),
                                (["--archive", self.path("none", "out.tar.gz")], "No such file"),
                                (["--archive", self.path("file", "out.tar.gz")], "Not a directory"),
                                (["--results", self.path("file", "r")], f"results cannot be written in {self.path('file', 'r')}: Not a directory")):
            done = self.visit(steps, *arguments, code=2)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("results")))
        self.assertFalse(os.path.exists(self.path("none")))
        os.makedirs(self.path("results"))
        with open(self.path("results", "fake-gpu-9000"), "w", encoding="utf-8"):
            pass  # what is in the way shows only when the GPU is known
        done = self.visit(steps, code=2)
        self.assertIn(f"results cannot be written in {self.path('results')}", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_program_whose_doctor_fails_is_refused(self):
        self.environment["FAKE_NO_DOCTOR"] = "1"
        done = self.visit([step("a", "ok")], code=3)
        self.assertIn("doctor --json failed (exit 2): no option --json; try --help\n", done.stderr)
        self.assertFalse(os.path.exists(self.path("results")))

    def test_why_nothing_was_verified_is_told(self):
        record = {"name": "b", "judge": "tune", "least_s": 0.05, "command": ["roofgen", "tune", "nothing", "{record}"]}
        self.visit([step("a", "nothing"), record], code=1)
        self.assertEqual(self.result("a.nothing")["message"],
                         "exit 1: roofgen: nothing was verified: verify: row 3 is off by 2; 7 candidates rejected: verify")
        self.assertEqual(self.result("b.b")["attachments"], [])
        self.assertFalse(glob.glob(os.path.join(self.run_folder(), "*.t4.json.gz")))

    def test_the_peer_is_the_one_of_the_programs_build(self):
        gemm = {"name": "p", "least_s": 0.05, "command": ["cublaslt_peer", "--json", "-"]}
        for place in ("cli", "bench/peers"):
            os.makedirs(self.path("built", place))
        shutil.copy(os.path.join(HERE, "fake_roofgen.sh"), self.path("built", "cli", "roofgen"))
        with open(self.path("built", "bench", "peers", "cublaslt_peer"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho '{\"peer\": true}'\n")
        os.chmod(self.path("built", "bench", "peers", "cublaslt_peer"), 0o755)
        self.environment["ROOFGEN"] = self.path("built", "cli", "roofgen")
        self.visit([gemm])
        self.assertEqual(self.result("p.p")["result"], {"peer": True})

    def test_where_the_peer_is_looked_for(self):
        there = [self.path(each, "bench", "peers", "cublaslt_peer") for each in ("built", os.path.join("tree", "build-portable"))]
        roofgen = self.path("built", "cli", "roofgen")
        self.assertEqual(machine.peer(roofgen, self.path("tree")), there[0])
        for each in reversed(there):
            os.makedirs(os.path.dirname(each))
            shutil.copy(os.path.join(HERE, "fake_roofgen.sh"), each)
            self.assertEqual(machine.peer(roofgen, self.path("tree")), each)

    def test_a_driver_without_persistence_is_held_open(self):
        self.environment["ROOFGEN_LIBNVML"] = os.environ["ROOFGEN_FAKE_DRIVER"]
        done = self.visit([step("a", "ok")])
        self.assertNotIn("persistence", done.stderr)
        self.assertFalse(os.path.exists(f"{self.log}.nvml"))
        with open(self.path("bin", "nvidia-smi"), "w", encoding="utf-8") as file:
            file.write(SMI.replace("Enabled, Enabled", "Disabled, Enabled"))
        done = self.visit([step("a", "held", "held-b")])
        self.assertIn("held open meanwhile (NVML)", done.stderr)
        self.assertEqual(self.result("a.held")["status"], "ok")
        self.assertEqual(self.result("a.held")["leftover_processes"], 0)
        with open(f"{self.log}.nvml", encoding="utf-8") as file:
            holder, = file.read().split()  # one for all of it
        self.check_gone(holder)
        self.environment["ROOFGEN_LIBNVML"] = "libnone.so.1"
        self.assertIn("could not be held open", self.visit([step("b", "ok")]).stderr)

    def test_a_killed_visit_holds_nothing(self):
        self.environment["ROOFGEN_LIBNVML"] = os.environ["ROOFGEN_FAKE_DRIVER"]
        with open(self.path("bin", "nvidia-smi"), "w", encoding="utf-8") as file:
            file.write(SMI.replace("Enabled, Enabled", "Disabled, Enabled"))
        visit = subprocess.Popen(self.command([step("a", "asked")], 60), env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(f"{self.log}.asked")
        visit.kill()
        visit.wait()
        with open(f"{self.log}.nvml", encoding="utf-8") as file:
            holder = file.read().strip()
        for _ in range(100):
            if not os.path.exists(f"/proc/{holder}"):
                break
            time.sleep(0.05)
        self.check_gone(holder)

    def test_nothing_simulated_is_kept(self):
        done = self.visit([step("a", "ok", "simulated"), step("b", "ok-b")], code=3)
        self.assertIn("refused: a.simulated: the result says that it is simulated", done.stderr)
        self.assertEqual(self.calls(), ["ok", "simulated"])
        self.assertEqual(sorted(os.path.basename(path) for path in glob.glob(os.path.join(self.run_folder(), "*.json"))), ["a.ok.json", "visit.json"])
        self.assertEqual(self.result("visit")["visits"][0]["stopped"], "refused")

    def test_several_documents_are_one_result(self):
        several = {"name": "a", "least_s": 0.05, "command": ["roofgen", "tune", "several"]}
        self.visit([several, {"name": "p", "least_s": 0.05, "command": ["cublaslt_peer", "--json", "-"]}], code=1)
        self.assertEqual(len(self.result("a.a")["result"]["documents"]), 2)
        if not os.path.exists(os.path.join(ROOT, "build-portable", "bench", "peers", "cublaslt_peer")):
            self.assertIn("cublaslt_peer: No such file", self.result("p.p")["message"])
        self.assertEqual(self.result("p.p")["command"][0], "cublaslt_peer")
        several["command"].append("simulated")
        self.visit([several], code=3)

    def test_a_simulated_driver_is_refused(self):
        self.environment["ROOFGEN_LIBCUDA"] = os.environ["ROOFGEN_SIMULATED_DRIVER"]
        done = self.visit([step("a", "ok")], code=3)
        self.assertIn("is a simulated driver (it exports roofgen_simulated_driver)", done.stderr)
        self.assertFalse(os.path.exists(self.log))
        self.assertFalse(os.path.exists(self.path("results")))

    def test_what_is_missing_is_named(self):
        self.environment["ROOFGEN_LIBCUDA"] = "libnone.so.1"
        self.assertIn("refused: no CUDA driver: libnone.so.1", self.visit([step("a", "ok")], code=3).stderr)
        self.environment["ROOFGEN"] = self.path("none")
        self.assertIn("bench/portable.sh builds it", self.visit([step("a", "ok")], code=3).stderr)
        done = self.visit([step("a", "ok"), step("b", "ok")], "--only", "a,c", code=2)
        self.assertIn("there is no step c; steps: a, b", done.stderr)
        self.visit([step("a", "ok")], seconds=-1, code=2)
        self.assertIn("--only names no step", self.visit([step("a", "ok")], "--only", ",", code=2).stderr)
        self.assertIn("ok is there twice", self.visit([step("a", "ok", "ok")], code=2).stderr)

    def check_gone(self, pid):
        """Not there, or dead and waiting for whoever is to read its exit code."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                self.assertEqual(file.read().rpartition(")")[2].split()[0], "Z")
        except (FileNotFoundError, ProcessLookupError):
            pass

    def test_another_gpu_is_not_taken_for_this_one(self):
        os.unlink(self.path("bin", "nvidia-smi"))
        self.visit([step("a", "here", "elsewhere")], code=1)
        self.assertEqual(self.result("a.here")["status"], "ok")
        self.assertIn("measured on another GPU, GPU-0000", self.result("a.elsewhere")["message"])
        gpu = self.result("a.here")["gpu"]  # without nvidia-smi it is what doctor says
        self.assertEqual((gpu["driver"], gpu["max_sm_mhz"], gpu.get("power_limit_w")), ("570.99", 1500, None))
        self.check_files()

    def test_no_process_is_left_behind(self):
        self.visit([step("a", "leaves")])
        with open(f"{self.log}.left", encoding="utf-8") as file:
            left = file.read().strip()
        self.assertEqual(self.result("a.leaves")["leftover_processes"], 1)
        self.check_gone(left)

    def test_recorded_spaces_come_along(self):
        record = ["roofgen", "tune", "record", "{record}"]
        good = {"name": "a", "judge": "tune", "least_s": 0.05, "command": record}
        bad = {"name": "b", "judge": "tune", "least_s": 0.05, "command": record + ["cut"]}
        none = {"name": "c", "judge": "tune", "least_s": 0.05, "command": ["roofgen", "tune", "ok", "{record}"]}
        self.visit([good, bad, none], code=1)
        self.assertEqual(self.result("a.a")["attachments"], ["a.a.attention.t4.json.gz"])
        with gzip.open(os.path.join(self.run_folder(), "a.a.attention.t4.json.gz")) as file:
            self.assertEqual(json.load(file)["schema_version"], "1.0.0")
        self.assertIn("a record that cannot be read", self.result("b.b")["message"])
        self.assertEqual(self.result("c.c")["message"], "no tuning space was recorded")
        self.visit([{**none, "name": "a"}], code=1)  # what lies there from before is not this command's
        self.assertEqual(self.result("visit")["tasks"]["a.a"]["message"], "no tuning space was recorded")

    def test_first_makes_ready_what_the_tuning_found(self):
        tune = step("tune", "ok-a")
        peers = {**step("peers", "ok-a", "ok-b", "fails"), "first": ["roofgen", "emit", "{problem}", "{winner}", "-o", "{bundle}"],
                 "command": ["roofgen", "tune", "{problem}", "{bundle}"]}
        self.visit([tune, peers], code=1)
        with open(self.log, encoding="utf-8") as file:
            calls = [line.replace(os.path.join(self.run_folder(), ".work"), "WORK").rstrip() for line in file][1:]
        self.assertEqual(calls, [
            "tune ok-a --json",
            "emit ok-a --variant fused --set BM=128,swizzle=true,q_in=shared --evals 1 -o WORK/bundles/peers.ok-a",
            "tune ok-a WORK/bundles/peers.ok-a",
            "emit ok-b -o WORK/bundles/peers.ok-b",
            "tune ok-b WORK/bundles/peers.ok-b",
            "emit fails -o WORK/bundles/peers.fails"])
        self.assertEqual(self.result("peers.fails")["message"], "exit 3: roofgen: nothing to emit")
        self.assertEqual(self.result("peers.ok-b")["first_command"][:3], ["roofgen", "emit", "ok-b"])

    def test_dry_run_runs_nothing(self):
        self.environment["ROOFGEN_LIBCUDA"] = "libnone.so.1"
        done = self.visit([step("a", "ok", share=1), step("b", "fails", share=3)], "--dry-run", seconds=400)
        self.assertRegex(done.stdout, r"a +0s +100s +1 ")
        self.assertRegex(done.stdout, r"b +100s +400s +1 ")
        self.assertIn("b.fails (at most 20 s): roofgen tune fails --json", done.stdout)
        self.assertRegex(done.stdout, r"program +/.*fake_roofgen.sh\n")
        self.assertRegex(done.stdout, r"(missing here: .*No error|nothing is missing here)")
        self.environment["ROOFGEN"] = self.path("none")
        done = self.visit([step("a", "ok")], "--dry-run")
        self.assertRegex(done.stdout, r"program +missing: ")
        self.assertRegex(done.stdout, r"missing here: program.* No error")
        self.assertFalse(os.path.exists(self.path("results")))


class JudgeTest(unittest.TestCase):
    """What a check lets pass."""

    def check(self, **changes):
        variant = {"name": "fused", "available": True, "verified": True, "verification": {"rows_checked": 9, "error_over_tolerance": 0.5}}
        document = {"device": {"origin": "measured"}, "best_variant": "fused", "rejected": {"constraint": 3, "spill": 1}, "variants": [variant]}
        for name, value in changes.items():
            (document if name in document else variant)[name] = value
        return judge.JUDGES["check"](document, plan.Task("check", "x", ["x"], 1, 1, "check", ["fused"], {}))

    def test_verified_is_right(self):
        self.assertEqual(self.check(), "")

    def test_everything_else_is_told(self):
        self.assertIn("does not say that it was measured", self.check(device={"origin": "datasheet"}))
        self.assertIn("no variant", self.check(best_variant=None))
        self.assertIn("could not be made", self.check(variants=[]))
        self.assertIn("too big", self.check(available=False, rejected_because="too big"))
        self.assertIn("fused is wrong: off", self.check(verified=False, verification={"failure": "off"}))
        self.assertIn("nothing shows", self.check(verification={"rows_checked": 9, "error_over_tolerance": 1.5}))
        self.assertIn("nothing shows", self.check(verification={"rows_checked": 0, "error_over_tolerance": 0.5}))
        self.assertIn("nothing shows", self.check(verification={}))
        self.assertIn("2 candidates rejected: verify", self.check(rejected={"verify": 2}))
        self.assertIn("gpu fault", self.check(rejected={"gpu fault": 1}))


    def test_why_nothing_passed(self):
        bad = {"best_variant": None, "rejected": {"constraint": 90, "spill": 2, "compile": 5},
               "variants": [{"rejected_because": "no nvcc"}, {"rejected_because": "no room"}, {"verification": {"failure": "no room"}}]}
        self.assertEqual(judge.why_nothing_passed(bad, ""), "5 candidates rejected: compile; no room")
        self.assertEqual(judge.why_nothing_passed(bad, "x\nroofgen: nothing was verified: spill: 9 bytes\n"), "5 candidates rejected: compile; spill: 9 bytes")
        self.assertEqual(judge.why_nothing_passed({**bad, "rejected": {"constraint": 3}, "variants": []}, ""), "3 candidates rejected: constraint")
        self.assertEqual(judge.why_nothing_passed({**bad, "best_variant": "fused"}, ""), "")
        self.assertEqual(judge.why_nothing_passed({"best_variant": None, "rejected": {}, "variants": [None]}, ""), "")

    def test_last_words(self):
        self.assertEqual(judge.last_words("a\n b  c\n\nroofgen: warning: w\nroofgen: note: n\nd\nwarning: v\n"), "b c; d")
        self.assertEqual(judge.last_words("u\rroofgen: warning: w\r"), "u")
        self.assertEqual(judge.last_words("roofgen: warning: w\n"), "roofgen: warning: w")
        self.assertEqual(judge.last_words(" \n"), "")

    def test_ceilings(self):
        task = plan.Task("ceilings", "x", ["x"], 1, 1, "ceilings", [], {})
        good = {"ceilings": [{"origin": "measured"}, {"missing": "no"}]}
        self.assertEqual(judge.JUDGES["ceilings"](good, task), "")
        self.assertIn("no measured ceiling", judge.JUDGES["ceilings"]({"ceilings": [{"origin": "datasheet"}]}, task))
        self.assertIn("no measured ceiling", judge.JUDGES["ceilings"]({"device": "h200-sxm"}, task))
        self.assertIn("fell off", judge.JUDGES["ceilings"]({**good, "lost": "fell off"}, task))


class PlanTest(unittest.TestCase):
    def test_the_plan_of_the_tree(self):
        steps = plan.load(os.path.join(ROOT, "bench", "visit", "plan.json"))
        self.assertEqual([each.name for each in steps][:4], ["smoke", "check", "ceilings", "counters"])
        for each in steps:
            for task in each.tasks:
                self.assertIn(task.judge, judge.JUDGES)
                values = {"record": "r", "time": 1, "bundle": "b", "winner": ["--evals", "1"]}
                self.assertNotIn("{", " ".join(task.arguments(task.first + task.command, values)))
        checks = next(each for each in steps if each.name == "check").tasks
        said = [" ".join(task.command) for task in checks]
        for wanted in ("--causal", "--lse", "--kv-heads", "--kv-len", "fp16", "--d 32 ", "--d 256 ", "--L 333 ",
                       "tune gemm ", "tune rmsnorm ", "tune layernorm ", "tune softmax ", "--epilogue ", "--gated ", "tf32", "fp8", "int8"):
            self.assertTrue(any(wanted in each for each in said), wanted)

    def test_the_table_of_what_fits_is_of_this_plan(self):
        steps = plan.load(os.path.join(ROOT, "bench", "visit", "plan.json"))
        with open(os.path.join(ROOT, "docs", "visit.md"), encoding="utf-8") as file:
            text = file.read()
        share = sum(each.share for each in steps)
        for each in steps:
            slices = " | ".join(f"{budget * each.share / share:.0f} s" for budget in (1500, 560))
            least, most = sum(task.least_s for task in each.tasks), sum(task.limit_s for task in each.tasks)
            row = f"| `{each.name}` | {len(each.tasks)} | {each.share} | {slices} | {least} s | {most} s |"
            self.assertIn(row, text.splitlines(), row)
        self.assertTrue(f"would last {sum(task.limit_s for each in steps for task in each.tasks)} s" in text)

    def test_targets_say_whose_they_are(self):
        targets = files.read_json(os.path.join(ROOT, "bench", "targets.json"))["problems"]
        for target in targets:
            for name in ("by", "gpu", "source"):
                self.assertTrue(target["match"][name], target["name"])
            self.assertGreater(target["match"]["tflop_s"], 100)


if __name__ == "__main__":
    unittest.main()
