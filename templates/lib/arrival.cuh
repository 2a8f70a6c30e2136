// Work whose last arrival does the rest: a counter in device memory that is zero before and after.

/// Arrives at the counter; returns how many arrived before. After `last` others it returns to zero, so that the next
/// launch finds it as this one did.
/// Between two barriers of the CTA one thread's arrival orders all of the CTA's accesses: it releases those before the
/// first barrier, and those after the second come after everything that the earlier arrivals released.
__device__ __forceinline__ unsigned arrive(unsigned* counter, unsigned last) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(counter)), "r"(last)
               : "memory");
  return before;
}

constexpr unsigned kNeverLast = ~0u;  // as `last`, of arrivals that collect() counts
/// Waits for so many arrivals, and sets the counter to zero again. The CTAs that arrive must not depend on this one.
__device__ __forceinline__ void collect(unsigned* counter, unsigned arrivals) {
  asm volatile(
      "{ .reg .pred other; .reg .b32 arrived;\n"
      "poll_%=: atom.acquire.gpu.global.cas.b32 arrived, [%0], %1, 0; setp.ne.u32 other, arrived, %1;\n"
      "@other bra poll_%=; }" ::"l"(__cvta_generic_to_global(counter)),
      "r"(arrivals)
      : "memory");
}
