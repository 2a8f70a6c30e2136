// The account of a process on the simulated driver that `roofgen run` reads (docs/use/run.md): $ROOFGEN_SIM_REPORT
// names a directory, and each process that loads the driver writes a file of JSON lines there, one record a line.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "roofgen/pipeline.h"
#include "runtime/cuda/driver.h"

namespace roofgen::shim {

/// The numbers of a record have a fixed width and are rewritten in place with each event, so that the file is complete
/// at any moment: programs end by _exit, signals and abort too. The file is opened for each write, because a program
/// may close descriptors that it did not open. Calls need the driver's lock.
class Report {
 public:
  /// The one of this process; never destroyed, as calls may come after main.
  static Report& instance();

  /// After cuInit: the simulated device, by its catalogue name and its title.
  void initialised(const std::string& device, const std::string& title);
  void allocated(size_t bytes);  ///< in all, now
  void launched(const std::string& kernel, const Counts& counts);
  void not_run(const std::string& kernel);  ///< queued, and never waited for
  /// `instruction`: the text of its PTX line.
  void found(const Finding& finding, const std::string& instruction);
  /// A value that other threads may change decided a branch there (Inst::flags, kFlagDecides).
  void decides(const std::string& kernel, const Where& at);
  void failed(const char* call, cuda::Status status, const char* name, const std::string& why);

 private:
  struct Record {
    off_t at = 0;      ///< in the file
    std::string text;  ///< up to the numbers
    std::vector<std::pair<const char*, uint64_t>> numbers;
    uint64_t& operator[](size_t i) { return numbers[i].second; }
  };

  Report();
  bool on();
  void begin();
  /// The record of that key; a new one has `fields`, then the numbers, all 0.
  Record& record(const std::string& key, const Json& fields, const std::vector<const char*>& numbers);
  Record& kernel(const std::string& name);
  void write(const Record& record);

  std::string directory_, file_;
  pid_t pid_ = 0;  ///< the process of `file_`
  off_t end_ = 0;
  std::map<std::string, Record> records_;
};

}  // namespace roofgen::shim
