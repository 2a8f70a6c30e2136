#!/usr/bin/env python3
"""Stands for `roofgen profile` in tests: a time from the launch, and a line in $FAKE_LOG for each call. `generate`
prints a source that names its arguments.

$FAKE_FAIL: fail for launches whose arguments contain this. $FAKE_ILLEGAL: `generate` has no such schedule.
$FAKE_VERSION: the model's version. $FAKE_CONFIDENCE: of the profile."""
import json
import os
import sys

arguments = sys.argv[1:]
with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
    log.write(json.dumps({"arguments": arguments, "nvrtc": os.environ.get("ROOFGEN_NVRTC", "")}) + "\n")
if os.environ.get("FAKE_FAIL", "\0") in " ".join(arguments):
    sys.exit("fake: no time for this one\nand more")

if arguments[0] == "generate":
    if os.environ.get("FAKE_ILLEGAL", "\0") in " ".join(arguments):
        sys.exit("roofgen: error: fused is illegal: 2 <= 1")
    with open(os.path.join(arguments[arguments.index("--data-dir") + 1],
                           "search_spaces/stages/attention_forward.json"), encoding="utf-8") as file:
        assert "accumulators + fragments <= 224" in file.read()
    print(f"// {' '.join(arguments[:2] + arguments[arguments.index('--set'):])}")
    print("int row = gridDim.x / kSection - 1 - blockIdx.x / kSection;" if arguments[1] == "attention" else "")
    sys.exit()


def option(name):
    return arguments[arguments.index(name) + 1]


assert arguments[0] == "profile" and "--json" in arguments and option("--smem").isdigit()
with open(option("--args"), encoding="utf-8") as file:
    assert json.load(file)
threads = 1
for size in (*option("--grid").split(","), *option("--block").split(",")):
    threads *= int(size)
time = 11 + threads % 1009
print(json.dumps({"kernel": option("--kernel"), "registers": 40, "static_smem_bytes": 2944,
                  "confidence": os.environ.get("FAKE_CONFIDENCE", "high"), "units": {"issue": 0.4, "L2": 0.5},
                  "model_version": os.environ.get("FAKE_VERSION", "fake-1"),
                  "models": {"roofline": {"time_us": time / 2}, "event": {"time_us": time}},
                  "counts": {"warp_instructions": 1010, "dram_read_bytes": 3200}}))
