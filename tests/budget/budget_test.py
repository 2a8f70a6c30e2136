"""A cost above its limit must fail, and say by how much."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Budget(unittest.TestCase):
    def compare(self, counts, limits):
        with tempfile.TemporaryDirectory() as folder:
            costs, limit_file = pathlib.Path(folder, "costs"), pathlib.Path(folder, "limits.txt")
            costs.write_text("".join(json.dumps(line) + "\n" for line in counts))
            limit_file.write_text(limits)
            return subprocess.run([sys.executable, HERE / "budget.py", "suite", costs, "--limits", limit_file],
                                  stdout=subprocess.PIPE, text=True)

    def test_costs_of_processes_are_summed(self):
        done = self.compare([{"runs": 1, "tunes": 2}] * 3, "# a comment\nsuite.runs 2 3\nsuite.tunes 6 6\n")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"suite\.runs +2 +3 +3\n")

    def test_a_count_above_its_limit_fails(self):
        counts = [{"command": "a_test", "runs": 1, "tunes": 30}, {"command": "b_test", "runs": 1, "tunes": 3}]
        done = self.compare(counts, "suite.runs 2 3\nsuite.tunes 28 30\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"suite\.tunes +28 +33 +30  above the limit by 10\.0 %")
        self.assertRegex(done.stdout, r"most tunes:\n +30 a_test\n +3 b_test")

    def test_a_missing_count_fails(self):
        self.assertNotEqual(self.compare([{"runs": 1}], "suite.tunes 1 1\n").returncode, 0)


if __name__ == "__main__":
    unittest.main()
