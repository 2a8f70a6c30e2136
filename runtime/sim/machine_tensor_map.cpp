// tensormap.replace, tensormap.cp_fenceproxy and the fences of the proxy of tensor maps: a kernel changes a map, and
// its copies may use the map after fence.proxy.tensormap::generic.acquire.
#include <fmt/format.h>

#include <cstring>

#include "runtime/sim/machine.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen::sim {
namespace {

/// Of integers, which have none, any bits but 0: the type may come after the mode.
uint64_t nan_of(TensorData data) {
  switch (data) {
    case TensorData::kF16:
    case TensorData::kBf16: return 0x7fff;
    case TensorData::kF32: return 0x7fffffff;
    default: return 0x7fffffffffffffff;
  }
}

/// PTX ISA, tensormap.replace, "Tensormap new_val validity": values of .elemtype.
constexpr TensorData kReplacedBy[] = {TensorData::kU8,  TensorData::kU16, TensorData::kU32,  TensorData::kS32,
                                      TensorData::kU64, TensorData::kS64, TensorData::kF16,  TensorData::kF32,
                                      TensorData::kF32, TensorData::kF64, TensorData::kBf16, TensorData::kF32,
                                      TensorData::kF32};
constexpr uint64_t kTf32 = 11;                                // and later ones
constexpr uint8_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};  // by TensorData

/// Changes one field. Why the value cannot be; "not modelled" before what can be, but is not modelled.
std::string replaced(TensorView& view, TensorMapOp field, uint32_t at, uint64_t value) {
  const auto is = [&](bool good, const char* expected) { return good ? "" : fmt::format("expected {}", expected); };
  const uint64_t unit = at == 0 ? view.per_byte : 1;
  switch (field) {
    case TensorMapOp::kAddress: return view.address = value, is(value % 16 == 0, "a multiple of 16");
    case TensorMapOp::kRank:
      if (value >= kMaxTensorRank) return "expected one less than the dimensions, 0 to 4";
      return view.rank = static_cast<uint32_t>(value) + 1, "";
    case TensorMapOp::kBox:
      return view.box[at] = static_cast<uint32_t>(value / unit), is(value - 1 < 256 && value % unit == 0, "1 to 256");
    case TensorMapOp::kDimension: return view.dims[at] = (value ? value : uint64_t{1} << 32) / unit, "";
    case TensorMapOp::kStride:
      if (at + 1 >= kMaxTensorRank) return "expected an ordinal from 0 to 3";
      return view.strides[at + 1] = value, is(value % 16 == 0 && value >> 40 == 0, "a multiple of 16 below 2^40");
    case TensorMapOp::kStep:  // of the contiguous dimension it has no effect, as in the driver
      if (at) view.steps[at] = static_cast<uint32_t>(value);
      return is(value - 1 < 8, "1 to 8");
    case TensorMapOp::kElements: {
      if (value >= std::size(kReplacedBy))
        return value < 16 ? "not modelled: elements of 4 or 6 bits" : "expected 0 to 15";
      const bool fills = view.fill;
      view.data = kReplacedBy[value];
      view.element_bytes = kBytes[static_cast<size_t>(view.data)];
      view.per_byte = 1;
      view.to_tf32 = value >= kTf32;
      view.fill = fills ? nan_of(view.data) : 0;
      return "";
    }
    case TensorMapOp::kInterleave: return value && value < 3 ? "not modelled: interleaved layouts" : is(!value, "0");
    case TensorMapOp::kSwizzle:
      if (value == 4) return "not modelled: swizzles of 96 bytes";
      if (value > 3) return "expected 0 to 4";
      view.swizzle_bytes = value ? 16u << value : 0;
      return "";
    case TensorMapOp::kAtom:
      if (value == 2) return "not modelled: the flip of 8 bytes";
      if (value > 3) return "expected 0 to 3";
      view.atom = value == 3 ? 64 : 16u << value;
      return "";
    case TensorMapOp::kFill: return view.fill = value ? nan_of(view.data) : 0, is(value < 2, "0 or 1");
    default: return "";
  }
}

}  // namespace

void Machine::change_tensor_map(Warp& w, const Inst& in, uint32_t mask) {
  const auto op = static_cast<TensorMapOp>(in.sub);
  uint64_t to[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, to);
  if (op == TensorMapOp::kAcquire) {
    for (uint32_t m = mask; m; m &= m - 1) changed_maps_.erase(to[first_lane(m)]);
    return emit(Fence{site(w), false});
  }
  if (op == TensorMapOp::kPublish) require_full(w, in, mask, "partial-warp", "tensormap.cp_fenceproxy");
  const auto is_shared = [](uint64_t address) { return address >= kSharedBase && address < kSharedWindowEnd; };
  const auto check = [&](uint64_t address, uint32_t bytes, uint32_t lane) {
    if (address % bytes)
      throw Fault{"misaligned", fmt::format("tensor map at {}, which is not aligned to {} bytes", text(address), bytes),
                  lane};
  };
  const auto read = [&](uint64_t address, uint32_t lane, std::byte* out) {
    for (uint32_t i = 0; i < kTensorMapBytes; i += 16) {
      if (!is_shared(address)) {
        read_device(w, address + i, 16, lane, out + i, false);
        continue;
      }
      const uint32_t offset = shared_offset(address + i, 16, lane);
      emit_shared(w, Op::kRead, offset, 16, lane, false, 0, *this);
      std::memcpy(out + i, shared_.data() + offset, 16);
    }
  };
  const auto write = [&](uint64_t address, uint32_t lane, const std::byte* from) {
    for (uint32_t i = 0; i < kTensorMapBytes; i += 16) {
      if (!is_shared(address)) {
        write_device(w, address + i, 16, lane, from + i);
        continue;
      }
      const uint32_t offset = shared_offset(address + i, 16, lane);
      emit_shared(w, Op::kWrite, offset, 16, lane, false, 0, *this);
      std::memcpy(shared_.data() + offset, from + i, 16);
    }
    if (!is_shared(address)) changed_maps_[address] = w.pc;
  };
  alignas(16) std::byte bytes[kTensorMapBytes];
  if (op == TensorMapOp::kPublish) {
    const uint64_t from = row(w, in.c)[0] + in.target;
    check(to[0], 64, 0);
    check(from, 64, 0);
    read(from, 0, bytes);
    write(to[0], 0, bytes);
    return emit(Fence{site(w), false});
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    check(to[l], 64, l);
    read(to[l], l, bytes);
    TensorView view;
    if (!view.read(bytes)) throw Fault{"bad-tensor-map", fmt::format("no tensor map at {}", text(to[l])), l};
    const uint64_t value = in.size == 8 ? wide_row(w, in.b)[l] : row(w, in.b)[l];
    const std::string why = replaced(view, op, in.count, value);
    constexpr std::string_view kNotModelled = "not modelled: ";
    if (why.starts_with(kNotModelled))
      throw Fault{"not-modelled", fmt::format("{} of a tensor map are not modelled", why.substr(kNotModelled.size())),
                  l};
    if (!why.empty())
      throw Fault{"bad-tensor-map", fmt::format("{} = {} of a tensor map: {}", kTensorMapFields[in.sub], value, why),
                  l};
    view.encode(bytes);
    write(to[l], l, bytes);
  }
}

}  // namespace roofgen::sim
