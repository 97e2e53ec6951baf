"""What an encoding costs: parameters, time of a training step and memory of an evaluation, against no encoding."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pe_cli.devices import choose_precision
from pe_cli.encodings.base import EncodingOptions, PositionEncoding
from pe_cli.model import Transformer
from pe_cli.probing import Probe

ROUNDS = 7
STEP_CHARS = 1024
WINDOWS = 2
EVALUATED_AT = 8
SCORED = 64


def efficiency(probe: Probe) -> dict[str, Any]:
    """What the encoding costs.

    Formula: t(none) / t(encoding), t the time of a training step. Beside it: parameters, the number of the
    encoding's own; training time, t(encoding) / t(none), and evaluation memory, m(encoding) / m(none), m the most
    bytes of tensors alive at once.
    Range: above 0, to about 1; times of a busy machine vary by some per cent.
    High: 1: as quick as without an encoding.
    Low: 0.5: a step takes twice the time. A ratio of memory of 2 is twice the memory.
    Measured: the same model with the encoding and with none, on the CPU. Time: forward and backward pass over
    1024 characters in windows of L, in the precision that training takes here by itself, with and without in turn
    7 times after one that does not count; the median of the 7 ratios. Memory: two windows of 8 L (less where that
    is undefined) with 64 scored characters each, counting every tensor from its creation to its end, weights apart.
    """
    plain = probe.model.using(PositionEncoding(EncodingOptions(), probe.spec))
    multiple, _, _ = probe.beyond
    length = probe.length * min(multiple, EVALUATED_AT)
    tokens = probe.tokens(length).expand(WINDOWS, -1)
    taken, least = (evaluation_memory(model, tokens, min(SCORED, probe.length)) for model in (probe.model, plain))
    ratio = step_time_ratio(probe, plain)
    return {"value": 1 / ratio, **parameters(probe), "training_time": ratio, "evaluation_memory": taken / least}


def parameters(probe: Probe) -> dict[str, Any]:
    """What costs nothing to count."""
    return {"parameters": sum(parameter.numel() for parameter in probe.model.encoding.parameters())}


def step_time_ratio(probe: Probe, plain: Transformer) -> float:
    """The median over pairs of steps, one with the encoding and at once one without."""
    tokens = probe.tokens(probe.length + 1).expand(max(1, STEP_CHARS // probe.length), -1)
    ratios = []
    for _ in range(ROUNDS + 1):
        with_it, without = (seconds(partial(train_step, model, tokens)) for model in (probe.model, plain))
        ratios.append(with_it / without)
    probe.model.zero_grad()
    return median(ratios[1:])


def seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def train_step(model: Transformer, tokens: Tensor) -> None:
    """Forward and backward pass, as in training but for the step of the optimiser."""
    dtype = choose_precision("auto", tokens.device)
    with torch.autocast(tokens.device.type, dtype, enabled=dtype != torch.float32):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
    loss.backward()


def evaluation_memory(model: Transformer, tokens: Tensor, scored: int) -> int:
    """The most bytes of tensors alive at once while windows are evaluated, besides the weights and the text."""
    alive = Alive([tokens, *model.parameters(), *model.buffers()])
    with torch.no_grad(), alive:
        model(tokens, scored=scored)
    return alive.most


class Alive(TorchDispatchMode):
    """Counts the bytes of all tensors that operations make, each memory once, from its creation to its end.

    It sees what the operations of torch return, and so no scratch memory inside of a kernel.
    """

    def __init__(self, known: list[Tensor]) -> None:
        super().__init__()
        self.known = {id(memory): memory for memory in (tensor.untyped_storage() for tensor in known)}
        self.counted: set[int] = set()
        self.bytes = self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(output):
            if isinstance(tensor, Tensor):
                self.count(tensor.untyped_storage())
        return output

    def count(self, memory: torch.UntypedStorage) -> None:
        key, size = id(memory), memory.nbytes()
        if key in self.counted or key in self.known:
            return
        self.counted.add(key)
        self.bytes += size
        self.most = max(self.most, self.bytes)
        weakref.finalize(memory, self.gone, key, size)

    def gone(self, key: int, size: int) -> None:
        self.counted.discard(key)
        self.bytes -= size
