#!/usr/bin/env bash
# What a newcomer waits for: build, first answer, the same question again; with --families the first answer of every
# family, with --test the tests. All from a fresh clone of HEAD with empty homes.
#
#   bench/first_contact.sh [--families] [--test] [--keep]
#
# Prints the figures of docs/evidence/first-contact.md. Exit 1: a figure is above its limit. --keep leaves the clone and
# names it. ROOFGEN_PROGRAM=PATH: this program answers, and nothing is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

testing='' keep='' families=''
for argument in "$@"; do
  case $argument in
    --families) families=1 ;;
    --test) testing=1 ;;
    --keep) keep=1 ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
done

place=$(mktemp -d)
if [[ $keep ]]; then echo "clone: $place/roofgen" >&2; else trap 'rm -rf "$place"' EXIT; fi
git clone --quiet . "$place/roofgen"
cd "$place/roofgen"
export HOME=$place/home
unset XDG_CACHE_HOME XDG_DATA_HOME ROOFGEN_CACHE_DIR ROOFGEN_DATA_HOME
mkdir "$HOME"

failed=0
printf '%-44s %8s %8s %8s %8s\n' step 'wall s' 'CPU s' 'peak MB' 'limit s'

# step NAME LIMIT COMMAND...: runs the command. CPU seconds include all processes, the peak is the largest process's.
step() {
  local name=$1 limit=$2 figures wall
  shift 2
  figures=$(python3 - "$place/log" "$@" <<'PYTHON'
import os, resource, subprocess, sys, time
begin = time.monotonic()
with open(sys.argv[1], "wb") as log:
    status = subprocess.call(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.monotonic() - begin:.2f} {used.ru_utime + used.ru_stime:.2f} {used.ru_maxrss / 1024:.0f}")
sys.exit(status)
PYTHON
  ) || { tail -n 20 "$place/log" >&2; echo "$name failed" >&2; exit 1; }
  # shellcheck disable=SC2086
  printf '%-44s %8s %8s %8s %8s\n' "$name" $figures "$limit"
  wall=${figures%% *}
  if awk "BEGIN { exit !($wall > $limit) }"; then failed=1; fi
}

headline=(tune attention --L 2048 --d 64)
program=${ROOFGEN_PROGRAM-./roofgen}
if [[ ! -v ROOFGEN_PROGRAM ]]; then step 'build: ./roofgen --version' 150 "$program" --version; fi
step "first answer: ./roofgen ${headline[*]}" 25 "$program" "${headline[@]}"
step 'the same again' 0.15 "$program" "${headline[@]}"

# first LIMIT NAME ARGUMENTS...: an answer with empty stores.
first() {
  local limit=$1 name=$2
  shift 2
  export HOME=$place/home-$name
  mkdir "$HOME"
  step "$name" "$limit" "$program" "$@"
}
if [[ $families ]]; then
  first 60 decode tune attention --L 1 --kv-len 32768 --heads 64 --kv-heads 8 --d 128 --batch 1 --page 64
  first 60 gemm tune gemm --M 4096 --N 4096 --K 4096 --epilogue 'gelu(acc + bias[n]) * scale + residual[m,n]'
  first 60 grouped_gemm tune grouped_gemm --M 4096 --N 4096 --K 4096 --experts 8
  first 60 rmsnorm tune rmsnorm --rows 4096 --cols 4096
  first 60 layernorm tune layernorm --rows 4096 --cols 4096
  first 60 softmax tune softmax --rows 4096 --cols 4096
  first 60 map tune map --rows 4096 --cols 4096 --expr 'gelu(x) + residual[m,n]'
  first 60 whatif whatif --chain 'gemm > bias > gelu > residual > rmsnorm' --M 8192 --N 4096 --K 4096
  first 60 whatif-attention whatif attention --L 2048 --d 64
  export HOME=$place/home
fi
if [[ $testing ]]; then
  git clone --quiet . "$place/tests"
  cd "$place/tests"
  step './roofgen test, from nothing' 600 ./roofgen test
fi
exit $failed
