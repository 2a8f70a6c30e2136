// Stage x Schedule -> Launch, and the limits of launches.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "generator/generate.h"

namespace roofgen {
namespace {

/// The hardware limit of sm_90. 8 is the portable limit; more need an opt-in (CUDA C++ Programming Guide, 4.1.1).
constexpr uint64_t kMaxClusterCtas = 16;

Result<uint32_t> dimension(int64_t value, const char* what) {
  if (value < 1 || value > std::numeric_limits<int32_t>::max())
    return Error{Exit::kFailed, fmt::format("{} is {}; 1 to 2^31-1 was expected", what, value)};
  return static_cast<uint32_t>(value);
}

Arg scalar_f32(const std::string& name, double value) {
  Arg arg{name, false, 0, 4};
  const float f = static_cast<float>(value);
  std::memcpy(&arg.bits, &f, sizeof f);
  return arg;
}

Result<Arg> scalar(const Stage::ArgSpec& spec, const expr::Names& names) {
  if (spec.type == "f32") {
    ROOFGEN_TRY(const double v, names.eval_number(*spec.value));
    return scalar_f32(spec.name, v);
  }
  Arg arg{spec.name, false, 0, spec.type == "i32" ? 4u : 8u};
  ROOFGEN_TRY(const int64_t v, names.eval_int(*spec.value));
  if (arg.bytes == 4 && (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()))
    return Error{Exit::kFailed, fmt::format("argument {} is {}, which does not fit i32", spec.name, v)};
  std::memcpy(&arg.bits, &v, arg.bytes);
  return arg;
}

Result<Arg> structure(const Stage::ArgSpec& spec, const expr::Names& names) {
  const std::vector<size_t> offsets = field_offsets(spec.fields);
  Arg arg{spec.name, false, 0, static_cast<uint32_t>(offsets.back())};
  arg.data.resize(offsets.back());
  for (size_t i = 0; i < spec.fields.size(); ++i) {
    ROOFGEN_TRY(const Arg field, scalar(spec.fields[i], names));
    std::memcpy(arg.data.data() + offsets[i], &field.bits, field.bytes);
  }
  return arg;
}

template <class T>
Result<std::vector<T>> sizes(const std::vector<expr::Expr>& list, const std::string& what, const expr::Names& names) {
  constexpr int64_t kMost = std::min<uint64_t>(std::numeric_limits<T>::max(), uint64_t{1} << 40);
  std::vector<T> out;
  for (const expr::Expr& e : list) {
    ROOFGEN_TRY(const int64_t v, names.eval_int(e));
    if (v < 0 || v > kMost)
      return Error{Exit::kFailed, fmt::format("{}: {} is {}; 0 to {} was expected", what, e.text(), v, kMost)};
    out.push_back(static_cast<T>(v));
  }
  return out;
}

Result<Arg> mapped(const Stage::ArgSpec& spec, const std::string& buffer, const expr::Names& names) {
  const Stage::MapSpec& m = *spec.map;
  TensorMap map;
  ROOFGEN_TRY(const expr::Value dtype, names.eval(m.dtype));
  const std::optional<DType> format = parse_dtype(dtype.str());
  if (!format) return Error{Exit::kFailed, fmt::format("tensor map {}: unknown dtype \"{}\"", spec.name, dtype.str())};
  map.dtype = *format;
  const std::string what = "tensor map " + spec.name;
  ROOFGEN_TRY(map.dims, sizes<uint64_t>(m.dims, what, names));
  ROOFGEN_TRY(map.stride_bytes, sizes<uint64_t>(m.strides, what, names));
  for (uint64_t& stride : map.stride_bytes) stride *= static_cast<uint64_t>(size_of(map.dtype));
  ROOFGEN_TRY(map.box, sizes<uint32_t>(m.box, what, names));
  ROOFGEN_TRY(const auto spans, sizes<uint32_t>({m.swizzle, m.l2_promotion}, what, names));
  map.swizzle_bytes = static_cast<int>(std::min(spans[0], 1u << 30));
  map.l2_promotion_bytes = static_cast<int>(std::min(spans[1], 1u << 30));
  ROOFGEN_TRY(map.nan_fill, names.check(m.nan_fill));
  return Arg{buffer, true, 0, 8, std::make_shared<const TensorMap>(std::move(map))};
}

/// The arguments of the stage's formula: tensors and outputs by pointer or tensor map, scalars by value.
template <class BufferOf>
Result<void> add_each(const Stage::ArgSpec& spec, const expr::Names& names, const BufferOf& buffer_of,
                      std::vector<Arg>& out) {
  const std::string& kind = spec.name;
  const std::optional<expr::Value> formula = names.find("formula");
  const expr::Map* map = formula ? formula->map() : nullptr;
  const expr::List* list = map && map->count(kind) ? map->at(kind).list() : nullptr;
  if (!list)
    return Error{Exit::kFailed, fmt::format("a stage without a formula takes no arguments for each of its {}", kind)};
  for (const expr::Value& item : *list) {
    if (kind == "scalars") {
      const std::string name = item.str();
      const std::optional<expr::Value> known = names.find("scalars");
      const expr::Map* scalars = known ? known->map() : nullptr;
      if (!scalars || !scalars->count(name))
        return Error{Exit::kFailed, fmt::format("the scalar {} has no value", name)};
      const expr::Value& value = scalars->at(name);
      out.push_back(
          scalar_f32(name, value.as<double>() ? *value.as<double>() : static_cast<double>(*value.as<int64_t>())));
      continue;
    }
    const expr::Map* entry = item.map();
    const char* key = kind == "outputs" ? "buffer" : "name";
    if (!entry || !entry->count(key))
      return Error{Exit::kFailed, fmt::format("an entry of the formula's {} has no {}", kind, key)};
    const std::string buffer = buffer_of(entry->at(key).str());
    if (!spec.map) {
      out.push_back(Arg{buffer, true, 0, 8});
      continue;
    }
    ROOFGEN_TRY(Arg arg, mapped(spec, buffer, names.with_entry(item)));
    out.push_back(std::move(arg));
  }
  return {};
}

}  // namespace

std::vector<size_t> field_offsets(const std::vector<Stage::ArgSpec>& fields) {
  std::vector<size_t> out{0};
  size_t widest = 1;
  for (const Stage::ArgSpec& f : fields) {
    const size_t bytes = f.type == "i64" ? 8 : 4;
    widest = std::max(widest, bytes);
    out.back() = (out.back() + bytes - 1) / bytes * bytes;
    out.push_back(out.back() + bytes);
  }
  out.back() = (out.back() + widest - 1) / widest * widest;
  return out;
}

Result<std::string> broken_assumption(const Stage& stage, const expr::Names& tuned, const expr::Names& other) {
  if (stage.assumes.empty()) return std::string();
  const expr::Names here = tuned.with_tuned(tuned), there = other.with_tuned(tuned);
  for (const expr::Expr& e : stage.assumes) {
    ROOFGEN_TRY(const bool relied_on, here.check(e));
    if (!relied_on) continue;
    std::string why;
    ROOFGEN_TRY(const bool holds, there.check(e, &why));
    if (!holds) return why;
  }
  return std::string();
}

Result<bool> serves(const Stage& stage, const expr::Names& tuned, const expr::Names& other) {
  ROOFGEN_TRY(const std::string broken, broken_assumption(stage, tuned, other));
  return broken.empty();
}

Result<Launch> make_launch(const Stage& stage, const expr::Names& names) {
  Launch launch;
  uint64_t extent[3] = {1, 1, 1};
  for (const Stage::AxisSpec& spec : stage.axes) {
    GridAxis axis{spec.name, spec.dim, 1, 1, spec.reverse, spec.by_group};
    ROOFGEN_TRY(axis.extent, names.eval_int(spec.extent));
    ROOFGEN_TRY(axis.step, names.eval_int(spec.step));
    ROOFGEN_TRY(axis.tile, names.eval_int(spec.tile));
    ROOFGEN_CHECK(dimension(axis.extent, "grid axis"));
    ROOFGEN_CHECK(dimension(axis.step, "step of a grid axis"));
    extent[spec.dim] *= static_cast<uint64_t>(axis.extent);
    launch.axes.push_back(std::move(axis));
  }
  // cuda.h: gridDim.x up to 2^31-1, y and z up to 65535.
  const uint64_t limit[3] = {2147483647, 65535, 65535};
  for (int i = 0; i < 3; ++i)
    if (extent[i] > limit[i])
      return Error{Exit::kFailed, fmt::format("grid.{} is {}; the limit is {}", "xyz"[i], extent[i], limit[i])};
  launch.grid = {static_cast<uint32_t>(extent[0]), static_cast<uint32_t>(extent[1]), static_cast<uint32_t>(extent[2])};
  for (const auto* of_tiles : {&stage.ctas, &stage.persistent}) {
    if (!*of_tiles) continue;
    ROOFGEN_TRY(const int64_t ctas, names.eval_int(**of_tiles));
    if (ctas > 0) launch.grid.x = static_cast<uint32_t>(ctas);
  }
  ROOFGEN_TRY(int64_t block, names.eval_int(stage.block));
  ROOFGEN_TRY(launch.block.x, dimension(block, "block"));
  ROOFGEN_TRY(int64_t smem, names.eval_int(stage.smem));
  if (smem < 0 || smem > std::numeric_limits<int32_t>::max())
    return Error{Exit::kFailed, fmt::format("shared memory is {} bytes; 0 to 2^31-1 was expected", smem)};
  launch.smem_bytes = static_cast<uint32_t>(smem);
  uint32_t* const sides[3] = {&launch.cluster.x, &launch.cluster.y, &launch.cluster.z};
  for (size_t i = 0; i < stage.cluster.size(); ++i) {
    ROOFGEN_TRY(const int64_t ctas, names.eval_int(stage.cluster[i]));
    ROOFGEN_TRY(*sides[i], dimension(ctas, "a side of the cluster"));
  }
  if (stage.overlap) {
    ROOFGEN_TRY(launch.overlap, names.check(*stage.overlap));
  }
  const auto buffer_of = [&](const std::string& name) {
    auto at = stage.buffers.find(name);
    return at == stage.buffers.end() ? name : at->second;
  };
  for (const Stage::ArgSpec& spec : stage.args) {
    if (spec.when) {
      ROOFGEN_TRY(const bool there, names.check(*spec.when));
      if (!there) continue;
    }
    if (spec.type == "each") {
      ROOFGEN_CHECK(add_each(spec, names, buffer_of, launch.args));
    } else if (spec.type == "ptr") {
      launch.args.push_back({buffer_of(spec.name), true});
    } else {
      ROOFGEN_TRY(Arg arg, spec.map               ? mapped(spec, buffer_of(spec.buffer), names)
                           : !spec.fields.empty() ? structure(spec, names)
                                                  : scalar(spec, names));
      launch.args.push_back(std::move(arg));
    }
  }
  return launch;
}

Result<std::string> launch_fault(const Stage& stage, const expr::Names& names) {
  const auto is_map = [](const auto& arg) { return arg.map != std::nullopt; };
  if (stage.cluster.empty() && !stage.overlap && std::none_of(stage.args.begin(), stage.args.end(), is_map))
    return std::string();
  ROOFGEN_TRY(const Launch launch, make_launch(stage, names));
  const Dim3 &grid = launch.grid, &cluster = launch.cluster;
  const bool maps = std::any_of(launch.args.begin(), launch.args.end(), [](const Arg& a) { return a.map != nullptr; });
  if (maps || launch.overlap || cluster.x > 1 || cluster.y > 1 || cluster.z > 1) {
    static const expr::Expr kArch = *expr::Expr::parse("device.arch >= 90");
    std::string why;
    ROOFGEN_TRY(const bool enough, names.check(kArch, &why));
    if (!enough)
      return fmt::format("{}: {} from sm_90 on", why,
                         maps                  ? "devices have tensor maps"
                         : cluster.count() > 1 ? "devices have clusters"
                                               : "launches may overlap");
  }
  const uint64_t ctas = std::max({uint64_t{cluster.x}, uint64_t{cluster.y}, uint64_t{cluster.z}, cluster.count()});
  if (ctas > kMaxClusterCtas) return fmt::format("CTAs of a cluster <= {0} ({1} > {0})", kMaxClusterCtas, ctas);
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return fmt::format("a grid of {} x {} x {} CTAs cannot be cut into clusters of {} x {} x {}", grid.x, grid.y,
                       grid.z, cluster.x, cluster.y, cluster.z);
  for (const Arg& arg : launch.args) {
    if (!arg.map) continue;
    // Buffers are aligned to 256 bytes.
    if (std::string why = fault_in(*arg.map, 256); !why.empty())
      return fmt::format("tensor map of {}: {}", arg.name, why);
  }
  return std::string();
}

}  // namespace roofgen
