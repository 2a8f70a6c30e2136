#!/usr/bin/env python3
"""Runs the self tests of bundles with one planted bug each (tests/shim/planted/*.mutants, docs/evidence/mutants.md).

    tests/shim/planted_bundles.py build/cli/roofgen build/shim [--data-dir .] [--only TEXT] [--keep FOLDER]

Each bundle is emitted once; an edit changes its files, which are compiled and run on the simulated driver. A bug is
found if the self test fails, or ends by a signal. The bundle without a bug must pass first. Exit: 0 if all are found.
"""
import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).parent / "planted"


def read(path):
    """The mutants of a file: (arguments of emit, bug, edits), an edit as (file, from, to)."""
    run, mutants, more = "", [], False
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("run "):
            run, more = line[4:], True
        elif more and line.startswith("    "):
            run += " " + line.strip()
        elif line.startswith("rejected: "):
            more = False
            mutants.append((run, f"{path.stem}: {line[10:]}", []))
        elif line.startswith("  in "):
            mutants[-1][2].append([line[5:], "", ""])
        elif mutants and mutants[-1][2]:
            edit, sign, code = mutants[-1][2][-1], line[2:4], line[4:]
            if sign != "+ ":
                edit[1] += code + "\n"
            if sign != "- ":
                edit[2] += code + "\n"
    return mutants


def pattern_of(code):
    """Blanks and line breaks of code do not count."""
    words = re.findall(r"\w+|[^\w\s]", code)
    out = ""
    for i, word in enumerate(words):
        both = i > 0 and re.match(r"\w", word) and re.match(r"\w", words[i - 1])
        out += (r"\s+" if both else r"\s*" if i else "") + re.escape(word)
    return out


def build_and_run(folder, shim):
    """Why the self test fails, or None."""
    name = next(folder.glob("*_images.h")).name[: -len("_images.h")]
    compile_ = ["cc", "-std=c11", "-O1", "-w", f"{name}.c", "self_test.c", "-o", "test", "-lm", "-ldl"]
    built = subprocess.run(compile_, cwd=folder, capture_output=True, text=True)
    if built.returncode:
        return "does not compile: " + built.stderr[:400]
    try:
        ran = subprocess.run(["./test"], cwd=folder, capture_output=True, text=True, timeout=120, errors="replace",
                             env={"LD_LIBRARY_PATH": shim, "PATH": "/usr/bin:/bin"})
    except subprocess.TimeoutExpired:
        return "does not end"
    if ran.returncode == 0:
        return None
    lines = [x for x in (ran.stdout + ran.stderr).splitlines() if "FAILED" in x] or ran.stderr.splitlines()
    return f"exit {ran.returncode}: {lines[0] if lines else ''}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roofgen")
    parser.add_argument("shim")
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--only", default="", help="bugs or arguments with this text")
    parser.add_argument("--keep", help="folder of the bundles")
    a = parser.parse_args()
    roofgen, shim = (str(pathlib.Path(p).resolve()) for p in (a.roofgen, a.shim))
    work = pathlib.Path(a.keep or tempfile.mkdtemp())
    bundles, counts, missed = {}, {}, 0
    for path in sorted(FOLDER.glob("*.mutants")):
        for run, bug, edits in read(path):
            if a.only not in bug and a.only not in run:
                continue
            if run not in bundles:
                folder = bundles[run] = work / f"bundle{len(bundles)}"
                shutil.rmtree(folder, ignore_errors=True)
                emit = [roofgen, "emit", *shlex.split(run), "--executor", "sim", "--evals", "1", "--jobs", "1",
                        "--data-dir", a.data_dir, "--force", "-o", str(folder)]
                emitted = subprocess.run(emit, capture_output=True, text=True)
                if emitted.returncode:
                    sys.exit(f"emit {run}: {emitted.stderr}")
                begin = time.monotonic()
                why = build_and_run(folder, shim)
                print(f"{'WRONG' if why else 'right'} {time.monotonic() - begin:.1f} s: {run} {why or ''}", flush=True)
            edited = work / "edited"
            shutil.rmtree(edited, ignore_errors=True)
            shutil.copytree(bundles[run], edited)
            for file, old, new in edits:
                target = edited / pathlib.Path(file).relative_to("out")
                text, times = re.subn(pattern_of(old), lambda _: new.rstrip("\n"), target.read_text())
                if not times:
                    sys.exit(f"{bug}: {file} does not contain {old}")
                target.write_text(text)
            why = build_and_run(edited, shim)
            if why and why.startswith("does not compile"):
                sys.exit(f"{bug}: {why}")
            of_file = counts.setdefault(path.stem, [0, 0])
            of_file[0] += 1
            of_file[1] += why is not None
            missed += why is None
            print(f"{'found ' if why else 'MISSED'} {bug}: {why or ''}", flush=True)
    for stem, (planted, found) in counts.items():
        print(f"{stem}: {found} of {planted}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
