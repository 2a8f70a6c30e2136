#!/usr/bin/env bash
# A project fetches roofgen: fetch_test.sh SOURCE compile|run. `compile` compiles the files of the project alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "fetch_test: $*"; exit 1; }
logged() { "$@" >"$folder/log" 2>&1 || { tail -50 "$folder/log"; fail "$*"; }; }
[[ -n ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] || ! command -v ccache >/dev/null || export CMAKE_CXX_COMPILER_LAUNCHER=ccache
logged cmake -G Ninja -S "$(dirname "${BASH_SOURCE[0]}")/consumer" -B "$folder/build" -DFETCH=ON \
  -DFETCHCONTENT_SOURCE_DIR_ROOFGEN="$1"
if [[ $2 == compile ]]; then
  # The last command of an object is its own; those before it are of roofgen.
  cd "$folder/build"
  for object in consumer_c.dir/consumer.c.o consumer_cpp.dir/consumer.cpp.o; do
    logged bash -c "$(ninja -t commands "CMakeFiles/$object" | tail -1)"
    [[ -s CMakeFiles/$object ]] || fail "$object"
  done
  exit 0
fi
logged cmake --build "$folder/build" --target consumer_c consumer_cpp
for consumer in consumer_c consumer_cpp; do
  [[ $("$folder/build/$consumer") == *__global__* ]] || fail "$consumer"
done
