"""Every flag that the plan of a visit uses is one of roofgen's. ROOFGEN_PROGRAM names the program."""
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "visit"))
import plan  # noqa: E402


class FlagsTest(unittest.TestCase):
    def test_the_plan_uses_flags_that_there_are(self):
        known, missing = {}, set()
        for step in plan.load(os.path.join(ROOT, "bench", "visit", "plan.json")):
            for words in [words for task in step.tasks for words in (task.first, task.command) if words[:1] == ["roofgen"]]:
                name = words[1]
                if name not in known:
                    done = subprocess.run([os.environ["ROOFGEN_PROGRAM"], name, "--help"], capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    known[name] = set(done.stdout.replace(",", " ").split())
                missing |= {f"{name} {word}" for word in words if word.startswith("--") and word not in known[name]}
        self.assertEqual(sorted(known), ["emit", "roofline", "tune"])
        self.assertEqual(missing, set())


if __name__ == "__main__":
    unittest.main()
