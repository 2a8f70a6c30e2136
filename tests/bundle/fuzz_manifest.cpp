// Reads arbitrary bytes as a manifest, and makes its kernels with a compiler without results: no crash, and each error
// has a text.
#include <cstdlib>

#include "tuner/bundle/bundle.h"

namespace {

/// A compiler without results.
class Nothing : public roofgen::Compiler {
 public:
  std::string description() const override { return "none"; }
  std::string digest(const roofgen::Program&) const override { return ""; }
  void compile_all(const std::vector<const roofgen::Program*>&,
                   const std::function<bool(roofgen::CompileOutcome)>&) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto manifest = roofgen::read_manifest({reinterpret_cast<const char*>(data), size}, "f.json");
  if (!manifest) return manifest.error().message.empty() ? std::abort(), 1 : 0;
  if (size % 64 != 0) return 0;  // the rest takes some milliseconds
  static const roofgen::DataFiles files;
  const auto none = [](const std::string&, bool) -> roofgen::Result<std::unique_ptr<roofgen::Compiler>> {
    return std::unique_ptr<roofgen::Compiler>(new Nothing);
  };
  const auto bundle = roofgen::bundle_of(files, *manifest, none, [](const std::string&) {});
  if (bundle || bundle.error().message.empty()) std::abort();
  return 0;
}
