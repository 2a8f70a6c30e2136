#!/usr/bin/env bash
# Runs a program with a folder of its own behind its arguments: in_scratch.sh PROGRAM ARGUMENTS...
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME=$folder
"$@" "$folder"
