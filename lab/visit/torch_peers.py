"""Implementations of torch, as a user of torch gets them, on the tensors of a case."""
import importlib
import math

from timing import Unfit, first_line


class Torch:
    """torch on the GPU and the stream of cuda.Gpu, or the reason why there is none."""

    def __init__(self, gpu):
        self.gpu, self.module, self.missing = gpu, None, ""
        try:
            self.module = importlib.import_module("torch")
            if not self.module.cuda.is_available():
                self.missing = "torch finds no GPU"
                return
            gpu.stream = self.module.cuda.current_stream().cuda_stream
        except Exception as error:  # packages with native parts fail in many ways
            self.missing = f"torch cannot be imported: {first_line(error)}"

    def tensor(self, address, dtype, shape):
        """A tensor on memory that the caller keeps."""
        torch = self.module
        kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp8": torch.float8_e4m3fn}
        size = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}[dtype]
        memory = type("Memory", (), {"__cuda_array_interface__": {
            "shape": (math.prod(shape) * size,), "typestr": "|u1", "data": (address, False), "version": 3}})()
        return torch.as_tensor(memory, device="cuda").view(kinds[dtype]).view(*shape)


# ---- Peers: of a case they make shapes, and function(tensors) -> {output: tensor of roofgen's shape} ----

def functional():
    return importlib.import_module("torch.nn.functional")


def _attention(torch, problem, call):
    """`call` takes Q, K, V as (batch, head, row, d) and gives O like Q."""
    dims = problem["dims"]
    q = (dims["batch"], dims["L"], dims["heads"], dims["d"])
    kv = (dims["batch"], dims["kv_len"], dims["kv_heads"], dims["d"])
    return {"Q": q, "K": kv, "V": kv}, lambda t: {"O": call(*(t[n].transpose(1, 2) for n in "QKV")).transpose(1, 2)}


def sdpa(backend):
    def make(torch, problem):
        dims, causal = problem["dims"], problem["flags"].get("causal", False)
        if causal and dims["L"] not in (1, dims["kv_len"]):
            raise Unfit("is_causal aligns the mask to the first key, this problem's is aligned to the last")
        attention = importlib.import_module("torch.nn.attention")
        chosen = getattr(attention.SDPBackend, backend)
        more = {"enable_gqa": True} if dims["heads"] != dims["kv_heads"] else {}

        def call(q, k, v):
            with attention.sdpa_kernel([chosen]):
                return functional().scaled_dot_product_attention(
                    q, k, v, is_causal=causal and dims["L"] > 1, scale=problem["reals"]["scale"], **more)
        return _attention(torch, problem, call)
    return make


def linear(torch, problem):
    """F.linear with the epilogue as further operators: what eager torch runs."""
    dims, texts = problem["dims"], problem["texts"]
    if (texts["a_layout"], texts["b_layout"]) != ("row", "col"):
        raise Unfit("F.linear takes A by rows and B by columns")
    f = functional()
    epilogues = {"acc": lambda t, x: x, "acc + bias[n]": lambda t, x: x + t["bias"],
                 "gelu_tanh(acc + bias[n])": lambda t, x: f.gelu(x + t["bias"], approximate="tanh"),
                 "gelu(acc + bias[n])": lambda t, x: f.gelu(x + t["bias"])}
    if texts["epilogue"] not in epilogues or texts.get("gated") not in ("", None, "silu"):
        raise Unfit(f"no peer computes {texts['epilogue']}")
    shapes = {"A": (dims["M"], dims["K"]), "B": (dims["N"], dims["K"])}
    if "bias" in texts["epilogue"]:
        shapes["bias"] = (dims["N"],)

    def run(t):
        x = epilogues[texts["epilogue"]](t, f.linear(t["A"], t["B"]))
        return {"C": f.silu(x[:, 0::2]) * x[:, 1::2] if texts.get("gated") else x}
    return shapes, run


def scaled_mm(torch, problem):
    """torch._scaled_mm: fp8 operands, both scales 1, the result in bf16."""
    dims = problem["dims"]
    if problem["dtype"] != "fp8" or problem["texts"]["epilogue"] != "acc":
        raise Unfit("it multiplies fp8 operands without an epilogue")
    one = torch.ones((), device="cuda")
    return ({"A": (dims["M"], dims["K"]), "B": (dims["N"], dims["K"])},
            lambda t: {"C": torch._scaled_mm(t["A"], t["B"].t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)})


def _rows(torch, problem, call):
    dims = problem["dims"]
    shapes = {"x": (dims["rows"], dims["cols"])}
    if problem["op"] != "softmax":
        shapes["weight"] = (dims["cols"],)
    if any(problem["flags"].values()):
        raise Unfit("the peer has no residual")
    return shapes, lambda t: {"y": call(t)}


def rows(compiled):
    def make(torch, problem):
        f, cols = functional(), problem["dims"]["cols"]
        calls = {"rmsnorm": lambda t: f.rms_norm(t["x"], (cols,), t["weight"], problem["reals"].get("eps")),
                 "softmax": lambda t: f.softmax(t["x"], dim=-1)}
        if problem["op"] not in calls:
            raise Unfit(f"no peer computes {problem['op']}")
        call = calls[problem["op"]]
        return _rows(torch, problem, torch.compile(call, dynamic=False) if compiled else call)
    return make


PEERS = {"sdpa-cudnn": sdpa("CUDNN_ATTENTION"), "sdpa-flash": sdpa("FLASH_ATTENTION"), "torch-linear": linear,
         "torch-scaled-mm": scaled_mm, "torch": rows(False), "torch-compiled": rows(True)}


def build(peers, case, contender):
    """Sets run and place of the contender. Raises Unfit."""
    if peers.missing:
        raise Unfit(peers.missing)
    shapes, function = PEERS[contender.name](peers.module, case.problem)
    sets = [{name: peers.tensor(copy[name], case.buffers[name]["dtype"], shape) for name, shape in shapes.items()}
            for copy in case.copies]
    last = {}

    def run(i):
        last.update(function(sets[i]))

    def place(buffer, i):
        if buffer not in last:
            return None
        last[buffer] = last[buffer].contiguous()
        case.gpu.wait("copying an output")
        return last[buffer].data_ptr()
    contender.run, contender.place = run, place
