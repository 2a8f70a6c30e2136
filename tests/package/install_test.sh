#!/usr/bin/env bash
# Installs the build tree and uses the result: install_test.sh BUILD
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
fail() { echo "install_test: $*"; exit 1; }
cmake --install "$1" --prefix "$prefix" >"$prefix/log" || { cat "$prefix/log"; fail "cmake --install"; }
export HOME=$prefix ROOFGEN_CACHE_DIR=$prefix/cache ROOFGEN_DATA_HOME=$prefix/data
roofgen=$prefix/bin/roofgen

# grep without -q reads to the end: the program could not write to a closed pipe.
"$roofgen" --version | grep -x "roofgen [0-9.]*" >"$prefix/log" || fail "--version"
"$roofgen" generate rmsnorm --rows 64 --cols 256 | grep __global__ >"$prefix/log" || fail "generate: the templates are in the program"
# The installed simulated driver is the one that `run` loads, wherever the build tree is.
"$roofgen" run --json -- sh -c 'true' >"$prefix/run.json" || [[ $? == 3 ]] || fail "run"
grep -qF "$prefix/lib/roofgen/libcuda.so.1" "$prefix/run.json" || fail "run: $(cat "$prefix/run.json")"
for library in "$prefix"/lib/roofgen/*; do
  LD_LIBRARY_PATH=$prefix/lib/roofgen ldd "$library" | grep "not found" && fail "$library"
done
grep -q "^\.TH ROOFGEN 1" "$prefix/share/man/man1/roofgen.1" || fail "manual page"
bash -n "$prefix/share/bash-completion/completions/roofgen" || fail "completion of bash"
for file in share/zsh/site-functions/_roofgen share/fish/vendor_completions.d/roofgen.fish share/doc/roofgen/README.md; do
  [[ -s $prefix/$file ]] || fail "$file"
done

# Older C++ is told so in one line.
said=$(echo '#include <roofgen/roofgen.hpp>' | c++ -std=c++17 -I "$prefix/include" -fsyntax-only -x c++ - 2>&1) && fail "C++17"
[[ $(grep -c 'error:' <<<"$said") == 1 && $said == *'needs C++20'* ]] || fail "C++17: $said"

# The library: find_package from C and C++, and plain compilers with pkg-config.
tests=$(dirname "${BASH_SOURCE[0]}")
expected=$("$roofgen" generate softmax --rows 64 --cols 256)
same() { [[ $("$@") == "$expected" ]] || fail "$*: another text than the program's"; }
(cmake -S "$tests/consumer" -B "$prefix/consumer" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$prefix/consumer") \
  >"$prefix/log" 2>&1 || { cat "$prefix/log"; fail "find_package"; }
same "$prefix/consumer/consumer_c"
same "$prefix/consumer/consumer_cpp"
for name in llama_block jit; do
  cmake -S "$tests/../../examples/$name" -B "$prefix/$name" -DCMAKE_PREFIX_PATH="$prefix" >"$prefix/log" 2>&1 ||
    { cat "$prefix/log"; fail "examples/$name"; }
done
cmake --build "$prefix/jit" >"$prefix/log" 2>&1 || { cat "$prefix/log"; fail "examples/jit"; }
if command -v pkg-config >/dev/null; then
  folder=$(dirname "$(find "$prefix" -name roofgen.pc)")
  # shellcheck disable=SC2046
  PKG_CONFIG_PATH=$folder cc -std=c11 "$tests/consumer/consumer.c" $(PKG_CONFIG_PATH=$folder pkg-config --cflags --libs roofgen) \
    -o "$prefix/plain" || fail "pkg-config"
  LD_LIBRARY_PATH=$(dirname "$folder") same "$prefix/plain"
fi
