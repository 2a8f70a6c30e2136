#!/usr/bin/env bash
# Two processes of the example capture into one file, which is tuned: capture_test.sh EXAMPLE ROOFGEN FOLDER
set -euo pipefail
cd "$3"
fail() { echo "capture_test: $*"; exit 1; }
expect() { grep -qF -- "$1" "$2" || { cat "$2"; fail "$2 lacks: $1"; }; }
"$2" doctor >/dev/null || exit 77  # no NVRTC
"$1" 64 >first.txt 2>&1 || { cat first.txt; fail "the example"; }
expect "64 rows: largest relative error" first.txt

export ROOFGEN_CAPTURE=$PWD/launches.jsonl
"$1" 64,100,64,64 >a.txt 2>&1 & one=$!
"$1" 64,16 >b.txt 2>&1 & other=$!
wait $one || { cat a.txt; fail "the first process"; }
wait $other || { cat b.txt; fail "the second process"; }
# A line for the first launch of a shape in a process, and one for those after it.
[[ $(grep -c '"rows":64,.*"count":1}$' launches.jsonl) == 2 ]] || { cat launches.jsonl; fail "first launches"; }
[[ $(grep -c '"rows":64,.*"count":2}$' launches.jsonl) == 1 ]] || { cat launches.jsonl; fail "later launches"; }
[[ $(wc -l <launches.jsonl) == 5 ]] || { cat launches.jsonl; fail "5 lines were expected"; }

"$2" tune --captured launches.jsonl --executor sim --evals 1 --json >tuned.json || fail "tune --captured"
problems=$(grep -o '"flags": "[^"]*--rows [0-9]*' tuned.json | sed 's/.* //' | tr '\n' ' ')
[[ $problems == "64 100 16 " || $problems == "64 16 100 " ]] || fail "the most frequent shape first: $problems"
echo '{"op": "rmsnorm", "rows": }' >>launches.jsonl
"$2" tune --captured launches.jsonl >tuned.txt 2>&1 && fail "a damaged file"
expect "launches.jsonl:6:" tuned.txt
: >empty.jsonl
"$2" tune --captured empty.jsonl >tuned.txt 2>&1 && fail "an empty file"
expect "empty.jsonl: error: has no launches" tuned.txt
"$2" tune --captured launches.jsonl --suite x.json >tuned.txt 2>&1 && fail "both"
expect "--suite excludes --captured" tuned.txt
"$2" tune rmsnorm --rows 64 --cols 256 --shard 1/2 >tuned.txt 2>&1 && fail "--shard alone"
expect "--shard needs --suite or --captured" tuned.txt
# A file that cannot be written: the launches go on.
ROOFGEN_CAPTURE=/nowhere/launches "$1" 64 >c.txt 2>&1 || { cat c.txt; fail "without a place to capture"; }
expect "warning: ROOFGEN_CAPTURE=/nowhere/launches" c.txt
