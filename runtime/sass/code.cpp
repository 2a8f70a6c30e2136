#include "runtime/sass/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace roofgen::sass {
namespace {

uint64_t word_at(std::string_view code, size_t at) {
  uint64_t out = 0;
  std::memcpy(&out, code.data() + at, sizeof out);
  return out;
}

void decode_all(std::string_view bytes, const std::vector<Text>& texts, Code& out) {
  out.instructions.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const Instruction& one =
        out.instructions.emplace_back(decode(texts[i], word_at(bytes, 16 * i), word_at(bytes, 16 * i + 8)));
    const std::string name = one.spelling.substr(0, one.spelling.find('.'));
    if (!one.known && std::find(out.unknown.begin(), out.unknown.end(), name) == out.unknown.end())
      out.unknown.push_back(name);
  }
}

}  // namespace

std::vector<Result<Code>> read_code(const std::vector<CodeRequest>& requests) {
  std::vector<Result<Code>> out;
  struct Batch {
    std::vector<std::string_view> code;
    std::vector<size_t> index;
  };
  std::map<std::string, Batch> batches;
  for (const CodeRequest& r : requests) {
    Code code;
    code.kernel = r.kernel;
    code.arch = r.arch;
    Result<Cubin> cubin = read_cubin(r.cubin);
    if (!cubin) {
      out.emplace_back(std::move(cubin).error());
      continue;
    }
    const auto kernel = std::find_if(cubin->kernels.begin(), cubin->kernels.end(),
                                     [&](const CubinKernel& k) { return k.name == r.kernel; });
    if (kernel == cubin->kernels.end()) {
      out.emplace_back(Error{Exit::kFailed, fmt::format("the CUBIN has no code of {}", r.kernel)});
      continue;
    }
    code.first_param = kernel->first_param;
    code.param_bytes = kernel->param_bytes;
    Batch& batch = batches[r.arch];
    batch.code.push_back(kernel->code);
    batch.index.push_back(out.size());
    code.cubin = std::move(*cubin);
    out.emplace_back(std::move(code));
  }
  for (const auto& [arch, batch] : batches) {
    Result<std::vector<std::vector<Text>>> texts = disassemble(arch, batch.code);
    for (size_t i = 0; i < batch.index.size(); ++i) {
      Result<Code>& code = out[batch.index[i]];
      if (!texts)
        code = texts.error();
      else
        decode_all(batch.code[i], (*texts)[i], *code);
    }
  }
  return out;
}

}  // namespace roofgen::sass
