"""Text from a trained model, one character after another.

Every character is the result of one whole forward pass over all the text so far. No keys are kept from one
character to the next, so there is no second, cached way of generating that could come to another text: what
depends on the length is computed anew for all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from pe_cli.corpus import encode
from pe_cli.errors import ConfigError, PositionRangeError, RunFailed
from pe_cli.seeds import seeded
from pe_cli.trained import Trained


def sample(
    trained: Trained,
    prompt: str | None,
    chars: int,
    temperature: float = 1.0,
    greedy: bool = False,
    seed: int = 0,
    on_cut: Callable[[str, int], None] | None = None,
) -> Iterator[str]:
    """The `chars` characters after the prompt, one by one; None is the default prompt.

    Greedy takes the most likely character, else one is drawn from softmax(logits / temperature). Equal seeds
    draw equal texts. Past the last id that the model has numbers for, such as the end of a learned table, it sees
    only the last training-length characters: `on_cut` is told why, and that number, once, before the first character
    that is made so.

    Raises ConfigError for bad numbers, an empty prompt or one that the model has no numbers for, and CorpusError that
    lists and counts characters of the prompt that the model does not know; all before anything is generated.
    RunFailed where the model's output is not finite, or it has no numbers for what it has written itself.
    """
    if chars < 0:
        raise ConfigError(f"--chars {chars}: must be 0 or more")
    if not 0 < temperature < math.inf:
        raise ConfigError(f"--temperature {temperature}: must be a finite number above 0; --greedy takes the likeliest")
    if prompt is None:
        prompt = default_prompt(trained.alphabet)
    if not prompt:
        raise ConfigError("--prompt: is empty; leave it out to begin with a new line")
    tokens = torch.from_numpy(encode(prompt, trained.alphabet, "--prompt")).long()
    choose = likeliest if greedy else drawn(temperature, seed)
    return continuation(trained, tokens, chars, choose, on_cut)


def default_prompt(alphabet: str) -> str:
    """A new line, or the first character of an alphabet without one."""
    return "\n" if "\n" in alphabet else alphabet[0]


def continuation(
    trained: Trained,
    tokens: Tensor,
    chars: int,
    choose: Callable[[Tensor], int],
    on_cut: Callable[[str, int], None] | None,
) -> Iterator[str]:
    """The characters that `choose` takes from the logits (A,) after `tokens` (T,)."""
    window: int | None = None
    for done in range(chars):
        try:
            logits, window = next_logits(trained, tokens, window, on_cut)
        except PositionRangeError as error:  # of a window as short as in training: no cut would help
            if done == 0:
                raise ConfigError(f"--prompt: the model cannot read it: {error}; write another one") from None
            raise RunFailed(f"the model cannot read what it has written: {error}") from None
        number = choose(logits)
        tokens = torch.cat([tokens, torch.tensor([number])])
        yield trained.alphabet[number]


def next_logits(
    trained: Trained, tokens: Tensor, window: int | None, on_cut: Callable[[str, int], None] | None
) -> tuple[Tensor, int | None]:
    """Logits (A,) after the last `window` of `tokens` (T,), and the window from now on; None: all of them."""
    if window is not None:
        return after(trained, tokens[-window:]), window
    try:
        return after(trained, tokens), None
    except PositionRangeError as error:
        reason = str(error)
    window = trained.experiment.training.longest
    logits = after(trained, tokens[-window:])
    if on_cut is not None:
        on_cut(reason, window)
    return logits, window


@torch.inference_mode()
def after(trained: Trained, tokens: Tensor) -> Tensor:
    """Logits (A,) of the character after `tokens`, on the CPU."""
    device = trained.model.head.weight.device
    logits: Tensor = trained.model(tokens[None].to(device), scored=1)[0, -1].cpu()
    if not bool(logits.isfinite().all()):
        raise RunFailed(f"the model's logits after {len(tokens)} characters are not finite")
    return logits


def likeliest(logits: Tensor) -> int:
    return int(logits.argmax())


def drawn(temperature: float, seed: int) -> Callable[[Tensor], int]:
    generator = seeded(seed, "sample")

    def choose(logits: Tensor) -> int:
        # float64, and counted from the largest: a small temperature ends in 1 and zeros, not in inf − inf
        weights = ((logits.double() - logits.max()) / temperature).softmax(dim=-1)
        return int(torch.multinomial(weights, 1, generator=generator))

    return choose
