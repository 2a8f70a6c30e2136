"""Renders templates with python3-jinja2, configured for the semantics of roofgen's engine.

Usage: jinja_reference.py INPUT OUTPUT. INPUT is a JSON list of {"templates": {name: text}, "main": name,
"context": {...}}; OUTPUT a list of {"text": ...} or {"error": ...} in the same order.

The script adds the two differences listed in docs/internals/templates.md, exact division of integers and {% assert %}. Functions
of docs/internals/expressions.md that Jinja2 lacks become globals.
"""
import json
import math
import resource
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import SandboxedEnvironment


class Assert(Extension):
    tags = {"assert"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        test = parser.parse_expression()
        parser.stream.expect("comma")
        call = self.call_method("check", [test, parser.parse_expression()], lineno=line)
        return nodes.ExprStmt(call, lineno=line)

    def check(self, ok, message):
        if not ok:
            raise jinja2.TemplateRuntimeError(str(message))


class Environment(SandboxedEnvironment):
    intercepted_binops = frozenset(["/"])

    def call_binop(self, context, operator, left, right):
        if isinstance(left, int) and isinstance(right, int):
            quotient, rest = divmod(left, right)
            if rest:
                raise jinja2.TemplateRuntimeError("inexact division")
            return quotient
        return left / right


def log2(x):
    if isinstance(x, float):
        return math.log2(x)
    if not is_pow2(x):
        raise jinja2.TemplateRuntimeError("log2 of no power of two")
    return x.bit_length() - 1


def is_pow2(x):
    return x > 0 and x & (x - 1) == 0


def ceil_div(a, b):
    return -(-a // b)


FUNCTIONS = {
    "range": lambda *args: list(range(*args)),
    "ceil_div": ceil_div,
    "align_up": lambda a, b: ceil_div(a, b) * b,
    "log2": log2,
    "is_pow2": is_pow2,
    "min": min,
    "max": max,
    "len": len,
    "abs": abs,
    "int": int,
    "float": float,
    "str": str,
    "join": lambda items, between="": between.join(map(str, items)),
    "upper": lambda s: s.upper(),
    "lower": lambda s: s.lower(),
}


def render(case):
    env = Environment(
        loader=jinja2.DictLoader(case["templates"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=[Assert],
    )
    env.globals.update(FUNCTIONS)
    try:
        return {"text": env.get_template(case["main"]).render(**case["context"])}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    # 'x' * 1000000007 and similar expressions, which roofgen rejects, end in a MemoryError here.
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    with open(sys.argv[1], encoding="utf-8") as f:
        cases = json.load(f)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump([render(c) for c in cases], f)


main()
