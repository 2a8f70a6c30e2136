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

/// All but the instructions, whose encodings are `bytes`.
Result<Code> read_rest(const CodeRequest& request, std::string_view& bytes) {
  Code out;
  out.kernel = request.kernel;
  out.arch = request.arch;
  ROOFGEN_TRY(out.cubin, read_cubin(request.cubin));
  for (const CubinKernel& k : out.cubin.kernels)
    if (k.name == request.kernel) {
      out.first_param = k.first_param;
      out.param_bytes = k.param_bytes;
      out.param_offsets = k.param_offsets;
      bytes = k.code;
      return out;
    }
  return Error{Exit::kFailed, fmt::format("the CUBIN has no code of {}", request.kernel)};
}

}  // namespace

std::vector<Result<Code>> read_code(const std::vector<CodeRequest>& requests) {
  std::vector<Result<Code>> out;
  struct Batch {
    std::string arch;
    std::vector<std::string_view> code;
    std::vector<size_t> index;
  };
  std::map<std::string, Batch> batches;  // by the architecture without the letter of sm_90a: the encodings are the same
  for (const CodeRequest& r : requests) {
    std::string_view bytes;
    out.push_back(read_rest(r, bytes));
    if (!out.back()) continue;
    Batch& batch = batches[r.arch.substr(0, r.arch.find_first_not_of("0123456789", 3))];
    batch.arch = std::max(batch.arch, r.arch);  // with the letter, where one has it
    batch.code.push_back(bytes);
    batch.index.push_back(out.size() - 1);
  }
  for (const auto& [plain, batch] : batches) {
    Result<std::vector<std::vector<Text>>> texts = disassemble(batch.arch, batch.code);
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

Result<Code> read_code(const CodeRequest& request, const std::vector<Text>& texts) {
  std::string_view bytes;
  ROOFGEN_TRY(Code out, read_rest(request, bytes));
  if (bytes.size() != 16 * texts.size())
    return Error{Exit::kFailed, fmt::format("{} texts for {} bytes of code", texts.size(), bytes.size())};
  decode_all(bytes, texts, out);
  return out;
}

}  // namespace roofgen::sass
