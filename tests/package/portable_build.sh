#!/usr/bin/env bash
# Builds the portable program into the given folder and, as root, runs it in a chroot that contains only the C library.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$1"
log=$1/portable.log
program=$("$root/bench/portable.sh" "$1" 2>"$log") || { tail -n 40 "$log" >&2; exit 1; }
"$root/bench/check_portable.py" "$program"
[[ $("$program" --version) == *[0-9].[0-9]* ]]
if [[ $(id -u) != 0 ]]; then echo "not run without libraries: only root can chroot"; exit 0; fi

bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$bare${library%/*}"
  cp -L "$library" "$bare$library"
done
cp "$program" "$bare/roofgen"
chroot "$bare" /roofgen --version
picture=$(chroot "$bare" /roofgen roofline --device h200-sxm --no-points)  # its data is inside
[[ $picture == *H200* ]]
