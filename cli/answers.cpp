// roofgen emit, explain and generate: a request of the session, and its answer as text.
#include "cli/cli.h"
#include "tuner/session/emit.h"
#include "tuner/session/explain.h"
#include "tuner/session/generate.h"

namespace roofgen::cli {
namespace {

/// A command that prints what `ask`(session, request) returns.
template <class Request, class Ask>
Run declare(FlagSet app, const char* example, Ask ask) {
  auto request = std::make_shared<Request>();
  request->declare(app);
  app.footer(std::string("Example: roofgen ") + example);
  return [request, ask](const Terminal& terminal) -> Result<Exit> {
    ROOFGEN_TRY(const std::string text, ask(terminal, *request));
    print_out(text);
    return Exit::kOk;
  };
}

}  // namespace

Run declare_emit(FlagSet app) {
  return declare<BundleRequest>(app, "emit attention --L 2048 --d 64 -o third_party/attn",
                                [](const Session& here, const BundleRequest& request) -> Result<std::string> {
                                  ROOFGEN_TRY(const Emitted emitted, emit(here, request));
                                  return emitted_text(emitted, request);
                                });
}

Run declare_explain(FlagSet app) {
  return declare<ExplainRequest>(app, "explain gemm --M 128 --N 24576 --K 1536 --b-dtype fp4 --device b200", explain);
}

Run declare_generate(FlagSet app) {
  return declare<GenerateRequest>(app, "generate attention --L 2048 --d 64 --variant fused --set BM=128",
                                  [](const Session& here, const GenerateRequest& request) -> Result<std::string> {
                                    ROOFGEN_TRY(Generated generated, generate(here, request));
                                    return std::move(generated.text);
                                  });
}

}  // namespace roofgen::cli
