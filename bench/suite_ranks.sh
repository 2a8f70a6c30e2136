#!/usr/bin/env bash
# Efficiency of a suite by MPI on this machine: 24 problems with empty caches by 1, 2 and 4 ranks of one thread each.
#
#   bench/suite_ranks.sh PROGRAM [RANKS...]
#
# Prints for each number of ranks: wall time, efficiency against one rank, evaluations that ran, rows in the store of
# rank 0, and whether all results are those of one rank.
set -euo pipefail
program=$(readlink -f "$1")
shift
ranks=("${@:-}")
[[ -n ${ranks[0]} ]] || ranks=(1 2 4)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

python3 - "$folder/suite.json" <<'PYTHON'
import json, sys
problems = []
for i in range(8):
    problems.append({"op": "softmax", "rows": 64, "cols": 256 + 64 * i})
    problems.append({"op": "rmsnorm", "rows": 64, "cols": 256 + 64 * i})
    problems.append({"op": "gemm", "M": 64 + 64 * i, "N": 128, "K": 64, "variant": "fused"})
json.dump({"schema": "roofgen.suite.1", "common": {"evals": 6, "executor": "sim", "jobs": 1}, "problems": problems},
          open(sys.argv[1], "w"), indent=1)
PYTHON

printf '%5s %10s %12s %12s %6s %s\n' ranks 'wall s' efficiency evaluations rows results
for n in "${ranks[@]}"; do
  home=$folder/$n
  mkdir "$home"
  launch=()
  [[ $n == 1 ]] || launch=(mpirun --oversubscribe --bind-to none -n "$n")
  begun=$(date +%s.%N)
  HOME=$home ROOFGEN_CACHE_DIR=$home/cache ROOFGEN_DATA_HOME=$home/data "${launch[@]}" "$program" tune \
    --suite "$folder/suite.json" --json >"$home/results.json"
  wall=$(python3 -c "print($(date +%s.%N) - $begun)")
  [[ -n ${first-} ]] || first=$wall
  python3 - "$home" "$folder/${ranks[0]}" "$n" "$wall" "$first" "${ranks[0]}" <<'PYTHON'
import json, sqlite3, sys
home, first_home, n, wall, first, least = *sys.argv[1:3], *map(float, sys.argv[3:])
results = json.load(open(home + "/results.json"))["problems"]
ran = sum(p["result"]["fresh"]["simulated"] for p in results)
rows = sqlite3.connect(home + "/data/evaluations.sqlite").execute("select count(*) from evaluation").fetchone()[0]
def of(folder):  # without `fresh`: ranks that need one kernel at a time compile it in either of them
    return [{**p["result"], "fresh": None} for p in json.load(open(folder + "/results.json"))["problems"]]
same = of(home) == of(first_home)
print(f"{n:5.0f} {wall:10.1f} {first * least / (wall * n):12.2f} {ran:12} {rows:6} {'equal' if same else 'DIFFERENT'}")
PYTHON
done
