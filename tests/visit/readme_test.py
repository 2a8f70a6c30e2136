"""bench/readme_tables.py and bench/calibration.py on results that are made up, and README.md against the results that are there.

`readme_test.py --update` rewrites readme_golden.md; read the difference."""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GOLDEN = os.path.join(HERE, "readme_golden.md")
SCRIPT = os.path.join(ROOT, "bench", "readme_tables.py")
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "bench", "visit")]
import files  # noqa: E402
import calibration  # noqa: E402
import readme_tables  # noqa: E402

EMPTY = ("# Made up\n<!-- results:begin measured -->\nold\n<!-- results:end measured -->\n\ntext | stays\n"
         "<!-- results:begin ceilings -->\n<!-- results:end ceilings -->\nend\n")


def timing(median, spread=0.01):
    return {"median_us": median, "low_us": median * (1 - spread), "high_us": median * (1 + spread), "samples": 40}


def envelope(step, task, result, ended="2026-01-02T03:04:05Z", status="ok", uuid="GPU-f0f1f2f3", about=None):
    return {"schema": "roofgen.visit-result.1", "step": step, "task": task, "status": status, "message": "", "about": about or {},
            "command": ["roofgen"], "first_command": [], "command_digest": "0", "started": ended, "ended": ended, "seconds": 1.0, "limit_s": 9.0,
            "exit_code": 0, "leftover_processes": 0, "gpu": {"name": "Fake GPU 9000", "uuid": uuid, "cuda": "13.0", "driver": "580.01", "ordinal": 0},
            "versions": {"roofgen": "0", "roofgen_sha256": "", "nvrtc": "13.0", "torch": "", "triton": "", "ncu": ""}, "state_before": {},
            "state_after": {}, "attachments": [], "result": result}


def tuned(median, origin="measured", **problem):
    return {"problem": {"op": "attention", "dtype": "bf16", "L": 4096, "kv_len": 4096, "d": 128, "batch": 1, "heads": 64, "kv_heads": 8,
                        "causal": False, "lse": False, "scale": 0.088, **problem},
            "device": {"name": "fake", "origin": origin}, "best_variant": "fused", "score": 0.625, "score_datasheet": 0.5,
            "variants": [{"name": "unfused", "kernels": []},
                         {"name": "fused", "kernels": [], "measurement": {"cold": timing(median), "hot": None, "sm_mhz": 1755.0}}]}


def peer(name, ratio, state="timed"):
    if state != "timed":
        return {"name": name, "state": state, "reason": "none here"}
    cold = {"median_ns": 1.0, "ratio": {"median": ratio, "low": ratio - 0.01, "high": ratio + 0.01} if ratio else None}
    return {"name": name, "state": state, "timings": {"steady": {"cold": cold}}}


RESULTS = [
    envelope("tune", "a", tuned(1500.0), ended="2026-01-01T00:00:00Z"),  # an older one of the same problem: not shown
    envelope("tune", "a", tuned(824.0), about={"match": {"tflop_s": 671, "by": "someone's kernel | fast", "gpu": "Fake GPU 8000"}}),
    envelope("tune", "b", tuned(97.25, L=1000, kv_len=1001, d=64, causal=True)),
    envelope("tune", "c", tuned(12345.6, dtype="fp16", kv_heads=64)),
    envelope("tune", "c", tuned(1.0, dtype="fp16", kv_heads=64), ended="2026-02-01T00:00:00Z", status="cut"),
    envelope("tune", "d", tuned(5.0, origin="simulated", d=32)),
    envelope("check", "e", tuned(6.0, d=32)),
    envelope("peers", "a", {"schema": "roofgen.peers.1", "origin": "measured", "op": "attention",
                            "problem": {"op": "attention", "dtype": "bf16", "flags": {"causal": False, "lse": False},
                                        "dims": {"L": 4096, "kv_len": 4096, "d": 128, "batch": 1, "heads": 64, "kv_heads": 8}},
                            "peers": [peer("roofgen:fused", None), peer("slow peer", 1.5), peer("fast peer", 0.9), peer("gone", 0, "missing")]}),
    envelope("ceilings", "ceilings", {"schema": "roofgen.ceilings.1", "device": "fake", "ceilings": [
        {"name": "dram_read", "what": "DRAM read", "unit": "GB/s", "stated": {"value": 4800.0, "cell": "dram_gb_s", "origin": "datasheet"}, "value": 4321.0,
         "low": 4310.0, "high": 4330.5, "origin": "measured", "sm_mhz": 1980.0},
        {"name": "smem_read", "what": "shared memory read", "unit": "bytes/clk/SM", "value": 127.5, "low": 127.0, "high": 127.75, "origin": "measured",
         "chip": {"value": 33000.0, "unit": "GB/s"}, "sm_mhz": None},
        {"name": "mma_fp8", "what": "FP8", "unit": "FLOP/clk/SM", "missing": "no such instruction"}]}),
]


class ReadmeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.readme = os.path.join(self.folder, "README.md")

    def write(self, documents):
        for index, document in enumerate(documents):
            place = os.path.join(self.folder, "results", "fake-gpu-9000", document["ended"][:10] + "-f0f1f2f3")
            files.write_json(os.path.join(place, f"{document['step']}.{document['task']}{index}.json"), document)

    def run_script(self, text, *arguments):
        with open(self.readme, "w", encoding="utf-8") as file:
            file.write(text)
        os.makedirs(os.path.join(self.folder, "results"), exist_ok=True)
        done = subprocess.run([sys.executable, SCRIPT, "--readme", self.readme, "--results", os.path.join(self.folder, "results"), *arguments],
                              capture_output=True, text=True)
        with open(self.readme, encoding="utf-8") as file:
            return done, file.read()

    def test_tables(self):
        self.write(RESULTS)
        done, written = self.run_script(EMPTY)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(GOLDEN, encoding="utf-8") as file:
            self.assertEqual(written, file.read())
        self.assertEqual(self.run_script(written, "--check")[0].returncode, 0)

    def test_made_up_results_are_of_the_form_that_visits_write(self):
        schema = files.read_json(os.path.join(ROOT, "bench", "visit", "schema.json"))["roofgen.visit-result.1"]
        for document in RESULTS:
            files.check(document, schema)

    def test_without_results_it_says_so(self):
        written = self.run_script(EMPTY)[1]
        self.assertIn("No kernel has been measured on a GPU yet.", written)
        self.assertIn("bench/gpu_visit.sh", written)
        self.assertNotIn("old", written)
        self.assertIn("\ntext | stays\n", written)

    def test_a_table_written_by_hand_is_found(self):
        self.write(RESULTS)
        good = self.run_script(EMPTY)[1]
        done, after = self.run_script(good.replace("[815.8, 832.2]", "[1.0, 2.0]"), "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("README.md is not what the results say", done.stderr)
        self.assertIn("[1.0, 2.0]", after)  # a check writes nothing

    def test_wrong_markers_and_results_are_told(self):
        for text, said in ((EMPTY.replace("end ceilings", "end measured"), "is not closed"), (EMPTY + EMPTY, "is there 2 times"), ("", "is there 0 times"),
                           (EMPTY.replace("ceilings", "ceiling"), "there is no block ceiling")):
            done, after = self.run_script(text)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
            self.assertEqual(after, text)
        broken = copy.deepcopy(RESULTS[1])
        del broken["result"]["score"]
        self.write([broken])
        done, after = self.run_script(EMPTY)
        self.assertEqual((done.returncode, after), (1, EMPTY))
        self.assertIn("not of the form expected", done.stderr)

    def test_results_that_were_named_must_be_there(self):
        for script in (SCRIPT, os.path.join(ROOT, "bench", "calibration.py")):
            done = subprocess.run([sys.executable, script, "--results", os.path.join(self.folder, "none")], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"^\w+: --results .*none: no such folder\n$")

    def test_flops_are_what_the_problem_requires(self):
        problem = {"L": 3, "kv_len": 5, "d": 16, "batch": 2, "heads": 4}
        self.assertEqual(readme_tables.attention_flops(problem), 4 * 2 * 4 * 15 * 16)
        # Rows see keys up to the diagonal that ends at the bottom right: 3, 4 and 5 of them.
        self.assertEqual(readme_tables.attention_flops({**problem, "causal": True}), 4 * 2 * 4 * 12 * 16)
        # More rows than keys: the first two see none.
        self.assertEqual(readme_tables.attention_flops({**problem, "L": 5, "kv_len": 3, "causal": True}), 4 * 2 * 4 * 6 * 16)

    def test_readme_of_the_tree(self):
        done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_results_of_the_tree_are_of_their_schema(self):
        schemas = files.read_json(os.path.join(ROOT, "bench", "visit", "schema.json"))
        for root, _, names in os.walk(os.path.join(ROOT, "results")):
            for name in names:
                if name.endswith(".json"):
                    document = files.read_json(os.path.join(root, name))
                    files.check(document, schemas[document["schema"]], name)


class CalibrationTest(unittest.TestCase):
    def test_kernels_that_were_timed_and_counted(self):
        kernel = {"name": "attention", "digest": "d", "schedule": {"params": {"BM": 64}}, "counted": True, "origins": {}, "model_time_us": 5.0,
                  "measurement": {"cold": timing(7.0), "hot": None, "sm_mhz": 1500.0}, **{name: 1 for name in calibration.COUNTS}}
        good = envelope("tune", "x", {**tuned(1.0), "schema": "roofgen.tune.1",
                                      "variants": [{"name": "fused", "verified": True, "kernels": [kernel, {**kernel, "counted": False}]},
                                                   {"name": "unfused", "verified": False, "kernels": [kernel]}]})
        simulated = copy.deepcopy(good)
        simulated["result"]["device"]["origin"] = "simulated"
        found = list(calibration.points([good, simulated, RESULTS[-1]]))
        self.assertEqual(len(found), 1)
        self.assertEqual((found[0]["variant"], found[0]["params"], found[0]["cold"]["median_us"]), ("fused", {"BM": 64}, 7.0))

    def test_counts_are_members_of_a_result(self):
        with open(os.path.join(ROOT, "docs", "tune-schema.json"), encoding="utf-8") as file:
            kernel = json.load(file)["properties"]["variants"]["items"]["properties"]["kernels"]["items"]
        self.assertEqual([name for name in calibration.COUNTS if name not in kernel["required"]], [])


def update():
    with open(GOLDEN, "w", encoding="utf-8") as file:
        file.write(readme_tables.rewrite(EMPTY, sorted((each for each in RESULTS if each["status"] == "ok"), key=lambda each: each["ended"])))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
