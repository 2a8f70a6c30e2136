// The arguments of an attention kernel, the sequences of its batch, and where the tile of a CTA lies that has one. The
// kernel defines Half, kRagged, kVarlen, kSection and kSplit; Tables hold what its score expression and mask read.

/// The arguments of a launch, beside its tensors. One that the kernel does not have is 0.
struct Launch {
  int q_len, kv_len;  // of all sequences, or the longest
  int group;          // heads that share K and V
  float scale;        // kScored: of the scores; else with the base of the exponentials. fp8: of 1
  int heads = 0, batches = 0, splits = 1;
  const float *q_scale = nullptr, *k_scale = nullptr, *v_scale = nullptr;  // one, or one of each K/V head
  const int *kv_lengths = nullptr, *cu_seqlens = nullptr;                  // keys of a sequence; its first token
  const int* block_table = nullptr;
  int pages_per_sequence = 0;
  float *partial_o = nullptr, *partial_lse = nullptr, *lse = nullptr;
  unsigned* arrivals = nullptr;
  Half* o = nullptr;
  long long o_batch_stride = 0, o_row_stride = 0, o_head_stride = 0;
  Tables tables{};  // of the score expression and the mask: their tensors
};

/// A sequence of the batch.
struct Sequence {
  int batch, heads;  // heads: all
  int q_len, kv_len;
  int first_token = 0, tokens = 0;  // kVarlen: its first token, and the tokens of all `batches`
  __device__ __forceinline__ Sequence(const Launch& launch, int batch, [[maybe_unused]] unsigned batches, int heads)
      : batch(batch), heads(heads), q_len(launch.q_len), kv_len(launch.kv_len) {
    if constexpr (kRagged) kv_len = launch.kv_lengths[batch];
    if constexpr (kVarlen) {
      // Sequences are packed without gaps; this one may be shorter than the longest.
      first_token = launch.cu_seqlens[batch];
      tokens = launch.cu_seqlens[batches];
      q_len = kv_len = launch.cu_seqlens[batch + 1] - first_token;
    }
  }
  /// A row of a head in an array [head][token] or [sequence][head][query].
  __device__ __forceinline__ long long row_index(int of_head, int row) const {
    if constexpr (kVarlen) return static_cast<long long>(of_head) * tokens + first_token + row;
    return (static_cast<long long>(batch) * heads + of_head) * q_len + row;
  }
  /// A row of a head in O.
  __device__ __forceinline__ Half* output(const Launch& launch, int of_head, int row) const {
    return launch.o + first_token * launch.o_row_stride + batch * launch.o_batch_stride +
           of_head * launch.o_head_stride + row * launch.o_row_stride;
  }
};

/// Where the tile of a CTA that has one lies. Last rows first: with a causal mask they take longest. The same rows of a
/// section of heads run together.
struct OnePlace {
  static constexpr int first = 0, last = 0, parts = 1;
  int row = gridDim.x / kSection - 1 - blockIdx.x / kSection;
  int head = blockIdx.y * kSection + blockIdx.x % kSection;
  int batch, part;
  __device__ __forceinline__ explicit OnePlace(const Launch& launch)
      : batch(kSplit ? blockIdx.z / launch.splits : blockIdx.z), part(kSplit ? blockIdx.z % launch.splits : 0) {}
};
