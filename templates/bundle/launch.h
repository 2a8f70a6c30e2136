/* Tensor maps and attributes of a launch, as the driver takes them. Bundles have this text in their C file, roofgen's
 * executor is compiled with it (runtime/cuda/launch.cpp). C11 and C++20. Before it: driver_types.h or cuda.h, and
 * CUresult and CUfunction. */

/* What cuTensorMapEncodeTiled takes but the address. */
typedef struct {
  CUtensorMapDataType type;
  cuuint32_t rank;
  int swizzle_bytes, promotion_bytes; /* 0: none */
  int nan_fill;                       /* elements out of bounds are NaN, else 0 */
  cuuint64_t dims[5], stride_bytes[5];
  cuuint32_t box[5];
} launch_map;

typedef CUresult (*launch_encoder)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                   const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                   CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* The driver's number for a span of bytes: 0 for none, 1 for the first, one more for each double of it. */
static inline int launch_span(int bytes, int first) {
  int code = 0;
  for (; bytes >= first; bytes /= 2) ++code;
  return code;
}

static inline CUresult launch_encode(launch_encoder encode, CUtensorMap* out, const launch_map* map, uint64_t address) {
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  return encode(out, map->type, map->rank, (void*)(uintptr_t)address, map->dims, map->stride_bytes, map->box, steps,
                (CUtensorMapInterleave)0, (CUtensorMapSwizzle)launch_span(map->swizzle_bytes, 32),
                (CUtensorMapL2promotion)launch_span(map->promotion_bytes, 64), (CUtensorMapFloatOOBfill)map->nan_fill);
}

typedef CUresult (*launch_entry)(const CUlaunchConfig*, CUfunction, void**, void**);

/* `cluster`: its CTAs by dimension. `overlaps`: may begin before the kernel in front of it has ended. */
static inline CUresult launch_queue(launch_entry entry, CUfunction function, CUlaunchConfig config,
                                    const unsigned int cluster[3], int overlaps, void** parameters) {
  CUlaunchAttribute attributes[2];
  config.attrs = attributes, config.numAttrs = 0;
  if (cluster[0] * cluster[1] * cluster[2] > 1) {
    CUlaunchAttribute* a = &attributes[config.numAttrs++];
    a->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a->value.clusterDim.x = cluster[0], a->value.clusterDim.y = cluster[1], a->value.clusterDim.z = cluster[2];
  }
  if (overlaps) {
    CUlaunchAttribute* a = &attributes[config.numAttrs++];
    a->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    a->value.programmaticStreamSerializationAllowed = 1;
  }
  return entry(&config, function, parameters, NULL);
}
