"""Corpora, alphabets, the split and training batches."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import io
import logging
import os
import socket
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pooch
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pe_cli import built_in, corpus
from pe_cli.built_in import BUILT_IN
from pe_cli.corpus import Batches, CorpusError, check_length, decode, encode, load
from pe_cli.errors import RunError
from pe_cli.seeds import seeded

TEXT = "The quick brown fox\njumps over the lazy dog.\n" * 4
EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write(content: str | bytes, name: str = "text.txt") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def refusal(data: str, alphabet: str | None = None) -> str:
    with pytest.raises(CorpusError) as caught:
        load(data, alphabet)
    message = str(caught.value)
    assert len(message.splitlines()) <= 15
    return message


# --- a text file ---


def test_ids_alphabet_split_and_hash(write: Callable[..., str]) -> None:
    path = write("abcabcabcabcabcabcabcab\nz")
    loaded = load(path)
    assert loaded.name == path
    assert loaded.alphabet == "\nabcz"
    assert loaded.ids.tolist() == [1, 2, 3] * 7 + [1, 2, 0, 4]
    # 25 characters: 22 to train on; z occurs in the held-out part only and has an id
    assert loaded.held_start == 22
    assert loaded.train.tolist() == [1, 2, 3] * 7 + [1]
    assert loaded.held_out.tolist() == [2, 0, 4]
    assert loaded.data_hash == hashlib.sha256(b"abcabcabcabcabcabcabcab\nz").hexdigest()
    assert not loaded.ids.flags.writeable


@pytest.mark.parametrize(("characters", "held_start"), [(20, 18), (100, 90), (101, 90), (1009, 908)])
def test_the_last_tenth_is_held_out(write: Callable[..., str], characters: int, held_start: int) -> None:
    assert load(write(("ab" * characters)[:characters])).held_start == held_start


def test_newlines_and_byte_order_mark_do_not_matter(write: Callable[..., str]) -> None:
    plain = load(write(TEXT))
    versions = [
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(),
    ]
    for version in versions:
        other = load(write(version))
        assert (other.data_hash, other.alphabet) == (plain.data_hash, plain.alphabet)
        np.testing.assert_array_equal(other.ids, plain.ids)
    assert "\r" not in plain.alphabet
    assert "\ufeff" not in plain.alphabet


def test_a_mark_within_the_text_is_a_character(write: Callable[..., str]) -> None:
    assert "\ufeff" in load(write("\ufeff\ufeff" + TEXT)).alphabet


def test_latin_1_is_refused_with_the_byte_offset(write: Callable[..., str]) -> None:
    path = write("ünder\n".encode() + "na\xefve caf\xe9 and more of it".encode("latin-1"))
    message = refusal(path)
    assert path in message
    assert "byte 0xEF at byte offset 9 (line 2)" in message


def test_the_offset_counts_the_byte_order_mark_and_carriage_returns(write: Callable[..., str]) -> None:
    assert "byte offset 8 " in refusal(write(b"\xef\xbb\xbfa\r\nb\n\xff" + b"x" * 30))


def test_utf_16_is_named(write: Callable[..., str]) -> None:
    message = refusal(write(TEXT.encode("utf-16")))
    assert "byte offset 0 " in message
    assert "UTF-16" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["0 characters", "at least 20"]),
        (b"\xef\xbb\xbf", ["0 characters"]),
        (b"abcdefghijklmnopqrs", ["19 characters", "at least 20"]),
        (b"a" * 50, ["one character", "'a'", "at least 2"]),
    ],
)
def test_a_text_with_too_little_in_it(write: Callable[..., str], content: bytes, words: list[str]) -> None:
    path = write(content)
    message = refusal(path)
    for word in [path, *words]:
        assert word in message


def test_missing_file_names_the_absolute_path_and_the_nearest_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    message = refusal("shakespear")
    assert str(tmp_path / "shakespear") in message
    assert "did you mean 'shakespeare'?" in message


def test_directory_and_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert f"{tmp_path / 'folder'} is a directory" in refusal("folder")
    assert "cannot be read" in refusal("x" * 5000)
    assert "is not a path" in refusal("a\0b")
    (tmp_path / "file").write_text(TEXT)
    assert "cannot be read" in refusal("file/inner")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(str(tmp_path / "pipe"))


def test_nul_and_lone_combining_marks_are_characters(write: Callable[..., str]) -> None:
    text = "\0a\u0301\u0301\0\u0308b" * 5
    loaded = load(write(text))
    assert loaded.alphabet == "\0ab\u0301\u0308"
    assert decode(loaded.ids, loaded.alphabet) == text


@pytest.mark.parametrize(
    ("count", "dtype"),
    [(256, "uint8"), (257, "uint16"), (65_536, "uint16"), (65_537, "int32"), (70_000, "int32")],
)
def test_alphabets_of_every_size(write: Callable[..., str], count: int, dtype: str) -> None:
    points = [p for p in range(0x20, 0x20 + count + 0x900) if not 0xD800 <= p < 0xE000 and p != 0xFEFF][:count]
    text = "".join(map(chr, points))
    loaded = load(write(text))
    assert loaded.alphabet == text
    assert loaded.ids.dtype == dtype
    assert loaded.ids.tolist() == list(range(count))
    window = Batches(loaded.train, 8, 2, 0).next()
    assert window.dtype == torch.int64
    assert (window[:, 1:] - window[:, :-1] == 1).all()


def test_a_text_longer_than_one_piece(write: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load(write(TEXT))
    monkeypatch.setattr(corpus, "PIECE", 7)
    np.testing.assert_array_equal(load(write(TEXT)).ids, whole.ids)
    with pytest.raises(CorpusError, match=r"'z' U\+007A \(3 times\)"):
        encode("z" + "a" * 20 + "zz", "a")


# --- a given alphabet ---


def test_a_given_alphabet_decides_the_ids(write: Callable[..., str]) -> None:
    loaded = load(write("abba" * 6), alphabet="zba")
    assert loaded.alphabet == "zba"
    assert loaded.ids.tolist() == [2, 1, 1, 2] * 6


def test_unknown_characters_are_listed_and_counted(write: Callable[..., str]) -> None:
    path = write("Helloworld" * 10 + "a b é é")
    message = refusal(path, alphabet="Hdelorw")
    assert path in message
    for listed in ["' ' U+0020 (3 times)", "'é' U+00E9 (2 times)", "'a' U+0061 (once)", "'b' U+0062 (once)"]:
        assert listed in message


def test_at_most_ten_unknown_characters_are_listed() -> None:
    with pytest.raises(CorpusError) as caught:
        encode("abcdefghijklmnopqrstuvwxyz", "a", "the prompt")
    assert str(caught.value).startswith("the prompt")
    assert str(caught.value).count("U+") == 10
    assert "25: " in str(caught.value)
    assert str(caught.value).endswith("and 15 more")


def test_a_lone_surrogate_is_unknown_and_not_a_crash() -> None:
    with pytest.raises(CorpusError, match=r"U\+D83D \(once\)"):
        encode("a\ud83d", "a")


def test_an_alphabet_with_a_character_twice_is_refused() -> None:
    with pytest.raises(CorpusError, match="twice"):
        encode("a", "aba")


@given(st.text(st.characters(exclude_categories=[])))
def test_decode_undoes_encode(text: str) -> None:
    alphabet = "".join(sorted(set(text + "xy"), reverse=True))
    ids = encode(text, alphabet)
    assert ids.shape == (len(text),)
    assert [alphabet[i] for i in ids] == list(text)
    assert decode(ids, alphabet) == text
    assert decode(torch.from_numpy(ids.astype(np.int64)), alphabet) == text


@pytest.mark.parametrize("ids", [[0, 2], [-1]])
def test_decode_refuses_ids_outside_the_alphabet(ids: list[int]) -> None:
    with pytest.raises(ValueError, match="alphabet of 2"):
        decode(ids, "ab")


# --- length ---


def test_check_length_names_the_numbers(write: Callable[..., str]) -> None:
    loaded = load(write("ab" * 50))  # 90 characters to train on
    check_length(loaded, 89)
    with pytest.raises(CorpusError) as caught:
        check_length(loaded, 90)
    for words in ["training.length 90", "at least 91 characters and has 90", "at least 102 and has 100"]:
        assert words in str(caught.value)
    check_length(load(write("ab" * 51)), 90)  # 102 characters are enough, as the message says
    with pytest.raises(CorpusError, match="at least 91"):
        Batches(loaded.train, 90, 4, 0)


# --- training batches ---


@given(st.integers(1, 40), st.integers(1, 200), st.integers(1, 20), st.integers(0, 2**32), st.integers(1, 30))
def test_windows_are_pieces_of_the_training_part(
    length: int, spare: int, batch_size: int, seed: int, held: int
) -> None:
    train = length + spare
    ids = np.arange(train + held, dtype=np.uint16)  # each id names its place
    batches = Batches(ids[:train], length, batch_size, seed)
    for _ in range(3):
        windows = batches.next()
        assert windows.shape == (batch_size, length + 1)
        assert windows.dtype == torch.int64
        assert (windows.diff(dim=1) == 1).all()
        assert windows.min() >= 0
        assert windows.max() < train


def test_every_place_is_drawn_equally_often() -> None:
    batches = Batches(np.arange(14), length=4, batch_size=10_000, seed=5)  # 10 places where 5 characters fit
    counts = torch.bincount(batches.next()[:, 0], minlength=10)
    assert len(counts) == 10
    # chi-square with 9 degrees of freedom: above 27.9 once in a thousand seeds, and this seed is fixed
    assert ((counts - 1000.0) ** 2 / 1000.0).sum() < 27.9


def test_the_digest_names_the_batches_seen() -> None:
    ids = np.arange(1000) % 50
    first, again, other = Batches(ids, 16, 8, 1), Batches(ids, 16, 8, 1), Batches(ids, 16, 8, 2)
    assert first.digest == EMPTY_SHA256
    seen = {first.digest}
    for _ in range(5):
        batch = first.next()
        assert torch.equal(batch, again.next())
        assert not torch.equal(batch, other.next())
        assert first.digest == again.digest
        assert first.digest != other.digest
        seen.add(first.digest)
    assert len(seen) == 6


def test_the_digest_is_the_chained_hash_of_the_starts() -> None:
    batches = Batches(np.arange(1000), 16, 8, 1)
    digest = bytes.fromhex(EMPTY_SHA256)
    for _ in range(3):
        starts = batches.next()[:, 0].numpy().astype("<i8").tobytes()
        digest = hashlib.sha256(digest + starts).digest()
    assert batches.digest == digest.hex()


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 1000))
def test_a_restored_stream_equals_the_uninterrupted_one(before: int, extra: int, seed: int) -> None:
    ids = np.arange(500, dtype=np.uint16)
    whole, stopped = Batches(ids, 8, 4, seed), Batches(ids, 8, 4, seed)
    for _ in range(before):
        whole.next()
        stopped.next()
    state = stopped.state()
    for _ in range(extra):
        stopped.next()  # drawn after the state was taken: lost, and must not matter
    resumed = Batches(ids, 8, 4, seed + 1)
    resumed.restore(state)
    for _ in range(3):
        assert torch.equal(resumed.next(), whole.next())
        assert resumed.digest == whole.digest


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    batches = Batches(np.arange(100), 8, 4, 0)
    good = batches.state()
    for state in (
        {"generator": torch.zeros(3, dtype=torch.uint8), "digest": good["digest"]},
        {"generator": good["generator"], "digest": "abc"},
        {"generator": good["generator"], "digest": "ab"},
        {"generator": good["generator"].float(), "digest": good["digest"]},
    ):
        with pytest.raises(RunError, match="damaged"):
            batches.restore(state)  # type: ignore[arg-type]
    assert torch.equal(batches.next(), Batches(np.arange(100), 8, 4, 0).next())


def test_batches_use_no_global_randomness() -> None:
    before = torch.get_rng_state()
    Batches(np.arange(100), 8, 4, 0).next()
    assert torch.equal(torch.get_rng_state(), before)


def test_purposes_and_seeds_have_streams_of_their_own() -> None:
    draws = {
        (seed, purpose): tuple(torch.randint(2**31, (8,), generator=seeded(seed, purpose)).tolist())
        for seed in (-1, 0, 1, 11, 2**70)
        for purpose in ("data", "initialisation", "1/data")
    }
    assert len(set(draws.values())) == len(draws)
    assert draws[0, "data"] == tuple(torch.randint(2**31, (8,), generator=seeded(0, "data")).tolist())


# --- built-in corpora ---


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_network")
def test_pydocs_is_the_default_and_fetches_nothing(
    write: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / name)
    loaded = load("PyDocs")
    text = decode(loaded.ids, loaded.alphabet)
    assert loaded.name == "pydocs"
    assert 300_000 < len(text) < 1_000_000
    assert text.startswith('The "assert" statement\n')
    assert "\n\n" in text
    assert "\r" not in text
    load(write(TEXT))
    assert not (tmp_path / "pe").exists()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the topics differ between Python versions")
def test_how_much_of_what_is_scored_of_pydocs_stands_in_the_training_part() -> None:
    """In passages of 200 characters or more: about a sixth, as the README says."""
    loaded = load("pydocs")
    text, width = decode(loaded.ids, loaded.alphabet), 200
    known = {text[at : at + width] for at in range(loaded.held_start - width + 1)}
    scored = text[loaded.held_start + len(loaded.held_out) // 2 :]
    found = np.zeros(len(scored), bool)
    for at in range(len(scored) - width + 1):
        if scored[at : at + width] in known:
            found[at : at + width] = True
    assert abs(found.mean() - 1 / 6) < 0.02


def test_names_of_built_in_corpora() -> None:
    assert set(BUILT_IN) == {"pydocs", "shakespeare", "enwik8", "text8"}
    assert all(built_in.is_built_in(name) for name in ("pydocs", "Shakespeare", "ENWIK8", "text8"))
    assert not built_in.is_built_in("./pydocs")
    assert not built_in.is_built_in("text.txt")
    assert all(entry.description and entry.reference for entry in BUILT_IN.values())


@pytest.mark.skipif("PE_DATA_DIR" not in os.environ, reason="PE_DATA_DIR is not set")
@pytest.mark.usefixtures("no_network")
def test_shakespeare_from_the_data_folder() -> None:
    loaded = load("shakespeare")
    assert len(loaded.ids) == 1_115_394
    assert len(loaded.alphabet) == 65
    assert loaded.held_start == 1_003_854
    assert loaded.data_hash == "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"


class Server:
    """Files on 127.0.0.1. `files` maps paths to bytes; `requests` lists the paths asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.cut_short = False  # announce more bytes than come
        self.released = threading.Event()
        self.released.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                outer.released.wait(10)
                if self.path not in outer.files:
                    self.send_error(404)
                    return
                body = outer.files[self.path]
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) + (100 if outer.cut_short else 0)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.delenv("PE_DATA_DIR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache" / "pe"


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serves a small text as `shakespeare` and a small zip as `enwik8`, whose table entries point here."""
    server = Server()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("enwik8", TEXT)
        archive.writestr("../readme", "another file in the archive")
    server.files = {"/input.txt": TEXT.encode(), "/enwik8.zip": packed.getvalue()}
    for name, path in (("shakespeare", "/input.txt"), ("enwik8", "/enwik8.zip")):
        entry = BUILT_IN[name]
        assert isinstance(entry, built_in.Download)
        replaced = dataclasses.replace(
            entry,
            url=server.url + path,
            file=checked(server.files[path]),
            text=checked(TEXT.encode()),
            timeout=5.0,
        )
        monkeypatch.setitem(BUILT_IN, name, replaced)
    yield server
    server.close()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What pooch logs; its own handler would write it to standard error."""
    lines: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = pooch.get_logger()
    monkeypatch.setattr(logger, "handlers", [Handler()])
    logger.setLevel("INFO")
    return lines


def checked(data: bytes) -> built_in.Checked:
    return built_in.Checked(len(data), hashlib.sha256(data).hexdigest())


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


@pytest.mark.parametrize(("name", "path"), [("shakespeare", "/input.txt"), ("enwik8", "/enwik8.zip")])
def test_a_fetched_corpus_is_kept_and_not_asked_for_again(
    server: Server, cache: Path, log: list[str], capfd: pytest.CaptureFixture[str], name: str, path: str
) -> None:
    for _ in range(2):
        loaded = load(name)
        assert decode(loaded.ids, loaded.alphabet) == TEXT
        assert loaded.name == name
        assert server.requests == [path]
    assert files_in(cache) == [name + Path(path).suffix]
    assert log == []
    assert capfd.readouterr() == ("", "")


def test_a_damaged_file_in_the_cache_is_fetched_again(server: Server, cache: Path) -> None:
    load("enwik8")
    (cache / "enwik8.zip").write_bytes(b"damaged")
    assert load("enwik8").data_hash == hashlib.sha256(TEXT.encode()).hexdigest()
    assert len(server.requests) == 2


@pytest.mark.parametrize(("name", "path"), [("shakespeare", "/input.txt"), ("enwik8", "/enwik8.zip")])
def test_a_wrong_hash_is_refused_with_both_hashes(server: Server, cache: Path, name: str, path: str) -> None:
    expected = checked(server.files[path]).sha256
    server.files[path] = b"<html>moved</html>" * 3
    message = refusal(name)
    found = checked(server.files[path]).sha256
    for words in [f"'{name}'", server.url + path, expected, found, "PE_DATA_DIR"]:
        assert words in message
    assert files_in(cache) == []


def test_the_text_in_the_zip_is_checked_itself(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = BUILT_IN["enwik8"]
    assert isinstance(entry, built_in.Download)
    monkeypatch.setitem(BUILT_IN, "enwik8", dataclasses.replace(entry, text=checked(b"another text")))
    message = refusal("enwik8")
    assert checked(b"another text").sha256 in message
    assert checked(TEXT.encode()).sha256 in message


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # requests leaves a failed reply to the collector
def test_not_found_cut_short_and_too_slow(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = BUILT_IN["shakespeare"]
    assert isinstance(entry, built_in.Download)
    common = ["'shakespeare'", entry.url, entry.file.sha256, "tinyshakespeare.txt", "PE_DATA_DIR"]

    body = server.files.pop("/input.txt")
    not_found = refusal("shakespeare")
    server.files["/input.txt"] = body
    server.cut_short = True
    cut_short = refusal("shakespeare")
    server.cut_short = False
    server.released.clear()
    monkeypatch.setitem(BUILT_IN, "shakespeare", dataclasses.replace(entry, timeout=0.2))
    started = time.monotonic()
    too_slow = refusal("shakespeare")
    assert time.monotonic() - started < 5

    for message in (not_found, cut_short, too_slow):
        for words in common:
            assert words in message
    assert "404" in not_found
    assert "timed out" in too_slow
    assert files_in(cache) == []
    gc.collect()  # here, where the warning is expected


def test_no_server(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/input.txt"
    entry = BUILT_IN["shakespeare"]
    assert isinstance(entry, built_in.Download)
    monkeypatch.setitem(BUILT_IN, "shakespeare", dataclasses.replace(entry, url=url))
    message = refusal("shakespeare")
    assert "refused" in message
    assert "HTTPConnection" not in message  # the cause, not the layers around it
    assert files_in(cache) == []


# --- the folder PE_DATA_DIR ---


@pytest.fixture
def folder(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("PE_DATA_DIR", str(folder))
    return folder


@pytest.mark.parametrize("file_name", ["enwik8", "enwik8.zip", "any other name"])
@pytest.mark.parametrize("packed", [False, True])
def test_text_or_zip_from_the_folder(server: Server, folder: Path, file_name: str, packed: bool) -> None:
    (folder / file_name).write_bytes(server.files["/enwik8.zip"] if packed else TEXT.encode())
    loaded = load("enwik8")
    assert decode(loaded.ids, loaded.alphabet) == TEXT
    assert server.requests == []


@pytest.mark.parametrize("file_name", ["enwik8", "enwik8.zip"])
def test_a_wrong_file_in_the_folder_is_named(server: Server, folder: Path, file_name: str) -> None:
    (folder / file_name).write_bytes(b"wrong")
    message = refusal("enwik8")
    expected = server.files["/enwik8.zip"] if file_name.endswith(".zip") else TEXT.encode()
    for words in [str(folder / file_name), checked(b"wrong").sha256, checked(expected).sha256]:
        assert words in message
    assert server.requests == []


def test_a_right_file_beside_a_wrong_one_is_taken(server: Server, folder: Path) -> None:
    (folder / "input.txt").write_bytes(b"of something else")
    (folder / "tinyshakespeare.txt").write_bytes(TEXT.encode())
    assert load("shakespeare").data_hash == checked(TEXT.encode()).sha256
    assert server.requests == []


def test_a_folder_without_the_corpus_leaves_it_to_the_cache(server: Server, folder: Path) -> None:
    (folder / "enwik8").mkdir()
    assert load("enwik8").data_hash == checked(TEXT.encode()).sha256
    assert server.requests == ["/enwik8.zip"]


def test_a_folder_that_is_not_there(server: Server, folder: Path) -> None:
    folder.rmdir()
    message = refusal("enwik8")
    assert f"PE_DATA_DIR={folder}" in message
    assert server.requests == []
    assert load("pydocs").name == "pydocs"  # the folder matters to fetched corpora only
