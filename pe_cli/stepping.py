"""One step of training, wherever it is taken."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from pe_cli.compiling import Note, compiled
from pe_cli.devices import choose_precision
from pe_cli.experiment import TrainingConfig
from pe_cli.model import Transformer
from pe_cli.optimizers import Optimizers, schedule


class Stepper:
    """A model with its optimisers; `ids` draws the ids of samplers."""

    def __init__(self, model: Transformer, config: TrainingConfig, device: torch.device, ids: torch.Generator) -> None:
        self.model, self.config, self.device, self.ids = model.to(device), config, device, ids
        self.optimizers = Optimizers(model, config)
        self.dtype = choose_precision(config.precision, device)
        self.call: Callable[..., Tensor] = model

    def begin(self, varying: bool, note: Note) -> None:
        """From here on the model is trained, compiled where that pays back; `varying`: batches differ in length."""
        self.call = compiled(self.model, self.config, self.device, varying, note)
        self.model.train()

    def step(self, fed: Tensor, wanted: Tensor, number: int) -> float:
        """Step `number`, from 0, on windows (B, T) and the characters that follow (B, T): the loss before it."""
        fed, wanted = fed.to(self.device), wanted.to(self.device)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            logits = self.call(fed, self.ids)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_clip)
        self.optimizers.step(schedule(number, self.config.steps, self.config.warmup_steps))
        return loss.item()
