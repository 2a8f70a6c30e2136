"""The schedules that lab/visit/cases.json sets are legal on the GPU of a visit, and those of a case differ."""
import json
import os
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab/visit"))
import package  # noqa: E402


def source(case, schedule):
    """What `roofgen generate` prints for a schedule."""
    return subprocess.run([os.environ["ROOFGEN_PROGRAM"], "generate", *package.words(case), "--device", "h200-sxm",
                           "--variant", schedule["variant"], "--set", schedule["set"]],
                          capture_output=True, text=True, check=False)


class Cases(unittest.TestCase):
    def test_schedules_are_legal_and_differ(self):
        cases = json.loads((ROOT / "lab/visit/cases.json").read_text())["cases"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = [(case["name"], [pool.submit(source, case, schedule) for schedule in case["schedules"]
                                    if "set" in schedule]) for case in cases]
        for name, sources in made:
            with self.subTest(name):
                for done in sources:
                    self.assertEqual(done.result().returncode, 0, done.result().stderr)
                self.assertEqual(len({done.result().stdout for done in sources}), len(sources), "equal schedules")


if __name__ == "__main__":
    unittest.main()
