// Reads arbitrary bytes as a manifest, and makes its kernels with a compiler without results: no crash, and each error
// has a text.
#include <cstdlib>

#include "tests/fuzz/targets.h"
#include "tuner/bundle/bundle.h"

namespace roofgen::fuzz_manifest {
namespace {

/// A compiler without results.
class Nothing : public Compiler {
 public:
  std::string description() const override { return "none"; }
  std::string digest(const Program&) const override { return ""; }
  void compile_all(const std::vector<const Program*>&, const std::function<bool(CompileOutcome)>&) override {}
};

}  // namespace

FUZZ_TARGET(manifest) {
  const auto manifest = read_manifest({reinterpret_cast<const char*>(data), size}, "f.json");
  if (!manifest) return manifest.error().message.empty() ? std::abort(), 1 : 0;
  if (size % 64 != 0) return 0;  // the rest takes some milliseconds
  static const DataFiles files;
  const auto none = [](const std::string&, bool) -> Result<std::unique_ptr<Compiler>> {
    return std::unique_ptr<Compiler>(new Nothing);
  };
  const auto bundle = bundle_of(files, *manifest, none, [](const std::string&) {});
  if (bundle || bundle.error().message.empty()) std::abort();
  return 0;
}

}  // namespace roofgen::fuzz_manifest
