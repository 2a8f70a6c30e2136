#!/usr/bin/env python3
"""Runs the commands of commands.txt and compares their output with the recorded one, or records it.

    recorded.py PROGRAM [--record] [--only NAME[,NAME]] [--folder DIR]

Of JSON a projection is compared (`view`). Members about elapsed time, the store, the machine or the source digest are
ignored. A command that exits with another code than commands.txt says is neither recorded nor compared.
Recorded numbers hold for one version of NVRTC and ptxas; with another version the comparison is skipped (exit 77).
"""
import argparse
import difflib
import hashlib
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
                 (re.compile(r"NVRTC \S+ at \S+"), "NVRTC"),
                 (re.compile(r"^roofgen: (preparing|[^:\n]+: \d+ of \d+).*\r?\n", re.M), "")]
# The sources of a device's cells are texts of a file of the tree: their digest is compared.
SOURCES = re.compile(r"^(cell +source\n)((?:.+\n)+)", re.M)
# Members of a search that follow from others, from the schedule or from the device, or that the schema test covers.
FOLLOWING = {
    "arithmetic_intensity", "available", "branches_by_ptx", "causes", "compulsory_bytes", "ctas", "ctas_per_sm", "cut",
    "description", "error_band", "exps", "flop_convention", "flops", "fresh", "fused", "gain_error_us",
    "intermediate_in_l2", "intermediates", "interrupted", "launch_in_tiles", "narrow_load_lanes", "non_mma_per_mma",
    "occupancy_limited_by", "origins", "schema", "slower_error_us", "slower_us", "smem_bytes", "smem_excess",
    "smem_wavefronts", "strategy", "threads", "time_doubts", "unfused", "warnings", "waves"}
COLUMNS = 120
LONG = 32  # characters of a cell


def strip(value):
    """The value without volatile members."""
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [strip(v) for v in value]
    if isinstance(value, str):
        return plain(value)
    return value


def digest_of_lines(block):
    lines, digest = block[2].count("\n"), hashlib.sha256(block[2].encode()).hexdigest()[:12]
    return f"{block[1]}{lines} lines, {digest}\n"


def plain(text):
    for pattern, replacement in VOLATILE_TEXT:
        text = pattern.sub(replacement, text)
    return text


def projected(value, name=""):
    """What a person can review: of a search its schedules, counts, verdicts and times; of a device the digest of its
    cells, which are files of their own."""
    if isinstance(value, list):
        return [projected(v, name) for v in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"text", "params"}:
        return value["text"]
    if "cells" in value and "ceilings" in value:
        digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
        return f"{value['name']}, {value['arch']}, {len(value['cells'])} cells, {digest}"
    follows = FOLLOWING | ({"verification"} if name == "kernels" else set())
    return {k: projected(v, k) for k, v in value.items() if k not in follows and v not in ("", [])}


def one_line(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {one_line(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(one_line, value)) + "]"
    return value if isinstance(value, str) else f"{value:.4g}" if isinstance(value, float) else json.dumps(value)


def is_table(value):
    return isinstance(value, list) and bool(value) and all(isinstance(member, dict) for member in value)


def flat(record):
    """A record with the members of its members as its own, and apart from them the tables in it."""
    cells, tables = {}, {}

    def add(group, name, prefix, member):
        taken = prefix and (name in record or name in cells or name in tables)
        group[f"{prefix}.{name}" if taken else name] = member
    for name, member in record.items():
        if isinstance(member, dict) and member:
            for group, inner in zip((cells, tables), flat(member)):
                for inner_name, value in inner.items():
                    add(group, inner_name, name, value)
        else:
            add(tables if is_table(member) else cells, name, "", member)
    return cells, tables


def wrapped(words, indent):
    """As many words on a line as fit."""
    lines = []
    for word in words:
        if lines and len(lines[-1]) + len(word) + 2 <= COLUMNS:
            lines[-1] += f", {word}"
        else:
            lines.append(indent + word)
    return lines


def table(title, records, indent):
    """What all records say once, the rest in columns, and long texts below their row. A table in the records becomes
    one below with a column that says of which record a row is."""
    rows, inner = zip(*map(flat, records))
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = {name: [one_line(row[name]) or "''" if name in row else "-" for row in rows] for name in names}
    same = [name for name in names if len(set(texts[name])) == 1]
    long = [name for name in names if name not in same and max(map(len, texts[name])) > LONG]
    columns = [name for name in names if name not in same + long]
    lines = [f"{indent}{title}: {len(records)}"]
    lines += wrapped([f"{name}: {texts[name][0]}" for name in same], f"{indent}  all ")
    widths = [max(map(len, [name, *texts[name]])) for name in columns]

    def row_of(cells):
        return f"{indent}  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
    if len(columns) == 1 and not long:
        lines += wrapped(texts[columns[0]], f"{indent}  {columns[0]}: ")
    elif len(records) > 1:
        lines.append(row_of(columns))
        for i in range(len(records)):
            lines.append(row_of([texts[name][i] for name in columns]))
            lines += [f"{indent}    {name}: {texts[name][i]}" for name in long]
    for name in dict.fromkeys(name for tables in inner for name in tables):
        of = [{"of": one_line(next(iter(row.values()), i))} for i, row in enumerate(rows)]
        lines += table(f"{title}.{name}", [of[i] | r for i, tables in enumerate(inner) for r in tables.get(name, [])],
                       indent)
    return lines


def lines_of(record, indent=""):
    """As many members on a line as fit, and numbers to four digits."""
    lines, words = [], []
    for name, member in record.items():
        text = f"{name}: {one_line(member)}"
        if len(indent) + len(text) <= COLUMNS or not isinstance(member, (dict, list)):
            words.append(text)
            continue
        lines += wrapped(words, indent)
        words = []
        if isinstance(member, dict):
            lines += [f"{indent}{name}:", *lines_of(member, indent + "  ")]
        elif is_table(member):
            lines += table(name, member, indent)
        else:
            lines += [f"{indent}{name}:", *(f"{indent}  - {one_line(part)}" for part in member)]
    return lines + wrapped(words, indent)


def view(document):
    kind = document.get("schema", "")
    searched = kind.startswith(("roofgen.tune", "roofgen.whatif", "roofgen.devices"))
    return "\n".join(lines_of(projected(document) if searched else document)) + "\n"


def commands():
    """Names, those of the commands in whose home they run, arguments, and exit codes."""
    for line in (HERE / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            head, arguments = line.strip().split(": ", 1)
            name, _, code = head.partition(" exits ")
            home = home if line.startswith(" ") else name
            yield name, home, arguments.replace("KERNELS", str(KERNELS)).replace("RECORDED", str(HERE)), int(code or 0)


def environment_of(home):
    """Nothing of the caller's but nvdisasm and the file of costs."""
    kept = {k: v for k, v in os.environ.items() if k in ("ROOFGEN_NVDISASM", "ROOFGEN_COSTS")}
    return {"PATH": "/usr/bin:/bin", "HOME": home, "COLUMNS": "100", "NO_COLOR": "1", **kept}


def run(program, arguments, home):
    done = subprocess.run([program, *shlex.split(arguments)], env=environment_of(home), cwd=home, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1800)
    out = done.stdout
    if "--json" in arguments and out.startswith("{"):
        out = view(strip(json.loads(out)))
    else:
        out = SOURCES.sub(digest_of_lines, plain(out)) + ("" if done.returncode == 0 else plain(done.stderr))
    return done.returncode, out


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
        for name, in_home_of, arguments, code in commands():
            if options.only and not options.only & {name, in_home_of}:
                continue
            if in_home_of not in homes:
                homes[in_home_of] = pathlib.Path(home, in_home_of)
                homes[in_home_of].mkdir()
            exited, got = run(options.program, arguments, str(homes[in_home_of]))
            if exited != code:
                diff = f"roofgen {arguments}\nexits with {exited}, not with {code}:\n{got}"
            elif options.record:
                (options.folder / f"{name}.txt").write_text(got)
                diff = ""
            else:
                diff = difference(name, arguments, got, options.folder)
            if diff:
                wrong += 1
                print(diff)
                continue
            print(f"{name}: {'recorded' if options.record else 'the same'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
