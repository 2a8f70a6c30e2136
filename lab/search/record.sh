#!/bin/bash
# Records our own spaces for `roofgen replay`: bash lab/search/record.sh ROOFGEN. Every point is compiled, verified on
# the simulator and timed by the interval model of its machine code (nvdisasm must be in PATH); no GPU is used. `--set`
# keeps two spaces to a few hundred points: about an hour of one core in all.
set -eu
roofgen=$1
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
record() { # file, file of --record, arguments of tune
  local name=$1 written=$2
  shift 2
  "$roofgen" tune "$@" --executor sim --exhaustive --record "$out/$name" > "$out/$name.txt"
  gzip -9nc "$out/$name/$written.t4.json" > "$here/$name.t4.json.gz"
}
record rmsnorm-8192x4096 rmsnorm-fused rmsnorm --rows 8192 --cols 4096 --variant fused
record gemm-2048-mma gemm-fused gemm --M 2048 --N 2048 --K 2048 --variant fused
record gemm-2048-warpgroup gemm-warpgroup gemm --M 2048 --N 2048 --K 2048 --variant warpgroup \
  --set store=staged,group=8,cluster_n=1,wide=1,pingpong=false
record attention-2048-fused attention-fused attention --L 2048 --d 64 --variant fused
record attention-2048-warpgroup attention-warpgroup attention --L 2048 --d 64 --variant warpgroup \
  --set rescale=always,cluster=1,section=1,fma_exps=0,k_stages=2,v_stages=2
rm -r "$out"
