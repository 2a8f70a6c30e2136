"""bench/gpu_visit.sh with the real roofgen: the flags of the plan, a fake driver, a simulated driver."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/visit"))
import plan  # noqa: E402

ROOFGEN = os.environ["ROOFGEN_PROGRAM"]


class RoofgenTest(unittest.TestCase):
    def test_the_flags_of_the_plan_exist(self):
        known, missing = {}, set()
        tasks = [task for step in plan.load(ROOT / "bench/visit/plan.json") for task in step.tasks]
        for words in (words for task in tasks for words in (task.first, task.command) if words[:1] == ["roofgen"]):
            name = words[1]
            if name not in known:
                text = subprocess.check_output([ROOFGEN, name, "--help"], text=True)
                known[name] = set(text.replace(",", " ").split())
            missing |= {f"{name} {word}" for word in words if word.startswith("--") and word not in known[name]}
        self.assertEqual(sorted(known), ["emit", "roofline", "tune"])
        self.assertEqual(missing, set())

    def visit(self, driver):
        """Exit code, stderr, and the results by name of a visit that only asks roofgen doctor."""
        step = {"name": "doctor", "command": ["roofgen", "doctor", "--json"]}
        with tempfile.TemporaryDirectory() as top:
            Path(top, "plan.json").write_text(json.dumps({"schema": "roofgen.visit-plan.1", "steps": [step]}))
            command = [ROOT / "bench/gpu_visit.sh", "60", "--plan", f"{top}/plan.json", "--results", f"{top}/results"]
            environment = {**os.environ, "ROOFGEN": ROOFGEN, "ROOFGEN_LIBCUDA": os.environ[driver], "HOME": top}
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            results = {path.name: json.loads(path.read_text()) for path in Path(top, "results").glob("*/*/*.json")}
        return done.returncode, done.stderr, results

    def test_a_visit_on_a_fake_driver(self):
        code, err, results = self.visit("ROOFGEN_FAKE_CUDA")
        self.assertEqual(code, 0, err)
        gpu = results["doctor.doctor.json"]["result"]["gpus"][0]
        self.assertEqual(results["visit.json"]["gpu"]["uuid"], gpu["uuid"])
        self.assertEqual(results["visit.json"]["gpu"]["name"], gpu["name"])

    def test_a_simulated_driver_is_refused(self):
        code, err, results = self.visit("ROOFGEN_SIMULATED_CUDA")
        self.assertEqual((code, results), (3, {}), err)
        self.assertRegex(err, "^gpu_visit: refused: .*simulated")


if __name__ == "__main__":
    unittest.main()
