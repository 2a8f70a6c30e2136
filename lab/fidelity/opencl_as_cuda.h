// Maps the OpenCL C of CLBlast's Xgemm to CUDA C++. Kept close to NVIDIA's OpenCL compiler: vector types are aligned to
// their size (a float8 is two 16-byte accesses, not eight of 4 bytes), and work-item functions return size_t. `__local`
// before a pointer is removed by the recipe (kernels.py), because CUDA has address spaces for variables only.
//
// The measured times are those of code as NVRTC makes it with --relocatable-device-code; this file and the recipe cause
// nearly that code without the option. There, arrays in local memory get their place from the linker, so that they have
// the alignment of their elements, and neighbouring accesses do not become wider ones. Registers are bounded by the
// required work-group size alone (the 1 below), not by a number of resident work-groups that ptxas would like.
#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define restrict __restrict__
#define reqd_work_group_size(x, y, z) launch_bounds((x) * (y) * (z), 1)
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(fences) __syncthreads()

struct __align__(32) float8 {
  float s0, s1, s2, s3, s4, s5, s6, s7;
};
struct __align__(64) float16 {
  float s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, sA, sB, sC, sD, sE, sF;
};

static __device__ __forceinline__ size_t get_local_id(int axis) { return axis == 0 ? threadIdx.x : threadIdx.y; }
static __device__ __forceinline__ size_t get_group_id(int axis) { return axis == 0 ? blockIdx.x : blockIdx.y; }

// The array itself; by an offset that is zero, but that the compiler does not know, if wider accesses are possible.
template <typename Element>
static __device__ __forceinline__ Element* element_aligned(Element* array, int size) {
  return sizeof(Element) < 16 ? array + (size >> 31) : array;
}

// Unlike the place of an array that the linker knows, that offset keeps ptxas from unrolling the loop over a tile.
#define TILE_UNROLLS (((SA == 1 && VWM < 4) || (SB == 1 && VWN < 4)) && (MWG / MDIMC) * (NWG / NDIMC) <= 32)

// The published source marks its functions `inline` where this is set, and has no other functions.
#define USE_INLINE_KEYWORD
#define inline __device__ __forceinline__
