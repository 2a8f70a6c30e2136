// The best kernels of a problem, or of a family of sizes, as a library in a folder (docs/use/emit.md).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/bundle/bundle.h"
#include "tuner/session/family.h"

namespace roofgen {

struct BundleRequest {
  ProblemFlags problem;
  RunFlags run;
  FamilyFlags family;
  std::string directory;                 ///< where the files go
  std::string name;                      ///< of the bundle; empty: that of the operator
  std::string manifest;                  ///< the bundle of this manifest is made again, without a search; empty: tune
  std::vector<std::string> archs;        ///< empty: the device's
  std::vector<std::string> test_shapes;  ///< sizes that the self test tries, too: "L=333,batch=2"
  bool replay = false;                   ///< also write the launch of the tuned problem
  std::function<FlagValues()> given;
  void declare(FlagSet app);
};

struct Emitted {
  Bundle bundle;
  std::optional<DispatchTable> table;                 ///< of a search over a family of sizes
  std::vector<std::pair<std::string, size_t>> files;  ///< in the folder, with their bytes
};

/// Tunes where no finished search is stored, and writes the bundle. An interruption is an error without a message.
Result<Emitted> emit(const Session& session, const BundleRequest& request);

/// The kernels with their times, and the files.
std::string emitted_text(const Emitted& emitted, const BundleRequest& request);

}  // namespace roofgen
