"""A model whose loss is a known function of how many characters it has seen, and evaluations of any model."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pe_cli.corpus import Corpus
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.registry import build
from pe_cli.experiment import EvaluationConfig, Experiment
from pe_cli.model import Transformer, new_model
from pe_cli.runs import Run
from pe_cli.text_evaluation import TextEvaluation
from pe_cli.trained import Trained

ALPHABET = "abcdefgh"
TRAIN_LENGTH = 16
SPEC = ModelSpec(d_model=16, n_heads=2, n_layers=2, train_length=TRAIN_LENGTH, alphabet=ALPHABET, max_position=16)


class KnownLoss(nn.Module):
    """On the text abcdefghabc… the character after n characters of context costs `loss(n)` nats, n = 1, 2, …"""

    def __init__(self, loss: Callable[[int], float]) -> None:
        super().__init__()
        self.loss = loss
        self.weight = nn.Parameter(torch.zeros(()))
        self.encoding: PositionEncoding = build("none", SPEC)

    def forward(self, tokens: Tensor, generator: Any = None, scored: int | None = None) -> Tensor:
        # a right logit of 0 among others of c costs ln(1 + (A − 1)·exp(c))
        costs = [self.loss(seen) for seen in range(1, tokens.shape[1] + 1)]
        others = [cost + math.log(-math.expm1(-cost)) - math.log(len(ALPHABET) - 1) for cost in costs]
        logits = torch.tensor(others)[None, :, None].repeat(len(tokens), 1, len(ALPHABET))
        following = (tokens + 1) % len(ALPHABET)
        logits = logits.scatter(2, following[..., None], 0.0)
        return logits if scored is None else logits[:, -scored:]

    def using(self, encoding: PositionEncoding) -> KnownLoss:
        clone = KnownLoss(self.loss)
        clone.encoding = encoding
        return clone


def curve(context: int) -> float:
    """Falls with context up to 24 characters, and rises slowly from there on."""
    return 0.5 + 4.0 / min(context, 24) + 0.01 * max(0, context - 24)


def cycle(chars: int) -> Corpus:
    """abcdefghabc…, of which the last tenth is held out."""
    ids = np.arange(chars) % len(ALPHABET)
    return Corpus("cycle", ids.astype(np.uint8), chars * 9 // 10, ALPHABET, "0" * 64)


def noise(chars: int) -> Corpus:
    ids = np.random.default_rng(0).integers(len(ALPHABET), size=chars)
    return Corpus("noise", ids.astype(np.uint8), chars * 9 // 10, ALPHABET, "1" * 64)


def model_of(encoding: Any, spec: ModelSpec = SPEC) -> Transformer:
    """Fresh weights, every parameter moved a little so that tables which begin at zero matter."""
    model = new_model(spec, encoding, seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model


def evaluation_of(model: Any, corpus: Corpus, encoding: Any = "none", **settings: Any) -> TextEvaluation:
    """An evaluation of the model as a run trained on windows of TRAIN_LENGTH characters."""
    experiment = Experiment.model_validate(
        {"name": "run", "seed": 3, "encoding": encoding, "training": {"length": TRAIN_LENGTH}}
    )
    trained = Trained(Run(Path("run-0123456789-s3"), {}), experiment, ALPHABET, model)
    return TextEvaluation(trained, corpus, EvaluationConfig.model_validate({"scored": 8, "windows": 6, **settings}))


def quietly(chars: int) -> None:
    """Nobody is told."""
