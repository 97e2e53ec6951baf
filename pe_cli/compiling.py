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

COMPILE_FROM = 40_000_000
"""Characters of training from which compiling pays back on a CPU."""
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
    """Compiles at the first call. Where that fails the model is called as it is, with the same random numbers."""

    def __init__(self, model: Transformer, dynamic: bool | None, note: Note) -> None:
        self.model, self.note = model, note
        self.call: Callable[..., Tensor] = torch.compile(model, dynamic=dynamic)
        self.works = False

    def __call__(self, tokens: Tensor, generator: torch.Generator) -> Tensor:
        if self.works:
            return self.call(tokens, generator)
        before = generator.get_state(), torch.get_rng_state()
        try:
            logits = self.call(tokens, generator)
        except Exception as error:  # torch has many kinds; what is wrong with the model itself is raised again below
            generator.set_state(before[0])
            torch.set_rng_state(before[1])
            said = shorten(str(error), 120, placeholder="…")
            self.note(f"training.compile: it failed, so the model is not compiled ({type(error).__name__}: {said})")
            self.call = self.model
            logits = self.model(tokens, generator)
        self.works = True
        return logits
