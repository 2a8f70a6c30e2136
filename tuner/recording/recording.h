// Recorded tuning spaces in the formats of other tuners: one reader and one writer for replay, import and export.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "roofgen/result.h"

namespace roofgen {

/// Points of one kernel, problem and device.
struct Recording {
  /// A point that was tried.
  struct Point {
    std::vector<uint16_t> row;  ///< by parameter, the place in `values`
    double seconds = 0;         ///< of a timed point
    double predicted = 0;       ///< seconds, by a model before any point was tried; 0: unknown
    /// Why there is no time, in T4's words: timeout, compile, runtime, correctness, constraints. Empty: it was timed.
    std::string failure = {};
    std::string reason = {};  ///< of the failure, as its source says
  };

  std::string format;                     ///< "Kernel Tuner cachefile", "T4", "KTT", "Kernel Launcher wisdom"
  std::string device, kernel;             ///< empty where the format has none
  Json problem;                           ///< its size: a number, a list or a text; null where the format has none
  std::string origin = "recorded";        ///< of the times, where the file says more: "model", "measured"
  std::vector<std::string> names;         ///< of the parameters
  std::vector<std::vector<Json>> values;  ///< of each parameter, in the order of their first occurrence
  std::vector<Point> points;              ///< in the order of the file, no two with equal rows

  Json configuration(const Point& point) const;  ///< {"name": value, ...}
};

/// Collects points, so that equal ones count once, with the last result.
class RecordingBuilder {
 public:
  static constexpr size_t kMostNames = 64, kMostValues = 4096, kMostPoints = 4'000'000;

  explicit RecordingBuilder(std::string format) { out_.format = std::move(format); }
  /// The value of a parameter of the point that is being read. Returns what is wrong with it; empty: nothing.
  std::string value(const std::string& name, const Json& value);
  /// Ends the point; `result` without its row. The same.
  std::string finish(Recording::Point result);
  Recording& recording() { return out_; }
  size_t points() const { return out_.points.size(); }

 private:
  Recording out_;
  std::map<std::string, size_t> name_of_;
  std::vector<std::map<std::string, uint16_t>> value_of_;
  std::map<std::vector<uint16_t>, size_t> point_of_;
  std::vector<int> row_;
};

/// Reads a Kernel Tuner cachefile (also one whose end is missing, as a killed run leaves it), a T4 1.0.0 result file,
/// the JSON output of KTT or a wisdom file of Kernel Launcher, each plain or packed by gzip. Times: milliseconds, as
/// T4's metadata and KTT's say. Wisdom may be of several problems and devices; the other formats give one recording.
/// Exit::kUsage, with line and column, for any other text.
Result<std::vector<Recording>> read_recordings(std::string bytes, const std::string& file);

/// Names of the formats that can be written: "cachefile", "t4", "t1", "wisdom".
const std::vector<std::string>& recording_formats();
/// The text in a format by name. A cachefile and T4 have all points; T1 describes the parameters alone; wisdom has the
/// five fastest points.
Result<std::string> write_recording(const Recording& recording, const std::string& format);

/// T4's word for a step that rejected a candidate. It has none for our own (spill, no feeder): "constraints" is
/// nearest.
const char* t4_invalidity(const std::string& step);

}  // namespace roofgen
