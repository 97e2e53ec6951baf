"""sequential: the rule without chance."""

from __future__ import annotations

import torch
from driving import SPEC
from sampled import evaluated_ids, sampled, trained_ids

from pe_cli.encodings.registry import encoding_class


def test_training_and_evaluation_count_from_zero() -> None:
    encoding = sampled("sequential", "learned")
    assert type(encoding) is encoding_class("learned")
    assert torch.equal(trained_ids(encoding, 9)[0], torch.arange(9.0))
    assert torch.equal(evaluated_ids(encoding, 40), torch.arange(40.0))


def test_the_longest_window_of_training_is_the_trained_length() -> None:
    for name in ("learned", "sinusoidal", "alibi"):
        assert sampled("sequential", name).trained_length(SPEC.train_length) == SPEC.train_length
        longer = sampled("sequential", name, max_position=24)  # windows of varied length
        assert longer.trained_length(SPEC.train_length) == 24
