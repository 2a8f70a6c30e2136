// Where a thread keeps its groups of a row between the passes over it: one struct for each value of `residency`, all
// with the same members. Needs the parameters of rows.cu.jinja and lib/thread_slots.cuh.
//   kUnrolled  one batch has all groups, so that indices are constants and arrays stay in registers
//   kReloads   every pass loads the groups from memory; else only pass 0
//   kReplays   a pass gets x as memory has it and must apply the phases before again; else as the last pass left it
//   loaded     called in pass 0 with each group from memory
//   take       called in later passes, if they do not reload: the group
//   changed    called at the end of each pass that reduces, with what the phase made of the group
// A group has an index `slot` among those of its kind for row r: kHeldGroups are the first kHeld ones, which
// Kept_packed has in registers.

extern __shared__ uint4 dynamic_shared[];

struct Kept_memory {
  static constexpr bool kUnrolled = false, kReloads = true, kReplays = true;
  template <bool kHeldGroups>
  __device__ __forceinline__ void loaded(int r, int slot, const Pack<Source, kVec>& group) {}
  template <bool kHeldGroups>
  __device__ __forceinline__ void take(int r, int slot, float (&v)[kVec]) const {}
  __device__ __forceinline__ void changed(int r, int slot, const float (&v)[kVec]) {}
};

struct Kept_registers {
  static constexpr bool kUnrolled = true, kReloads = false, kReplays = false;
  float x[kRowsEach][kChunks][kVec];

  template <bool kHeldGroups>
  __device__ __forceinline__ void loaded(int r, int slot, const Pack<Source, kVec>& group) {}
  template <bool kHeldGroups>
  __device__ __forceinline__ void take(int r, int slot, float (&v)[kVec]) const {
#pragma unroll
    for (int j = 0; j < kVec; ++j) v[j] = x[r][slot][j];
  }
  __device__ __forceinline__ void changed(int r, int slot, const float (&v)[kVec]) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) x[r][slot][j] = v[j];
  }
};

/// fp32 in shared memory.
struct Kept_shared {
  static constexpr bool kUnrolled = false, kReloads = false, kReplays = false;
  static __device__ __forceinline__ ThreadSlots<float, kVec, kThreads> slots() {
    return ThreadSlots<float, kVec, kThreads>(dynamic_shared);
  }

  template <bool kHeldGroups>
  __device__ __forceinline__ void loaded(int r, int slot, const Pack<Source, kVec>& group) {}
  template <bool kHeldGroups>
  __device__ __forceinline__ void take(int r, int slot, float (&v)[kVec]) const {
    slots().take(r * kChunks + slot).to_floats(v);
  }
  __device__ __forceinline__ void changed(int r, int slot, const float (&v)[kVec]) {
    Pack<float, kVec> group;
    group.from_floats(v);
    slots().put(r * kChunks + slot, group);
  }
};

/// In the input's format: the first kHeld groups in registers, the others in shared memory.
struct Kept_packed {
  static constexpr bool kUnrolled = false, kReloads = false, kReplays = true;
  Pack<Source, kVec> held[kRowsEach][kHeld > 0 ? kHeld : 1];
  static __device__ __forceinline__ ThreadSlots<Source, kVec, kThreads> slots() {
    return ThreadSlots<Source, kVec, kThreads>(dynamic_shared);
  }

  template <bool kHeldGroups>
  __device__ __forceinline__ void loaded(int r, int slot, const Pack<Source, kVec>& group) {
    if constexpr (kHeldGroups)
      held[r][slot] = group;
    else
      slots().put(r * (kChunks - kHeld) + slot, group);
  }
  template <bool kHeldGroups>
  __device__ __forceinline__ void take(int r, int slot, float (&v)[kVec]) const {
    if constexpr (kHeldGroups)
      held[r][slot].to_floats(v);
    else
      slots().take(r * (kChunks - kHeld) + slot).to_floats(v);
  }
  __device__ __forceinline__ void changed(int r, int slot, const float (&v)[kVec]) {}
};
