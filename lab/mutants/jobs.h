// The commands whose kernels are tested.
#pragma once

namespace roofgen::mutants {

/// Words of a command line of `roofgen tune`. A variant with several stages gives a kernel for each.
struct Job {
  const char* name;
  const char* words;
  const char* part = "";  ///< of attention, tested alone: "scale+mask"
  int sms = 0;            ///< of the device; 0: all. Few SMs give each CTA of a persistent kernel several tiles
};

/// Every template, with the paths through it that a schedule or a problem selects. Sizes are small, because each mutant
/// runs at every site of the verification; most are not multiples of the tiles.
inline constexpr Job kJobs[] = {
    {"attention", "attention --L 318 --d 64 --batch 2 --heads 6 --kv-heads 2 --lse --variant fused --set BM=64"},
    {"attention causal",
     "attention --L 382 --kv-len 286 --d 80 --batch 1 --heads 4 --kv-heads 2 --causal --lse --dtype fp16 --variant "
     "fused "
     "--set BM=64,BN=32,rescale=always,q_in=shared,swizzle=false,stages=1"},
    {"attention modified",
     "attention --L 318 --d 32 --batch 2 --heads 2 --score 's + slope[h] * (k - q) * 0.01' --arg slope:fp32[h] "
     "--mask 'k - q < 70 and q - k < 170' --variant fused --set BM=64,BN=32,stages=3"},
    {"attention packed",
     "attention --lengths 286,62,350 --d 32 --heads 2 --causal --variant fused --set BM=64,BN=32,stages=2"},
    {"attention unfused",
     "attention --L 254 --kv-len 256 --d 64 --batch 3 --heads 4 --kv-heads 2 --variant unfused --set "
     "warps=4,strip=4,BK=32"},
    {"attention unfused causal",
     "attention --L 382 --kv-len 315 --d 32 --batch 3 --heads 2 --causal --lse --dtype fp16 --variant unfused --set "
     "strip=2,stages=2"},
    {"attention paged",
     "attention --L 70 --kv-lengths 190,75,333 --page 16 --d 64 --heads 4 --kv-heads 2 --variant unfused --set "
     "warps=4,strip=2,BK=32"},
    {"attention part", "attention --L 382 --kv-len 315 --d 64 --batch 1 --heads 2 --causal --set BN=64,strip=2", "qk"},
    {"attention part",
     "attention --L 382 --kv-len 315 --d 64 --batch 1 --heads 2 --causal --softcap 9 --set BN=64,strip=2", "qk+scale"},
    {"attention part", "attention --L 382 --kv-len 315 --d 64 --batch 1 --heads 2 --causal --softcap 9", "scale"},
    {"attention part", "attention --L 382 --kv-len 315 --d 64 --batch 1 --heads 2 --mask 'q >= k and q - k < 100'",
     "mask"},
    {"attention part", "attention --L 382 --kv-len 315 --d 64 --batch 1 --heads 2 --mask 'q >= k and q - k < 100'",
     "scale+mask+softmax"},
    {"attention part", "attention --L 382 --kv-len 315 --d 64 --batch 1 --heads 2 --causal --set BN=32", "softmax+pv"},
    {"attention part", "attention --L 382 --kv-len 315 --d 64 --batch 1 --heads 2 --causal --set BN=32,BM=64",
     "scale+mask+softmax+pv"},
    {"gemm", "gemm --M 192 --N 192 --K 256 --variant fused --set BM=64,BN=64"},
    {"gemm epilogue",
     "gemm --M 190 --N 184 --K 200 --epilogue 'gelu(acc + bias[n]) * alpha + residual[m,n]' --alpha 0.5 --dtype fp16 "
     "--variant fused --set BM=64,BN=64"},
    {"gemm odd",
     "gemm --M 126 --N 123 --K 205 --a-layout col --b-layout row --epilogue 'acc + row_bias[m]' --variant fused --set "
     "BM=64,BN=64,stages=4"},
    {"gemm groups",
     "gemm --M 382 --N 124 --K 216 --variant fused --set BM=64,BN=64,group=4,store=direct,warps_n=1,warps_m=4"},
    {"grouped gemm",
     "grouped_gemm --sizes 126,0,1,62,190 --N 124 --K 200 --epilogue 'acc * 0.1 + bias[n]' --variant fused --set "
     "BM=64,BN=64"},
    {"gemm reduces", "gemm --M 126 --N 124 --K 200 --epilogue 'acc * rsqrt(mean(acc * acc) + 0.001)' --variant fused"},
    {"gemm gated", "gemm --M 126 --N 248 --K 200 --gated silu --epilogue 'acc * 0.1 + bias[n]' --variant fused"},
    {"gemm split", "gemm --M 126 --N 60 --K 2100 --epilogue 'relu(acc * 0.05 + bias[n])' --variant split_k4"},
    {"gemm unfused", "gemm --M 126 --N 248 --K 200 --epilogue 'sigmoid(acc * 0.1 + bias[n])' --variant unfused"},
    {"gemm int8", "gemm --M 126 --N 124 --K 480 --dtype int8 --variant fused"},
    {"gemm fp8", "gemm --M 126 --N 124 --K 480 --dtype fp8 --epilogue 'acc * scale' --scale 0.25 --variant fused"},
    {"gemm tf32", "gemm --M 126 --N 124 --K 300 --dtype tf32 --variant fused"},
    {"rmsnorm", "rmsnorm --rows 31 --cols 1016 --residual --variant fused"},
    {"rmsnorm quantised", "rmsnorm --rows 31 --cols 1021 --quant fp8 --dtype fp16 --variant fused"},
    {"rmsnorm unfused", "rmsnorm --rows 31 --cols 520 --residual --quant int8 --variant unfused"},
    {"layernorm",
     "layernorm --rows 31 --cols 300 --bias --dtype fp32 --variant fused --set rows_each=2,row_threads=64"},
    {"layernorm shared", "layernorm --rows 15 --cols 4100 --variant fused --set residency=shared"},
    {"softmax", "softmax --rows 31 --cols 507 --variant fused"},
    {"softmax packed",
     "softmax --rows 15 --cols 4088 --dtype fp16 --variant fused --set residency=packed,row_threads=128"},
    {"softmax memory", "softmax --rows 15 --cols 4093 --variant fused --set residency=memory,row_threads=128,batch=2"},
    {"softmax split", "softmax --rows 3 --cols 70000 --variant split"},
    {"map", "map --rows 31 --cols 300 --expr 'x * sigmoid(alpha * x) + residual[m,n]' --alpha 1.5 --variant fused"},
};

/// More kernels for the rules of order alone: mbarriers, tensor copies, warpgroups, clusters, and CTAs that wait for
/// each other.
inline constexpr Job kOrderJobs[] = {
    {"warpgroup gemm", "gemm --M 190 --N 200 --K 328 --variant warpgroup --set stages=2"},
    {"warpgroup gemm cluster",
     "gemm --M 126 --N 248 --K 328 --variant warpgroup --set BM=64,BN=64,cluster_n=2,groups=1,stages=2"},
    {"warpgroup gemm split",
     "gemm --M 70 --N 72 --K 1080 --variant warpgroup_split_k4 --set "
     "BM=64,BN=64,groups=1,stages=2"},
    {"warpgroup gemm operands",
     "gemm --M 126 --N 248 --K 200 --epilogue 'acc + residual[m,n]' --variant warpgroup --set "
     "BM=64,BN=128,groups=1,load=tma,persistent=true,stages=2,store=tma",
     "", 3},
    {"warpgroup gemm gated",
     "gemm --M 126 --N 240 --K 200 --gated silu --variant warpgroup --set BM=64,BN=128,groups=1,stages=2,store=tma"},
    {"warpgroup gemm stream",
     "gemm --M 126 --N 256 --K 328 --variant warpgroup_stream_k --set BM=64,BN=64,groups=1,persistent=true,stages=2",
     "", 3},
    {"warpgroup gemm fp8",
     "gemm --M 126 --N 124 --K 656 --dtype fp8 --scales block --variant warpgroup --set BM=64,BN=64,groups=1,stages=2"},
    {"grouped gemm gather",
     "grouped_gemm --N 72 --K 328 --tokens 60 --topk 2 --gather --scatter weighted --sizes 70,0,1,49 --variant "
     "warpgroup --set BM=64,BN=64,groups=1,persistent=true,stages=4",
     "", 2},
    {"warpgroup attention",
     "attention --L 190 --kv-len 485 --d 64 --batch 1 --heads 2 --causal --lse --variant warpgroup --set "
     "BN=64,k_stages=2,v_stages=2"},
    {"warpgroup attention walk",
     "attention --L 190 --d 64 --batch 1 --heads 4 --kv-heads 2 --causal --lse --variant warpgroup --set "
     "BN=64,groups=2,k_stages=2,pack_gqa=false,persistent=true,pingpong=true,v_stages=2",
     "", 3},
    {"warpgroup attention fp8",
     "attention --L 190 --kv-len 485 --d 64 --batch 1 --heads 2 --dtype fp8 --causal --lse --kv-scales head --variant "
     "warpgroup --set BN=64,k_stages=3"},
    {"warpgroup attention merged",
     "attention --L 20 --d 64 --batch 1 --heads 4 --kv-heads 2 --kv-len 930 --causal --lse --variant warpgroup_merged3 "
     "--set BN=64,groups=1,k_stages=2,pack_gqa=true,pingpong=false,v_stages=2",
     "", 3},
    {"warpgroup attention even",
     "attention --L 20 --d 64 --heads 4 --kv-heads 2 --causal --kv-lengths 1200,20,20,20,20,20 --lse --variant "
     "warpgroup_even4 --set BN=64,groups=1,k_stages=2,pingpong=false,v_stages=2",
     "", 3},
    {"attention merged",
     "attention --L 4 --d 64 --batch 2 --heads 4 --kv-heads 2 --kv-len 300 --lse --variant merged3"},
    {"warpgroup attention paged",
     "attention --L 3 --d 64 --heads 4 --kv-heads 2 --page 16 --causal --kv-lengths 421,500 --lse --variant warpgroup "
     "--set BN=64,groups=1,k_stages=2,pack_gqa=true,pingpong=false,v_stages=2"},
    {"warpgroup attention prologue",
     "attention --L 25 --d 64 --batch 1 --heads 6 --kv-heads 2 --kv-len 485 --causal --lse --rotary half --variant "
     "prologue_warpgroup --set BN=64,groups=1,k_stages=2,pack_gqa=true,pingpong=false,v_stages=2"},
    {"layernorm cluster",
     "layernorm --rows 3 --cols 4601 --residual --variant fused --set "
     "batch=1,cluster=4,residency=registers,row_threads=64,rows_each=1"},
};

}  // namespace roofgen::mutants
