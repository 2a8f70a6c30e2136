// roofgen emit, explain and generate: a request of the session, and its answer as text.
#include "cli/cli.h"
#include "tuner/session/emit.h"
#include "tuner/session/explain.h"
#include "tuner/session/generate.h"

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

Run declare_explain(FlagSet app) {
  auto request = std::make_shared<ExplainRequest>();
  request->declare(app);
  app.footer("Example: roofgen explain gemm --M 128 --N 24576 --K 1536 --b-dtype fp4 --device b200");
  return [request](const Terminal& terminal) -> Result<Exit> {
    ROOFGEN_TRY(const std::string text, explain(terminal, *request));
    print_out(text);
    return Exit::kOk;
  };
}

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
