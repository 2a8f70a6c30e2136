#!/usr/bin/env bash
# Checks that .clang-format has been applied to every C++ and CUDA header. Results differ between versions of
# clang-format, so only version 14 (Debian 12) is used; exit 77 skips the test.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
for name in clang-format-14 clang-format; do
  if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then
    find base bench check cli cmake examples generator include lab library profile roofline runtime templates tests \
      tuner -type f \
      '(' -name '*.h' -o -name '*.cpp' -o -name '*.c' -o -name '*.hpp' -o -name '*.cuh' ')' -print0 |
      xargs -0 "$name" --dry-run -Werror
    exit
  fi
done
echo "clang-format 14 is not installed"
exit 77
