"""torch.compile where it pays back, and the model as it is where it cannot be done."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from textwrap import shorten

import torch
from torch import Tensor

from pe_cli.experiment import TrainingConfig
from pe_cli.model import Transformer

COMPILE_FROM = 5_000_000
"""Characters of training from which a model is compiled on a CPU by itself: a little more than rope needs until that
pays back, the first time, in results/benchmarks/processes.md. Encodings that compile longer pay back later."""
MOST_FORMS = 1000
"""Beyond as many forms of one function torch stops compiling it, without an error."""
Note = Callable[[str], None]


def compiled(
    model: Transformer, config: TrainingConfig, device: torch.device, varying: bool, note: Note
) -> Callable[..., Tensor]:
    """The model as training calls it: compiled where asked, or where the planned run is long enough.

    `varying`: batches differ in length, and each other length would compile anew.
    """
    planned = config.steps * config.batch_size * config.length
    worth_it = planned >= COMPILE_FROM and not varying
    if config.compile == "false" or (config.compile == "auto" and not worth_it):
        return model
    if device.type == "cpu" and shutil.which(os.environ.get("CXX", "g++")) is None:
        note("training.compile: there is no C++ compiler (g++, or CXX), so the model is not compiled")
        return model
    return Compiled(model, True if varying else None, note)


class Compiled:
    """Compiles all layers at the first call. Where that fails they are called as they are, with equal random numbers.

    Embeddings stay outside: ids are drawn and checked there, by what a compiler cannot follow.
    """

    def __init__(self, model: Transformer, dynamic: bool | None, note: Note) -> None:
        self.model, self.note = model, note
        # layers that cannot be compiled together are compiled one by one, each as another form of the same function
        torch._dynamo.config.recompile_limit = MOST_FORMS
        self.through: Callable[..., Tensor] = torch.compile(model.through, dynamic=dynamic)
        self.works = False

    def __call__(self, tokens: Tensor, generator: torch.Generator) -> Tensor:
        entering = self.model.embedded(tokens, generator)
        if self.works:
            return self.through(*entering)
        before = torch.get_rng_state()
        try:
            logits = self.through(*entering)
        except Exception as error:  # torch has many kinds; what is wrong with the model itself is raised again below
            torch.set_rng_state(before)
            said = shorten(str(error), 120, placeholder="…")
            self.note(f"training.compile: it failed, so the model is not compiled ({type(error).__name__}: {said})")
            self.through = self.model.through
            logits = self.through(*entering)
        self.works = True
        return logits
