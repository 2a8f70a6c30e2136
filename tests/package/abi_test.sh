#!/usr/bin/env bash
# The library exports the functions of library/symbols.map and of its header, and nothing else: abi_test.sh LIBRARY SOURCE
set -euo pipefail
fail() { echo "abi_test: $*"; exit 1; }
exported=$(nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | LC_ALL=C sort)
others=$(nm -D --defined-only "$1" | awk '$2 != "T" && $3 != "ROOFGEN_1" && $3 != "ROOFGEN_1@@ROOFGEN_1" { print $3 }')
[[ -z $others ]] || fail "exported besides functions: $others"
listed=$(sed -n 's/^ *\(roofgen_[a-z_]*\);$/\1@@ROOFGEN_1/p' "$2/library/symbols.map" | LC_ALL=C sort)
declared=$(sed -nE 's/^ROOFGEN_API [a-z0-9_ *]*[ *](roofgen_[a-z_]+)\(.*$/\1@@ROOFGEN_1/p' "$2/include/roofgen/roofgen.h" |
  LC_ALL=C sort)
diff <(echo "$listed") <(echo "$exported") || fail "library/symbols.map (<) and the library (>) differ"
diff <(echo "$listed") <(echo "$declared") || fail "library/symbols.map (<) and roofgen.h (>) differ"
readelf -d "$1" | grep "SONAME.*\[libroofgen.so.1\]" >/dev/null || fail "SONAME"
readelf -d "$1" | grep 'NEEDED.*LLVM' && fail "the library needs LLVM"
exit 0
