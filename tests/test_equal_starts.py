"""What runs share whatever their encoding is: weights, batches, float32 masters, and a table without decay."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from command_line import only_run, pe, training
from safetensors.torch import load_file

from pe_cli.encodings import registry
from pe_cli.runs import open_run
from pe_cli.trained import open_trained

DRAWN = {"fope": {"encoding.cosines", "encoding.sines"}}
"""Random numbers that an encoding draws once and never trains."""

# --- precision


def test_master_weights_are_float32_in_any_precision(tmp_path: Path) -> None:
    losses = {}
    for precision in ("float32", "bfloat16"):
        folder = tmp_path / precision
        options = {"training__precision": precision, "model__qk_norm": True, "model__log_n": True}
        done = pe(*training(folder, "--json", **options))
        assert (done.code, done.json["precision"]) == (0, precision)
        tensors = load_file(only_run(folder) / "model.safetensors")
        assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}
        losses[precision] = done.json["validation_loss"]
    assert losses["float32"] != losses["bfloat16"]
    assert losses["float32"] == pytest.approx(losses["bfloat16"], abs=0.05)


# --- encodings start alike


def test_encodings_start_from_the_same_weights_and_see_the_same_batches(tmp_path: Path) -> None:
    shared: dict[str, torch.Tensor] = {}
    digests = set()
    for name in registry.names():
        fresh = pe(*training(tmp_path / "fresh", "--json", "--quiet", encoding=name, training__steps=0))
        assert fresh.code == 0
        run = open_run(fresh.json["directory"])
        weights = load_file(run.path / "model.safetensors")
        trained = open_trained(run, torch.device("cpu"))
        # what is trained, and what was drawn; what can be computed is not saved, so that no length is built in
        assert weights.keys() == {name for name, _ in trained.model.named_parameters()} | DRAWN.get(name, set())
        common = {key: tensor for key, tensor in weights.items() if not key.startswith("encoding.")}
        shared = shared or common
        assert common.keys() == shared.keys()
        assert all(torch.equal(tensor, shared[key]) for key, tensor in common.items())
        done = pe(*training(tmp_path / "some", "--json", "--quiet", encoding=name, training__steps=2))
        digests.add(done.json["data_digest"])
    assert len(digests) == 1
    other = pe(*training(tmp_path / "some", "--json", "--seed", 7, training__steps=2))
    assert other.json["data_digest"] not in digests


def test_parameters_of_simple_encodings(tmp_path: Path) -> None:
    counts = {
        name: pe(*training(tmp_path, "--json", "--dry-run", encoding=name)).json["parameters"]
        for name in ("none", "rope", "alibi", "sinusoidal", "learned", "t5")
    }
    assert counts["none"] == counts["rope"] == counts["alibi"] == counts["sinusoidal"]
    assert counts["learned"] == counts["none"] + 16 * 16  # a row of d_model for each id
    assert counts["t5"] == counts["none"] + 32 * 2  # a bias for each bucket and head


def test_weight_decay_leaves_a_learned_table_alone(tmp_path: Path) -> None:
    """Ten per cent a step would leave an eighth of the table after 20 steps."""
    recipe = {"encoding": "learned", "training__optimizer": "adamw", "training__learning_rate": 0.01}
    norms = {}
    for steps in (0, 20):
        done = pe(
            *training(
                tmp_path, "--json", training__weight_decay=10, training__steps=steps, training__warmup_steps=0, **recipe
            )
        )
        tensors = load_file(Path(done.json["directory"]) / "model.safetensors")
        norms[steps] = {name: tensor.norm().item() for name, tensor in tensors.items()}
    assert norms[20]["embedding.weight"] < 0.5 * norms[0]["embedding.weight"]
    assert norms[20]["encoding.table"] > norms[0]["encoding.table"]
