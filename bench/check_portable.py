#!/usr/bin/env python3
"""Checks that a program runs on other machines of its architecture, as docs/evidence/visit.md promises.

    check_portable.py PROGRAM           reads it with readelf
    check_portable.py --text FILE       reads the output of `readelf -dVW`

Exit codes: 0 portable, 1 not portable (one line per reason), 2 usage, 3 no readelf.
"""
import re
import subprocess
import sys

MAX_GLIBC = (2, 35)
# Every glibc system has these: the C library in its historical parts, and the dynamic loader.
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux[-a-z0-9_]*\.so\.\d+")


def faults(text):
    """The reasons why the program described by readelf is not portable, one line each."""
    needed = re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", text)
    versions = sorted(set(re.findall(r"\bName: (GLIBC_[A-Za-z0-9_.]+)", text)))
    if not needed or not versions:
        return ["not the output of readelf for a dynamically linked program"]
    found = [f"needs the shared library {name}" for name in needed if not ALLOWED.fullmatch(name)]
    for folder in re.findall(r"\(R(?:UN)?PATH\)\s+Library r(?:un)?path: \[([^\]]+)\]", text):
        found.append(f"looks for libraries in {folder}")
    for version in versions:
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if number is None:
            found.append(f"needs {version}, which no release of glibc promises")
        elif (int(number[1]), int(number[2])) > MAX_GLIBC:
            found.append(f"needs {version}; at most GLIBC_{MAX_GLIBC[0]}.{MAX_GLIBC[1]} is allowed")
    for version in sorted(set(re.findall(r"\bName: ((?:GLIBCXX|CXXABI|GCC)_[0-9.]+)", text))):
        found.append(f"needs {version} of a shared C++ runtime")
    return found


def new_symbols(program):
    """The symbols of versions that are too new."""
    done = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True)
    symbols = re.findall(r"(\S+)@GLIBC_(\d+)\.(\d+)", done.stdout)
    return [name for name, major, minor in symbols if (int(major), int(minor)) > MAX_GLIBC]


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--text":
        with open(arguments[1], encoding="utf-8") as file:
            name, found = arguments[1], faults(file.read())
    elif len(arguments) == 1 and not arguments[0].startswith("-"):
        name = arguments[0]
        try:
            done = subprocess.run(["readelf", "-dVW", name], capture_output=True, text=True,
                                  env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
            symbols = new_symbols(name)  # nm comes with readelf
        except OSError as error:
            print(f"check_portable: {error.filename}: {error.strerror}", file=sys.stderr)
            return 3
        found = faults(done.stdout) + ([f"too new: {' '.join(symbols)}"] if symbols else [])
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    for line in found:
        print(f"{name}: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
