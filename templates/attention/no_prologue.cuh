// Q and keys that attention/fused.cu.jinja multiplies as they are.

struct Prologue {
  __device__ __forceinline__ Prologue(const Inputs&, const Tile&, int) {}
  __device__ __forceinline__ void rotate_q(unsigned) const {}
  template <class KeyRows>
  __device__ __forceinline__ void append(const Launch&, const KeyRows&, const KeyRows&) const {}
  template <class KeyRows>
  __device__ __forceinline__ void prepare(const KeyRows&, const KeyRows&, unsigned, unsigned, int) const {}
};
