#!/usr/bin/env python3
"""roofgen's tuned attention and its peers on one GPU: same inputs, timed in turns, each checked before it is timed.

  run.py --bundle DIR [--bundle DIR2]      DIR from `roofgen emit attention ... -o DIR`
  run.py --L 4096 --d 128 --causal         the peers alone
  run.py --list                            the peers, and why some cannot run here

docs/peers.md describes the peers and the protocol. Exit codes: 0 done, 1 ours failed or nothing could be timed,
2 usage, 3 no torch or no GPU, 130 interrupted (the finished rounds are written)."""
import argparse
import importlib
import sys

import attention
import compare
from compare import OK, UNAVAILABLE, USAGE, Stop, first_line
from cuda import Bundle, Gpu


def arguments(argv):
    p = argparse.ArgumentParser(prog="run.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("--list", action="store_true", help="list the peers and whether they can run")
    p.add_argument("--peer", action="append", choices=[p.name for p in attention.all_peers()], help="only these [all]")
    for name, text in (("L", "rows of Q"), ("kv-len", "rows of K and V [L]"), ("d", "head dimension"),
                       ("batch", "[16384 / L]"), ("heads", "[2048 / d]"), ("kv-heads", "[heads]")):
        p.add_argument(f"--{name}", type=compare.positive, help=text)
    p.add_argument("--causal", action="store_true")
    p.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    p.add_argument("--max-autotune", action="store_true", help="torch.compile tries more and takes minutes")
    compare.add_options(p)
    return p.parse_args(argv, argparse.Namespace(argv=argv))


def load_torch():
    """torch that has a GPU. Raises Stop."""
    try:
        torch = importlib.import_module("torch")
        available = torch.cuda.is_available()
    except Exception as error:
        raise Stop(UNAVAILABLE, f"torch cannot be imported: {first_line(error)}") from None
    if not available:
        raise Stop(UNAVAILABLE, "torch finds no GPU")
    return torch


def list_peers(peers):
    try:
        blocked = load_torch() and ""
    except Stop as stop:
        blocked = str(stop)
    reasons = [(p, blocked or p.missing()) for p in peers]
    rows = [[p.name, f"no: {reason}" if reason else "yes", p.what] for p, reason in reasons]
    return compare.columns([["peer", "here", "what"], *rows], left=3)


def the_problem(args, bundles):
    if not bundles:
        if not args.L or not args.d:
            raise Stop(USAGE, "--bundle DIR, or --L and --d, were expected")
        try:
            return attention.problem_of(args.L, args.d, args.kv_len, args.batch, args.heads, args.kv_heads, args.causal,
                                        args.dtype)
        except ValueError as error:
            raise Stop(USAGE, str(error)) from None
    if any(b.problem != bundles[0].problem for b in bundles):
        raise Stop(USAGE, "the bundles are of different problems")
    if bundles[0].problem["op"] != "attention":
        raise Stop(USAGE, f"no peers for {bundles[0].problem['op']}; attention was expected")
    return bundles[0].problem


def run(argv):
    args = arguments(argv)
    peers = [p for p in attention.all_peers() if not args.peer or p.name in args.peer]
    if args.list:
        sys.stdout.write(list_peers(peers))
        return OK
    args.bundles = [Bundle(path) for path in args.bundle]
    problem = the_problem(args, args.bundles)
    torch = load_torch()
    variants = [b.variant for b in args.bundles]
    peers = [*(attention.ours(b, variants[:i].count(b.variant)) for i, b in enumerate(args.bundles)), *peers]

    def documents():
        gpu = Gpu(args.gpu)
        torch.cuda.set_device(args.gpu)
        gpu.stream = torch.cuda.current_stream().cuda_stream
        mode = "max-autotune-no-cudagraphs" if args.max_autotune else "default"
        work = attention.Attention(torch, gpu, problem, args.seed, mode)
        if not args.bundles:
            work.notes.append("no bundle of roofgen's was given: the peers alone")
        yield compare.compare(gpu, work, peers, args)
    return compare.finish(documents(), args.json)


if __name__ == "__main__":
    sys.exit(compare.guarded(run, sys.argv[1:]))
