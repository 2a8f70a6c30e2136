#!/usr/bin/env python3
"""Makes the package of a visit: a folder with everything that a GPU machine needs, so that the machine only copies,
launches, compares and times (docs/evidence/visit.md).

  package.py DIR [--cases FILE] [--only CASE[,CASE]] [--roofgen PATH] [--portable PATH] [--probe PATH] [--ptx]
  package.py --list DIR       the comparisons of a package with their predicted times, for docs/evidence/predictions.md

A case is compiled, verified on the simulator and modelled here, by `roofgen emit --replay`. The programs that some
steps run on the GPU machine, the portable roofgen and the probe, are built. A second run makes only what is missing.
Exit codes: 0 done, 1 a case could not be made (the others are there), 2 usage."""
import argparse
import datetime
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import files
from calibration import COUNTS
from files import FAILED, OK, Bad

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPTS = ("visit.py", "rows.py", "cuda.py", "cublaslt.py", "timing.py", "torch_peers.py", "files.py", "machine.py",
           "process.py")


def say(text):
    print(f"package: {text}", file=sys.stderr, flush=True)


def words(case):
    """The operator and its flags as words of a command line: true is a flag without a value."""
    out = [case["op"]]
    for flag, value in case["flags"].items():
        out += [f"--{flag}"] if value is True else [f"--{flag}", str(value)]
    return out


def output(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:] or ["it said nothing"]
        raise Bad(f"{' '.join(map(str, command[1:]))}: exit {done.returncode}: {last[0]}")
    return done.stdout


def make_entry(options, case, schedule, folder):
    """Compiles one schedule of a case into the folder. Returns its entry of package.json, and facts of the case."""
    chosen = ["--variant", schedule["variant"], *(["--set", schedule["set"]] if schedule.get("set") else [])]
    command = [options.roofgen, "emit", *words(case), "--replay", "--evals", "1", "--executor", "sim", "--no-profile",
               *chosen, "--device", options.device]
    with tempfile.TemporaryDirectory() as scratch:
        output([*command, "-o", scratch])
        result = files.read_json(f"{scratch}/manifest.json")["pipelines"][0]["result"]
        shutil.copytree(f"{scratch}/replay", folder, dirs_exist_ok=True)
    if not options.ptx:
        for path in folder.glob("*.ptx"):
            path.unlink()
    variant = result["variant"]
    models = [kernel["time_model"] for kernel in variant["kernels"]]
    if "closed form" in models:
        raise Bad(f"{schedule['variant']}: a prediction by the closed form is a rough guide; the model of machine code "
                  "needs nvdisasm: run the program from its build folder, or name one by ROOFGEN_NVDISASM")
    expected = output([options.roofgen, "__replay", folder, "--expected", "2"])
    name = f"expected/{hashlib.sha256(expected.encode()).hexdigest()[:16]}.json"
    files.write(options.folder / name, expected)
    kernels = [kernel["schedule"]["params"] for kernel in variant["kernels"]]
    entry = {"folder": str(folder.relative_to(options.folder)), "expected": name, "predicted_us": variant["time_us"],
             "predicted_by": models,
             "counts": [{count: kernel[count] for count in COUNTS} for kernel in variant["kernels"]],
             "schedule": {"variant": schedule["variant"], "kernels": kernels}, "why": schedule.get("why", "")}
    return entry, {"flops": variant["flops"], "dram_bytes": variant["dram_bytes"],
                   "floor_us": result["floor"]["time_us"],
                   "problem": files.read_json(folder / "replay.json")["problem"]}


def make_case(options, case):
    """A case of package.json. Each entry is kept beside its binaries, so that a second run need not make it again."""
    entries, facts = [], {}
    for number, schedule in enumerate(case["schedules"]):
        folder = options.folder / "cases" / case["name"] / str(number)
        kept, wanted = folder / "entry.json", {"words": words(case), "schedule": schedule, "roofgen": options.digest}
        try:
            made = files.read_json(kept)
            if made["of"] != wanted:
                raise Bad("of another schedule or program")
        except Bad:
            shutil.rmtree(folder, ignore_errors=True)
            say(f"{case['name']}: {schedule['variant']} {schedule.get('set', '')}")
            entry, about = make_entry(options, case, schedule, folder)
            made = {"of": wanted, "entry": entry, "about": about}
            files.write(kept, files.to_json(made))
        facts = facts or made["about"]
        same = [each for each in entries if each["schedule"] == made["entry"]["schedule"]]
        if same:  # the same schedule under another name would be timed twice
            raise Bad(f"{case['name']}: schedules {same[0]['name']} and {number} are the same")
        entries.append({"name": f"roofgen:{number}:{schedule['variant']}", **made["entry"]})
    return {"name": case["name"], "step": case["step"], "use": case.get("use", "report"),
            "peers": case.get("peers", []), **facts, "entries": entries}


def build_portable():
    say("roofgen: bench/portable.sh")
    return output([ROOT / "bench/portable.sh"]).split()[-1]


def build_probe():
    say("probe: nvcc")
    path = ROOT / "build-portable/probe"
    path.parent.mkdir(exist_ok=True)
    output([shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", "-std=c++17", "-O3",
            "-gencode=arch=compute_90a,code=sm_90a", "-cudart", "static",
            "-Xcompiler", "-static-libstdc++,-static-libgcc", "-o", path, ROOT / "lab/probe/probe.cu"])
    return path


def copy_programs(options):
    """The scripts, the timer's helpers, and the programs that some steps need: the names of these, and faults."""
    for name in SCRIPTS:
        shutil.copy(HERE / name, options.folder / name)
    shutil.copy(ROOT / "runtime/cuda/helpers.ptx", options.folder)
    have, faults = [], []
    for name, path, build in (("roofgen", options.portable, build_portable), ("probe", options.probe, build_probe)):
        try:
            shutil.copy(path or build(), options.folder / name)
            have.append(name)
        except (Bad, OSError) as error:
            faults.append(f"{name}: {error}; steps that need it are left out")
    return have, faults


def steps_of(plan, have):
    needs = {step["name"]: [word.removeprefix("{package}/") for word in step.get("command", [])
                            if word.startswith("{package}/")] for step in plan["steps"]}
    return [step for step in plan["steps"] if all(name in have or "." in name for name in needs[step["name"]])]


def make(options):
    plan = files.read_json(options.cases)
    only = options.only.split(",") if options.only else None
    cases = [case for case in plan["cases"] if only is None or case["name"] in only]
    for name in only or []:
        if name not in [case["name"] for case in cases]:
            raise Bad(f"{options.cases} has no case {name}")
    options.folder.mkdir(parents=True, exist_ok=True)
    options.digest = hashlib.sha256(Path(options.roofgen).read_bytes()).hexdigest()[:16]
    made, faults = [], []
    for case in cases:
        try:
            made.append(make_case(options, case))
        except Bad as error:
            faults.append(f"{case['name']}: {error}")
            say(faults[-1])
    have, missing = copy_programs(options)
    faults += missing
    version = output([options.roofgen, "--version"]).strip()
    files.write(options.folder / "package.json", files.to_json({
        "schema": "roofgen.visit-package.1",
        "made": {"roofgen": version, "roofgen_sha256": options.digest, "device": options.device,
                 "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")},
        "steps": steps_of(plan, have), "cases": made}))
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    print(f"{options.folder}: {len(made)} cases, {sum(len(case['entries']) for case in made)} schedules, "
          f"{size / 2**20:.1f} MiB")
    for fault in faults:
        print(f"not made: {fault}")
    return FAILED if faults else OK


def changed(params, first):
    """The parameters that differ from those of the first schedule, as `--set` takes them."""
    return ",".join(f"{name}={str(value).lower()}" for name, value in params.items() if first.get(name) != value)


def wrapped(text, indent=""):
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def alternative(entry, first):
    """What a later schedule of a case changes, and what that should gain."""
    same = entry["schedule"]["variant"] == first["schedule"]["variant"]
    changes = changed(entry["schedule"]["kernels"][0], first["schedule"]["kernels"][0]) if same else ""
    name = f"`{changes}`" if changes else f"`{entry['schedule']['variant']}`"
    gain = f"{entry['predicted_us'] / first['predicted_us'] - 1:+.1%}"
    return f"{name} {gain}" + (f" ({entry['why']})" if entry["why"] else "")


def listing(folder):
    """The comparisons as a page: predicted times, and what each alternative should gain."""
    package = files.read_json(folder / "package.json")
    made = package["made"]
    steps = {}
    for case in package["cases"]:
        steps.setdefault(case["step"], []).append(case)
    lines = ["# Predictions for the next visit", "",
             wrapped("`lab/visit/package.py --list PACKAGE` writes this page: the schedules that a visit of a GPU "
                     "compares (docs/evidence/visit.md). `lab/visit/cases.json` has each problem and schedule."), "",
             wrapped(f"Predicted for {made['device']}, {made['time'][:10]}, by {made['roofgen']} (SHA-256 of the "
                     f"program: {made['roofgen_sha256']}...). Nothing was measured."), "",
             "## First schedules", "", "Predicted time and, in brackets, the roof, in us.", ""]
    for step, cases in steps.items():
        times = [f"{case['name']} {case['entries'][0]['predicted_us']:.1f} ({case['floor_us']:.1f})" for case in cases]
        lines.append(wrapped(f"- **{step}**: {', '.join(times)}", "  "))
    lines += ["", "## Alternatives", "", wrapped(
        "Predicted change of the time against the first schedule of the case: of its parameters, or with another "
        "variant."), ""]
    for case in package["cases"]:
        first, *others = case["entries"]
        if others:
            texts = [alternative(entry, first) for entry in others]
            lines.append(wrapped(f"- {case['name']}, {first['schedule']['variant']}: {'; '.join(texts)}", "  "))
    return "\n".join(lines) + "\n"


def parse(argv):
    parser = argparse.ArgumentParser(prog="package.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="print the comparisons of the package there")
    parser.add_argument("--cases", type=Path, default=HERE / "cases.json")
    parser.add_argument("--only", help="only these cases, separated by commas")
    parser.add_argument("--roofgen", default=str(ROOT / "build/cli/roofgen"), help="makes the package")
    parser.add_argument("--portable", help="a portable roofgen for the package; without it, one is built")
    parser.add_argument("--probe", help="a probe for the package; without it, one is built")
    parser.add_argument("--device", default="h200-sxm")
    parser.add_argument("--ptx", action="store_true", help="keep the PTX, which a simulated driver needs")
    return parser.parse_args(argv)


def main(argv):
    options = parse(argv)
    try:
        if options.list:
            print(listing(options.folder), end="")
            return OK
        if not os.access(options.roofgen, os.X_OK):
            raise Bad(f"no program {options.roofgen}; --roofgen names one")
        options.folder = options.folder.absolute()
        return make(options)
    except (Bad, OSError) as error:
        say(error)
        return getattr(error, "code", FAILED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
