"""Corpora that have a name: made by the running Python, or fetched and checked against a known SHA-256."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from pe_cli.errors import CorpusError, canonical


@dataclass(frozen=True)
class Checked:
    """What the bytes of a file must be: their number and their SHA-256 (hex)."""

    size: int
    sha256: str


@dataclass(frozen=True)
class PythonTopics:
    """The help topics that come with the running Python; they differ between Python versions.

    Some repeat passages of others, so that the held-out part is not all new to a model.
    """

    description: str
    reference: str

    def read(self) -> bytes:
        """The topics in the order of their sorted keys, separated by a blank line; UTF-8."""
        try:
            from pydoc_data.topics import topics
        except ImportError as error:
            raise CorpusError(
                "corpus 'pydocs': this Python has no module pydoc_data.topics; "
                "name another corpus or a text file with --data"
            ) from error
        return ("\n\n".join(topics[key].strip("\n") for key in sorted(topics)) + "\n").encode()


@dataclass(frozen=True)
class Download:
    """A text at a URL, packed into a zip (`member` names the file in it) or as it is (`member` is None).

    file, text: what the bytes at the URL and those of the text must be.
    file_names: what either may be called in the folder PE_DATA_DIR; any other is found by size and hash.
    timeout: seconds that the server may stay silent.
    """

    name: str
    description: str
    url: str
    file: Checked
    text: Checked
    member: str | None
    file_names: tuple[str, ...]
    timeout: float = 30.0

    @property
    def reference(self) -> str:
        return self.url

    def read(self) -> bytes:
        """The checked bytes of the text: from PE_DATA_DIR, the user's cache, or fetched into that cache.

        Raises CorpusError for a folder that is not there, a wrong hash, or when nothing can be fetched.
        """
        folder = os.environ.get("PE_DATA_DIR", "")
        data = self._from_folder(Path(folder)) if folder else None
        if data is None:
            data = self._fetch()
        # The check is of the bytes in memory, the ones that are used, not of the file they came from.
        if self.member is not None and sha256_hex(data) == self.file.sha256:
            with zipfile.ZipFile(BytesIO(data)) as archive:
                data = archive.read(self.member)
        found = sha256_hex(data)
        if found != self.text.sha256:
            raise CorpusError(
                f"corpus '{self.name}': the text in {self.url} is not the known one\n"
                f"{_hashes(self.text, found)}\n{self._remedy()}"
            )
        return data

    def _from_folder(self, folder: Path) -> bytes | None:
        """The text or the zip, or None where the folder holds neither under its name."""
        where = folder.absolute()
        known = {self.file, self.text}
        try:
            for path in sorted(folder.iterdir()):
                if path.is_file() and path.stat().st_size in {checked.size for checked in known}:
                    data = path.read_bytes()
                    if sha256_hex(data) in {checked.sha256 for checked in known}:
                        return data
            for path in (folder / name for name in self.file_names):
                if path.is_file():
                    expected = self.file if path.suffix == ".zip" else self.text
                    raise CorpusError(
                        f"corpus '{self.name}': {path.absolute()} (in PE_DATA_DIR) is not the known file\n"
                        f"{_hashes(expected, sha256_hex(path.read_bytes()))}\n"
                        f"Replace it by the file from {self.url}, or remove it to have that fetched."
                    )
        except OSError as error:
            raise CorpusError(
                f"corpus '{self.name}': PE_DATA_DIR={where} cannot be read: {error.strerror}\n"
                "Set PE_DATA_DIR to an existing folder, or unset it."
            ) from error
        return None

    def _fetch(self) -> bytes:
        import pooch  # here, because a command that fetches nothing needs no network code

        pooch.get_logger().setLevel("CRITICAL")
        found = ""

        def download(url: str, output_file: str, caller: object) -> None:
            nonlocal found
            pooch.HTTPDownloader(timeout=self.timeout, chunk_size=1 << 16)(url, output_file, caller)
            found = pooch.file_hash(output_file)

        fname = f"{self.name}{Path(self.url).suffix}"
        try:
            # pooch writes a temporary file, checks it and renames it: no half file gets the name.
            path = pooch.retrieve(self.url, f"sha256:{self.file.sha256}", fname, cache_folder(), downloader=download)
            return Path(path).read_bytes()
        except (ValueError, OSError) as error:  # OSError: every error of the network too
            if found and found != self.file.sha256:
                problem = f"the file at {self.url} is not the known one\n{_hashes(self.file, found)}"
            else:
                problem = (
                    f"cannot fetch {self.url} into {cache_folder()}: {_root(error)}\n"
                    f"  expected SHA-256 {self.file.sha256}"
                )
            raise CorpusError(f"corpus '{self.name}': {problem}\n{self._remedy()}") from error

    def _remedy(self) -> str:
        names = " or ".join(self.file_names)
        return f"Put the file into a folder as {names} and set PE_DATA_DIR to that folder."


SHAKESPEARE = Checked(1_115_394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed")

BUILT_IN: dict[str, PythonTopics | Download] = {
    "pydocs": PythonTopics(
        description="help topics of the running Python: English and code, no download",
        reference="pydoc_data.topics of the Python standard library",
    ),
    "shakespeare": Download(
        name="shakespeare",
        description="tiny Shakespeare: 1.1 million characters of plays",
        url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        file=SHAKESPEARE,
        text=SHAKESPEARE,
        member=None,
        file_names=("tinyshakespeare.txt", "input.txt"),
    ),
    "enwik8": Download(
        name="enwik8",
        description="the first 100 million bytes of an English Wikipedia dump, with its markup",
        url="http://mattmahoney.net/dc/enwik8.zip",
        file=Checked(36_445_475, "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc"),
        text=Checked(100_000_000, "2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8"),
        member="enwik8",
        file_names=("enwik8", "enwik8.zip"),
    ),
    "text8": Download(
        name="text8",
        description="100 million characters of English Wikipedia, lower-case letters and spaces only",
        url="http://mattmahoney.net/dc/text8.zip",
        file=Checked(31_344_016, "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232"),
        text=Checked(100_000_000, "6e890197040d37d85beb962ae1f041ff1d9a9ca8d20c7d99c85027eebf51dca7"),
        member="text8",
        file_names=("text8", "text8.zip"),
    ),
}


def is_built_in(data: str) -> bool:
    """Whether `data` names a built-in corpus (`-` or `_`, any letter case); anything else is a path."""
    return canonical(data) in BUILT_IN


def cache_folder() -> Path:
    """Where fetched files are kept: the user's cache."""
    import pooch

    return Path(pooch.os_cache("pe"))


def _hashes(expected: Checked, found: str) -> str:
    return f"  expected SHA-256 {expected.sha256}\n  found            {found}"


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _root(error: BaseException) -> str:
    """The first cause in words: what lies around it repeats it with the addresses of objects."""
    while error.__context__ is not None:
        error = error.__context__
    return f"{type(error).__name__}: {error}"
