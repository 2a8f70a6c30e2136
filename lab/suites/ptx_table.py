#!/usr/bin/env python3
"""Asks the simulator's decoder about each instruction of TVM's table of PTX, in an installed apache-tvm.

  ptx_table.py --tvm SITE_PACKAGES/tvm --forms PROGRAM [--unknown] [--refused]

PROGRAM is the target `ptx_forms` of the lab. Every legal combination of modifiers of an entry is one form, for the
architecture that the table names, or else sm_90a. Prints how many forms and entries are executed, ordered only,
without effect, refused by name, unknown, or an error; `--unknown` and `--refused` print these by message."""
import argparse
import collections
import importlib
import re
import subprocess
import sys
import types
from pathlib import Path

REGISTERS = {"h": "h", "r": "r", "l": "l", "f": "f", "d": "d", "q": "q"}  # by constraint


def load(tvm):
    """The table and its renderer, which need nothing else of TVM."""
    package = types.ModuleType("tvm_ptx")
    package.__path__ = [str(tvm / "backend/cuda/ptx")]
    sys.modules["tvm_ptx"] = package
    return importlib.import_module("tvm_ptx.table"), importlib.import_module("tvm_ptx.render")


def ptx_of(helper):
    """The PTX of a helper: its inline assembly with registers of the constraints' classes."""
    found = re.search(r'asm(?: volatile)?\("((?:[^"\\]|\\.)*)"\s*:(.*?)\);\n', helper, re.S)
    if not found:
        return None
    constraints = re.findall(r'"[=+]?([hrlfdqn])"\s*\(', found.group(2))
    text = found.group(1).replace("\\n", " ").replace("\\t", " ").replace("%%", "%")
    return re.sub(r"%(\d+)", lambda m: f"%{REGISTERS[constraints[int(m.group(1))]]}{int(m.group(1)) + 1}", text)


def forms_of(table, render):
    """(entry, target, PTX) of each form; entries whose helper has no assembly are left out."""
    for name in sorted(table.TABLE):
        entry = table.TABLE[name]
        immediates = table.imm_combos(entry)[0]
        for tokens in table.variants(entry):
            text = ptx_of(render.render_variant(entry, tokens, imms=immediates)[2])
            if text:
                yield name, entry.cert_arch or "sm_90a", text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tvm", type=Path, required=True)
    parser.add_argument("--forms", required=True)
    parser.add_argument("--unknown", action="store_true")
    parser.add_argument("--refused", action="store_true")
    options = parser.parse_args()
    table, render = load(options.tvm)
    forms = list(forms_of(table, render))
    lines = "".join(f"{target}\t{text}\n" for _, target, text in forms)
    done = subprocess.run([options.forms], input=lines, capture_output=True, text=True, check=True)
    answers = [line.partition("\t") for line in done.stdout.splitlines()]
    assert len(answers) == len(forms)
    by_entry, messages = collections.defaultdict(set), collections.defaultdict(list)
    for (name, target, text), (answer, _, why) in zip(forms, answers):
        by_entry[name].add(answer)
        if answer in ("error", *(["unknown"] if options.unknown else []), *(["refused"] if options.refused else [])):
            messages[answer, name].append(f"{text}  ({target}): {why}")
    for (answer, name), texts in sorted(messages.items()):
        print(f"{answer} {name}: {len(texts)}, as {texts[0]}")
    kinds = collections.Counter(answer for answer, _, _ in answers)
    families = {entry.family for entry in table.TABLE.values()}
    print(f"{len(table.TABLE)} entries of {len(families)} families, {len(forms)} forms")
    for answer, count in kinds.most_common():
        whole = sum(kinds_of == {answer} for kinds_of in by_entry.values())
        print(f"{answer}: {count} forms; {whole} entries in all their forms")
    return 1 if kinds["unknown"] or kinds["error"] else 0


if __name__ == "__main__":
    sys.exit(main())
