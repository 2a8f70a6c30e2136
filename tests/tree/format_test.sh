#!/usr/bin/env bash
# Every C++ and CUDA header of the tree is formatted by .clang-format. Versions of clang-format differ in their
# results, so only version 14 (Debian 12) decides; exit 77 is a skip.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
for name in clang-format-14 clang-format; do
  if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then
    find base bench check cli cmake generator include roofline runtime templates tests tuner -type f \
      '(' -name '*.h' -o -name '*.cpp' -o -name '*.c' -o -name '*.cuh' ')' -print0 |
      xargs -0 "$name" --dry-run -Werror
    exit
  fi
done
echo "clang-format 14 is not installed"
exit 77
