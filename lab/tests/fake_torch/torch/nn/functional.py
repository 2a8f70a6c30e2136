import itertools
import math
import os
import time

from torch import made

_cache = {}  # a peer runs many times on the same inputs


def scaled_dot_product_attention(q, k, v, is_causal, scale, enable_gqa=False):
    what = os.environ.get("FAKE_TORCH")
    if what == "hang":
        time.sleep(1000)
    if what == "crash":
        os._exit(9)
    key = q.address, k.address, v.address
    if key not in _cache:
        query, keys, value, out = q.values(), k.values(), v.values(), {}
        batch, heads, rows, d = q.shape
        group, count = heads // k.shape[1], k.shape[2]
        for b, h, r in itertools.product(range(batch), range(heads), range(rows)):
            seen = range(min(count, r + 1) if is_causal else count)
            scores = [scale * sum(query[b, h, r, c] * keys[b, h // group, j, c] for c in range(d)) for j in seen]
            p = [math.exp(s - max(scores)) for s in scores]
            for c in range(d):
                out[b, h, r, c] = sum(x * value[b, h // group, j, c] for x, j in zip(p, seen)) / sum(p)
                out[b, h, r, c] += what == "wrong"
        # Like torch, in the layout of its inputs: (batch, row, head, d) in memory.
        turned = {(b, r, h, c): x for (b, h, r, c), x in out.items()}
        _cache[key] = made(turned, (batch, rows, heads, d)).transpose(1, 2)
    return _cache[key]
