#!/usr/bin/env python3
"""Runs the commands of commands.txt and compares their output with the recorded one, or records it.

    recorded.py PROGRAM [--record] [--only NAME[,NAME]] [--folder DIR]

JSON is compared member by member; members about elapsed time, the store, the machine or the source digest are ignored.
Recorded numbers hold for one version of NVRTC and ptxas; with another version the comparison is skipped (exit 77).
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE.parent / "check" / "kernels"
VOLATILE = {"elapsed_s", "compile_s", "check_s", "seconds_spent", "evaluated_now", "compiled_now", "simulated_now",
            "remembered", "cached", "compiler", "version", "created", "started",
            "digest"}  # of the source: a comment changes it
VOLATILE_TEXT = [(re.compile(r"\d+(\.\d+)? s\b"), "N s"), (re.compile(re.escape(str(HERE.parents[1]))), "TREE"),
                 (re.compile(r"NVRTC \S+ at \S+"), "NVRTC"), (re.compile(r"^roofgen: .*\r?", re.M), "")]


def strip(value):
    """The value without volatile members."""
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [strip(v) for v in value]
    if isinstance(value, str):
        return plain(value)
    return value


def plain(text):
    for pattern, replacement in VOLATILE_TEXT:
        text = pattern.sub(replacement, text)
    return text


def commands():
    """Names, those of the commands in whose home they run, and arguments."""
    for line in (HERE / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, arguments = line.strip().split(": ", 1)
            home = home if line.startswith(" ") else name
            yield name, home, arguments.replace("KERNELS", str(KERNELS)).replace("RECORDED", str(HERE))


def environment_of(home):
    """Nothing of the caller's but nvdisasm and the file of costs."""
    kept = {k: v for k, v in os.environ.items() if k in ("ROOFGEN_NVDISASM", "ROOFGEN_COSTS")}
    return {"PATH": "/usr/bin:/bin", "HOME": home, "COLUMNS": "100", "NO_COLOR": "1", **kept}


def run(program, arguments, home):
    done = subprocess.run([program, *shlex.split(arguments)], env=environment_of(home), cwd=home, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1800)
    out = done.stdout
    if "--json" in arguments and out.startswith("{"):
        out = json.dumps(strip(json.loads(out)), indent=1, sort_keys=True) + "\n"
    else:
        out = plain(out) + ("" if done.returncode == 0 else plain(done.stderr))
    return f"exit {done.returncode}\n{out}"


def difference(name, arguments, got, folder=HERE / "expected"):
    """What differs from the recorded output; empty: nothing."""
    expected = (folder / f"{name}.txt").read_text()
    if got == expected:
        return ""
    diff = difflib.unified_diff(expected.splitlines(), got.splitlines(), f"recorded {name}", f"roofgen {arguments}",
                                lineterm="", n=1)
    return "\n".join(list(diff)[:40]) or f"recorded {name}: other ends of lines"


def doctor(program, home):
    return subprocess.run([program, "doctor"], env=environment_of(home), text=True,
                          stdout=subprocess.PIPE).stdout


def nvrtc_version(program, home):
    found = re.search(r"NVRTC +(\d+\.\d+)", doctor(program, home))
    return found.group(1) if found else "none"


def has_nvdisasm(program, home):
    return re.search(r"^nvdisasm +/", doctor(program, home), re.M) is not None


def why_not_compared(program, home, folder=HERE / "expected"):
    """Why this machine gives other output than the recorded one; empty: it does not."""
    if not has_nvdisasm(program, home):
        return "there is no nvdisasm, and recorded times come from machine code: skipped"
    recorded_with, version = (folder / "nvrtc-version").read_text().strip(), nvrtc_version(program, home)
    return "" if recorded_with == version else f"recorded with NVRTC {recorded_with}, found {version}: skipped"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", type=lambda s: set(s.split(",")))
    parser.add_argument("--folder", type=pathlib.Path, default=HERE / "expected")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as home:
        if options.record:
            options.folder.mkdir(parents=True, exist_ok=True)
            (options.folder / "nvrtc-version").write_text(nvrtc_version(options.program, home) + "\n")
        elif reason := why_not_compared(options.program, home, options.folder):
            print(reason)
            return 77
        homes = {}  # a command must not find the kernels of another one
        for name, in_home_of, arguments in commands():
            if options.only and not options.only & {name, in_home_of}:
                continue
            if in_home_of not in homes:
                homes[in_home_of] = pathlib.Path(home, in_home_of)
                homes[in_home_of].mkdir()
            got = run(options.program, arguments, str(homes[in_home_of]))
            if options.record:
                (options.folder / f"{name}.txt").write_text(got)
            elif diff := difference(name, arguments, got, options.folder):
                wrong += 1
                print(diff)
                continue
            print(f"{name}: {'recorded' if options.record else 'the same'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
