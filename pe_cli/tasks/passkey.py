"""passkey: a key said once in a long text, asked for at its end."""

from __future__ import annotations

from random import Random

from pydantic import Field

from pe_cli.errors import ConfigError
from pe_cli.tasks.base import Instance, Length, Task, TaskOptions, some
from pe_cli.tasks.registry import register

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
DIGITS = "0123456789"
TRIES = 100


@register
class Passkey(Task):
    r"""A sentence that is repeated, with a key somewhere in it; at the end the key is to be said again.

    .. math:: f_1 \dots f_a \; \texttt{the key is } K \texttt{. } f_{a+1} \dots f_m \; \texttt{the key is } \mapsto K

    The length counts all characters that a model is fed: a run trained on windows of 128 characters meets no new
    position at length 128. The depth :math:`a / m` of the key is 0, 1/4, 1/2, 3/4 or 1, drawn evenly.

    Keys are drawn evenly from the digits. A run that was trained on a text can be asked too: where its alphabet has not
    all of those, keys are drawn from the letters and digits that it has. Beside the exact match stands the margin:
    the log-likelihood of the key less that of a decoy, another key of that length that the text does not have. It is
    above 0 wherever the model prefers the true key, long before it would say it. Chance: a margin of 0, and one by
    the number of keys (100,000 for five digits).
    """

    name = "passkey"
    reference = "Mohtashami and Jaggi 2023, arXiv:2305.16300"
    counted = "all characters fed"

    class Options(TaskOptions):
        min_length: Length = 48
        """Training draws one length for all instances of a batch, evenly from here ..."""
        max_length: Length = 128
        """... to here, in characters. Evaluation goes beyond."""
        key_length: int = Field(default=5, ge=1, le=64)
        """Characters of a key."""
        statement: str = Field(default="the key is ", min_length=1)
        """What stands before the key, and before the answer."""
        ending: str = Field(default=". ", min_length=1)
        """What stands behind the key."""
        filler: str = Field(default="the grass is green. the sky is blue. ", min_length=1)
        """What the rest of the text repeats."""

    def __init__(self, options: Options, alphabet: str | None = None) -> None:
        super().__init__(options, alphabet)
        digits = alphabet is None or set(DIGITS) <= set(alphabet)
        self.keys = DIGITS if digits else "".join(filter(str.isalnum, alphabet or ""))
        if len(self.keys) < 2:
            raise ConfigError("passkey: the alphabet of the run has not two letters or digits to make keys of")

    @property
    def characters(self) -> str:
        return "".join(sorted({*self.options.statement, *self.options.filler, *self.options.ending, *self.keys}))

    def lacking(self, length: int) -> str | None:
        least = 2 * (len(self.options.statement) + self.options.key_length) + len(self.options.ending) - 1
        if length >= least:
            return None
        return f"{length} characters cannot hold the key and the question, which are {least}"

    def instance(self, length: int, draw: Random) -> Instance:
        options = self.options
        key = some(self.keys, options.key_length, draw)
        said = f"{options.statement}{key}{options.ending}"
        room = length + 1 - len(said) - len(options.statement) - len(key)
        filler = (options.filler * (room // len(options.filler) + 1))[:room]
        depth = draw.choice(DEPTHS)
        before = round(depth * room)
        prompt = f"{filler[:before]}{said}{filler[before:]}{options.statement}"
        return Instance(prompt, key, decoy=self.decoy(prompt, key, draw), depth=depth)

    def decoy(self, prompt: str, key: str, draw: Random) -> str:
        """Another key, which the prompt does not have unless it has almost all of them."""
        decoy = key
        for _ in range(TRIES):
            if decoy not in prompt:
                break
            decoy = some(self.keys, len(key), draw)
        while decoy == key:
            decoy = some(self.keys, len(key), draw)
        return decoy
