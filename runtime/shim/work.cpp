#include "runtime/shim/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace roofgen::shim {
namespace {

constexpr uint64_t kPortableCluster = 8;  // supported by every device with clusters
constexpr int kMostRegisters = 255;       // of a thread

/// `extra` of cuLaunchKernel: pairs of a marker and a value; 1: the buffer, 2: the address of its size, 0: the end.
Status unpack(State& s, const char* call, const sim::Kernel& k, void** extra, std::vector<std::byte>& params) {
  const void* buffer = nullptr;
  size_t size = 0;
  for (; *extra; extra += 2) {
    const auto marker = reinterpret_cast<uintptr_t>(*extra);
    CHECK(marker == 1 || marker == 2, kInvalidValue, "an unknown kind of extra argument");
    if (marker == 1)
      buffer = extra[1];
    else
      std::memcpy(&size, extra[1], sizeof size);
  }
  CHECK(buffer && size >= params.size(), kInvalidValue, "{}: {} bytes of arguments; {} were expected", k.name, size,
        params.size());
  std::memcpy(params.data(), buffer, params.size());
  return kSuccess;
}

std::string text_of(const Dim3& d) { return fmt::format("{} x {} x {}", d.x, d.y, d.z); }

}  // namespace

void fill_log(const std::string& why, unsigned count, const int* options, void** values) {
  char* buffer = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < count && options && values; ++i) {
    if (options[i] == cuda::kJitErrorLogBuffer) buffer = static_cast<char*>(values[i]);
    if (options[i] == cuda::kJitErrorLogBufferSize) size = reinterpret_cast<uintptr_t>(values[i]) & 0xffffffffu;
  }
  if (buffer && size > 0) buffer[why.copy(buffer, size - 1)] = '\0';
}

int resident(State& s, const char* call, const Function& f, int threads, int64_t smem) {
  const auto& report = s.compiled(f);
  if (report && threads > most_threads(report->registers)) return 0;
  if (!report) s.log(fmt::format("{}: {}: occupancy without register counts, an upper bound", call, f.kernel.name));
  return roofgen::occupancy(s.device, report ? report->registers : 1, smem + f.kernel.static_shared, threads)
      .ctas_per_sm;
}

namespace {

/// The cluster of a launch: requested, required by the function, or one CTA.
Status cluster_of(State& s, const char* call, const Function& f, const Dim3& grid, const Dim3& asked, Dim3* out) {
  const Dim3 required = {f.cluster[0], f.cluster[1], f.cluster[2]};
  *out = asked.count() > 0 ? asked : required.count() > 0 ? required : Dim3{1, 1, 1};
  if (out->count() == 1 && required.count() == 0) return kSuccess;
  const std::string& name = f.kernel.name;
  CHECK(s.attribute(120), kNotSupported, "{}: clusters need sm_90 or newer", name);
  CHECK(required.count() == 0 || (out->x == required.x && out->y == required.y && out->z == required.z),
        kInvalidClusterSize, "{}: clusters of {} CTAs; the kernel requires {}", name, text_of(*out), text_of(required));
  const uint64_t most = f.big_clusters ? sim::kMaxClusterCtas : kPortableCluster;
  CHECK(out->count() <= most, kInvalidClusterSize, "{}: clusters of {} CTAs; at most {} are possible", name,
        out->count(), most);
  CHECK(grid.x % out->x == 0 && grid.y % out->y == 0 && grid.z % out->z == 0, kInvalidValue,
        "{}: a grid of {} CTAs is not a multiple of clusters of {}", name, text_of(grid), text_of(*out));
  return kSuccess;
}

}  // namespace

Status make_launch(State& s, const char* call, Handle handle, const LaunchShape& shape, void** args, void** extra,
                   Work* out) {
  Function* f = s.function_of(handle);
  CHECK(f, kInvalidHandle, "no such function");
  const sim::Kernel& k = f->kernel;
  // __block_size__ of CUDA C++ fixes the block, so that its launches name none.
  const bool fixed = k.counts_clusters && k.required_threads[0] > 0 && shape.block.count() == 1;
  const Dim3 grid = k.counts_clusters ? k.ctas_of(shape.grid) : shape.grid;
  const uint32_t* const sides = k.required_threads;
  const Dim3 block = fixed ? Dim3{sides[0], sides[1], sides[2]} : shape.block;
  CHECK(block.count() > 0 && block.count() <= kMostThreads && block.z <= 64, kInvalidValue, "{}: a block of {} threads",
        k.name, text_of(block));
  const bool empty = shape.may_be_empty && grid.count() == 0;
  CHECK((grid.count() > 0 || empty) && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535, kInvalidValue,
        "{}: a grid of {} CTAs", k.name, text_of(grid));
  CHECK(grid.count() <= 0xffffffffu, kNotSupported, "over 2^32 CTAs");
  const uint64_t most = uint64_t{k.max_threads[0]} * k.max_threads[1] * k.max_threads[2];
  CHECK(k.max_threads[0] == 0 || block.count() <= most, kOutOfResources, "{}: {} threads of at most {}", k.name,
        block.count(), most);
  CHECK(k.required_threads[0] == 0 ||
            (block.x == k.required_threads[0] && block.y == k.required_threads[1] && block.z == k.required_threads[2]),
        kInvalidValue, "{}: blocks of {} threads; .reqntid requires {} x {} x {}", k.name, text_of(block),
        k.required_threads[0], k.required_threads[1], k.required_threads[2]);
  // Fewer threads fit with any register count, and ptxas keeps declared limits: then the count is not needed.
  if (const int threads = static_cast<int>(block.count());
      threads > most_threads(kMostRegisters) && most + k.required_threads[0] == 0) {
    const auto& report = s.compiled(*f);
    CHECK(!report || threads <= most_threads(report->registers), kOutOfResources,
          "{}: {} threads of {} registers; the registers suffice for {} threads", k.name, threads, report->registers,
          most_threads(report->registers));
  }
  CHECK(shape.smem_bytes <= static_cast<unsigned>(f->max_dynamic_smem), kInvalidValue,
        "{}: {} bytes of dynamic shared memory; at most {} are set", k.name, shape.smem_bytes, f->max_dynamic_smem);
  Dim3 cluster;
  if (Status status = cluster_of(s, call, *f, grid, shape.cluster, &cluster); status != kSuccess) return status;
  if (shape.cooperative) {
    const uint64_t held =
        static_cast<uint64_t>(resident(s, call, *f, static_cast<int>(block.count()), shape.smem_bytes)) *
        static_cast<uint64_t>(s.device.integer("sms"));
    CHECK(grid.count() <= held, kTooLarge, "{}: a cooperative launch of {} CTAs; the device holds {}", k.name,
          grid.count(), held);
  }
  auto op = std::make_shared<LaunchOp>();
  op->cooperative = shape.cooperative;
  op->launch.overlap = shape.overlap;
  op->launch.cluster = cluster;
  op->function = f;
  op->launch.grid = grid;
  op->launch.block = block;
  op->launch.smem_bytes = shape.smem_bytes;
  op->params.resize(k.param_bytes);
  if (extra) {
    CHECK(!args, kInvalidValue, "arguments given twice");
    if (Status status = unpack(s, call, k, extra, op->params); status != kSuccess) return status;
  } else {
    CHECK(args || k.params.empty() || empty, kInvalidValue, "{}: no arguments", k.name);
    for (size_t i = 0; args && i < k.params.size(); ++i) {
      CHECK(args[i], kInvalidValue, "{}: argument {} is null", k.name, i);
      std::memcpy(op->params.data() + k.params[i].offset, args[i], k.params[i].bytes);
    }
  }
  for (const auto& p : k.params) op->args.push_back(op->params.data() + p.offset);
  s.share_page_locked(op->params);
  *out = {WorkType::kKernel, {}, op, nullptr};
  out->op = [&s, op] {
    // The program may have unloaded the module.
    if (!s.function_of(const_cast<Function*>(op->function)))
      return s.refuse("cuLaunchKernel", kInvalidHandle, "the module was unloaded before the launch ran");
    return s.execute(*op);
  };
  return kSuccess;
}

sim::Image Array::image() const {
  sim::Image image;
  image.address = at;
  image.layers = shape.flags & kLayered ? static_cast<uint32_t>(shape.depth) : 0;
  image.rank = !image.layers && shape.depth ? 3 : shape.height ? 2 : 1;
  const size_t dims[] = {shape.width, shape.height, image.layers ? 0 : shape.depth};
  for (int axis = 0; axis < 3; ++axis) image.dims[axis] = std::max(static_cast<uint32_t>(dims[axis]), 1u);
  image.format = static_cast<sim::TexelFormat>(shape.format);
  image.channels = shape.channels;
  image.pitch = shape.width * image.texel_bytes();
  image.slice = image.pitch * image.dims[1];
  return image;
}

namespace {

/// x is in bytes, z counts slices or layers.
Status place_in_array(State& s, const char* call, const Side3d& side, const Copy3d& copy, Box::Place* out) {
  const Array* array = s.arrays.find(side.array);
  CHECK(array, kInvalidHandle, "no such array");
  const sim::Image image = array->image();
  const size_t slices = std::max<size_t>(array->shape.depth, 1);
  const auto fits = [](size_t from, size_t count, size_t all) { return from <= all && count <= all - from; };
  CHECK(side.level == 0 && fits(side.x, copy.width, image.pitch) && fits(side.y, copy.height, image.dims[1]) &&
            fits(side.z, copy.depth, slices),
        kInvalidValue, "{} bytes x {} x {} at ({}, {}, {}) of an array of {} bytes x {} x {}", copy.width, copy.height,
        copy.depth, side.x, side.y, side.z, image.pitch, image.dims[1], slices);
  out->on_device = true;
  out->pitch = image.pitch;
  out->slice = image.slice;
  out->device = array->at + side.x + side.y * image.pitch + side.z * image.slice;
  return kSuccess;
}

Status place(State& s, const char* call, const Side3d& side, const Copy3d& copy, Box::Place* out) {
  if (side.type == kArrayMemory) return place_in_array(s, call, side, copy, out);
  CHECK(side.type == kHostMemory || side.type == kDeviceMemory || side.type == kUnifiedMemory, kNotSupported,
        "copies of memory of type {}", side.type);
  CHECK(copy.height == 1 || side.pitch >= side.x + copy.width, kInvalidValue, "rows of {} bytes, {} apart",
        side.x + copy.width, side.pitch);
  CHECK(copy.depth == 1 || side.height >= side.y + copy.height, kInvalidValue, "slices of {} rows, {} apart",
        side.y + copy.height, side.height);
  out->pitch = side.pitch;
  out->slice = side.pitch * side.height;
  const size_t offset = side.x + side.y * side.pitch + side.z * out->slice;
  // All addresses are unified: outside the allocations and the device's range they are of the host.
  const Address at = side.type == kHostMemory ? reinterpret_cast<uintptr_t>(side.host) : side.device;
  out->on_device =
      side.type == kDeviceMemory || s.holds(at, 1) || (at >= sim::kGlobalBase && at < 2 * sim::kGlobalBase);
  if (out->on_device) {
    out->device = at + offset;
    for (size_t z = 0; z < copy.depth; ++z)
      for (size_t y = 0; y < copy.height; ++y) {
        const Address row = out->device + z * out->slice + y * out->pitch;
        CHECK(s.holds(row, copy.width), kInvalidValue, "{} bytes at {:#x} are in no allocation", copy.width, row);
      }
    return kSuccess;
  }
  CHECK(at, kInvalidValue, "null");
  out->host = reinterpret_cast<std::byte*>(at) + offset;
  return kSuccess;
}

}  // namespace

Status make_box(State& s, const char* call, const Copy3d& copy, Box* out) {
  out->width = copy.width;
  out->height = copy.height;
  out->depth = copy.depth;
  if (out->empty()) return kSuccess;
  if (Status status = place(s, call, copy.from, copy, &out->from); status != kSuccess) return status;
  return place(s, call, copy.to, copy, &out->to);
}

Status move(State& s, const Box& box) {
  std::vector<std::byte> row(box.from.on_device && box.to.on_device ? box.width : 0);
  for (size_t z = 0; z < box.depth; ++z)
    for (size_t y = 0; y < box.height; ++y) {
      const size_t from = z * box.from.slice + y * box.from.pitch, to = z * box.to.slice + y * box.to.pitch;
      Status status = kSuccess;
      if (!box.from.on_device && !box.to.on_device) {
        std::memmove(box.to.host + to, box.from.host + from, box.width);
      } else if (!box.to.on_device) {
        status = s.read(box.to.host + to, box.from.device + from, box.width);
      } else if (!box.from.on_device) {
        status = s.write(box.to.device + to, box.from.host + from, box.width);
      } else {
        status = s.read(row.data(), box.from.device + from, box.width);
        if (status == kSuccess) status = s.write(box.to.device + to, row.data(), box.width);
      }
      if (status != kSuccess) return status;
    }
  return kSuccess;
}

std::vector<Area> areas_of(const Box& box) {
  std::vector<Area> areas;
  for (const auto& [place, writes] : {std::pair{&box.from, false}, {&box.to, true}})
    if (place->on_device && !box.empty())
      areas.push_back({place->device, box.width, place->pitch, box.height, place->slice, box.depth, writes});
  return areas;
}

Work move_later(State& s, const Box& box) {
  const bool touches_host = !box.from.on_device || !box.to.on_device;
  return {WorkType::kMemcpy, [&s, box] { return box.empty() ? kSuccess : move(s, box); },
          nullptr,           nullptr,
          touches_host,      areas_of(box)};
}

Status make_memset(State& s, const char* call, const MemsetNodeParams& p, Work* out) {
  CHECK(p.element_bytes == 1 || p.element_bytes == 2 || p.element_bytes == 4, kInvalidValue, "elements of {} bytes",
        p.element_bytes);
  CHECK(p.width <= SIZE_MAX / p.element_bytes, kInvalidValue, "{} elements", p.width);
  const size_t bytes = p.width * p.element_bytes;
  CHECK(p.at % p.element_bytes == 0 && (p.height <= 1 || p.pitch % p.element_bytes == 0), kInvalidValue,
        "the address is misaligned");
  CHECK(p.height <= 1 || p.pitch >= bytes, kInvalidValue, "rows of {} bytes, {} apart", bytes, p.pitch);
  for (size_t y = 0; y < p.height && bytes; ++y)
    CHECK(s.holds(p.at + y * p.pitch, bytes), kInvalidValue, "{} bytes at {:#x} are in no allocation", bytes,
          p.at + y * p.pitch);
  *out = {WorkType::kMemset, {}, nullptr, nullptr};
  out->areas = {{p.at, bytes, p.pitch, std::max<size_t>(p.height, 1), 0, 1, true}};
  out->op = [&s, p] {
    for (size_t y = 0; y < p.height; ++y)
      if (Status status = s.fill(p.at + y * p.pitch, &p.value, p.element_bytes, p.width); status != kSuccess)
        return status;
    return kSuccess;
  };
  return kSuccess;
}

Work make_record(State& s, Handle event) {
  return {WorkType::kRecordEvent,
          [&s, event] {
            if (Event* now = s.events.find(event)) {
              now->time_ns = s.now_ns;
              --now->pending;
            }
            return kSuccess;
          },
          nullptr, event};
}

Work make_host_call(HostFunction function, void* data) {
  return {WorkType::kHost, [function, data] { return function(data), kSuccess; }, nullptr, nullptr};
}

}  // namespace roofgen::shim
