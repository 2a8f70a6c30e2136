"""lab/visit/archives.py, and the places in lab/results that the tree names."""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab/visit/archives.py"
sys.path.insert(0, str(ROOT / "lab/visit"))
import archives  # noqa: E402
import files  # noqa: E402


class Archives(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.visit = self.folder / "here"
        self.contents = {"visit.json": b"{}", "a.jsonl": b'{"x": 1}\n{"x": 2}\n', "logs/a.txt": bytes(range(256))}
        for name, data in self.contents.items():
            files.write(self.visit / name, data)
        files.write(self.visit / ".work/cache/large", b"-")

    def run_script(self, *arguments, code=0):
        done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_a_folder_and_its_archive_have_the_same_files(self):
        self.run_script("pack", self.visit, self.folder / "gpu/1.tar.xz")
        found = dict(archives.visits(self.folder))
        self.assertEqual(list(found), [self.folder / "gpu/1.tar.xz", self.visit])
        for path, contents in found.items():
            self.assertEqual(contents, self.contents)
            self.assertEqual([document for _, document in archives.documents(path, contents)],
                             [{"x": 1}, {"x": 2}, {}])

    def test_equal_contents_give_equal_archives(self):
        backwards = dict(reversed(self.contents.items()))
        self.assertEqual(archives.packed("1", self.contents), archives.packed("1", backwards))

    def test_what_is_no_visit_is_refused(self):
        self.assertIn("has no visit.json", self.run_script("pack", self.folder, self.folder / "1.tar.xz", code=2))
        self.assertIn("not the name of a .tar.xz", self.run_script("pack", self.visit, self.folder / "1.zip", code=2))
        for damaged in (b"", b"none", archives.packed("1", self.contents)[:-40]):
            files.write(self.folder / "1.tar.xz", damaged)
            with self.assertRaises(files.Bad):
                list(archives.visits(self.folder))
        with self.assertRaisesRegex(files.Bad, "a.json: Expecting value"):
            list(archives.documents("x", {"a.json": b"-"}))

    def test_the_archives_of_the_tree(self):
        self.run_script("unpack", self.folder / "all")
        found = list(archives.visits(archives.RESULTS))
        self.assertGreaterEqual(len(found), 5)
        for path, contents in found:
            unpacked = self.folder / "all" / path.parent.name / archives.visit_name(path)
            self.assertEqual(archives.of_folder(unpacked), contents)
            self.assertIn("visit.json", contents)

    def test_places_that_the_tree_names_exist(self):
        """`lab/results/GPU/VISIT.tar.xz`, and `, NAME` of a file in it."""
        names = {str(path.relative_to(ROOT)): sorted(contents) for path, contents in archives.visits(archives.RESULTS)}
        checked = 0
        pages = [path for folder, name in (("docs", "*.md"), ("roofline/devices", "*.json"), ("lab", "*.md"))
                 for path in (ROOT / folder).rglob(name)]
        for page in pages:
            text = page.read_text(encoding="utf-8")
            for place, name in re.findall(r"(lab/results/[\w./-]+\.tar\.xz)(?:,\s([\w.-]+\.json\b))?", text):
                self.assertIn(place, names, page)
                self.assertIn(name or "visit.json", names[place], page)
                checked += 1
        self.assertGreater(checked, 10)


if __name__ == "__main__":
    unittest.main()
