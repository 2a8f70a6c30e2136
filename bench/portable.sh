#!/usr/bin/env bash
# Builds a roofgen that runs on other Linux machines of this architecture and prints its path (docs/visit.md); with it
# cublaslt_peer, where CUDA's headers are found (docs/peers.md).
#
#   bench/portable.sh [BUILD-FOLDER]      the default is build-portable, beside this folder
#
# Speaks on stderr, but for that path. The build fails where the program would need anything but an old C library.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ $# -le 1 && ${1-} != -* ]] || { sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
build=${1:-$root/build-portable}

options=(-DCMAKE_BUILD_TYPE=Release -DROOFGEN_PORTABLE=ON -DROOFGEN_TESTS=OFF -DROOFGEN_BENCH=OFF)
if [[ ! -e $build/CMakeCache.txt ]]; then
  if command -v ninja >/dev/null; then options+=(-G Ninja); fi
  if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache); fi
  # The oldest LLVM that will do, as the roofgen script takes it.
  if [[ -z ${LLVM_DIR-} ]]; then
    for version in {14..30}; do
      if [[ -e /usr/lib/llvm-$version/lib/libLLVMSupport.a ]]; then
        options+=("-DLLVM_DIR=/usr/lib/llvm-$version/lib/cmake/llvm")
        break
      fi
    done
  else
    options+=("-DLLVM_DIR=$LLVM_DIR")
  fi
fi
cmake -S "$root" -B "$build" "${options[@]}" >&2
cmake --build "$build" --parallel "${ROOFGEN_JOBS:-$(nproc)}" >&2
echo "$build/cli/roofgen"
