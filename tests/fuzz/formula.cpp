// Arbitrary bytes as a formula or as a declared tensor: an Error with a message and exit code 2, or a complete Formula.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/targets.h"
#include "tests/pointwise/random_formula.h"

namespace roofgen::fuzz_formula {
FUZZ_TARGET(formula) {
  using namespace pointwise;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto arg = parse_tensor_arg(text);
  if (!arg && (arg.error().message.empty() || arg.error().exit != Exit::kUsage)) std::abort();
  const auto f = Formula::parse({{"e", "acc + 1"}, {"y", text}}, {{"y", "C"}}, test::epilogue_vocabulary());
  if (!f) {
    if (f.error().message.empty() || f.error().exit != Exit::kUsage) std::abort();
    return 0;
  }
  if (f->scope().at("cuda").str().empty() || f->cost().fp32 < 0) std::abort();
  const TensorReader read = [](const TensorArg&, std::span<const int64_t>, int64_t, std::span<double> out) {
    std::fill(out.begin(), out.end(), 0.5);
  };
  const Estimate source[] = {{0, 0}, {-1.5, 0.1}, {3e38, 0}};
  const int64_t row = 1;
  if (f->evaluate(source, {&row, 1}, 0, read)[0].size() != 3) std::abort();
  return 0;
}

}  // namespace roofgen::fuzz_formula
