#!/usr/bin/env python3
"""Checks that a program runs on other machines of its architecture, as docs/visit.md promises.

    check_portable.py PROGRAM           reads it with readelf
    check_portable.py --text FILE       reads what `readelf -dVW` printed

Exit codes: 0 it does, 1 it does not (one line per reason), 2 usage, 3 no readelf.
"""
import re
import subprocess
import sys

MAX_GLIBC = (2, 35)
# What every glibc system has: the C library in its historical parts, and the dynamic loader.
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux[-a-z0-9_]*\.so\.\d+")


def faults(text):
    """One line for each reason why the program that readelf describes is not portable."""
    found = []
    needed = re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", text)
    versions = set(re.findall(r"\bName: (GLIBC_[A-Za-z0-9_.]+)", text))
    if not needed or not versions:
        return ["this is not what readelf says of a dynamically linked program"]
    for name in needed:
        if not ALLOWED.fullmatch(name):
            found.append(f"needs the shared library {name}")
    for name in re.findall(r"\(R(?:UN)?PATH\)\s+Library r(?:un)?path: \[([^\]]+)\]", text):
        found.append(f"looks for libraries in {name}")
    for version in sorted(versions):
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if number is None:
            found.append(f"needs {version}, which no release of glibc promises")
        elif (int(number[1]), int(number[2])) > MAX_GLIBC:
            found.append(f"needs {version}; at most GLIBC_{MAX_GLIBC[0]}.{MAX_GLIBC[1]} is allowed")
    for version in sorted(set(re.findall(r"\bName: ((?:GLIBCXX|CXXABI|GCC)_[0-9.]+)", text))):
        found.append(f"needs {version} of a shared C++ runtime")
    return found


def culprits(program):
    """The symbols behind versions that are too new, where nm can tell."""
    try:
        text = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    names = []
    for name, major, minor in re.findall(r"(\S+)@GLIBC_(\d+)\.(\d+)", text):
        if (int(major), int(minor)) > MAX_GLIBC:
            names.append(name)
    return names


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--text":
        with open(arguments[1], encoding="utf-8") as file:
            name, text, symbols = arguments[1], file.read(), []
    elif len(arguments) == 1 and not arguments[0].startswith("-"):
        name = arguments[0]
        try:
            done = subprocess.run(["readelf", "-dVW", name], capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
        except OSError as error:
            print(f"check_portable: readelf: {error.strerror}", file=sys.stderr)
            return 3
        text, symbols = done.stdout, culprits(name)
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    found = faults(text)
    for line in found:
        print(f"{name}: {line}", file=sys.stderr)
    if symbols:
        print(f"{name}: too new: {' '.join(symbols)}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
