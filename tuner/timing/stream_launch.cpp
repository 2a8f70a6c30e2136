// The launch of a generated kernel as the interpreter of machine code takes it.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "runtime/sim/tensor_map.h"
#include "tuner/timing/launch_time.h"

namespace roofgen::timing {
namespace {

/// A tensor map in the form that the simulator and the interpreter read.
std::array<std::byte, sim::kTensorMapBytes> encoded(const TensorMap& map, uint64_t address) {
  sim::TensorView view;
  view.address = address;
  view.rank = static_cast<uint32_t>(map.dims.size());
  view.element_bytes = static_cast<uint32_t>(size_of(map.dtype));
  view.swizzle_bytes = static_cast<uint32_t>(map.swizzle_bytes);
  for (uint32_t d = 0; d < view.rank; ++d) {
    view.dims[d] = map.dims[d];
    view.box[d] = map.box[d];
    if (d) view.strides[d] = map.stride_bytes[d - 1];
  }
  std::array<std::byte, sim::kTensorMapBytes> out{};
  view.encode(out.data());
  return out;
}

}  // namespace

sass::StreamLaunch stream_launch(const Launch& launch, const ReadBuffer& read) {
  // Far above any offset in a buffer, far below the range of local memory (kLocalLines).
  constexpr uint64_t kFirstBuffer = uint64_t{0x7} << 40, kApart = uint64_t{1} << 38;
  sass::StreamLaunch out;
  out.grid = launch.grid;
  out.block = launch.block;
  out.dynamic_smem = launch.smem_bytes;
  out.cluster = launch.cluster;
  for (const GridAxis& axis : launch.axes)
    out.axes.at(static_cast<size_t>(axis.dim)).push_back(static_cast<uint32_t>(axis.extent));
  std::vector<std::string> buffers;
  const auto pass = [&](const void* from, size_t bytes, size_t align) {
    out.params.resize((out.params.size() + align - 1) / align * align);
    const auto* begin = static_cast<const std::byte*>(from);
    out.param_places.emplace_back(out.params.size(), bytes);
    out.params.insert(out.params.end(), begin, begin + bytes);
  };
  for (const Arg& a : launch.args) {
    if (a.map) {
      const uint64_t address = kFirstBuffer + buffers.size() * kApart;
      buffers.push_back(a.name);
      const std::array<std::byte, sim::kTensorMapBytes> descriptor = encoded(*a.map, address);
      pass(descriptor.data(), descriptor.size(), 64);
    } else if (a.is_buffer) {
      const uint64_t address = kFirstBuffer + buffers.size() * kApart;
      buffers.push_back(a.name);
      pass(&address, sizeof address, sizeof address);
    } else if (!a.data.empty()) {
      pass(a.data.data(), a.data.size(), 8);
    } else {
      pass(&a.bits, a.bytes, a.bytes);
    }
  }
  if (read)
    out.read = [buffers = std::move(buffers), read](uint64_t address, std::span<std::byte> to) {
      const uint64_t at = address - kFirstBuffer;
      return address >= kFirstBuffer && at / kApart < buffers.size() && read(buffers[at / kApart], at % kApart, to);
    };
  return out;
}

}  // namespace roofgen::timing
