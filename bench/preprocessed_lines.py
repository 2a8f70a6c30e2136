#!/usr/bin/env python3
"""Prints how many lines the compiler reads for the program: preprocessed_lines.py [BUILD_FOLDER] [--most N].

Counts what the preprocessor leaves of each object of the program, without precompiled headers: a measure of the time of
a build that is the same on each run. Needs compile_commands.json, and generated sources.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess


class Entry:
    def __init__(self, entry):
        self.directory = entry["directory"]
        self.command = shlex.split(entry["command"])
        self.output = self.command[self.command.index("-o") + 1]


def preprocessed_lines(entry):
    command = list(entry.command)
    if "-include" in command:
        at = command.index("-include")
        del command[at:at + 2]
    at = command.index("-o")
    command[at:at + 2] = ["-E", "-P", "-w"]
    text = subprocess.run(command, cwd=entry.directory, check=True, stdout=subprocess.PIPE).stdout
    return text.count(b"\n"), entry.output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
    parser.add_argument("--most", default=0, type=int, help="objects to list [0]")
    options = parser.parse_args()
    entries = map(Entry, json.loads((options.build / "compile_commands.json").read_text()))
    outside = ("tests/", "bench/", "lab/")
    entries = [e for e in entries if not e.output.startswith(outside) and "cmake_pch" not in e.output]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = sorted(pool.map(preprocessed_lines, entries), reverse=True)
    for count, output in lines[:options.most]:
        print(f"{count:9}  {output}")
    print(f"{sum(count for count, _ in lines):9}  {len(lines)} objects")


if __name__ == "__main__":
    main()
