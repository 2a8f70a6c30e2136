#!/usr/bin/env bash
# Builds the wheel, installs it in an environment of its own, and tunes: wheel_test.sh SOURCE PYTHON BUILD
set -euo pipefail
source=$1 python=$2 build=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset ROOFGEN_LIBRARY ROOFGEN_PROGRAM PYTHONPATH
fail() { echo "wheel_test: $*"; exit 1; }
export CC=${CC:-cc} CXX=${CXX:-c++}  # as CMake calls them, so that a cache of compilations serves both builds
[[ -n ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] || ! command -v ccache >/dev/null || export CMAKE_CXX_COMPILER_LAUNCHER=ccache
"$python" -m venv "$folder/venv" || { echo "skipped: no module venv"; exit 77; }
if ! "$python" -m pip wheel "$source" --no-deps -w "$folder/dist" -v --config-settings=build-dir="$build" \
  >"$folder/log" 2>&1; then
  tail -50 "$folder/log"
  grep -q "No matching distribution found for scikit-build-core" "$folder/log" || fail "pip wheel"
  echo "skipped: pip finds no scikit-build-core"
  exit 77
fi
wheel=$(echo "$folder"/dist/roofgen-*-py3-none-linux_*.whl)
[[ -s $wheel ]] || fail "no wheel for all versions of Python: $(ls "$folder/dist")"
echo "$(stat -c %s "$wheel") bytes: ${wheel##*/}"
"$folder/venv/bin/pip" install --no-index "$wheel" >"$folder/log" 2>&1 || { cat "$folder/log"; fail "pip install"; }
cd "$folder"
export ROOFGEN_CACHE_DIR=$folder/cache ROOFGEN_DATA_HOME=$folder/data
installed=$(venv/bin/python -c 'import roofgen; print(roofgen.__path__[0])')
[[ $installed == "$folder"/venv/* ]] || fail "another package: $installed"
files=$(cd "$installed" && find . -type f -not -name '*.py' -not -name '*.pyc' | LC_ALL=C sort | tr '\n' ' ')
[[ $files == "./bin/roofgen ./lib/libroofgen.so.1 ./py.typed " ]] || fail "files: $files"
version=$(venv/bin/python -c 'import roofgen; print(roofgen.__version__)')
for program in venv/bin/roofgen "venv/bin/python -m roofgen"; do
  [[ $($program --version) == "roofgen $version" ]] || fail "$program"
done
[[ $(venv/bin/pip show roofgen) == *"Version: $version"$'\n'* ]] || fail "the version of the wheel is not $version"
venv/bin/python - <<'TUNE' || fail "tune"
import roofgen
try:
    result = roofgen.tune("rmsnorm", rows=64, cols=256, evals=2, executor="sim")
except roofgen.Error as error:
    if error.status != roofgen.UNAVAILABLE:
        raise
    print(f"not tuned: {error}")  # no NVRTC
else:
    assert result.kernels[0].cubin.startswith(b"\x7fELF"), result.verdict
TUNE
