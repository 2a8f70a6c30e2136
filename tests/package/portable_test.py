"""bench/check_portable.py on synthetic readelf output and on a program that is not portable."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECKER = os.path.join(ROOT, "bench", "check_portable.py")

DYNAMIC = """
Dynamic section at offset 0xd05a30 contains 30 entries:
  Tag        Type                         Name/Value
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [ld-linux-x86-64.so.2]
"""
VERSIONS = """
Version needs section '.gnu.version_r' contains 2 entries:
 Addr: 0x0000000000403d50  Offset: 0x003d50  Link: 6 (.dynstr)
  000000: Version: 1  File: ld-linux-x86-64.so.2  Cnt: 1
  0x0010:   Name: GLIBC_2.3  Flags: none  Version: 18
  0x0020: Version: 1  File: libc.so.6  Cnt: 2
  0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 17
  0x0040:   Name: GLIBC_2.35  Flags: none  Version: 16
"""


class CheckPortable(unittest.TestCase):
    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([sys.executable, CHECKER, "--text", file.name], capture_output=True, text=True)
        return done.returncode, done.stderr

    def test_an_old_c_library_is_portable(self):
        self.assertEqual(self.check(DYNAMIC + VERSIONS), (0, ""))
        other = DYNAMIC.replace("x86-64", "aarch64").replace(".so.2", ".so.1")
        self.assertEqual(self.check(other + VERSIONS), (0, ""))

    def test_a_newer_symbol_is_named(self):
        for version in ("2.36", "2.38", "3.0", "2.100"):
            code, said = self.check(DYNAMIC + VERSIONS.replace("GLIBC_2.35 ", f"GLIBC_{version} "))
            self.assertEqual(code, 1, said)
            self.assertIn(f"needs GLIBC_{version}; at most GLIBC_2.35", said)
            self.assertEqual(said.count("\n"), 1)

    def test_a_private_symbol_is_refused(self):
        code, said = self.check(DYNAMIC + VERSIONS.replace("GLIBC_2.35 ", "GLIBC_PRIVATE "))
        self.assertEqual(code, 1)
        self.assertIn("GLIBC_PRIVATE", said)

    def test_shared_libraries_outside_the_c_library_are_named(self):
        for name in ("libstdc++.so.6", "libfmt.so.9", "libc.so.6.evil", "libsqlite3.so.0", "libgcc_s.so.1"):
            code, said = self.check(DYNAMIC.replace("libm.so.6", name) + VERSIONS)
            self.assertEqual(code, 1, name)
            self.assertIn(f"needs the shared library {name}", said)

    def test_library_folders_and_shared_runtimes_are_refused(self):
        path = " 0x000000000000001d (RUNPATH)            Library runpath: [$ORIGIN/../lib]\n"
        code, said = self.check(DYNAMIC + path + VERSIONS)
        self.assertEqual(code, 1)
        self.assertIn("looks for libraries in $ORIGIN/../lib", said)
        code, said = self.check(DYNAMIC + VERSIONS + "  0x0050:   Name: GLIBCXX_3.4.30  Flags: none  Version: 3\n")
        self.assertEqual(code, 1)
        self.assertIn("GLIBCXX_3.4.30", said)

    def test_other_files_are_not_portable_programs(self):
        for text in ("", "There is no dynamic section in this file.\n", DYNAMIC):
            self.assertEqual(self.check(text)[0], 1)
        done = subprocess.run([sys.executable, CHECKER, CHECKER], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        done = subprocess.run([sys.executable, CHECKER], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)

    def test_an_ordinary_build_is_not_portable(self):
        program = os.environ.get("ROOFGEN_ORDINARY")  # a program that links libstdc++ as usual
        if not program:
            self.skipTest("no program given")
        done = subprocess.run([sys.executable, CHECKER, program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs the shared library libstdc++.so.6", done.stderr)


if __name__ == "__main__":
    unittest.main()
