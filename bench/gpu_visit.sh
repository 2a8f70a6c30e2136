#!/usr/bin/env bash
# One visit of a GPU machine: measures what bench/visit/plan.json lists, most important first, within SECONDS.
#
#   bench/gpu_visit.sh SECONDS [--only STEP[,STEP]] [--results DIR] [--again] [--archive FILE.tar.gz] [--dry-run]
#
# All options and what lands where: docs/visit.md. Needs bash, coreutils, python3 3.9 or newer, a CUDA driver, a
# CUDA 13 toolkit or NVRTC's wheels, and the program of bench/portable.sh (or ROOFGEN=PATH).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
  echo "gpu_visit: python3 3.9 or newer is needed" >&2
  exit 3
fi
exec python3 "$here/visit/visit.py" "$@"
