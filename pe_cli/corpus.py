"""Text becomes an alphabet, ids, a training and a held-out part, and batches of training windows.

The alphabet is the sorted distinct characters of the whole text, training and held-out part together, so that
every held-out character has an id. The last 10 % of the characters are held out.
"""

from __future__ import annotations

import codecs
import hashlib
import stat
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import ArrayLike

from pe_cli.built_in import BUILT_IN, is_built_in, sha256_hex
from pe_cli.errors import CorpusError, RunError, canonical, nearest
from pe_cli.seeds import seeded

MIN_CHARACTERS = 20  # the shortest text: 18 characters to train on, 2 held out
PIECE = 1 << 20  # characters converted at a time: the temporary arrays stay small beside a text of 100 MB
LISTED = 10  # unknown characters named in an error


# --- a text and its ids ---


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as ids.

    name: of the built-in corpus, or the absolute path of the file.
    ids: (N,) the characters as places in `alphabet`; read-only; the smallest of uint8, uint16 and int32.
    held_start: the first held-out place.
    data_hash: SHA-256 (hex) of the normalised text as UTF-8.
    """

    name: str
    ids: np.ndarray
    held_start: int
    alphabet: str
    data_hash: str

    @property
    def train(self) -> np.ndarray:
        """(held_start,) the ids to train on."""
        return self.ids[: self.held_start]

    @property
    def held_out(self) -> np.ndarray:
        """(N - held_start,) the ids that are never trained on."""
        return self.ids[self.held_start :]


def load(data: str, alphabet: str | None = None) -> Corpus:
    """The built-in corpus or the UTF-8 file that `data` names; ids by its own alphabet or by a given one.

    A byte-order mark at the start is dropped; CRLF and a lone CR become LF. Raises CorpusError for a file
    that is missing, no regular file or not UTF-8; for a text of fewer than 20 characters or of one character
    only; and for characters that a given `alphabet` (that of a trained run) lacks.
    """
    if is_built_in(data):
        name = canonical(data)
        raw = BUILT_IN[name].read()
    else:
        name = str(Path(data).absolute())
        raw = _read_file(Path(name))
    text = _normalised(raw, name)
    del raw  # not kept beside the text and its ids
    if len(text) < MIN_CHARACTERS:
        raise CorpusError(f"{name}: the text has {len(text)} characters; at least {MIN_CHARACTERS} are needed")
    own = "".join(sorted(set(text)))
    if len(own) < 2:
        raise CorpusError(f"{name}: the text repeats one character, {own!r}; at least 2 different are needed")
    if alphabet is None:
        alphabet = own
    ids = encode(text, alphabet, name)
    ids.flags.writeable = False
    return Corpus(name, ids, len(ids) * 9 // 10, alphabet, sha256_hex(text.encode()))


def check_length(corpus: Corpus, length: int, key: str = "training.length") -> None:
    """Raise CorpusError unless the training part holds `length` characters and the one after them; `key` set it."""
    if len(corpus.train) < length + 1:
        whole = -(-10 * (length + 1) // 9)
        raise CorpusError(
            f"{corpus.name}: the text is too short for {key} {length}: its training part (the "
            f"first 90 %) needs at least {length + 1} characters and has {len(corpus.train)}; the whole text "
            f"needs at least {whole} and has {len(corpus.ids)}"
        )


def encode(text: str, alphabet: str, what: str = "the text") -> np.ndarray:
    """(N,) the places of the characters in `alphabet`, as uint8, uint16 or int32.

    Raises CorpusError, beginning with `what`, that lists and counts characters which are not in the alphabet.
    """
    if len(set(alphabet)) != len(alphabet):
        raise CorpusError(f"{what}: the alphabet to read it by has a character twice")
    table = np.full(sys.maxunicode + 1, -1, dtype=np.int32)
    table[_code_points(alphabet)] = np.arange(len(alphabet))
    ids = np.empty(len(text), dtype=_smallest_type(len(alphabet)))
    unknown: Counter[int] = Counter()
    for start in range(0, len(text), PIECE):
        points = _code_points(text[start : start + PIECE])
        places = table[points]
        values, counts = np.unique(points[places < 0], return_counts=True)
        unknown.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        ids[start : start + PIECE] = places
    if unknown:
        named = ", ".join(f"{chr(p)!r} U+{p:04X} ({_times(n)})" for p, n in unknown.most_common(LISTED))
        more = f", and {len(unknown) - LISTED} more" if len(unknown) > LISTED else ""
        raise CorpusError(
            f"{what}: characters outside the alphabet (which has {len(alphabet)}): {len(unknown)}: {named}{more}"
        )
    return ids


def decode(ids: ArrayLike, alphabet: str) -> str:
    """The characters at these places of the alphabet. Raises ValueError for a place that it does not have."""
    places = np.asarray(ids, dtype=np.int64)
    if places.size and (places.min() < 0 or places.max() >= len(alphabet)):
        raise ValueError(f"ids from {places.min()} to {places.max()} for an alphabet of {len(alphabet)}")
    return _code_points(alphabet)[places].tobytes().decode("utf-32-le", "surrogatepass")


def _code_points(text: str) -> np.ndarray:
    # surrogatepass: a prompt from the command line may hold lone surrogates; they too are listed as unknown
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _smallest_type(count: int) -> type[np.integer]:
    if count <= 1 << 8:
        return np.uint8
    return np.uint16 if count <= 1 << 16 else np.int32


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _read_file(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise CorpusError(f"{path} is a directory; the data must be one UTF-8 text file")
        if not stat.S_ISREG(mode):  # a pipe can be read once only, and a run reads its text again
            raise CorpusError(f"{path} is not a regular file; the data must be one UTF-8 text file")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise CorpusError(
            f"{path}: no such file, and no built-in corpus has that name{nearest(path.name, BUILT_IN)}"
        ) from error
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # a path with a NUL character
        raise CorpusError(f"{str(path)!r} is not a path: {error}") from error


def _normalised(raw: bytes, name: str) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        utf16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        raise CorpusError(
            f"{name}: not UTF-8: byte 0x{raw[error.start]:02X} at byte offset {error.start} (line {line}): "
            f"{error.reason}; save the text as UTF-8{' (it looks like UTF-16)' if utf16 else ''}"
        ) from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


# --- training batches ---


class BatchState(TypedDict):
    """Where a stream of batches stands: the generator's state (uint8 tensor) and the digest (hex)."""

    generator: torch.Tensor
    digest: str


class Batches:
    """Endless training windows, drawn uniformly and with replacement from all places where one fits.

    train_ids: (N,) ids of the training part. The stream depends on `seed`, N, length, batch_size and length_range
    alone. With a length_range each batch draws its length from it, and has as many windows as come nearest to
    batch_size × length characters. Raises CorpusError where N is less than the longest window and one more.
    """

    def __init__(
        self,
        train_ids: np.ndarray,
        length: int,
        batch_size: int,
        seed: int,
        length_range: tuple[int, ...] | None = None,
    ) -> None:
        longest = length if length_range is None else length_range[1]
        if len(train_ids) < longest + 1:
            raise CorpusError(
                f"training windows of {longest} characters need a training part of at least {longest + 1}; "
                f"it has {len(train_ids)}"
            )
        self._ids = train_ids
        self._length = length
        self._range = length_range
        self._batch_size = batch_size
        self._generator = seeded(seed, "data")
        self._digest = hashlib.sha256().hexdigest()

    def next(self) -> torch.Tensor:
        """(B, length + 1) int64: each window with the character that follows it."""
        length, windows = self._shape()
        starts = torch.randint(len(self._ids) - length, (windows,), generator=self._generator).numpy()
        link = bytes.fromhex(self._digest) + starts.astype("<i8").tobytes()
        if self._range is not None:
            link += length.to_bytes(8, "little")
        self._digest = hashlib.sha256(link).hexdigest()
        return torch.from_numpy(self._ids[starts[:, None] + np.arange(length + 1)].astype(np.int64))

    def _shape(self) -> tuple[int, int]:
        """Characters in a window of the next batch, and its windows."""
        if self._range is None:
            return self._length, self._batch_size
        low, high = self._range
        length = int(torch.randint(low, high + 1, (), generator=self._generator))
        return length, max(1, round(self._batch_size * self._length / length))

    def pair(self) -> tuple[torch.Tensor, torch.Tensor]:
        """What is fed (B, length) and what is to follow (B, length)."""
        windows = self.next()
        return windows[:, :-1], windows[:, 1:]

    @property
    def digest(self) -> str:
        """SHA-256 (hex) chained over the windows drawn so far: equal for runs that saw the same."""
        return self._digest

    def state(self) -> BatchState:
        """What `restore` needs to go on from here; it does not change with later draws."""
        return {"generator": self._generator.get_state(), "digest": self._digest}

    def restore(self, state: BatchState) -> None:
        """Go on from a `state()` bit for bit. Raises RunError for a state that cannot be one."""
        self._digest = restored(self._generator, state)


def restored(generator: torch.Generator, state: BatchState) -> str:
    """The digest of a saved state, with its generator put back. RunError for a state that cannot be one."""
    try:
        if len(bytes.fromhex(state["digest"])) != hashlib.sha256().digest_size:
            raise ValueError("the digest is no SHA-256")
        generator.set_state(state["generator"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise RunError(f"the saved state of the training batches is damaged: {error}") from error
    return state["digest"]
