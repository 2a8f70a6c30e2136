#!/usr/bin/env bash
# Builds a roofgen that runs on other Linux machines of this architecture and prints its path (docs/evidence/visit.md).
#
#   bench/portable.sh [BUILD-FOLDER]      default: build-portable, beside this folder
#
# Everything but that path goes to stderr. The build fails if the program needs more than an old C library.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ $# -le 1 && ${1-} != -* ]] || { sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
build=${1:-$root/build-portable}

options=(-DCMAKE_BUILD_TYPE=Release -DROOFGEN_PORTABLE=ON -DROOFGEN_TESTS=OFF -DROOFGEN_BENCH=OFF)
if [[ ! -e $build/CMakeCache.txt ]]; then
  if command -v ninja >/dev/null; then options+=(-G Ninja); fi
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  fi
  for version in {14..30}; do  # the oldest supported LLVM, as the roofgen script chooses
    [[ -z ${LLVM_DIR-} && -e /usr/lib/llvm-$version/lib/libLLVMSupport.a ]] || continue
    LLVM_DIR=/usr/lib/llvm-$version/lib/cmake/llvm
  done
  if [[ -n ${LLVM_DIR-} ]]; then options+=("-DLLVM_DIR=$LLVM_DIR"); fi
fi
cmake -S "$root" -B "$build" "${options[@]}" >&2
cmake --build "$build" --parallel "${ROOFGEN_JOBS:-$(nproc)}" >&2
echo "$build/cli/roofgen"
