#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "roofline/device.h"
#include "roofline/device_cells.h"
#include "roofline/device_file.h"

namespace roofgen {
namespace {

/// Sustained fraction of the datasheet's DRAM bandwidth: 1800 of 2039 GB/s on an A100 80 GB SXM.
constexpr double kDramReached = 0.88;
/// Sustained fraction of the L2 bandwidth: 5.6 of 7.22 TB/s on GA100.
constexpr double kL2Reached = 0.776;
/// From the NVIDIA developer forum: about 3 us between launches in a stream.
constexpr double kLaunchUs = 3;
/// Clocks and sizes that differ by less are the same figure, rounded differently.
constexpr double kSameFigure = 0.005;

bool same(double a, double b) { return std::fabs(a / b - 1) <= kSameFigure; }

void put(Device& d, const std::string& name, double value, Origin origin, std::string source) {
  if (value > 0) d.cells[name] = {value, std::string(cell_spec(name)->unit), origin, std::move(source)};
}

/// Bandwidth in GB/s; 0 when the driver reports no memory clock or bus width.
double bandwidth(const DriverFacts& f) {
  return 2e-6 * static_cast<double>(f.memory_clock_khz) * static_cast<double>(f.bus_bits) / 8;
}

/// Sizes from the driver override the catalogue.
void put_sizes(Device& d, const DriverFacts& f) {
  const struct {
    const char* cell;
    int64_t value;
  } sizes[] = {{"sms", f.sms},
               {"dram_bus_bits", f.bus_bits},
               {"l2_bytes", f.l2_bytes},
               {"memory_bytes", f.memory_bytes},
               {"smem_per_sm", f.smem_per_sm},
               {"smem_per_block", f.smem_per_block},
               {"smem_reserved_per_block", f.smem_reserved_per_block},
               {"regs_per_sm", f.regs_per_sm},
               {"max_threads_per_sm", f.max_threads_per_sm},
               {"max_warps_per_sm", f.max_threads_per_sm / 32},
               {"max_ctas_per_sm", f.max_ctas_per_sm}};
  for (const auto& [cell, value] : sizes)
    put(d, cell, static_cast<double>(value), Origin::kMeasured, "reported by the driver");
}

/// Recomputes a peak from the current SMs, rates and clocks.
void put_peak(Device& d, const std::string& name) {
  if (const auto parts = peak_parts(d, name))
    put(d, name, parts->tflops(), Origin::kModel, "SMs x FLOP per clock and SM x clock, as the driver reports them");
}

void cap(Device& d, const char* low, const char* high) {
  if (d.has(low) && d.has(high)) d.cells[low].value = std::min(d.at(low), d.at(high));
}

void lay_driver_over(Device& d, const DriverFacts& f) {
  const double fp32 = d.at("clock_fp32_mhz"), tensor = d.at("clock_tensor_mhz");
  put_sizes(d, f);
  const double mhz = static_cast<double>(f.sm_clock_khz) * 1e-3;
  if (mhz > 0 && !same(mhz, fp32)) {
    put(d, "clock_fp32_mhz", mhz, Origin::kMeasured, "highest SM clock the driver reports");
    // If the catalogue has one boost clock for both, the tensor clock follows the driver's; a separate tensor clock is
    // only lowered, never raised.
    if (same(tensor, fp32) || tensor > mhz)
      put(d, "clock_tensor_mhz", mhz, Origin::kMeasured, "highest SM clock the driver reports");
    cap(d, "clock_sustained_mhz", "clock_tensor_mhz");
  }
  for (const CellSpec& spec : cell_specs()) {
    const std::string name(spec.name);
    if (!d.has(name)) continue;
    const auto parts = peak_parts(d, name);
    if (parts && !same(parts->tflops(), d.at(name)))
      put_peak(d, name);  // the published figure holds for other SMs or clocks
  }
  put(d, "dram_gb_s", bandwidth(f), Origin::kMeasured,
      "memory clock and bus width the driver reports, two transfers a clock");
  cap(d, "dram_sustained_gb_s", "dram_gb_s");
}

Result<Device> compose(const DataFiles& files, const DriverFacts& f) {
  const auto unavailable = [&](const std::string& why) {
    return Error{Exit::kUnavailable, fmt::format("{} is not in the catalogue, and {}", f.name, why)};
  };
  const std::string plain = fmt::format("sm_{}", f.cc), geforce = plain + "_geforce";
  const bool half_rate = f.name.find("GeForce") != std::string::npos && files.read("devices/" + geforce + ".json");
  if (!files.read("devices/" + plain + ".json"))
    return unavailable(fmt::format("there is no architecture file devices/{}.json", plain));
  if (f.sms <= 0 || f.sm_clock_khz <= 0 || f.memory_bytes <= 0)
    return unavailable("the driver does not report SM count, clock and memory size");
  if (!(bandwidth(f) > 0)) return unavailable("the driver does not say its memory clock and bus width");
  Device d;
  d.name = d.title = f.name;
  d.arch = plain;
  d.driver_names = {f.name};
  for (const std::string& name :
       half_rate ? std::vector<std::string>{geforce, plain} : std::vector<std::string>{plain}) {
    ROOFGEN_TRY(const DeviceFile arch, read_device_file(files, name));
    d.cells.insert(arch.cells.begin(), arch.cells.end());
  }
  put_sizes(d, f);
  const double mhz = static_cast<double>(f.sm_clock_khz) * 1e-3, sms = static_cast<double>(f.sms);
  for (const char* clock : {"clock_fp32_mhz", "clock_tensor_mhz", "clock_sustained_mhz"})
    put(d, clock, mhz, Origin::kModel, "highest SM clock the driver reports, taken for all work");
  put(d, "dram_gb_s", bandwidth(f), Origin::kModel,
      "memory clock and bus width the driver reports, two transfers a clock");
  put(d, "dram_sustained_gb_s", kDramReached * bandwidth(f), Origin::kModel,
      "0.88 of the bus, as read on an A100 80 GB SXM");
  const double l2_bytes_per_clk_sm = d.has("l2_bytes_per_clk_sm") ? d.at("l2_bytes_per_clk_sm") : 0;
  put(d, "l2_gb_s", l2_bytes_per_clk_sm * sms * mhz * 1e-3, Origin::kModel,
      "the L2 ports of all SMs at once; the slices may give less");
  put(d, "l2_sustained_gb_s", kL2Reached * l2_bytes_per_clk_sm * sms * mhz * 1e-3, Origin::kModel,
      "0.78 of the ports, as measured on GA100");
  put(d, "launch_us", kLaunchUs, Origin::kModel, "NVIDIA developer forum: about 3 us between launches of a stream");
  for (const CellSpec& spec : cell_specs()) put_peak(d, std::string(spec.name));
  for (const CellSpec& spec : cell_specs())
    if (spec.need == Need::kAnalysis && !d.has(std::string(spec.name)))
      return unavailable(fmt::format("devices/{}.json has no cell \"{}\"", plain, spec.name));
  ROOFGEN_CHECK(check_consistency(d, {}));
  return d;
}

}  // namespace

Result<Device> match_device(const DataFiles& files, const DriverFacts& facts) {
  std::optional<Device> best;
  double nearest = 0;
  for (const std::string& name : device_names(files)) {
    ROOFGEN_TRY(const DeviceFile file, read_device_file(files, name));
    if (std::find(file.driver_names.begin(), file.driver_names.end(), facts.name) == file.driver_names.end()) continue;
    ROOFGEN_TRY(Device device, load_device(files, name));
    // Without a known bus width, the name alone identifies the product.
    if (device.has("dram_bus_bits") && device.integer("dram_bus_bits") != facts.bus_bits) continue;
    if (device.integer("arch") != facts.cc) continue;
    const double distance = std::fabs(device.at("memory_bytes") - static_cast<double>(facts.memory_bytes));
    if (best && distance >= nearest) continue;
    best = std::move(device);
    nearest = distance;
  }
  if (!best) return compose(files, facts);
  lay_driver_over(*best, facts);
  ROOFGEN_CHECK(check_consistency(*best, {}));
  return std::move(*best);
}

}  // namespace roofgen
