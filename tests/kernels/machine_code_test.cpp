// The machine code of every template at the schedules of machine_code.txt. A template that is only written more clearly
// keeps it; a change of code shows as its lines. ROOFGEN_RECORD_MACHINE_CODE=1 writes the file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/sha256.h"
#include "runtime/sass/cubin.h"
#include "tests/kernels/mutant_run.h"

namespace roofgen::test::machine_code_test {
namespace {

constexpr const char* kRecord = ROOFGEN_SOURCE_DIR "/tests/kernels/machine_code.txt";

std::string text_of(const ParamValue& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, bool>)
          return std::string(v ? "true" : "false");
        else
          return fmt::format("{}", v);
      },
      value);
}

class Lines {
 public:
  /// Adds a line for each kernel of the request whose template and schedule have none yet. None: a schedule is illegal.
  void add(const Request& request, const Variant& variant, const std::string& run, bool may_be_illegal) {
    const auto compiled = compile(request);
    if (!compiled && may_be_illegal) return;
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    const std::string problem = run.substr(0, run.find(" --variant"));
    for (size_t i = 0; i < compiled->size(); ++i) {
      const Binary& binary = (*compiled)[i].binary;
      const auto cubin = sass::read_cubin(binary.cubin);
      ASSERT_TRUE(cubin) << to_string(cubin.error());
      for (const sass::CubinKernel& kernel : cubin->kernels)
        if (seen_.insert(binary.digest).second)
          lines_.push_back(fmt::format("{} {:3} {:5} {} {} {}", sha256(kernel.code).substr(0, 12), binary.registers,
                                       kernel.code.size() / sass::kInstructionBytes, variant.stages[i].template_name,
                                       to_string((*compiled)[i].legal.schedule), problem));
    }
  }
  const std::vector<std::string>& all() const { return lines_; }

 private:
  std::set<std::string> seen_;
  std::vector<std::string> lines_;
};

/// The runs of the mutants, and each value of each parameter of a template once more, where it is legal.
std::vector<std::string> machine_code() {
  Lines lines;
  std::set<std::string> values;
  for (const Mutant& m : different_runs()) {
    const auto made = run_of(m);
    EXPECT_TRUE(made) << to_string(made.error());
    if (!made) continue;
    Request request = made->request;
    request.edits.clear();
    const auto variant = variant_of(request);
    EXPECT_TRUE(variant) << to_string(variant.error());
    if (!variant) continue;
    lines.add(request, *variant, m.run, false);
    for (const Stage& stage : variant->stages)
      for (const Param& param : stage.params)
        for (const ParamValue& value : param.values) {
          if (!values.insert(stage.template_name + param.name + text_of(value)).second) continue;
          Request other = request;
          const bool first = &stage == &variant->stages[0] && other.pins.count("");
          other.pins[first ? "" : stage.name][param.name] = value;
          lines.add(other, *variant, m.run, true);
        }
  }
  return lines.all();
}

TEST(SlowMachineCode, IsThatOfTheRecord) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const std::string compiler = fmt::format("NVRTC {}.{}", nvrtc_info().major, nvrtc_info().minor);
  if (std::getenv("ROOFGEN_RECORD_MACHINE_CODE")) {
    std::ofstream out(kRecord);
    out << compiler << "\n";
    for (const std::string& line : machine_code()) out << line << "\n";
    return;
  }
  std::ifstream in(kRecord);
  std::string line;
  std::getline(in, line);
  if (line != compiler) GTEST_SKIP() << "recorded with " << line << ", this is " << compiler;
  std::vector<std::string> recorded;
  while (std::getline(in, line)) recorded.push_back(line);
  const std::vector<std::string> now = machine_code();
  EXPECT_GT(now.size(), 200u);
  const std::set<std::string> before(recorded.begin(), recorded.end()), after(now.begin(), now.end());
  for (const std::string& l : before) EXPECT_TRUE(after.count(l)) << "-" << l;
  for (const std::string& l : after) EXPECT_TRUE(before.count(l)) << "+" << l;
}

}  // namespace
}  // namespace roofgen::test::machine_code_test
