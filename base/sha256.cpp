#include "base/sha256.h"

#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/SHA256.h>

namespace roofgen {

std::string sha256(std::string_view bytes) {
  llvm::SHA256 sha;
  sha.update(llvm::StringRef(bytes.data(), bytes.size()));
  std::string out;
  auto hash = sha.final();  // a StringRef in LLVM 14, an array in later versions
  for (auto byte : hash) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

}  // namespace roofgen
