"""One writer: a file is whole or not there, private where it must be, and never lost."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from pathlib import Path

import pytest

import discreet
import windows
from discreet.collection.report import Report
from discreet.collection.store import FolderStore
from discreet.errors import FormatError, SchemaError
from discreet.files import documents, locks
from discreet.files.atomic_writing import atomic_replacement, write_atomic
from discreet.files.documents import dump_document, encode_canonical
from discreet.files.locks import hold_lock
from discreet.files.yaml_text import convert_yaml_to_json
from discreet.schema.schema import Categorical, Schema


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_digest_in_a_document_is_the_hash_of_its_canonical_bytes() -> None:
    body = {"b": float("inf"), "a": [1, "é"]}
    whole = json.loads(dump_document("thing", 3, body))
    content = encode_canonical({"format": "discreet/thing", "version": 3, **body})
    assert whole["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()
    assert content == '{"a":[1,"é"],"b":"inf","format":"discreet/thing","version":3}'.encode()


def test_a_writer_that_fails_half_way_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    file.write_text("old")

    def fails() -> None:
        with atomic_replacement(file) as draft:
            draft.write_text("half")
            assert file.read_text() == "old"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_content_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def sync(handle: int) -> None:
        happened.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        real_sync(handle)

    def replace(self: Path, target: Path) -> Path:
        happened.append("rename")
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    write_atomic(tmp_path / "a", "x")
    assert happened == ["file", "rename", "folder"]


def test_private_files_and_the_folders_made_for_them_are_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert write_atomic(tmp_path / "one" / "two" / "secret", b"x", private=True)
        write_atomic(tmp_path / "open", "x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "one" / "two" / "secret") == 0o600
    assert mode(tmp_path / "one") == mode(tmp_path / "one" / "two") == 0o700
    assert mode(tmp_path / "open") == 0o666


def test_a_replaced_file_keeps_its_mode_unless_it_must_be_private(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(0o640)
    write_atomic(file, "new")
    assert mode(file) == 0o640
    write_atomic(file, "newer", private=True)
    assert mode(file) == 0o600


def test_an_exclusive_writer_never_replaces(tmp_path: Path) -> None:
    assert write_atomic(tmp_path / "a", "first", exclusive=True)
    assert not write_atomic(tmp_path / "a", "second", exclusive=True)
    assert (tmp_path / "a").read_text() == "first"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_dangling_link_is_taken_by_an_exclusive_writer(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert not write_atomic(tmp_path / "link", "x", exclusive=True)
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_is_no_regular_file_is_written_to_as_it_is() -> None:
    write_atomic("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(FormatError, match="/dev/full: cannot be written: No space left"):
        write_atomic("/dev/full", "x")


@pytest.mark.parametrize(
    ("name", "private", "says"),
    [
        ("missing/a", False, "does not exist; make it first"),
        ("", False, "is a folder"),
        ("file/a", True, "is not a folder"),
        ("x" * 300, False, "cannot be written: File name too long"),
    ],
)
def test_where_nothing_can_be_written_a_sentence_says_why(
    name: str, private: bool, says: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FormatError, match=says):
        write_atomic(tmp_path / name, "x", private=private)


def test_everyone_writes_through_the_one_writer() -> None:
    """Renames, links and syncs are in files/atomic_writing.py alone, locks in files/locks.py."""
    package = Path(discreet.__file__).parent
    paths = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    assert {"files/atomic_writing.py", "files/locks.py"} < paths.keys()
    for name, path in paths.items():
        text = path.read_text()
        if name != "files/locks.py":
            assert "fcntl" not in text, name
        if name != "files/atomic_writing.py":
            for word in ("os.replace(", "os.rename(", "fsync", "os.link(", ".write_text("):
                assert word not in text, f"{name} uses {word}"


def test_what_is_held_is_refused_or_waited_for_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path), pytest.raises(FormatError, match="lock: taken"), hold_lock(path, "taken"):
        pass
    assert path.stat().st_mode & 0o777 == 0o600
    with hold_lock(path, "taken"), hold_lock(tmp_path, "taken"):
        pass
    with pytest.raises(BlockingIOError), hold_lock(path, "taken"):
        raise BlockingIOError  # of what is done inside, not of the lock


def test_without_file_locks_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "msvcrt", None)
    with pytest.raises(FormatError, match="no file locks"), hold_lock(tmp_path / "lock"):
        pass
    assert not list(tmp_path.iterdir())


def test_the_locks_of_windows_hold_files_and_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows.pretended(monkeypatch.setattr)
    for path in (tmp_path / "lock", tmp_path):
        with hold_lock(path), pytest.raises(FormatError, match="taken"), hold_lock(path, "taken"):
            pass
        with hold_lock(path, "taken"):
            pass
    assert sorted(one.name for one in tmp_path.iterdir()) == [".lock", "lock"]
    store = FolderStore(tmp_path / "kept")
    assert store.save_question("sha256:" + "0" * 64, 0, 2, 1.5) == 2
    assert (tmp_path / "kept" / ".lock").exists()
    assert list(FolderStore(tmp_path / "kept").read_charges().values()) == [1.5]


def test_a_lock_that_fails_for_another_reason_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows.pretended(monkeypatch.setattr, failing=errno.EIO)
    with pytest.raises(FormatError, match="cannot be locked"), hold_lock(tmp_path / "lock"):
        pytest.fail("went on without a lock")


def test_a_sealed_document_that_was_changed_is_refused() -> None:
    class Number(documents.Body):
        value: int

    text = documents.dump_document("number", 1, {"value": 1})
    assert documents.load_document(text, "number", 1, Number).value == 1
    for changed in (text.replace('"value": 1', '"value": 2'), text.replace("sha256:", "sha256:0")):
        with pytest.raises(FormatError, match="changed or damaged"):
            documents.load_document(changed, "number", 1, Number)
    with pytest.raises(FormatError, match="changed or damaged"):  # the seal itself was removed
        documents.load_document(
            documents.dump_document("number", 1, {"value": 1}, sealed=False), "number", 1, Number
        )


SCHEMA_TWICE = """{
 "format": "discreet/schema", "version": 2, "target": "ill", "classes": ["no", "yes"],
 "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 90, "lower": 18}]
}"""

YAML_ONCE = """
target: ill
classes: [no, yes]
features:
  - {name: age, kind: numeric, lower: 0, upper: 90}
"""
YAML_TWICE = f"{YAML_ONCE}classes: [yes, no]\n"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("s.json", SCHEMA_TWICE, "the key 'lower' is there twice in one object; remove one"),
        ("s.yaml", YAML_TWICE, "line 6, column 1: the key 'classes' is there twice.*; remove one"),
        ("s.yaml", YAML_ONCE.replace("kind:", "lower: 1, kind:"), "line 5, .* key 'lower'"),
        ("s.yml", "a: {1: x, '1': y}", "the key '1' is there twice"),
        ("s.yml", "<<: {a: 1}\n<<: {a: 2}", "the key '<<' is there twice"),
        ("s.yml", "<<: {a: 1, a: 2}", "the key 'a' is there twice"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=says):
        Schema.read(tmp_path / name)


def test_a_set_in_yaml_is_refused_as_one_in_python_is(tmp_path: Path) -> None:
    sentence = "is a set, whose order, and with it the digest, changes .*; write a list"
    features = "features:\n- {name: a, kind: categorical, values: [u, v]}\ntarget: y\n"
    path = tmp_path / "s.yaml"
    for text in ("classes: [0, 1]\nmissing_tokens: !!set {x, y}", "classes: !!set {no, yes}"):
        path.write_text(features + text)
        name = text.rpartition(": !!set")[0].rpartition("\n")[2]
        with pytest.raises(FormatError, match=f"s.yaml: this .* in YAML: '{name}' {sentence}"):
            Schema.read(path)
    with pytest.raises(FormatError, match=f"a value {sentence}"):
        convert_yaml_to_json("[!!set {x, y}]", "thing")
    with pytest.raises(SchemaError, match=f"y: classes {sentence}"):
        Schema([Categorical("a", ["u", "v"])], "y", {"no", "yes"})


def test_merged_keys_of_yaml_may_be_replaced(tmp_path: Path) -> None:
    assert json.loads(convert_yaml_to_json("<<: {a: 1, b: 2}\na: 3", "thing")) == {"a": 3, "b": 2}


@pytest.mark.parametrize("key", ["id", "value", "digest", "format"])
def test_a_report_with_a_key_twice_is_refused(key: str) -> None:
    report = Report("sha256:" + 64 * "a", 32 * "b", 0, (1,)).to_json()
    whole = json.loads(report)
    twice = f'{{"{key}": {json.dumps(whole[key])}, {report.strip()[1:]}'
    assert Report.from_json(report) == Report.from_json(json.dumps(whole))
    with pytest.raises(FormatError, match=f"the key '{key}' is there twice"):
        Report.from_json(twice)


def test_a_sealed_document_with_a_key_twice_is_refused() -> None:
    """The digest is that of what is read: it does not notice which of two was meant."""
    sealed = dump_document("thing", 1, {"value": 1})
    assert json.loads(sealed[:-3] + ',"value": 1}') == json.loads(sealed)
    with pytest.raises(FormatError, match="the key 'value' is there twice"):
        documents.parse_document(sealed[:-3] + ',"value": 1}', "thing")


def test_all_documents_are_parsed_where_repeated_keys_are_refused() -> None:
    """Who else calls json.loads reads what was checked or written here, or no document."""
    known = {
        "audit/artefact.py", "local/plan.py", "papers/reproduction.py", "server/api.py",
        "server/bundle.py", "server/surveys.py", "survey/form.py", "collection/announcement.py",
        "cli/demo.py", "server/migrations/versions/v0003_sealed_arrivals.py",
    }  # fmt: skip
    root = Path(discreet.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"json\.loads?\(|safe_load|yaml\.load\(text\)", path.read_text("utf-8"))
    }
    assert found == known
