#!/usr/bin/env bash
# Runs a program with a folder of its own behind its arguments: in_scratch.sh PROGRAM ARGUMENTS... Where the program in
# ROOFGEN_DOCTOR finds no NVRTC, it runs nothing.
[[ -z ${ROOFGEN_DOCTOR:-} ]] || "$ROOFGEN_DOCTOR" doctor >/dev/null || exit 77  # no NVRTC
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Times come from the closed form: a start of nvdisasm takes longer than these kernels.
export HOME=$folder ROOFGEN_NVDISASM=/nowhere
if [[ -n ${ROOFGEN_TEST_CACHE:-} ]]; then
  export ROOFGEN_CACHE_DIR=$ROOFGEN_TEST_CACHE
  # A session with a cache of its own shares the kernels, not the winners.
  mkdir -p "$ROOFGEN_TEST_CACHE/v1" "$folder/cache"
  ln -s "$ROOFGEN_TEST_CACHE/v1" "$folder/cache/v1"
fi
"$@" "$folder"
