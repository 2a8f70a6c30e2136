#!/usr/bin/env bash
# Runs a program with a folder of its own behind its arguments: in_scratch.sh PROGRAM ARGUMENTS... Where the program in
# ROOFGEN_DOCTOR finds no NVRTC, it runs nothing.
[[ -z ${ROOFGEN_DOCTOR:-} ]] || "$ROOFGEN_DOCTOR" doctor >/dev/null || exit 77  # no NVRTC
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME=$folder
if [[ -n ${ROOFGEN_TEST_CACHE:-} ]]; then
  export ROOFGEN_CACHE_DIR=$ROOFGEN_TEST_CACHE
  mkdir -p "$ROOFGEN_TEST_CACHE/v1" "$folder/cache"  # a session with a cache of its own shares the kernels, not the winners
  ln -s "$ROOFGEN_TEST_CACHE/v1" "$folder/cache/v1"
fi
"$@" "$folder"
