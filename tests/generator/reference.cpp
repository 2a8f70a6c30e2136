#include "tests/generator/reference.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace roofgen::test {
namespace {

// Debian's Python, which has python3-jinja2; PATH may list another Python first.
const char* python() { return std::filesystem::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3"; }

}  // namespace

bool reference_available() {
  return std::system((std::string(python()) + " -c 'import jinja2.sandbox' >/dev/null 2>&1").c_str()) == 0;
}

std::vector<ReferenceResult> reference_render(const std::vector<ReferenceCase>& cases) {
  nlohmann::json input = nlohmann::json::array();
  for (const ReferenceCase& c : cases)
    input.push_back({{"templates", c.templates}, {"main", c.main}, {"context", c.context}});
  std::string folder = (std::filesystem::temp_directory_path() / "roofgen-jinja-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw std::runtime_error("no temporary folder");
  const std::string in = folder + "/in.json", out = folder + "/out.json";
  std::ofstream(in) << input.dump();
  const std::string command = std::string(python()) +
                              " -I '" ROOFGEN_SOURCE_DIR "/tests/generator/jinja_reference.py' '" + in + "' '" + out +
                              "'";
  const int status = std::system(command.c_str());
  std::vector<ReferenceResult> results;
  if (status == 0)
    for (const auto& r : nlohmann::json::parse(std::ifstream(out)))
      results.push_back({r.contains("text"), r[r.contains("text") ? "text" : "error"].get<std::string>()});
  std::filesystem::remove_all(folder);
  if (status != 0 || results.size() != cases.size()) throw std::runtime_error("jinja_reference.py failed");
  return results;
}

}  // namespace roofgen::test
