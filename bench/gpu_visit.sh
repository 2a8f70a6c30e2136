#!/usr/bin/env bash
# One visit of a GPU machine: measures the steps of bench/visit/plan.json, most important first, within SECONDS.
#
#   bench/gpu_visit.sh SECONDS [--only STEP[,STEP]] [--results DIR] [--again] [--archive FILE.tar.gz] [--dry-run]
#
# docs/visit.md explains the options and the results. Needs bash, coreutils, python3 3.9 or newer, a CUDA driver, a
# CUDA 13 toolkit or NVRTC's wheels, and the program of bench/portable.sh (or ROOFGEN=PATH).
set -euo pipefail
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
  echo "gpu_visit: python3 3.9 or newer is needed" >&2
  exit 3
fi
exec python3 "$(dirname "${BASH_SOURCE[0]}")/visit/visit.py" "$@"
