// roofgen emit OP -o DIR: tune, then write the winner as a library to build in.
#include "tuner/session/emit.h"

#include "cli/cli.h"

namespace roofgen::cli {

Run declare_emit(FlagSet app) {
  auto request = std::make_shared<BundleRequest>();
  request->declare(app);
  app.footer("Example: roofgen emit attention --L 2048 --d 64 -o third_party/attn");
  return [request](const Terminal& terminal) -> Result<Exit> {
    ROOFGEN_TRY(const std::optional<Emitted> emitted, emit(terminal, *request));
    if (!emitted) return Exit::kInterrupted;
    print_out(emitted_text(*emitted, *request));
    return Exit::kOk;
  };
}

}  // namespace roofgen::cli
