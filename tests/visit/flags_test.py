"""Every flag in the plan of a visit is one that roofgen has. ROOFGEN_PROGRAM names the program."""
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "visit"))
import plan  # noqa: E402


class FlagsTest(unittest.TestCase):
    def test_the_flags_of_the_plan_exist(self):
        known, missing = {}, set()
        tasks = [task for step in plan.load(os.path.join(ROOT, "bench", "visit", "plan.json")) for task in step.tasks]
        for words in (words for task in tasks for words in (task.first, task.command) if words[:1] == ["roofgen"]):
            name = words[1]
            if name not in known:
                command = [os.environ["ROOFGEN_PROGRAM"], name, "--help"]
                known[name] = set(subprocess.check_output(command, text=True).replace(",", " ").split())
            missing |= {f"{name} {word}" for word in words if word.startswith("--") and word not in known[name]}
        self.assertEqual(sorted(known), ["emit", "roofline", "tune"])
        self.assertEqual(missing, set())


if __name__ == "__main__":
    unittest.main()
