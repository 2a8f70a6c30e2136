// roofgen generate OP: the source (or PTX) of one schedule, without tuning.
#include "tuner/session/generate.h"

#include "cli/cli.h"

namespace roofgen::cli {

Run declare_generate(FlagSet app) {
  auto request = std::make_shared<GenerateRequest>();
  request->declare(app);
  app.footer("Example: roofgen generate attention --L 2048 --d 64 --variant fused --set BM=128");
  return [request](const Terminal& terminal) -> Result<Exit> {
    ROOFGEN_TRY(const Generated generated, generate(terminal, *request));
    print_out(generated.text);
    return Exit::kOk;
  };
}

}  // namespace roofgen::cli
