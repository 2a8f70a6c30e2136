// A temporary data directory for a test's own device files.
#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "generator/generate.h"

namespace roofgen {

class TempDevices {
 public:
  TempDevices()
      : dir_(std::filesystem::temp_directory_path() / ("roofgen-devices-" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directories(dir_ / "devices");
  }
  TempDevices(const std::string& name, const std::string& text) : TempDevices() { add(name, text); }
  ~TempDevices() { std::filesystem::remove_all(dir_); }
  TempDevices(const TempDevices&) = delete;
  TempDevices& operator=(const TempDevices&) = delete;

  void add(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / "devices" / (name + ".json")) << text;
  }
  /// These files and the built-in files.
  DataFiles files() const { return DataFiles({dir_.string()}); }

 private:
  std::filesystem::path dir_;
};

}  // namespace roofgen
