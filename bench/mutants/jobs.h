// The commands whose kernels are tested.
#pragma once

namespace roofgen::mutants {

/// Words of a command line of `roofgen tune`. A variant with several stages gives a kernel for each.
struct Job {
  const char* name;
  const char* words;
  const char* part = "";  ///< of attention, tested alone: "scale+mask"
};

/// Every template, with the paths through it that a schedule or a problem selects. Sizes are small, because each mutant
/// runs at every site of the verification; most are not multiples of the tiles.
inline constexpr Job kJobs[] = {
    {"attention", "attention --L 192 --d 64 --batch 2 --heads 6 --kv-heads 2 --variant fused --set BM=64"},
    {"attention causal",
     "attention --L 150 --kv-len 210 --d 80 --batch 1 --heads 4 --kv-heads 2 --causal --lse --dtype fp16 "
     "--variant fused --set BM=64,BN=32,rescale=always,q_in=shared,swizzle=false,stages=1"},
    {"attention modified",
     "attention --L 130 --d 32 --batch 2 --heads 2 --score 's + slope[h] * (k - q)' "
     "--arg slope:fp32[h] --mask 'q >= k and q - k < 70' --variant fused --set BM=64,BN=32,stages=3"},
    {"attention packed", "attention --lengths 70,33,129 --d 32 --heads 2 --variant fused --set BM=64,BN=32"},
    {"attention unfused", "attention --L 136 --kv-len 200 --d 64 --batch 1 --heads 4 --kv-heads 2 --variant unfused"},
    {"attention unfused causal",
     "attention --L 130 --kv-len 203 --d 32 --batch 2 --heads 2 --causal --lse --softcap 8 --dtype fp16 --variant "
     "unfused"},
    {"attention part", "attention --L 140 --kv-len 172 --d 64 --batch 1 --heads 2 --causal", "qk"},
    {"attention part", "attention --L 140 --kv-len 172 --d 64 --batch 1 --heads 2 --causal --softcap 9", "scale"},
    {"attention part", "attention --L 140 --kv-len 172 --d 64 --batch 1 --heads 2 --causal", "mask"},
    {"attention part", "attention --L 140 --kv-len 172 --d 64 --batch 1 --heads 2 --causal", "scale+mask+softmax"},
    {"attention part", "attention --L 140 --kv-len 172 --d 64 --batch 1 --heads 2 --causal", "softmax+pv"},
    {"attention part", "attention --L 140 --kv-len 172 --d 64 --batch 1 --heads 2 --causal", "scale+mask+softmax+pv"},
    {"gemm", "gemm --M 192 --N 192 --K 160 --variant fused --set BM=64,BN=64"},
    {"gemm epilogue",
     "gemm --M 150 --N 136 --K 200 --epilogue 'gelu(acc + bias[n]) * alpha + residual[m,n]' --alpha 0.5 "
     "--dtype fp16 --variant fused --set BM=64,BN=64"},
    {"gemm odd",
     "gemm --M 70 --N 75 --K 77 --a-layout col --b-layout row --epilogue 'acc + row_bias[m]' --variant fused "
     "--set BM=64,BN=64,stages=4"},
    {"gemm groups",
     "gemm --M 330 --N 100 --K 64 --variant fused --set BM=64,BN=64,group=4,store=direct,warps_n=1,warps_m=4"},
    {"gemm reduces", "gemm --M 70 --N 100 --K 64 --epilogue 'acc * rsqrt(mean(acc * acc) + 0.001)' --variant fused"},
    {"gemm gated", "gemm --M 70 --N 136 --K 72 --gated silu --epilogue 'acc * 0.1 + bias[n]' --variant fused"},
    {"gemm split", "gemm --M 70 --N 48 --K 2100 --epilogue 'relu(acc * 0.05 + bias[n])' --variant split_k4"},
    {"gemm unfused", "gemm --M 70 --N 136 --K 72 --epilogue 'sigmoid(acc * 0.1 + bias[n])' --variant unfused"},
    {"gemm int8", "gemm --M 100 --N 80 --K 160 --dtype int8 --variant fused"},
    {"gemm fp8", "gemm --M 100 --N 80 --K 160 --dtype fp8 --epilogue 'acc * scale' --scale 0.25 --variant fused"},
    {"gemm tf32", "gemm --M 100 --N 80 --K 100 --dtype tf32 --variant fused"},
    {"rmsnorm", "rmsnorm --rows 21 --cols 1000 --residual --variant fused"},
    {"rmsnorm quantised", "rmsnorm --rows 21 --cols 1001 --quant fp8 --dtype fp16 --variant fused"},
    {"rmsnorm unfused", "rmsnorm --rows 21 --cols 520 --residual --quant int8 --variant unfused"},
    {"layernorm",
     "layernorm --rows 21 --cols 300 --bias --dtype fp32 --variant fused --set rows_each=2,row_threads=64"},
    {"layernorm shared", "layernorm --rows 9 --cols 4100 --variant fused --set residency=shared"},
    {"softmax", "softmax --rows 21 --cols 515 --variant fused"},
    {"softmax packed",
     "softmax --rows 5 --cols 4096 --dtype fp16 --variant fused --set residency=packed,row_threads=128"},
    {"softmax memory", "softmax --rows 5 --cols 4100 --variant fused --set residency=memory,row_threads=128,batch=2"},
    {"softmax split", "softmax --rows 3 --cols 70000 --variant split"},
    {"map", "map --rows 21 --cols 300 --expr 'x * sigmoid(alpha * x) + residual[m,n]' --alpha 1.5 --variant fused"},
};

}  // namespace roofgen::mutants
