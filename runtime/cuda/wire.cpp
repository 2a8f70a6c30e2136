#include "runtime/cuda/wire.h"

#include <map>

namespace roofgen::wire {
namespace {

/// Applies `f` to every member in order; packing and unpacking share this list.
template <class T, class F>
void each(T& d, F&& f) requires std::is_same_v<std::remove_const_t<T>, DriverFacts> {
  f(d.name), f(d.cc), f(d.sms), f(d.bus_bits), f(d.memory_clock_khz), f(d.sm_clock_khz), f(d.l2_bytes),
      f(d.memory_bytes);
  f(d.smem_per_sm), f(d.smem_per_block), f(d.smem_reserved_per_block), f(d.regs_per_sm), f(d.max_threads_per_sm),
      f(d.max_ctas_per_sm);
}
template <class T, class F>
void each(T& i, F&& f) requires std::is_same_v<std::remove_const_t<T>, GpuIdentity> {
  f(i.name), f(i.uuid), f(i.pci_bus_id), f(i.driver), f(i.cuda_version), f(i.max_sm_mhz), f(i.default_sm_mhz),
      f(i.max_memory_mhz);
  f(i.power_limit_w), f(i.memory_bytes), f(i.l2_bytes);
}
template <class T, class F>
void each(T& s, F&& f) requires std::is_same_v<std::remove_const_t<T>, GpuState> {
  f(s.free_bytes), f(s.other_processes), f(s.sm_mhz), f(s.memory_mhz), f(s.power_w), f(s.temperature_c), f(s.limits);
}
template <class T, class F>
void each(T& s, F&& f) requires std::is_same_v<std::remove_const_t<T>, Sample> {
  f(s.time_ns), f(s.sm_mhz), f(s.power_w), f(s.temperature_c), f(s.limits);
}

template <class T>
void pack_members(Packer& to, const T& value) {
  each(value, [&](const auto& member) { to.put(member); });
}
template <class T>
void unpack_members(Unpacker& from, T& value) {
  each(value, [&](auto& member) { from.get(member); });
}

template <class T>
void pack_list(Packer& to, const std::vector<T>& list) {
  to.put(uint64_t{list.size()});
  for (T value : list) to.put(value);
}
template <class T>
void unpack_list(Unpacker& from, std::vector<T>& list) {
  list.resize(from.count(sizeof(T)));
  for (T& value : list) from.get(value);
}

void pack(Packer& to, const Dim3& d) { to.put(d.x).put(d.y).put(d.z); }
void unpack(Unpacker& from, Dim3& d) { from.get(d.x).get(d.y).get(d.z); }

void pack(Packer& to, const TensorMap& map) {
  to.put(std::string_view(to_string(map.dtype)));
  pack_list(to, map.dims);
  pack_list(to, map.stride_bytes);
  pack_list(to, map.box);
  to.put(map.swizzle_bytes).put(map.nan_fill).put(map.l2_promotion_bytes);
}
void unpack(Unpacker& from, TensorMap& map) {
  std::string dtype;
  from.get(dtype);
  if (const std::optional<DType> known = parse_dtype(dtype))
    map.dtype = *known;
  else
    from.spoil();
  unpack_list(from, map.dims);
  unpack_list(from, map.stride_bytes);
  unpack_list(from, map.box);
  from.get(map.swizzle_bytes).get(map.nan_fill).get(map.l2_promotion_bytes);
}

}  // namespace

void pack(Packer& to, const Error& error) {
  to.put(static_cast<int>(error.exit))
      .put(error.message)
      .put(error.where.file)
      .put(error.where.line)
      .put(error.where.col)
      .put(error.no_gpu);
  to.put(uint64_t{error.notes.size()});
  for (const std::string& note : error.notes) to.put(note);
}
void unpack(Unpacker& from, Error& error) {
  int exit = 0;
  from.get(exit).get(error.message).get(error.where.file).get(error.where.line).get(error.where.col).get(error.no_gpu);
  error.exit = exit == static_cast<int>(Exit::kUsage)         ? Exit::kUsage
               : exit == static_cast<int>(Exit::kUnavailable) ? Exit::kUnavailable
                                                              : Exit::kFailed;
  error.notes.resize(from.count(sizeof(uint64_t)));
  for (std::string& note : error.notes) from.get(note);
}

void pack(Packer& to, const Launch& launch) {
  pack(to, launch.grid);
  pack(to, launch.block);
  pack(to, launch.cluster);
  to.put(launch.smem_bytes).put(launch.overlap).put(uint64_t{launch.args.size()});
  for (const Arg& arg : launch.args) {
    to.put(arg.name).put(arg.is_buffer).put(arg.bits).put(arg.bytes).put(arg.map != nullptr);
    to.put(std::string_view(reinterpret_cast<const char*>(arg.data.data()), arg.data.size()));
    if (arg.map) pack(to, *arg.map);
  }
}
void unpack(Unpacker& from, Launch& launch) {
  unpack(from, launch.grid);
  unpack(from, launch.block);
  unpack(from, launch.cluster);
  from.get(launch.smem_bytes).get(launch.overlap);
  launch.args.resize(from.count(sizeof(uint64_t)));
  for (Arg& arg : launch.args) {
    bool mapped = false;
    std::string data;
    from.get(arg.name).get(arg.is_buffer).get(arg.bits).get(arg.bytes).get(mapped).get(data);
    const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
    arg.data.assign(bytes, bytes + data.size());
    if (!mapped) continue;
    auto map = std::make_shared<TensorMap>();
    unpack(from, *map);
    arg.map = std::move(map);
  }
}

void pack(Packer& to, const Binary& binary) { to.put(binary.arch).put(binary.entry).put(binary.ptx).put(binary.cubin); }
void unpack(Unpacker& from, Binary& binary) {
  from.get(binary.arch).get(binary.entry).get(binary.ptx).get(binary.cubin);
}

void pack(Packer& to, const ExecutorInfo& info) {
  to.put(info.name).put(info.device_name).put(info.arch);
  pack_members(to, info.driver);
}
void unpack(Unpacker& from, ExecutorInfo& info) {
  from.get(info.name).get(info.device_name).get(info.arch);
  unpack_members(from, info.driver);
}

void pack(Packer& to, const GpuIdentity& identity) { pack_members(to, identity); }
void unpack(Unpacker& from, GpuIdentity& identity) { unpack_members(from, identity); }
void pack(Packer& to, const GpuState& state) { pack_members(to, state); }
void unpack(Unpacker& from, GpuState& state) { unpack_members(from, state); }
void pack(Packer& to, const Sample& sample) { pack_members(to, sample); }
void unpack(Unpacker& from, Sample& sample) { unpack_members(from, sample); }

void pack(Packer& to, std::span<const Shot> shots) {
  std::map<std::string, uint32_t> numbers;
  std::vector<std::string> steps;
  std::vector<std::vector<uint32_t>> rows;
  for (const Shot& shot : shots) {
    std::vector<uint32_t>& row = rows.emplace_back();
    for (const Step& step : shot.steps) {
      Packer one;
      one.put(step.module.id);
      pack(one, step.launch);
      std::string bytes = one.take();
      auto [at, added] = numbers.try_emplace(bytes, static_cast<uint32_t>(steps.size()));
      if (added) steps.push_back(std::move(bytes));
      row.push_back(at->second);
    }
  }
  to.put(uint64_t{steps.size()});
  for (const std::string& step : steps) to.put(step);
  to.put(uint64_t{shots.size()});
  for (size_t i = 0; i < shots.size(); ++i) {
    to.put(shots[i].flush).put(shots[i].graph);
    pack_list(to, rows[i]);
  }
}
void unpack(Unpacker& from, std::vector<Shot>& shots) {
  std::vector<Step> steps(from.count(sizeof(uint64_t)));
  bool good = true;
  for (Step& step : steps) {
    std::string bytes;
    from.get(bytes);
    Unpacker one(bytes);
    one.get(step.module.id);
    unpack(one, step.launch);
    good = good && one.done();
  }
  shots.resize(from.count(2 + sizeof(uint64_t)));
  for (Shot& shot : shots) {
    std::vector<uint32_t> row;
    from.get(shot.flush).get(shot.graph);
    unpack_list(from, row);
    for (uint32_t number : row) {
      good = good && number < steps.size();
      if (good) shot.steps.push_back(steps[number]);
    }
  }
  if (!good) from.spoil();
}

}  // namespace roofgen::wire
