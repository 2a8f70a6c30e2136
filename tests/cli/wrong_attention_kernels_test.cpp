// Wrong kernels of attention as it is served: split keys, query heads as rows of a tile, key warps, caches in pages.
#include "tests/cli/wrong_kernel.h"

namespace roofgen::test::wrong_attention_kernels_test {
namespace {

constexpr const char *kFused = "attention/fused.cu.jinja", *kMerge = "attention/merge_parts.cuh.jinja",
                     *kCombine = "attention/combine.cu.jinja", *kPages = "attention/pages.cuh",
                     *kShared = "attention/modifiers.jinja", *kLast = "attention/merge_splits.cuh.jinja",
                     *kArrival = "lib/arrival.cuh";

#define ROOFGEN_DECODE "attention --d 64 --heads 8 --kv-heads 2 "
#define ROOFGEN_SPLIT ROOFGEN_DECODE "--L 1 --kv-len 512 --batch 2 --variant split4 --set BN=64 "
#define ROOFGEN_COMBINE ROOFGEN_SPLIT "--set row_warps=4 "
#define ROOFGEN_RAGGED_SPLIT ROOFGEN_DECODE "--L 4 --causal --kv-lengths 300,20,4 --variant split3 "
#define ROOFGEN_MERGED ROOFGEN_DECODE "--L 1 --kv-len 512 --batch 2 --variant merged4 --set BN=64 "
#define ROOFGEN_MERGED_ROWS ROOFGEN_DECODE "--L 16 --kv-len 512 --batch 2 --variant merged4 --set BM=16,pack_gqa=true "
#define ROOFGEN_RAGGED_MERGED ROOFGEN_DECODE "--L 4 --causal --kv-lengths 300,20,4 --variant merged3 "
#define ROOFGEN_FUSED ROOFGEN_DECODE "--kv-len 300 --batch 2 --variant fused --set pack_gqa=true "
#define ROOFGEN_FIVE \
  "attention --d 64 --heads 10 --kv-heads 2 --L 10 --kv-len 300 --batch 2 --variant fused --set pack_gqa=true,BM=16"
#define ROOFGEN_PAGED ROOFGEN_DECODE "--L 1 --kv-lengths 300,77 --page 16 --variant fused "

constexpr const char *kScores = "attention/scores.cu.jinja", *kPv = "attention/pv.cu.jinja",
                     *kRows = "attention/packed_rows.cuh.jinja";

#define ROOFGEN_UNFUSED ROOFGEN_DECODE "--kv-len 300 --batch 2 --variant unfused --set pack_gqa=true "

constexpr const char *kRotary = "attention/rotary.cuh.jinja", *kAppend = "attention/append.cuh.jinja",
                     *kFp8 = "attention/fp8_tiles.cuh.jinja", *kPrologue = "attention/prologue.cu.jinja";

#define ROOFGEN_ROTARY ROOFGEN_DECODE "--L 3 --kv-len 300 --batch 2 --rotary half --variant fused "
#define ROOFGEN_APPEND ROOFGEN_DECODE "--L 4 --kv-len 300 --batch 2 --append --rotary half --variant "
#define ROOFGEN_CACHE_8 ROOFGEN_DECODE "--L 2 --kv-len 300 --batch 2 --kv-dtype fp8 --kv-scales head --variant "

const Wrong kWrong[] = {
    // The kernel that merges the splits.
    {"weights_of_base_e", kCombine, "ex2(logs[s] - reference)", "ex2((logs[s] - reference) * 1.44269504f)",
     ROOFGEN_SPLIT},
    {"maximum_not_subtracted", kCombine, "ex2(logs[s] - reference)", "ex2(logs[s])", ROOFGEN_SPLIT},
    {"last_split_missing", kCombine, "for (int s = part; s < splits;", "for (int s = part; s < splits - 1;",
     ROOFGEN_SPLIT},
    {"weight_of_another_split", kCombine, "ex2(logs[s] - reference)", "ex2(logs[s ^ 1] - reference)", ROOFGEN_SPLIT},
    {"sum_not_divided", kCombine, "sum == 0.0f ? 0.0f : rcp_approx(sum)", "1.0f", ROOFGEN_SPLIT},
    {"sum_of_one_warp", kCombine, "sum += sums[warp + w];", "", ROOFGEN_COMBINE},
    {"warp_left_out_of_the_sum", kCombine, "for (int w = 1; w < kRowWarps; ++w)",
     "for (int w = 1; w < kRowWarps - 1; ++w)", ROOFGEN_COMBINE},
    {"sums_read_before_the_barrier", kCombine, "__syncthreads();", "", ROOFGEN_COMBINE},
    {"rows_without_keys_divided", kCombine, "top == neg_inf() ? 0.0f : top", "top",
     ROOFGEN_RAGGED_SPLIT "--mask 'q > 20'"},
    {"combined_head_stride_ignored", kCombine, "head * o_head_stride", "head * D", ROOFGEN_SPLIT},
    {"combined_lse_in_base_2", kCombine, "(top + log2_approx(sum)) * kLn2", "top + log2_approx(sum)",
     ROOFGEN_SPLIT "--lse"},
    {"combined_row_of_another_head", kCombine, "(static_cast<long long>(batch) * heads + head) * q_len",
     "(static_cast<long long>(batch) * heads + (head ^ 1)) * q_len", ROOFGEN_SPLIT},
    // The last CTA of a tile.
    {"counter_not_reset", kArrival, ".inc.u32 %0, [%1], %2;", ".add.u32 %0, [%1], 1;", ROOFGEN_MERGED},
    {"counter_reset_one_arrival_late", kArrival, "\"r\"(last)", "\"r\"(last + 1)", ROOFGEN_MERGED},
    {"arrival_relaxed", kArrival, "atom.acq_rel.gpu", "atom.relaxed.gpu", ROOFGEN_MERGED},
    {"arrival_without_a_release", kArrival, "atom.acq_rel.gpu", "atom.acquire.gpu", ROOFGEN_MERGED},
    {"arrival_in_the_scope_of_a_cta", kArrival, "atom.acq_rel.gpu", "atom.acq_rel.cta", ROOFGEN_MERGED},
    {"every_thread_arrives", kLast, "if (thread == 0) *before", "*before", ROOFGEN_MERGED},
    {"no_barrier_before_the_arrival", kLast, "  {{ barrier }};\n  unsigned* const before", "  unsigned* const before",
     ROOFGEN_MERGED_ROWS},
    {"no_barrier_behind_the_arrival", kLast, "  {{ barrier }};\n  if (*before", "  if (*before", ROOFGEN_MERGED},
    {"first_arrival_merges", kLast, "*before != last", "*before != 0", ROOFGEN_MERGED},
    {"last_but_one_merges", kLast, "*before != last", "*before != last - 1", ROOFGEN_MERGED},
    {"every_arrival_merges", kLast, "if (*before != last) return;", "", ROOFGEN_MERGED},
    {"split_0_merges", kLast, "*before != last", "split != 0", ROOFGEN_MERGED},
    {"counter_of_the_first_tile", kLast, "arrivals + tile", "arrivals", ROOFGEN_MERGED},
    {"counter_of_two_tiles", kLast, "arrivals + tile", "arrivals + tile / 2", ROOFGEN_MERGED},
    {"counter_of_all_sequences", kLast, "static_cast<long long>(batch) * gridDim.y", "0ll", ROOFGEN_MERGED},
    {"counter_of_all_heads", kLast, "gridDim.y + blockIdx.y", "gridDim.y", ROOFGEN_MERGED},
    {"counter_of_all_rows", kLast, "gridDim.x + blockIdx.x", "gridDim.x", ROOFGEN_MERGED_ROWS},
    {"counter_out_of_bounds", kLast, "arrivals + tile", "arrivals + tile + gridDim.y * gridDim.z * 4", ROOFGEN_MERGED},
    {"merged_weights_of_base_e", kLast, "ex2(logs[s] - weights.x)", "ex2((logs[s] - weights.x) * 1.44269504f)",
     ROOFGEN_MERGED},
    {"merged_sum_of_base_e", kLast, "ex2(logs[s] - reference)", "ex2((logs[s] - reference) * 1.44269504f)",
     ROOFGEN_MERGED},
    {"merged_sum_not_divided", kLast, "sum == 0.0f ? 0.0f : rcp_approx(sum)", "1.0f", ROOFGEN_MERGED},
    {"own_part_missing", kLast, "weight = ex2(", "weight = s == split ? 0.0f : ex2(", ROOFGEN_MERGED},
    {"last_part_missing", kLast, "s < splits; ++s", "s < splits - 1; ++s", ROOFGEN_MERGED},
    {"part_weighted_as_another", kLast, "ex2(logs[s] - weights.x)", "ex2(logs[s ^ 1] - weights.x)", ROOFGEN_MERGED},
    {"weights_read_before_the_barrier", kLast, "  {{ barrier }};\n  // Four columns", "  // Four columns",
     ROOFGEN_MERGED},
    {"parts_read_as_constants", kLast, "*reinterpret_cast<const float4*>(from + s * D)",
     "__ldg(reinterpret_cast<const float4*>(from + s * D))", ROOFGEN_MERGED},
    {"merged_rows_without_keys_divided", kLast, "top == neg_inf() ? 0.0f : top", "top",
     ROOFGEN_RAGGED_MERGED "--mask 'q > 20'"},
    {"merged_lse_in_base_2", kLast, "(top + log2_approx(sum)) * kLn2", "top + log2_approx(sum)",
     ROOFGEN_MERGED "--lse"},
    {"merged_head_stride_ignored", kLast, "head * o_head_stride", "head * D", ROOFGEN_MERGED},
    {"merged_unused_rows_stored", kLast, "if (!tile_rows.used(i)) break;", "",
     ROOFGEN_DECODE "--L 3 --kv-len 512 --batch 2 --variant merged4 --set pack_gqa=true "},
    // The kernel that computes a split's part.
    {"part_of_another_split", kMerge, "(row * splits + split) * D", "(row * splits + (split ^ 1)) * D", ROOFGEN_SPLIT},
    {"lse_of_another_split", kMerge, "partial_lse[row * splits + split]", "partial_lse[row * splits + (split ^ 1)]",
     ROOFGEN_SPLIT},
    {"parts_by_split_before_row", kMerge, "(row * splits + split) * D", "(split * splits + row) * D", ROOFGEN_SPLIT},
    {"tiles_left_out", kFused, "step_stride = splits;", "step_stride = splits + 1;", ROOFGEN_SPLIT},
    {"tiles_read_twice", kFused, "step_stride = splits;", "step_stride = splits - 1;", ROOFGEN_SPLIT},
    {"first_tile_left_out", kFused, "first_step = split,", "first_step = split + 1,", ROOFGEN_SPLIT},
    {"tile_of_the_split_before", kFused, "k_rows += first_step * BN", "k_rows += max(first_step - 1, 0) * BN",
     ROOFGEN_SPLIT},
    {"values_of_the_next_tile", kFused, "v_rows += step_stride * BN", "v_rows += BN", ROOFGEN_SPLIT},
    // With tiles of 32 keys the only partial tile is that of split 0, which begins with the first.
    {"keys_left_from_the_start", kFused, "\" - first_step * BN\"", "\"\"", ROOFGEN_RAGGED_SPLIT "--set BN=64"},
    {"empty_split_without_lse", kMerge, "if (column == 0) partial_lse", "if (column == 0 && !empty) partial_lse",
     ROOFGEN_RAGGED_SPLIT},
    {"empty_split_is_nan", kMerge, "empty ? 0.0f : rcp_approx(sum)", "rcp_approx(sum)", ROOFGEN_RAGGED_SPLIT},
    {"sequence_and_split_exchanged", kFused, "batch = blockIdx.z / splits, split = blockIdx.z % splits",
     "batch = blockIdx.z % splits, split = blockIdx.z / splits", ROOFGEN_SPLIT},
    // Query heads as rows of a tile.
    {"row_and_head_exchanged", kRows, "row(int i) const { return i / group; }",
     "row(int i) const { return i % group; }", ROOFGEN_FUSED "--L 3"},
    {"a_head_more_in_a_group", kFused, "tile_rows(group, end_row - row0)", "tile_rows(group + 1, end_row - row0)",
     ROOFGEN_FUSED "--L 3"},
    {"rows_of_the_next_group", kFused, "head0 = kv_head * group", "head0 = (kv_head + 1) % gridDim.y * group",
     ROOFGEN_FUSED "--L 1"},
    {"output_of_the_next_head", kMerge, "head0 + tile_rows.head(i)", "head0 + tile_rows.head(i + 1)",
     ROOFGEN_FUSED "--L 1"},
    {"staged_output_of_the_next_head", kFused, "tile_rows.head(i) * o_head_stride",
     "tile_rows.head(i + 1) * o_head_stride", ROOFGEN_FUSED "--L 16 --set warps_k=1"},
    {"causal_limit_of_the_tile_row", kFused, "lane / 4, q_row = row0 + tile_rows.row(in_tile)",
     "lane / 4, q_row = row0 + in_tile", ROOFGEN_FUSED "--L 4 --causal"},
    {"causal_limit_of_the_first_row", kFused, "lane / 4, q_row = row0 + tile_rows.row(in_tile)",
     "lane / 4, q_row = row0", ROOFGEN_FUSED "--L 4 --causal"},
    {"unused_rows_stored", kMerge, "if (!tile_rows.used(i)) break;", "", ROOFGEN_FUSED "--L 3"},
    {"unused_rows_of_a_full_tile_stored", kRows, "used(int i) const { return i < end; }",
     "used(int i) const { return true; }", ROOFGEN_FIVE},
    {"a_query_more_per_tile", kFused, "rows = BM / group;", "rows = ceil_div(BM, group);", ROOFGEN_FIVE},
    {"heads_counted_in_groups", kFused, "heads = gridDim.y * group;", "heads = gridDim.y;",
     ROOFGEN_FUSED "--L 1 --lse"},
    {"packed_head_stride_ignored", kMerge, "head * o_head_stride", "head * D", ROOFGEN_FUSED "--L 1"},
    {"staged_head_stride_ignored", kFused, "tile_rows.head(i) * o_head_stride", "tile_rows.head(i) * D",
     ROOFGEN_FUSED "--L 16 --set warps_k=1"},
    {"query_head_stride_ignored", kFused, "tile_rows.head(i) * q_head_stride", "tile_rows.head(i) * D",
     ROOFGEN_FUSED "--L 1"},
    {"score_of_the_first_head", kFused, "head0 + tile_rows.head(in_tile))", "head0)",
     ROOFGEN_FUSED "--L 1 --score 's + 0.1 * slope[h] * (k - q)' --arg 'slope:fp32[h]'"},
    {"tiles_visible_to_the_first_head", kRows, "formula.by_head", "false",
     ROOFGEN_FUSED "--L 1 --mask 'q - k < 40 + 60 * h'"},
    // Warps that share rows.
    {"parts_not_rescaled", kMerge, "ex2(part.x - top)", "1.0f", ROOFGEN_FUSED "--L 1"},
    {"last_warp_missing", kMerge, "for (int w = 0; w < kKeyWarps; ++w)", "for (int w = 0; w < kKeyWarps - 1; ++w)",
     ROOFGEN_FUSED "--L 1"},
    {"maximum_without_the_last_warp", kMerge, "for (int w = 1; w < kKeyWarps; ++w)",
     "for (int w = 1; w < kKeyWarps - 1; ++w)", ROOFGEN_FUSED "--L 1"},
    {"maximum_of_the_first_split", kCombine, "top = warp_max(top);", "top = logs[0];", ROOFGEN_SPLIT},
    {"statistics_of_another_row", kMerge, "part = stats[w * BM + i]", "part = stats[w * BM + (i ^ 1)]",
     ROOFGEN_FUSED "--L 1"},
    {"parts_over_keys_still_read", kMerge, "  cp_async_wait<0>();\n  __syncthreads();\n  float* const parts",
     "  cp_async_wait<0>();\n  float* const parts", ROOFGEN_FUSED "--L 1"},
    {"parts_read_before_the_barrier", kMerge, "  __syncthreads();\n  // Eight columns", "  // Eight columns",
     ROOFGEN_FUSED "--L 1"},
    {"parts_of_all_warps_in_one_place", kMerge, "set key_warp_index = \"key_warp\"", "set key_warp_index = \"0\"",
     ROOFGEN_FUSED "--L 1"},
    {"mask_without_the_keys_of_the_warp", kFused, "j * BN + {{ \"key_warp * WN + \" if warps_k > 1 else \"\" }}",
     "j * BN + ", ROOFGEN_FUSED "--L 1"},
    {"keys_of_the_first_warp", kFused, "{{ tiles }} + key_warp * WN * Tile::kPitch", "{{ tiles }}",
     ROOFGEN_FUSED "--L 1"},
    {"values_of_the_first_warp", kFused, "v_blocks(sm_warp_kv +", "v_blocks(sm_kv +", ROOFGEN_FUSED "--L 1"},
    // Caches with a length for each sequence, in pages.
    {"page_of_the_first_row", kPages, "kPage % kRows == 0", "true", ROOFGEN_PAGED},
    {"page_of_the_next_row", kPages, "__ldg(table + k / kPage)", "__ldg(table + (k + 1) / kPage)", ROOFGEN_PAGED},
    {"pages_in_order", kPages, "__ldg(table + k / kPage)", "static_cast<int>(k / kPage)", ROOFGEN_PAGED},
    {"table_of_another_sequence", kShared, "static_cast<long long>(batch) *", "static_cast<long long>(batch ^ 1) *",
     ROOFGEN_PAGED},
    {"table_by_split", kShared, "static_cast<long long>(batch) *", "static_cast<long long>(blockIdx.z) *",
     ROOFGEN_DECODE "--L 1 --kv-lengths 300,177 --page 16 --variant split3"},
    {"length_of_another_sequence", kFused, "kv_len = kv_lengths[batch];", "kv_len = kv_lengths[batch ^ 1];",
     ROOFGEN_PAGED},
    {"length_of_another_sequence_unpaged", kFused, "kv_len = kv_lengths[batch];", "kv_len = kv_lengths[0];",
     ROOFGEN_DECODE "--L 1 --kv-lengths 300,77 --variant fused"},
    {"capacity_as_length", kFused, "  kv_len = kv_lengths[batch];", "  //",
     ROOFGEN_DECODE "--L 1 --kv-lengths 300,77 --variant fused"},
    {"capacity_as_length_of_splits", kFused, "  kv_len = kv_lengths[batch];", "  //", ROOFGEN_RAGGED_SPLIT},
    {"page_offset_of_32_bits", kPages, "__ldg(table + k / kPage) * page_bytes",
     "static_cast<int>(__ldg(table + k / kPage) * page_bytes)",
     "attention --d 128 --heads 8 --kv-heads 8 --L 1 --kv-len 131072 --batch 32 --page 16 --variant fused"},
    {"cache_offset_of_32_bits", kFused, "k + batch * k_batch_stride", "k + static_cast<int>(batch * k_batch_stride)",
     "attention --d 128 --heads 8 --kv-heads 8 --L 1 --kv-len 131072 --batch 32 --variant fused"},
    // Scores and values in memory, with the heads of a group as rows of a tile.
    {"scores_with_the_first_head_of_the_group", kScores, "tile_rows.head(i) * q_head_stride", "0 * q_head_stride",
     ROOFGEN_UNFUSED "--L 2"},
    {"scores_written_in_the_order_of_rows", kScores, "tile_rows.head(i) * head_rows + tile_rows.row(i)", "i",
     ROOFGEN_UNFUSED "--L 3 --causal"},
    {"scores_of_unused_rows_written", kScores, "tile_rows.used(i) ? to", "true ? to",
     "attention --d 64 --heads 10 --kv-heads 2 --L 1 --kv-len 300 --batch 2 --variant unfused --set pack_gqa=true"},
    {"scores_of_the_head_of_another_group", kScores, "kv_head * k_head_stride", "(kv_head ^ 1) * k_head_stride",
     ROOFGEN_UNFUSED "--L 1"},
    {"score_expression_of_another_head", kScores, "head0 + tile_rows.head(in_tile)", "head0",
     ROOFGEN_UNFUSED "--L 1 --score 's * (1 + h)'"},
    {"mask_of_the_first_head_decides", kRows, "part.some |= truth.some;", "",
     ROOFGEN_UNFUSED "--L 1 --mask 'q - k < 40 + 60 * h'"},
    {"whole_tile_by_the_first_head", kRows, "part.all &= truth.all;", "",
     ROOFGEN_DECODE "--L 1 --kv-len 300 --batch 2 --variant fused --set pack_gqa=true --mask 'q - k < 290 - 30 * h'"},
    {"probabilities_of_another_row", kPv, "tile_rows.head(i) * head_rows + tile_rows.row(i)",
     "tile_rows.head(i) * head_rows", ROOFGEN_UNFUSED "--L 3"},
    {"output_of_another_head", kPv, "tile_rows.head(i) * o_head_stride", "(tile_rows.head(i) ^ 1) * o_head_stride",
     ROOFGEN_UNFUSED "--L 1"},
    {"probabilities_by_the_mask_of_one_head", kPv, "tables.of_head(head0 + tile_rows.head(i))", "tables.of_head(head0)",
     ROOFGEN_UNFUSED "--L 1 --mask 'q - k < 40 + 60 * h'"},
    // Rotary embedding.
    {"queries_rotated_by_their_row", kFused, "used ? first_new + row0 + row : 0", "used ? row0 + row : 0",
     ROOFGEN_ROTARY},
    {"queries_rotated_by_the_next_position", kFused, "used ? first_new + row0 + row : 0",
     "used ? first_new + row0 + row + 1 : 0", ROOFGEN_ROTARY},
    {"keys_rotated_by_their_row_of_the_tile", kFused, "unit, j * BN + row, angles", "unit, row, angles",
     ROOFGEN_ROTARY},
    {"keys_not_rotated", kFused, "elif rotary and (rotates_keys or append)", "elif rotary and append", ROOFGEN_ROTARY},
    {"sine_of_the_other_sign", kRotary, "-y * angle.y", "y * angle.y", ROOFGEN_ROTARY},
    {"columns_of_other_pairs", kRotary, "rotate(x[i], y[i],", "rotate(x[i], y[7 - i],", ROOFGEN_ROTARY},
    {"turns_of_another_pair", kRotary, "kTurns[unit * kUnitPairs + i]", "kTurns[unit * kUnitPairs + (i ^ 1)]",
     ROOFGEN_ROTARY},
    {"neighbours_of_other_pairs", kRotary, "rotate(x[2 * i], x[2 * i + 1],", "rotate(x[2 * i + 1], x[2 * i],",
     ROOFGEN_DECODE "--L 3 --kv-len 300 --batch 2 --append --rotary interleaved --variant fused"},
    {"cosines_for_sines", kRotary, "__ldg(row + kRotary / 2)", "__ldg(row)", ROOFGEN_ROTARY "--rotary-table"},
    {"all_columns_rotated", kRotary, "kRotary == D || 8 * unit < kRotary", "true",
     ROOFGEN_DECODE "--L 3 --kv-len 300 --batch 2 --rotary interleaved --rotary-table --rotary-dim 32 --variant fused"},
    {"scores_before_the_rotation", kFused, "    });\n    __syncthreads();\n{% if append %}\n    }",
     "    });\n{% if append %}\n    }", ROOFGEN_ROTARY},
    // New keys and values.
    {"old_keys_rotated_again", kFused, "\"row < unrotated || \"", "\"\"", ROOFGEN_APPEND "fused"},
    {"appended_one_too_early", kAppend, "old_keys(first_new + row0 + i)", "old_keys(first_new + row0 + i - 1)",
     ROOFGEN_APPEND "fused"},
    {"appended_key_of_another_position", kAppend, "\", first_new + row0 + i, angles\"", "\", row0 + i, angles\"",
     ROOFGEN_APPEND "fused"},
    {"new_values_of_another_head", kAppend, "kv_head * v_new_head_stride", "(kv_head ^ 1) * v_new_head_stride",
     ROOFGEN_APPEND "fused"},
    {"new_keys_read_from_the_cache", kAppend, "key < first_new ?", "true ?", ROOFGEN_APPEND "fused"},
    {"new_keys_read_while_another_cta_writes_them", kAppend, "key < first_new ?", "true ?", ROOFGEN_APPEND "split3"},
    {"appended_by_no_split", kAppend, "if (split != 0) return;", "if (split != splits) return;",
     ROOFGEN_APPEND "split3"},
    {"appended_past_the_page", kAppend, "old_values(first_new + row0 + i)",
     "old_values(first_new + row0) + i * v_copy.row_bytes",
     ROOFGEN_DECODE "--L 4 --kv-lengths 291,83 --page 16 --append --variant fused"},
    {"rotated_query_of_another_head", kPrologue, "kv_heads * group + head) * D",
     "kv_heads * group + kv_head * group) * D", ROOFGEN_APPEND "prologue_fused"},
    {"prologue_appends_to_the_start", kPrologue, "key = first_new + row;", "key = row;",
     ROOFGEN_APPEND "prologue_fused"},
    // Caches in fp8.
    {"scale_of_another_head", kFused, "*= k_scale[{{ \"kv_head\"", "*= k_scale[{{ \"(kv_head ^ 1)\"",
     ROOFGEN_CACHE_8 "fused"},
    {"value_scale_left_out", kMerge, "\" * value_scale\"", "\"\"", ROOFGEN_CACHE_8 "split3"},
    {"scores_before_the_conversion", kFused, "convert_tiles(j * BN, read_stage);\n    __syncthreads();",
     "convert_tiles(j * BN, read_stage);", ROOFGEN_CACHE_8 "fused"},
    {"halves_of_a_chunk_exchanged", kFp8, "second_first ? high : low", "second_first ? low : high",
     ROOFGEN_CACHE_8 "fused"},
    {"appended_without_the_scale", kRotary, "scaled[i] = x[i] * scale", "scaled[i] = x[i]",
     ROOFGEN_CACHE_8 "fused --append"},
    {"appended_key_with_the_scale_of_values", kAppend, "quantised(x, to_k_cache)", "quantised(x, to_v_cache)",
     ROOFGEN_CACHE_8 "fused --append"},
};

class WrongAttentionKernels : public testing::TestWithParam<Wrong> {};

TEST_P(WrongAttentionKernels, AreRejected) { expect_rejected(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Slow, WrongAttentionKernels, testing::ValuesIn(kWrong), testing::PrintToStringParamName());

}  // namespace
}  // namespace roofgen::test::wrong_attention_kernels_test
