// roofgen calibrate: fits the scalars of the time models to measured times of kernels (docs/use/calibrate.md).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/times.h"
#include "roofline/device.h"

namespace roofgen::profile {

struct TimesSource {
  std::string file, measured;  ///< its name, and what it says of the measurement
};

struct CalibrateRequest {
  Device device;
  std::vector<TimedKernel> kernels;
  std::vector<TimesSource> times;     ///< of the kernels
  std::vector<std::string> hold_out;  ///< families that are left out of the fit; empty: each once, besides the fit
  bool scale = false;                 ///< one factor for all kernels is fitted, too
  int jobs = 1;
  std::string cache_dir;                                       ///< of the compiler; empty: none
  std::function<void(const std::string& line)> progress = {};  ///< receives a line every few seconds
};

/// A scalar is determined if one of its values changes the objective by at least this, the others as fitted.
inline constexpr double kDetermines = 1e-5;

struct FittedScalar {
  std::string name;
  double before = 0, fitted = 0;
  std::optional<double> less, more;  ///< change of the objective at the next value below and above
  bool determined = false;
};

/// Of modelled times against measured ones.
struct TimeErrors {
  double mean = 0, most_90 = 0;  ///< mean of |modelled / measured - 1|, and the bound of 90 % of them
};

struct FittedFamily {
  std::string name;
  size_t kernels = 0;
  TimeErrors before;
  std::optional<TimeErrors> after;     ///< none: the fit leaves it out
  std::optional<TimeErrors> held_out;  ///< by a fit without this family
};

struct Calibration {
  std::string device, arch;
  std::vector<TimesSource> times;
  std::vector<FittedScalar> scalars;
  std::vector<FittedFamily> families;  ///< by name
  double objective_before = 0, objective_after = 0;
  bool scale = false;
  double scale_before = 1, scale_after = 1;  ///< measured time over modelled time
  TimeErrors after;                          ///< of all kernels of the fit
  std::optional<TimeErrors> held_out;
  std::map<std::string, Cell> cells;  ///< of the scalars that are determined
};

/// Errors: Exit::kUnavailable if the device has no times from machine code, or without NVRTC or nvdisasm; those of a
/// kernel name its place in the file of times. The result does not depend on `jobs`.
Result<Calibration> calibrate(CalibrateRequest request);

std::string calibration_text(const Calibration& calibration);
/// schema roofgen.calibration.1
std::string calibration_json(const Calibration& calibration);

}  // namespace roofgen::profile
