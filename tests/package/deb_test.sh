#!/usr/bin/env bash
# The Debian package of the build tree depends on what its files link: deb_test.sh BUILD
set -euo pipefail
for tool in dpkg-shlibdeps dpkg-deb file; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool was not found (packages file, dpkg-dev)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "deb_test: $*"; exit 1; }
cpack --config "$1/CPackConfig.cmake" -G DEB -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; fail "cpack"; }
package=("$work"/*.deb)
depends=$(dpkg-deb -f "${package[0]}" Depends)
dpkg-deb -x "${package[0]}" "$work/tree"
for binary in "$work"/tree/usr/bin/roofgen "$work"/tree/usr/lib/libroofgen.so; do
  [[ -x $binary || -e $binary ]] || fail "${binary#"$work/tree"} is missing"
  # A package that has the library, where one has, must be among the dependencies.
  while read -r library; do
    mapfile -t owners < <(dpkg -S "*/$library" 2>/dev/null | cut -d: -f1 | sort -u)
    found=${#owners[@]}
    for owner in "${owners[@]}"; do
      if [[ ", $depends" == *", $owner "* || ", $depends" == *", $owner" ]]; then found=0; fi
    done
    [[ $found == 0 ]] || fail "$library of ${owners[*]} is not in: $depends"
  done < <(objdump -p "$binary" | sed -n 's/^ *NEEDED *//p')
done
