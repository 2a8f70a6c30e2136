// Textures and surfaces (image.h). Texels are plain accesses to device memory, for counts and checks: one request of
// the warp for each tap of a fetch.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/sim/image.h"
#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

std::string shape(uint32_t rank, bool layered) { return fmt::format("{}{}D", layered ? "layered " : "", rank); }

/// The part of a fetch that a border's colour gives.
uint32_t border(const Image& image, uint32_t channel) {
  const float colour = image.border[channel];
  if (!image.is_read_as_float()) return static_cast<uint32_t>(static_cast<int64_t>(colour));
  uint32_t bits;
  std::memcpy(&bits, &colour, sizeof bits);
  return bits;
}

}  // namespace

/// The image of an object; its shape is the instruction's, unless the instruction asks for a size.
Image Machine::image_at(const Inst& in, uint64_t object, uint32_t lane) {
  const auto op = static_cast<ImageOp>(in.sub);
  const char* const kind = op == ImageOp::kSurface ? "surface" : "texture";
  Image image;
  Buffer* const b = DeviceMemory::find(*state_.buffers, object);
  const uint32_t slot =
      b && (object - b->base) % kLineBytes == 0 ? state_.memory.slot_for_read(*b, (object - b->base) / kLineBytes) : 0;
  if (!slot || !image.decode(state_.memory.data(slot)))
    throw Fault{"bad-texture", fmt::format("{} is no {} object", text(object), kind), lane};
  if (op == ImageOp::kSize) return image;
  if (image.is_surface != (op == ImageOp::kSurface))
    throw Fault{"bad-texture",
                fmt::format("a {} object is used as a {} object", image.is_surface ? "surface" : "texture", kind),
                lane};
  const auto geometry = Inst::Geometry::unpack(in.target);
  if (geometry.rank != image.rank || geometry.layered != (image.layers > 0))
    throw Fault{"bad-texture",
                fmt::format("a {} {} is read as a {} one", shape(image.rank, image.layers > 0), kind,
                            shape(geometry.rank, geometry.layered)),
                lane};
  return image;
}

/// Calls `f(image, lanes)` for each image that the lanes use.
template <class F>
void Machine::each_image(const Warp& w, const Inst& in, uint32_t mask, F&& f) {
  uint64_t objects[kWarpSize];
  addresses(w, in.a, in.flags & kFlagAddr64, in.imm, objects);
  for (uint32_t left = mask; left;) {
    const uint32_t first = first_lane(left);
    uint32_t same = 0;
    for (uint32_t m = left; m; m &= m - 1)
      if (objects[first_lane(m)] == objects[first]) same |= m & (0 - m);
    f(image_at(in, objects[first], first), same);
    left &= ~same;
  }
}

/// Reads each lane's texel elements from the lane's entry in `address`. A finding leaves zeros.
void Machine::read_texels(const Warp& w, uint32_t lanes, const uint64_t* address, uint32_t bytes, uint8_t part,
                          std::byte (*out)[kMostImageBytes]) {
  uint32_t slot[kWarpSize], offset[kWarpSize], inputs = 0;
  for (uint32_t m = lanes; m; m &= m - 1) std::memset(out[first_lane(m)], 0, kMostImageBytes);
  const uint32_t good = possible(w, lanes, [&](uint32_t l) {
    check_alignment(address[l], bytes, l);
    if (device_line(address[l], bytes, l, Op::kRead, false, &slot[l], &offset[l])) inputs |= 1u << l;
  });
  if (!good) return;
  DeviceAccess e{{site(w), Op::kRead, good, bytes}, address, 0, slot, inputs & good};
  e.part = part;
  emit(e);
  for (uint32_t m = good; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    if (slot[l])
      std::memcpy(out[l], state_.memory.data(slot[l]) + offset[l], bytes);
    else
      std::memset(out[l], 0xff, bytes);
  }
}

uint32_t Machine::layer_of(const Warp& w, const uint32_t* list, const Image& image, uint32_t lane) const {
  return image.layers ? std::min(row(w, list[0])[lane], image.layers - 1) : 0;
}

void Machine::fetch(Warp& w, const Inst& in, uint32_t lanes, const Image& image) {
  const auto op = static_cast<ImageOp>(in.sub);
  const uint32_t* const results = kernel_.lists.data() + in.list;
  const uint32_t* const where = results + 4;
  Tap taps[kWarpSize][kMostTaps];
  uint32_t count[kWarpSize] = {}, most = 0;
  for (uint32_t m = lanes; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    float at[3] = {};
    int32_t numbers[3] = {};
    for (uint32_t axis = 0; axis < image.rank; ++axis) {
      const uint32_t bits = row(w, where[axis + (image.layers > 0)])[l];
      std::memcpy(&at[axis], &bits, sizeof bits);
      numbers[axis] = static_cast<int32_t>(bits);
    }
    if (op == ImageOp::kGather)
      taps_of_gather(image, at, taps[l]), count[l] = 4;
    else if (op == ImageOp::kFetchInteger)
      taps[l][0] = tap_at(image, numbers), count[l] = 1;
    else
      count[l] = taps_at(image, at, taps[l]);
    most = std::max(most, count[l]);
  }
  const bool sums = op == ImageOp::kFetch && image.linear;
  double sum[kWarpSize][4] = {};
  alignas(16) std::byte texel[kWarpSize][kMostImageBytes];
  for (uint32_t t = 0; t < most; ++t) {
    uint64_t address[kWarpSize];
    uint32_t inside = 0, has = 0;
    for (uint32_t m = lanes; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      if (t >= count[l]) continue;
      has |= 1u << l;
      if (!taps[l][t].inside) continue;
      inside |= 1u << l;
      address[l] = image.address_of(taps[l][t].at, layer_of(w, where, image, l));
    }
    read_texels(w, inside, address, image.texel_bytes(), static_cast<uint8_t>(t), texel);
    for (uint32_t m = has; m; m &= m - 1) {
      const uint32_t l = first_lane(m);
      uint32_t value[4];
      if (inside >> l & 1)
        read_texel(image, texel[l], value);
      else
        for (uint32_t c = 0; c < 4; ++c) value[c] = border(image, c);
      for (uint32_t c = 0; c < 4; ++c) {
        float x;
        std::memcpy(&x, &value[c], sizeof x);
        if (sums)
          sum[l][c] += static_cast<double>(taps[l][t].weight) * static_cast<double>(x);
        else if (op != ImageOp::kGather)
          row(w, results[c])[l] = value[c];
      }
      if (op == ImageOp::kGather) row(w, results[t])[l] = value[in.type];
    }
  }
  for (uint32_t m = sums ? lanes : 0; m; m &= m - 1)
    for (uint32_t c = 0; c < 4; ++c) {
      const auto x = static_cast<float>(sum[first_lane(m)][c]);
      std::memcpy(&row(w, results[c])[first_lane(m)], &x, sizeof x);
    }
}

/// Where a lane's elements of a surface are; false: they are outside, and the instruction leaves them out.
bool Machine::surface_place(const Warp& w, const Inst& in, const Image& image, uint32_t lane, uint64_t* address) const {
  const uint32_t* const where = kernel_.lists.data() + in.list + in.count;
  const int64_t bytes = int64_t{in.size} * in.count, width = int64_t{image.dims[0]} * image.texel_bytes();
  int64_t at[3] = {};
  bool inside = true;
  for (uint32_t axis = 0; axis < image.rank; ++axis) {
    const int64_t most = axis == 0 ? width - bytes : int64_t{image.dims[axis]} - 1;
    at[axis] = static_cast<int32_t>(row(w, where[axis + (image.layers > 0)])[lane]);
    inside &= at[axis] >= 0 && at[axis] <= most;
    if (static_cast<ImageOutside>(in.type) == ImageOutside::kClamp) at[axis] = std::clamp<int64_t>(at[axis], 0, most);
  }
  if (image.layers) at[2] = row(w, where[0])[lane], inside &= at[2] < image.layers;
  if (!inside && static_cast<ImageOutside>(in.type) == ImageOutside::kTrap)
    throw Fault{
        "out-of-bounds",
        fmt::format("{} bytes at byte {} of row {}, {} {}, of a surface of {} rows of {} bytes and {} {}s", bytes,
                    at[0], at[1], image.layers ? "layer" : "slice", at[2], image.rank > 1 ? image.dims[1] : 1, width,
                    image.layers ? image.layers : image.dims[2], image.layers ? "layer" : "slice"),
        lane};
  if (image.layers) at[2] = std::min<int64_t>(at[2], image.layers - 1);
  *address = image.address + static_cast<uint64_t>(at[0]) + static_cast<uint64_t>(at[1]) * image.pitch +
             static_cast<uint64_t>(at[2]) * image.slice;
  return inside || static_cast<ImageOutside>(in.type) == ImageOutside::kClamp;
}

void Machine::surface_load(Warp& w, const Inst& in, uint32_t lanes, const Image& image) {
  const uint32_t bytes = uint32_t{in.size} * in.count;
  uint64_t address[kWarpSize];
  uint32_t inside = 0;
  possible(w, lanes, [&](uint32_t l) {
    if (surface_place(w, in, image, l, &address[l])) inside |= 1u << l;
  });
  alignas(16) std::byte data[kWarpSize][kMostImageBytes] = {};
  read_texels(w, inside, address, bytes, 0, data);
  for (uint32_t m = lanes; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    for (uint32_t i = 0; i < in.count; ++i) {
      uint64_t value = 0;
      std::memcpy(&value, data[l] + i * in.size, in.size);
      const uint32_t d = kernel_.lists[in.list + i];
      if (in.flags & kFlagWide)
        wide_row(w, d)[l] = value;
      else
        row(w, d)[l] = static_cast<uint32_t>(value);
    }
  }
}

void Machine::surface_store(Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t bytes = uint32_t{in.size} * in.count;
  each_image(w, in, mask, [&](const Image& image, uint32_t lanes) {
    uint64_t address[kWarpSize];
    uint32_t slot[kWarpSize], offset[kWarpSize], inside = 0;
    alignas(16) std::byte data[kWarpSize][kMostImageBytes];
    possible(w, lanes, [&](uint32_t l) {
      if (!surface_place(w, in, image, l, &address[l])) return;
      check_alignment(address[l], bytes, l);
      device_line(address[l], bytes, l, Op::kWrite, false, &slot[l], &offset[l]);
      inside |= 1u << l;
      for (uint32_t i = 0; i < in.count; ++i) {
        const uint32_t s = kernel_.lists[in.list + i];
        const uint64_t value = in.flags & kFlagWide ? wide_row(w, s)[l] : row(w, s)[l];
        std::memcpy(data[l] + i * in.size, &value, in.size);
      }
    });
    if (!inside) return;
    DeviceAccess e{{site(w), Op::kWrite, inside, bytes}, address, 0, slot};
    e.values = data[0];
    e.stride = sizeof data[0];
    emit(e);
    for (uint32_t m = inside; m; m &= m - 1)
      write_device(slot[first_lane(m)], offset[first_lane(m)], bytes, data[first_lane(m)], 0);
  });
}

void Machine::texture(Warp& w, const Inst& in, uint32_t mask) {
  each_image(w, in, mask, [&](const Image& image, uint32_t lanes) {
    switch (static_cast<ImageOp>(in.sub)) {
      case ImageOp::kSurface: return surface_load(w, in, lanes, image);
      case ImageOp::kSize: {
        const auto which = static_cast<ImageSize>(in.type);
        const uint32_t size = which == ImageSize::kLayers ? image.layers : image.dims[in.type];
        for (uint32_t m = lanes; m; m &= m - 1) row(w, kernel_.lists[in.list])[first_lane(m)] = size;
        return;
      }
      default: return fetch(w, in, lanes, image);
    }
  });
}

}  // namespace roofgen::sim
