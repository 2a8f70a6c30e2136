"""lab/visit/readme_tables.py and calibration.py on synthetic results, and the pages against lab/results.

`readme_test.py --update` rewrites readme_golden.md; review the difference."""
import copy
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GOLDEN = HERE / "readme_golden.md"
SCRIPT, CALIBRATION = ROOT / "lab/visit/readme_tables.py", ROOT / "lab/visit/calibration.py"
sys.path.insert(0, str(ROOT / "lab/visit"))
import archives  # noqa: E402
import files  # noqa: E402
import forms  # noqa: E402
import calibration  # noqa: E402
import readme_tables  # noqa: E402

EMPTY = ("# Made up\n<!-- results:begin headline -->\n<!-- results:end headline -->\n"
         "<!-- results:begin measured -->\nold\n<!-- results:end measured -->\n\ntext | stays\n"
         "<!-- results:begin ceilings -->\n<!-- results:end ceilings -->\n"
         "<!-- results:begin peers -->\n<!-- results:end peers -->\n"
         "<!-- results:begin predicted -->\n<!-- results:end predicted -->\nend\n"
         "<!-- results:begin every -->\n<!-- results:end every -->\n")


def timing(median, spread=0.01):
    low, high = median * (1 - spread), median * (1 + spread)
    return {"median_us": median, "low_us": low, "high_us": high, "samples": 40}


def envelope(step, task, result, ended="2026-01-02T03:04:05Z", status="ok", about=None):
    gpu = {"name": "Fake GPU 9000", "uuid": "GPU-f0f1f2f3", "cuda": "13.0", "driver": "580.01", "ordinal": 0}
    versions = {"roofgen": "0", "roofgen_sha256": "", "nvrtc": "13.0", "torch": "", "triton": "", "ncu": ""}
    return {"schema": "roofgen.visit-result.1", "step": step, "task": task, "status": status, "message": "",
            "about": about or {}, "command": ["roofgen"], "first_command": [], "command_digest": "0", "started": ended,
            "ended": ended, "seconds": 1.0, "limit_s": 9.0, "exit_code": 0, "leftover_processes": 0, "gpu": gpu,
            "versions": versions, "state_before": {}, "state_after": {}, "attachments": [], "result": result}


def tuned(median, origin="measured", **problem):
    measurement = {"cold": timing(median), "hot": None, "sm_mhz": 1755.0}
    return {"schema": "roofgen.tune.1",
            "problem": {"op": "attention", "dtype": "bf16", "L": 4096, "kv_len": 4096, "d": 128, "batch": 1,
                        "heads": 64, "kv_heads": 8, "causal": False, "lse": False, "scale": 0.088, **problem},
            "device": {"name": "fake", "origin": origin}, "best_variant": "fused", "score": 0.625,
            "score_datasheet": 0.5,
            "variants": [{"name": "unfused", "kernels": []},
                         {"name": "fused", "kernels": [], "measurement": measurement}]}


def peer(name, times=None):
    """times: of the time of ours."""
    ratio = times and {"median": times, "low": times - 0.01, "high": times + 0.01}
    return {"name": name, "state": "timed",
            "timings": {"steady": {"cold": {"median_ns": 1e5 * (times or 1), "ratio": ratio}}}}


PEERS = {"schema": "roofgen.peers.1", "origin": "measured", "op": "attention",
         "problem": {"op": "attention", "dtype": "bf16", "flags": {"causal": False, "lse": False},
                     "dims": {"L": 4096, "kv_len": 4096, "d": 128, "batch": 1, "heads": 64, "kv_heads": 8}},
         "peers": [peer("roofgen:fused"), peer("slow peer", 1.5), peer("fast peer", 0.9),
                   {"name": "gone", "state": "missing", "reason": "none here"}]}
CEILINGS = {"schema": "roofgen.ceilings.1", "device": "fake", "ceilings": [
    {"name": "dram_read", "what": "DRAM read", "unit": "GB/s", "value": 4321.0, "low": 4310.0, "high": 4330.5,
     "stated": {"value": 4800.0, "cell": "dram_gb_s", "origin": "datasheet"}, "origin": "measured", "sm_mhz": 1980.0},
    {"name": "smem_read", "what": "shared memory read", "unit": "bytes/clk/SM", "value": 127.5, "low": 127.0,
     "high": 127.75, "origin": "measured", "chip": {"value": 33000.0, "unit": "GB/s"}, "sm_mhz": None},
    {"name": "mma_fp8", "what": "FP8", "unit": "FLOP/clk/SM", "missing": "no such instruction"}]}
MATCH = {"match": {"tflop_s": 671, "by": "someone's kernel | fast", "gpu": "Fake GPU 8000"}}
RESULTS = [
    envelope("tune", "a", tuned(1500.0), ended="2026-01-01T00:00:00Z"),  # an older one of the same problem: not shown
    envelope("tune", "a", tuned(824.0), about=MATCH),
    envelope("tune", "b", tuned(97.25, L=1000, kv_len=1001, d=64, causal=True)),
    envelope("tune", "h", tuned(454.0, causal=True)),  # one of HEADLINE
    envelope("tune", "c", tuned(12345.6, dtype="fp16", kv_heads=64)),
    envelope("tune", "c", tuned(1.0, dtype="fp16", kv_heads=64), ended="2026-02-01T00:00:00Z", status="cut"),
    envelope("tune", "d", tuned(5.0, origin="simulated", d=32)),
    envelope("check", "e", tuned(6.0, d=32)),
    envelope("peers", "a", PEERS),
    envelope("ceilings", "ceilings", CEILINGS),
]


def entry(name, median_ns, ours=True, state="timed"):
    made = {"name": name, "ours": ours, "state": state, "reason": "", "timings": {}}
    if state == "timed":
        made["timings"]["cold"] = {"median_ns": median_ns, "low_ns": median_ns * 0.99, "high_ns": median_ns * 1.01}
    if ours:
        made.update(schedule={"variant": "warpgroup", "kernels": [{"BN": 128}]}, predicted_us=800.0,
                    counts=[dict.fromkeys(calibration.COUNTS, 1)])
    return made


def row(case, *entries, use="report", origin="measured", started="2026-03-01T00:00:00+00:00"):
    problem = {"op": "attention", "dtype": "bf16", "flags": {"causal": True, "lse": False}, "reals": {},
               "dims": {"L": 4096, "kv_len": 4096, "d": 128, "batch": 1, "heads": 64, "kv_heads": 8}}
    return {"schema": "roofgen.visit-row.1", "case": case, "step": "peers", "origin": origin, "started": started,
            "problem": problem, "use": use, "floor_us": 500.0, "clock": {"sm_mhz": 1700.0}, "entries": list(entries)}


GPU = {"name": "Fake GPU 9000", "uuid": "GPU-f0f1f2f3", "driver": "580.01"}
ROWS = [row("a", entry("roofgen:0:warpgroup", 1e6), started="2026-02-01T00:00:00+00:00"),  # an older one: not shown
        row("a", entry("roofgen:0:warpgroup", 1e6), entry("roofgen:1:warpgroup", 9e5), entry("quick", 8.1e5, False),
            entry("absent", 0, False, "missing"), use="fit"),
        row("b", entry("roofgen:0:warpgroup", 1.0), origin="rehearsal")]


def place_of(time):
    return f"fake-gpu-9000/{time[:10]}-f0f1f2f3"


class ReadmeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results, self.readme = Path(folder.name, "results"), Path(folder.name, "README.md")
        self.results.mkdir()

    def write(self, documents):
        """Two folders and an archive."""
        about = json.dumps({"schema": "roofgen.visit.2", "gpu": GPU})
        for index, document in enumerate(documents):
            place = self.results / place_of(document["ended"])
            files.write(place / "visit.json", about)
            files.write(place / f"{document['step']}.{document['task']}{index}.json", files.to_json(document))
        rows = "".join(json.dumps(each) + "\n" for each in [{"begin": "a"}, *ROWS])
        archive = archives.packed("2026-03-01-f0f1f2f3", {"visit.json": about.encode(), "peers.jsonl": rows.encode()})
        files.write(self.results / f"{place_of('2026-03-01')}.tar.xz", archive)

    def run_script(self, text, *arguments, code=0):
        """(stderr, README.md afterwards)"""
        self.readme.write_text(text, encoding="utf-8")
        command = [sys.executable, SCRIPT, "--page", self.readme, "--results", self.results, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr, self.readme.read_text(encoding="utf-8")

    def test_tables(self):
        self.write(RESULTS)
        err, written = self.run_script(EMPTY)
        self.assertEqual((err, written), ("", GOLDEN.read_text(encoding="utf-8")))
        self.run_script(written, "--check")

    def test_made_up_results_satisfy_the_schema(self):
        for document in RESULTS:
            forms.check(document, forms.SCHEMAS["roofgen.visit-result.1"])

    def test_without_results_it_says_so(self):
        written = self.run_script(EMPTY)[1]
        self.assertIn("No kernel has been measured on a GPU yet.", written)
        self.assertIn("lab/visit/package.py", written)
        self.assertNotIn("old", written)
        self.assertIn("\ntext | stays\n", written)

    def test_an_edited_table_is_found(self):
        self.write(RESULTS)
        good = self.run_script(EMPTY)[1]
        err, after = self.run_script(good.replace("[815.8, 832.2]", "[1.0, 2.0]"), "--check", code=1)
        self.assertIn("README.md is not what the results say", err)
        self.assertIn("[1.0, 2.0]", after)  # a check writes nothing

    def test_wrong_markers_and_results_are_reported(self):
        for text, fault in ((EMPTY.replace("end ceilings", "end measured"), "is not closed"),
                            (EMPTY + EMPTY, "is there 2 times"), ("", "is there 0 times"),
                            (EMPTY.replace("ceilings", "ceiling"), "there is no block ceiling")):
            err, after = self.run_script(text, code=1)
            self.assertIn(fault, err)
            self.assertEqual(after, text)
        broken = copy.deepcopy(RESULTS[1])
        del broken["result"]["score"]
        self.write([broken])
        err, after = self.run_script(EMPTY, code=1)
        self.assertEqual(after, EMPTY)
        self.assertIn("not of the form expected", err)

    def test_a_named_results_folder_must_exist(self):
        for script in (SCRIPT, CALIBRATION):
            command = [sys.executable, script, "--results", self.results / "none"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"^\w+: --results .*none: no such folder\n$")

    def test_flops_follow_from_the_problem(self):
        problem = {"L": 3, "kv_len": 5, "d": 16, "batch": 2, "heads": 4}
        self.assertEqual(readme_tables.attention_flops(problem), 4 * 2 * 4 * 15 * 16)
        # The causal mask ends at the bottom right: the three rows attend to 3, 4 and 5 keys.
        self.assertEqual(readme_tables.attention_flops({**problem, "causal": True}), 4 * 2 * 4 * 12 * 16)
        # More rows than keys: the first two rows attend to none.
        more_rows = {**problem, "L": 5, "kv_len": 3, "causal": True}
        self.assertEqual(readme_tables.attention_flops(more_rows), 4 * 2 * 4 * 6 * 16)

    def test_readme_of_the_tree(self):
        done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_results_of_the_tree_satisfy_their_schemas(self):
        checked = 0
        for path, contents in archives.visits(archives.RESULTS):
            for name, document in archives.documents(path, contents):
                if not name.endswith(".json") or document["schema"] == "roofgen.visit.2":
                    continue  # visit.py writes one form only
                forms.check(document, forms.SCHEMAS[document["schema"]], name)
                checked += 1
        self.assertGreater(checked, 50)


class CalibrationTest(unittest.TestCase):
    def test_kernels_with_time_and_counts(self):
        measurement = {"cold": timing(7.0), "hot": None, "sm_mhz": 1500.0}
        kernel = {"name": "attention", "digest": "d", "schedule": {"params": {"BM": 64}}, "counted": True,
                  "origins": {}, "model_time_us": 5.0, "measurement": measurement,
                  **{name: 1 for name in calibration.COUNTS}}
        variants = [{"name": "fused", "verified": True, "kernels": [kernel, {**kernel, "counted": False}]},
                    {"name": "unfused", "verified": False, "kernels": [kernel]}]
        good = envelope("tune", "x", {**tuned(1.0), "variants": variants})
        simulated = copy.deepcopy(good)
        simulated["result"]["device"]["origin"] = "simulated"
        point, = calibration.points([good, simulated, RESULTS[-1]])
        self.assertEqual((point["variant"], point["params"], point["cold"]["median_us"]), ("fused", {"BM": 64}, 7.0))

    def test_only_rows_marked_fit_are_fitted_to(self):
        points = list(calibration.points_of_rows([{**each, "gpu": GPU} for each in ROWS]))
        self.assertEqual([point["cold"]["median_us"] for point in points], [1000, 900])
        self.assertEqual((points[0]["params"], points[0]["model_time_us"]), ({"BN": 128}, 800))

    def test_counts_are_members_of_a_result(self):
        schema = json.loads((ROOT / "docs/tune-schema.json").read_text(encoding="utf-8"))
        kernel = schema["properties"]["variants"]["items"]["properties"]["kernels"]["items"]
        self.assertEqual([name for name in calibration.COUNTS if name not in kernel["required"]], [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        oldest_first = sorted(RESULTS, key=lambda each: each["ended"])
        all_of = [{**each, "visit": place_of(each["ended"])} for each in oldest_first]
        rows = [{**each, "gpu": GPU, "visit": f"{place_of('2026-03-01')}.tar.xz"} for each in ROWS[:2]]
        GOLDEN.write_text(readme_tables.rewrite([EMPTY], all_of, rows)[0], encoding="utf-8")
    else:
        unittest.main()
