#include "runtime/sim/ptx_parser.h"

#include <bit>

#include "runtime/sim/ptx_syntax.h"

namespace roofgen::sim {

std::optional<PtxType> type_named(std::string_view t) {
  if (t == ".pred") return PtxType{'p', 1};
  if (t.size() < 3 || t.size() > 5) return std::nullopt;
  if (t == ".f16x2" || t == ".bf16x2") return std::nullopt;
  char kind = t[1];
  std::string_view digits = t.substr(2);
  if (t == ".bf16") kind = 'f', digits = "16";
  if (kind != 'b' && kind != 'u' && kind != 's' && kind != 'f') return std::nullopt;
  if (digits == "8" && kind != 'f') return PtxType{kind, 8};
  if (digits == "16") return PtxType{kind, 16};
  if (digits == "32") return PtxType{kind, 32};
  if (digits == "64") return PtxType{kind, 64};
  if (digits == "128" && kind == 'b') return PtxType{kind, 128};
  return std::nullopt;
}

std::optional<Space> space_named(std::string_view t) {
  if (t == ".shared") return Space::kShared;
  if (t == ".global") return Space::kGlobal;
  if (t == ".const") return Space::kConst;
  if (t == ".local") return Space::kLocal;
  if (t == ".param") return Space::kParam;
  return std::nullopt;
}

void Parser::file(PtxModule& m) {
  advance();
  auto id = static_cast<uint32_t>(need_integer("file number", 1u << 20));
  if (token_.kind != TokenKind::kString) expected("a file name");
  m.files.emplace_back(id, std::string(token_.text.substr(1, token_.text.size() - 2)));
  advance();
  while (take(',')) need_integer("file attribute", ~uint64_t{0});
}

void Parser::loc(PtxModule& m) {
  advance();
  PtxLoc l;
  l.file = static_cast<uint32_t>(need_integer("file number", 1u << 20));
  l.line = static_cast<uint32_t>(need_integer("line number", 0x7fffffff));
  l.col = static_cast<uint32_t>(need_integer("column", 0x7fffffff));
  while (take(',')) {  // `function_name $info, inlined_at 1 2 3`: the innermost line is what we keep
    std::string_view attribute = need_name("a .loc attribute");
    if (attribute == "function_name") {
      need_name("a label");
      if (take('+')) need_integer("offset", ~uint64_t{0});
    } else if (attribute == "inlined_at") {
      for (int i = 0; i < 3; ++i) need_integer("inlined_at position", ~uint64_t{0});
    } else {
      fail(fmt::format("unknown .loc attribute '{}'", attribute));
    }
  }
  loc_ = static_cast<uint32_t>(m.locs.size());
  m.locs.push_back(l);
}

void Parser::section() {
  advance();
  if (token_.kind != TokenKind::kDirective && token_.kind != TokenKind::kName) expected("a section name");
  advance();
  if (take(',')) advance();
  need('{');
  while (!is('}')) {  // debug data: bytes and labels, never nested
    if (token_.kind == TokenKind::kEnd || is('{')) expected("'}' of the section");
    advance();
  }
  advance();
}

void Parser::initialiser(PtxVar& var) {
  uint64_t limit = var.count ? var.bytes() : kMaxVarBytes;
  int depth = 0;
  auto append = [&] {
    if (token_.kind == TokenKind::kName) {  // generic(x), generic(x)+4, x
      const bool generic = token_.text == "generic";
      std::string_view to = need_name("a variable");
      if (generic && take('(')) {
        to = need_name("a variable");
        need(')');
      }
      const uint64_t displacement = take('+') ? need_integer("a displacement", ~uint64_t{0}) : 0;
      if (var.type.bytes() != 8) fail(fmt::format("the address of '{}' needs 64 bits", to));
      var.pointers.push_back({var.init.size(), to, displacement});
      var.init.resize(var.init.size() + 8);
      if (var.init.size() > limit) fail("initialiser is longer than the variable");
      return;
    }
    PtxOperand value = immediate();
    uint64_t bits = value.bits;
    if (value.kind == PtxOperand::Kind::kFloat && var.type.bits == 32 && value.float_bits == 64)
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    for (uint32_t i = 0; i < var.type.bytes(); ++i) var.init.push_back(static_cast<uint8_t>(bits >> (8 * i)));
    if (var.init.size() > limit) fail("initialiser is longer than the variable");
  };
  if (!is('{')) return append();
  do {
    while (take('{'))
      if (++depth > 8) fail("initialiser nested too deep");
    append();
    while (depth && take('}')) --depth;
  } while (take(',') && depth);
  if (depth) expected("'}' of the initialiser");
}

PtxVar Parser::variable(Space space, bool is_extern) {
  PtxVar var;
  var.space = space;
  var.is_extern = is_extern;
  bool typed = false;
  while (token_.kind == TokenKind::kDirective) {
    if (is(".align")) {
      advance();
      var.align = static_cast<uint32_t>(need_integer("alignment", 1u << 20));
      if (!std::has_single_bit(var.align)) fail("alignment is not a power of two");
    } else if (auto type = type_named(token_.text); type && type->kind != 'p') {
      var.type = *type;
      typed = true;
      advance();
    } else if (is(".ptr") || is(".global") || is(".shared") || is(".const") || is(".local") || is(".generic")) {
      advance();  // `.param .u64 .ptr .global .align 16 name`: an attribute of the pointer's target
    } else if (is(".attribute")) {
      advance();
      need('(');
      if (!is(".managed")) fail(fmt::format("unknown variable attribute '{}'", token_.text));
      var.managed = true;
      advance();
      need(')');
    } else if (is(".texref") || is(".samplerref") || is(".surfref")) {
      fail(fmt::format("'{}': {} are not supported", token_.text, is(".surfref") ? "surfaces" : "textures"));
    } else {
      fail(fmt::format("unknown variable attribute '{}'", token_.text));
    }
  }
  if (!typed) expected("a type");
  var.line = token_.line;
  var.name = need_name("a variable name");
  while (take('[')) {
    uint64_t n = is(']') ? 0 : need_integer("array size", kMaxVarBytes);
    need(']');
    var.count *= n;
    if (var.count && var.bytes() > kMaxVarBytes) fail(fmt::format("variable '{}' is too large", var.name));
  }
  if (take('=')) {
    initialiser(var);
    if (var.count == 0) var.count = var.init.size() / var.type.bytes();
    var.init.resize(var.bytes());
  }
  return var;
}

std::vector<PtxVar> Parser::parameters() {
  std::vector<PtxVar> list;
  need('(');
  while (!is(')')) {
    if (!list.empty()) need(',');
    if (is(".reg")) {
      fail("register parameters are not supported");
    } else if (!is(".param")) {
      expected("'.param'");
    }
    advance();
    list.push_back(variable(Space::kParam, false));
    if (list.size() > 4096) fail("more than 4096 parameters");
  }
  advance();
  return list;
}

uint32_t PtxFunction::registers_per_thread() const {
  constexpr uint32_t kOfMultiprocessor = 65536, kMost = 256;
  const uint32_t* block = reqntid[0] ? reqntid : maxntid;
  const uint64_t threads = (uint64_t{block[0]} * block[1] * block[2] + 31) / 32 * 32 * minnctapersm;
  if (maxnreg) return (maxnreg + 7) / 8 * 8;
  return threads ? static_cast<uint32_t>(std::min<uint64_t>(kOfMultiprocessor / threads / 8 * 8, kMost)) : 0;
}

void Parser::function(PtxModule& m, bool is_entry, bool is_extern) {
  PtxFunction& f = m.functions.emplace_back();
  f.is_entry = is_entry;
  f.line = token_.line;
  if (is('(')) f.returns = parameters();
  f.name = need_name("a function name");
  if (is('(')) f.params = parameters();
  for (;;) {
    if (is(".maxntid") || is(".reqntid") || is(".reqnctapercluster")) {
      uint32_t* dims = is(".maxntid") ? f.maxntid : is(".reqntid") ? f.reqntid : f.reqnctapercluster;
      advance();
      dims[0] = dims[1] = dims[2] = 1;
      int n = 0;
      do {
        if (n == 3) fail("more than three dimensions");
        dims[n++] = static_cast<uint32_t>(need_integer("dimension", 65535));
      } while (take(','));
    } else if (is(".explicitcluster") || is(".blocksareclusters")) {
      f.blocksareclusters |= is(".blocksareclusters");
      advance();
    } else if (is(".minnctapersm") || is(".maxnreg") || is(".maxnctapersm") || is(".maxclusterrank")) {
      uint32_t unused = 0, &value = is(".minnctapersm") ? f.minnctapersm : is(".maxnreg") ? f.maxnreg : unused;
      advance();
      value = static_cast<uint32_t>(need_integer("directive value", 65535));
    } else if (is(".noreturn")) {
      advance();
    } else if (is(".pragma")) {
      skip_statement();
    } else if (token_.kind == TokenKind::kDirective) {
      fail(fmt::format("unsupported directive '{}'", token_.text));
    } else {
      break;
    }
  }
  if (take(';')) return;
  if (is_extern || !is('{')) expected(is_extern ? "';'" : "'{' of the function body");
  f.defined = true;
  body(m, f);
}

PtxModule Parser::module() {
  PtxModule m;
  m.locs.push_back({});
  bool is_extern = false;
  while (token_.kind != TokenKind::kEnd) {
    if (is(".version")) {
      advance();
      m.version = token_.text;
      advance();
    } else if (is(".target")) {
      advance();
      m.target = need_name("a target");
      while (take(',')) need_name("a target option");
    } else if (is(".address_size")) {
      advance();
      if (need_integer("address size", 64) != 64) fail("only 64-bit addresses are supported");
    } else if (is(".visible") || is(".weak") || is(".common")) {
      advance();
      continue;
    } else if (is(".extern")) {
      advance();
      is_extern = true;
      continue;
    } else if (is(".entry") || is(".func")) {
      bool is_entry = is(".entry");
      advance();
      function(m, is_entry, is_extern);
    } else if (is(".file")) {
      file(m);
    } else if (is(".section")) {
      section();
    } else if (auto space = space_named(token_.text); space && token_.kind == TokenKind::kDirective) {
      advance();
      m.globals.push_back(variable(*space, is_extern));
      need(';');
    } else if (is(".pragma")) {
      skip_statement();
    } else if (is(".alias")) {
      fail("'.alias': second names of functions are not supported");
    } else {
      expected("a module directive");
    }
    is_extern = false;
  }
  return m;
}

Result<PtxModule> parse_ptx(std::string_view text, const std::string& file) {
  if (text.size() > kMaxPtxBytes)
    return Error{
        Exit::kFailed, fmt::format("PTX of {} bytes is over the limit of {}", text.size(), kMaxPtxBytes), {file, 0, 0}};
  try {
    return Parser(text).module();
  } catch (const SyntaxError& e) {
    return Error{Exit::kFailed, e.message, {file, e.line, 0}};
  }
}

}  // namespace roofgen::sim
