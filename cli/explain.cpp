// roofgen explain OP: work, roofs, regime and the next lever of one operator, by formula.
#include "tuner/session/explain.h"

#include "cli/cli.h"

namespace roofgen::cli {

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

}  // namespace roofgen::cli
