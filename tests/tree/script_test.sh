#!/usr/bin/env bash
# ./roofgen test in a terminal, with tests of its own: the exit code and the count follow from what ran.
set -euo pipefail

root=$1
command -v script >/dev/null || { echo "skipped: script, which gives a terminal, was not found"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/build" "$work/bin"
cp "$root/roofgen" "$work/tree/"
ln -s "$root/tests" "$work/tree/tests"
touch "$work/tree/build/.configured"
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$work/tree
ROOFGEN_TESTS:BOOL=ON" >"$work/tree/build/CMakeCache.txt"
# The build does nothing.
printf '#!/bin/sh\n[ "$1" = --build ] && exit 0\nexec "%s" "$@"\n' "$(command -v cmake)" >"$work/bin/cmake"
chmod +x "$work/bin/cmake"

# expect EXIT WORDS TESTS: of a run of these tests
expect() {
  printf '%s\n' "$3" >"$work/tree/build/CTestTestfile.cmake"
  local code=0
  PATH=$work/bin:$PATH ROOFGEN_NO_INSTALL=1 ROOFGEN_NVRTC=there ROOFGEN_NVDISASM=there \
    script -qec "'$work/tree/roofgen' test -R ." "$work/said" >/dev/null </dev/null || code=$?
  if [[ $code == 3 ]]; then echo "skipped: packages of the tests are missing"; exit 77; fi
  if [[ $code != "$1" ]] || ! grep -q "$2" "$work/said"; then
    echo "exit $code and this, where exit $1 and \"$2\" were expected:"
    cat "$work/said"
    exit 1
  fi
}

skipped='add_test(c sh -c "exit 77")
set_tests_properties(c PROPERTIES SKIP_RETURN_CODE 77)'
expect 0 'tests: 2 ran, 0 failed, 0 skipped' $'add_test(a true)\nadd_test(b true)'
expect 0 'tests: 1 ran, 0 failed, 1 skipped' $'add_test(a true)\n'"$skipped"
expect 1 'tests: 2 ran, 1 failed, 0 skipped' $'add_test(a true)\nadd_test(b false)'
expect 1 'tests: 0 ran, 0 failed, 1 skipped' "$skipped"
of_lab='add_test(d false)
set_tests_properties(d PROPERTIES LABELS lab)'
expect 0 'tests: 1 ran, 0 failed, 0 skipped' $'add_test(a true)\n'"$of_lab"
expect 1 'No tests were found' ''
