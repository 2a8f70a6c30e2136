#!/usr/bin/env bash
# roofgen_add_kernel() of an installed roofgen in another project: add_kernel_test.sh BUILD GENERATOR
set -euo pipefail
build=$1 generator=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { cat "$dir/log"; echo "add_kernel_test: $*"; exit 1; }
cmake --install "$build" --prefix "$dir/prefix" >"$dir/log" || fail "cmake --install"
export HOME=$dir ROOFGEN_CACHE_DIR=$dir/cache ROOFGEN_DATA_HOME=$dir/data
"$dir/prefix/bin/roofgen" doctor >"$dir/log" || { echo "NVRTC not found: nothing can be compiled"; exit 77; }

mkdir -p "$dir/app/kernels"
cd "$dir/app"
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C CXX)
find_package(roofgen REQUIRED)
add_executable(app main.cpp)
roofgen_add_kernel(app OP rmsnorm ROWS 64 COLS ${cols} ARCHS 80 90a NAME norm MANIFEST kernels/norm.json
  FLAGS --residual TUNE_FLAGS --evals 1 --executor sim)
END
cat >main.cpp <<'END'
#include <cstdio>
#include "norm.h"
int main() { std::puts(norm_error_string(norm_create(nullptr, nullptr))); }
END
configure() { cmake -S . -B build -G "$generator" -DCMAKE_PREFIX_PATH="$dir/prefix" "$@" >"$dir/log" 2>&1; }
make() { cmake --build build "$@" >"$dir/log" 2>&1; }

# Without a manifest the error has the command that makes it.
configure -Dcols=256 && fail "no manifest, and no error"
grep -q "kernels/norm.json does not$" "$dir/log" || fail "the message"
command=$(grep -m 1 "emit rmsnorm" "$dir/log")
bash -euc "$command" >"$dir/log" 2>&1 || fail "$command"
cp kernels/norm.json first.json

configure -Dcols=256 || fail "configure"
make || fail "build"
build/app | grep "out" >"$dir/log" || fail "the program: $(build/app)"
source=build/norm/norm.c
cp -p $source before.c
make || fail "build again"
[[ ! $source -nt before.c ]] || fail "generated again without a change"
sleep 1.1 # Make compares whole seconds on some file systems
touch kernels/norm.json
make || fail "build with a new manifest"
[[ $source -nt before.c ]] || fail "not generated again behind a change"
cmp -s $source before.c || fail "other bytes from the same manifest"

# The tuning target writes the manifest; the same search has the same result.
rm kernels/norm.json && touch kernels/norm.json
make --target norm_tune || fail "norm_tune"
cmp -s kernels/norm.json first.json || fail "norm_tune: another manifest"

# A manifest of other sizes is an error of the build that names the difference.
configure -Dcols=512 || fail "configure with another size"
make && fail "a manifest of other sizes was taken"
grep -q "kernels/norm.json: error: the manifest is of another bundle: cols is 256 instead of 512" "$dir/log" ||
  fail "the message"

# The example, on the simulated driver of the installation.
cp -r "$(dirname "${BASH_SOURCE[0]}")/../../examples/bundle" "$dir/bundle"
cd "$dir/bundle"
configure && fail "examples/bundle has a manifest"
command=$(grep -m 1 "emit rmsnorm" "$dir/log")
bash -euc "${command/ -o / --evals 1 --executor sim -o }" >"$dir/log" 2>&1 || fail "$command"
configure -DCMAKE_C_FLAGS="-Wall -Wextra -pedantic -Werror" || fail "examples/bundle: configure"
make || fail "examples/bundle: build"
export LD_LIBRARY_PATH=$dir/prefix/lib/roofgen ROOFGEN_SIM_STRICT=1
for rows in 64 77; do
  build/bundle $rows >"$dir/log" 2>&1 || fail "examples/bundle $rows"
  grep -q "^$rows x 1024 elements" "$dir/log" || fail "examples/bundle $rows: the output"
done
