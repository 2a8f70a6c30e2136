// Statements of a function's body: register declarations, instructions and their operands, blocks.

#include "runtime/sim/ptx_syntax.h"

namespace roofgen::sim {

void Parser::reg_declaration(PtxFunction& f) {
  advance();
  auto type = type_named(token_.text);
  if (!type) fail(fmt::format("unknown register type '{}'", token_.text));
  advance();
  do {
    PtxStmt& s = add(f, PtxStmt::Kind::kReg);
    s.type = *type;
    s.name = need_name("a register name");
    if (take('<')) {
      s.count = need_integer("register count", kMaxRegisterIndex);
      need('>');
    }
  } while (take(','));
  need(';');
}

PtxOperand Parser::immediate() {
  PtxOperand o;
  bool minus = take('-');
  if (token_.kind == TokenKind::kInteger) {
    o.kind = PtxOperand::Kind::kInteger;
    o.bits = minus ? ~token_.bits + 1 : token_.bits;
  } else if (token_.kind == TokenKind::kFloat) {
    o.kind = PtxOperand::Kind::kFloat;
    o.float_bits = token_.float_bits;
    o.bits = minus ? token_.bits ^ (uint64_t{1} << (token_.float_bits - 1)) : token_.bits;
  } else {
    expected("a constant");
  }
  advance();
  return o;
}

PtxOperand Parser::operand(int depth) {
  if (depth > 3) fail("operand nested too deep");
  PtxOperand o;
  if (is('{') || is('(')) {
    char close = is('{') ? '}' : ')';
    o.kind = is('{') ? PtxOperand::Kind::kVector : PtxOperand::Kind::kList;
    advance();
    while (!is(close)) {
      if (!o.items.empty()) need(',');
      o.items.push_back(operand(depth + 1));
      if (o.items.size() > 256) fail("more than 256 elements in a vector operand");
    }
    advance();
    if (close == '}' && take('|')) o.second = need_name("a second destination");
    return o;
  }
  bool address = take('[');
  if (address) o.kind = PtxOperand::Kind::kAddress;
  if (!address && take('!')) o.negated = true;
  if (token_.kind == TokenKind::kName) {
    o.name = token_.text;
    advance();
    if (is('+') || (is('-') && address)) {
      bool minus = is('-');
      advance();
      minus ^= take('-');
      uint64_t displacement = need_integer("a displacement", ~uint64_t{0});
      o.bits = minus ? ~displacement + 1 : displacement;
    }
    if (!address && take('|')) o.second = need_name("a second destination");
  } else if (o.negated) {
    expected("a predicate");
  } else {
    PtxOperand value = immediate();
    if (!address) return value;
    if (value.kind != PtxOperand::Kind::kInteger) fail("an address must be an integer");
    o.bits = value.bits;
  }
  while (address && take(',')) {  // [texture, {x, y}]: coordinates
    o.items.push_back(operand(depth + 1));
    if (o.items.size() > 5) fail("more than 5 further operands in an address");
  }
  if (address) need(']');
  return o;
}

void Parser::instruction(PtxFunction& f) {
  std::string_view guard;
  bool guard_negated = false;
  if (take('@')) {
    guard_negated = take('!');
    guard = need_name("a predicate");
  }
  int line = token_.line;
  std::string_view opcode = need_name("an instruction");
  if (guard.empty() && take(':')) {
    if (is(".branchtargets")) {
      advance();
      PtxStmt& s = add(f, PtxStmt::Kind::kTargets);
      s.name = opcode;
      do s.operands.push_back(operand(0));
      while (take(','));
      need(';');
      return;
    }
    if (is(".callprototype") || is(".calltargets")) {  // only calls through pointers need them
      skip_statement();
      return;
    }
    PtxStmt& s = add(f, PtxStmt::Kind::kLabel);
    s.name = opcode;
    s.line = line;
    return;
  }
  PtxStmt& s = add(f, PtxStmt::Kind::kInstruction);
  s.line = line;
  s.name = opcode;
  s.guard = guard;
  s.guard_negated = guard_negated;
  if (!is(';')) {
    do {
      s.operands.push_back(operand(0));
      if (s.operands.size() > 16) fail("more than 16 operands");
    } while (take(','));
  }
  need(';');
}

void Parser::body(PtxModule& m, PtxFunction& f) {
  int depth = 0;
  loc_ = 0;
  do {
    if (is('{')) {
      if (++depth > kMaxNesting) fail(fmt::format("blocks nested deeper than {}", kMaxNesting));
      add(f, PtxStmt::Kind::kOpen);
      advance();
    } else if (is('}')) {
      --depth;
      add(f, PtxStmt::Kind::kClose);
      advance();
    } else if (is(".loc")) {
      loc(m);
    } else if (is(".file")) {
      file(m);
    } else if (is(".reg")) {
      reg_declaration(f);
    } else if (is(".pragma")) {
      skip_statement();
    } else if (token_.kind == TokenKind::kDirective) {
      auto space = space_named(token_.text);
      if (!space) fail(fmt::format("unsupported directive '{}'", token_.text));
      advance();
      PtxStmt& s = add(f, PtxStmt::Kind::kVar);
      s.var = variable(*space, false);
      need(';');
    } else if (take(';')) {
      // an empty statement, as inline assembly leaves them
    } else {
      instruction(f);
    }
  } while (depth > 0);
}

}  // namespace roofgen::sim
