"""Muon for the matrices of the blocks, AdamW for the rest, and the schedule of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from pe_cli.config import TrainingConfig
from pe_cli.model import Transformer
from pe_cli.muon import Muon

KEPT: dict[type[Optimizer], tuple[str, ...]] = {
    AdamW: ("step", "exp_avg", "exp_avg_sq"),
    Muon: ("momentum_buffer",),
}
"""What each keeps of a parameter from one step to the next."""


class Optimizers:
    """All optimisers of a run behind one step. The state is a flat mapping of tensors by parameter name."""

    def __init__(self, model: Transformer, config: TrainingConfig) -> None:
        self.names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
        groups = parameter_groups(model, config.optimizer)
        self.fused = next(model.parameters()).device.type != "mps"
        self.optimizers: list[Optimizer] = [
            AdamW(
                [
                    {"params": groups["adamw"], "weight_decay": config.weight_decay},
                    {"params": groups["adamw, no weight decay"], "weight_decay": 0.0},
                ],
                lr=config.learning_rate,
                fused=self.fused,
            )
        ]
        if groups["muon"]:
            self.optimizers.append(Muon(groups["muon"], lr=config.muon_learning_rate, weight_decay=config.weight_decay))
        self.peaks = [optimizer.defaults["lr"] for optimizer in self.optimizers]

    def step(self, factor: float) -> None:
        """One step at `factor` times the learning rates of the config; gradients are then cleared."""
        for optimizer, peak in zip(self.optimizers, self.peaks, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
            optimizer.step()
            optimizer.zero_grad()

    def state(self) -> dict[str, Tensor]:
        return {
            f"{self.names[parameter]}.{key}": value
            for optimizer in self.optimizers
            for parameter, entries in optimizer.state.items()
            for key, value in entries.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a `state()`. RuntimeError for one that these parameters cannot have."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    optimizer.state[parameter] = {
                        # the fused kernels count steps where the parameter is, the others on the CPU
                        key: value.to(parameter.device) if self.fused or key != "step" else value
                        for key, value in self._entries(parameter, KEPT[type(optimizer)], state).items()
                    }

    def _entries(self, parameter: Tensor, kept: Sequence[str], state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """All that is kept of a parameter, or nothing before its first gradient. Fused kernels look at no shape."""
        name = self.names[parameter]
        entries = {key: state[f"{name}.{key}"] for key in kept if f"{name}.{key}" in state}
        if entries and len(entries) < len(kept):
            raise RuntimeError(f"of {name} there is {', '.join(entries)} alone")
        for key, value in entries.items():
            shape = () if key == "step" else parameter.shape
            if value.shape != shape or value.dtype != parameter.dtype:
                raise RuntimeError(f"{name}.{key} is {value.dtype} of the shape {list(value.shape)}")
        return entries


def parameter_groups(model: Transformer, optimizer: str) -> dict[str, list[nn.Parameter]]:
    """Which parameter is trained how. Gains and position parameters get no weight decay."""
    groups: dict[str, list[nn.Parameter]] = {"muon": [], "adamw": [], "adamw, no weight decay": []}
    for name, parameter in model.named_parameters():
        if name.startswith("encoding.") or parameter.ndim < 2:
            groups["adamw, no weight decay"].append(parameter)
        elif name.startswith("blocks.") and optimizer == "muon":
            groups["muon"].append(parameter)
        else:
            groups["adamw"].append(parameter)
    return groups


def schedule(step: int, steps: int, warmup: int) -> float:
    """The factor of the learning rate at step 0 … steps − 1: a linear rise, then a linear fall towards zero."""
    rise = min(1.0, (step + 1) / (warmup + 1))
    fall = (steps - step) / max(1, steps - min(warmup, steps - 1))
    return min(rise, fall, 1.0)
