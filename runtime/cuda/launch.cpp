// Launches: arguments, tensor maps, shared memory, clusters, overlap.
#include "runtime/cuda/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/cuda/executor.h"

namespace roofgen::cuda {
namespace {

constexpr uint64_t kPortableCluster = 8;  ///< CTAs; larger clusters depend on the GPU and need an opt-in

std::string size_text(const Dim3& d) { return fmt::format("{} x {} x {}", d.x, d.y, d.z); }

using CUresult = Status;
using CUfunction = Handle;
#include "templates/bundle/launch.h"

CUtensorMapDataType tensor_type(DType dtype) {
  switch (dtype) {
    case DType::kBf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::kFp16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::kFp32:
    case DType::kTf32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::kFp8:
    case DType::kInt8: return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case DType::kInt32: return CU_TENSOR_MAP_DATA_TYPE_INT32;
  }
  return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

}  // namespace

Status encode(const Driver& driver, const TensorMap& map, Address address, TensorMapBytes* out) {
  launch_map from{tensor_type(map.dtype),
                  static_cast<uint32_t>(map.dims.size()),
                  map.swizzle_bytes,
                  map.l2_promotion_bytes,
                  map.nan_fill,
                  {},
                  {},
                  {}};
  std::ranges::copy(map.dims, from.dims);
  std::ranges::copy(map.stride_bytes, from.stride_bytes);
  std::ranges::copy(map.box, from.box);
  return launch_encode(driver.encode_tensor_map, out, &from, address);
}

Result<void> Parameters::set(std::vector<Arg>& args,
                             const std::function<Result<void>(const Arg&, TensorMapBytes*)>& encode) {
  words_.reserve(args.size());  // `pointers_` refers to both vectors, so they must not reallocate
  maps_.reserve(args.size());
  pointers_.reserve(args.size());
  for (Arg& arg : args) {
    if (arg.map) {
      maps_.emplace_back();
      ROOFGEN_CHECK(encode(arg, &maps_.back()));
      pointers_.push_back(&maps_.back());
    } else if (!arg.data.empty()) {
      pointers_.push_back(arg.data.data());
    } else {
      words_.push_back(arg.bits);  // little-endian, so a 4-byte argument is the first half of its word
      pointers_.push_back(&words_.back());
    }
  }
  return {};
}

Status queue(const Driver& driver, Handle function, Handle stream, const Launch& launch, bool overlap,
             Parameters& parameters) {
  const Dim3 &grid = launch.grid, &block = launch.block;
  const bool cluster = launch.cluster.count() > 1;
  if (!overlap && !cluster)
    return driver.launch(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, launch.smem_bytes, stream,
                         parameters.data(), nullptr);
  const LaunchConfig config{grid.x, grid.y, grid.z, block.x, block.y, block.z, launch.smem_bytes, stream, nullptr, 0};
  const unsigned ctas[] = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
  return launch_queue(driver.launch_ex, function, config, ctas, overlap, parameters.data());
}

Result<void> CudaExecutor::encode(const Arg& arg, const std::string& entry, TensorMapBytes* out) {
  auto refused = [&](const std::string& why) {
    return refuse(fmt::format("kernel {}: tensor map {}: {}", entry, arg.name, why));
  };
  if (!tensor_maps_)
    return refused(fmt::format("{} ({}) has none; sm_90 and newer have", info_.device_name, info_.arch));
  if (auto have = driver_->have(driver_->encode_tensor_map, "tensor maps"); !have)
    return refuse(have.error().message, have.error().exit);
  // The driver would only say "invalid argument".
  if (std::string why = fault_in(*arg.map, arg.bits); !why.empty()) return refused(why);
  return check(cuda::encode(*driver_, *arg.map, arg.bits, out),
               fmt::format("kernel {}: encoding tensor map {}", entry, arg.name));
}

/// Sets the attributes that a function needs once before such a launch.
Result<void> CudaExecutor::reserve(Module& kernel, const Launch& launch) {
  if (launch.smem_bytes > max_smem_)
    return refuse(fmt::format("kernel {} needs {} bytes of shared memory; {} has {}", kernel.entry, launch.smem_bytes,
                              info_.device_name, max_smem_));
  // Without this opt-in, a launch is limited to 48 KiB.
  if (launch.smem_bytes > kernel.smem_limit) {
    ROOFGEN_CHECK(check(
        driver_->set_function_attribute(kernel.function, kFunctionMaxDynamicSmem, static_cast<int>(launch.smem_bytes)),
        fmt::format("reserving {} bytes of shared memory for kernel {}", launch.smem_bytes, kernel.entry)));
    kernel.smem_limit = launch.smem_bytes;
  }
  const Dim3 &cluster = launch.cluster, &grid = launch.grid;
  if (cluster.count() == 1) return {};
  if (!clusters_)
    return refuse(fmt::format("kernel {}: {} ({}) has no clusters; sm_90 and newer have", kernel.entry,
                              info_.device_name, info_.arch));
  if (cluster.count() == 0 || grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
    return refuse(fmt::format("kernel {}: a grid of {} CTAs cannot be cut into clusters of {}", kernel.entry,
                              size_text(grid), size_text(cluster)));
  if (cluster.count() > kPortableCluster && !kernel.big_clusters) {
    ROOFGEN_CHECK(check(driver_->set_function_attribute(kernel.function, kFunctionBigClusters, 1),
                        fmt::format("allowing clusters of {} CTAs for kernel {}", cluster.count(), kernel.entry)));
    kernel.big_clusters = true;
  }
  return {};
}

Result<CudaExecutor::Prepared> CudaExecutor::prepare(ModuleId module, const Launch& launch) {
  auto at = modules_.find(module.id);
  if (at == modules_.end()) return refuse(fmt::format("module {} is not loaded", module.id));
  ROOFGEN_CHECK(reserve(at->second, launch));
  Prepared out;
  out.function = at->second.function;
  out.entry = at->second.entry;
  out.launch = launch;
  // Overlap is optional; GPUs before sm_90 do not support it.
  out.overlap = launch.overlap && info_.driver.cc >= 90;
  if (out.attributes())
    if (auto have = driver_->have(driver_->launch_ex, "clusters and overlapping launches"); !have)
      return refuse(have.error().message, have.error().exit);
  ROOFGEN_CHECK(out.parameters.set(out.launch.args,
                                   [&](const Arg& arg, TensorMapBytes* map) { return encode(arg, out.entry, map); }));
  return out;
}

/// `first`: the preceding work in the stream is unrelated, so it must not overlap with this launch.
Result<void> CudaExecutor::queue(Prepared& kernel, bool first) {
  const Status status =
      cuda::queue(*driver_, kernel.function, stream_, kernel.launch, kernel.overlap && !first, kernel.parameters);
  return status == 0 ? Result<void>() : check(status, "running kernel " + kernel.entry);
}

Result<RunResult> CudaExecutor::run(ModuleId module, const Launch& launch, const RunOptions&) {
  ROOFGEN_CHECK(enter());
  ROOFGEN_TRY(Prepared kernel, prepare(module, launch));
  const std::string doing = "running kernel " + kernel.entry;
  ROOFGEN_CHECK(check(driver_->record_event(start_, stream_), doing));
  ROOFGEN_CHECK(queue(kernel, true));
  ROOFGEN_CHECK(check(driver_->record_event(stop_, stream_), doing));
  ROOFGEN_CHECK(synchronize(doing));
  float ms = 0;
  ROOFGEN_CHECK(check(driver_->elapsed_ms(&ms, start_, stop_), "timing kernel " + kernel.entry));
  RunResult result;
  result.time_ns = double{ms} * 1e6;
  return result;
}

}  // namespace roofgen::cuda
