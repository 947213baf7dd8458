import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.limits import error_of
from treecaps.errors import UsageError
from treecaps.training import folder
from treecaps.training.checkpoint import holds_state

MEMBER = {"file": "0-2.safetensors", "checksum": "", "best_epoch": 1, "history": [{}, {}]}


@pytest.mark.parametrize("name", ["config.json", "checkpoint/state.json"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_no_model_and_no_state(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    (tmp_path / "checkpoint").mkdir()
    make(tmp_path / name)
    error = error_of(lambda: folder.check(tmp_path, resume=True, overwrite=False))
    assert isinstance(error, UsageError)
    assert "choose another folder" in str(error)


@pytest.mark.parametrize("content", ['{"model": []}', '{"model": {}}', "[" * 100_000])
def test_other_json_is_no_model(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    assert not folder.is_complete(tmp_path)


@pytest.mark.parametrize(
    "member",
    [
        3,
        {},
        {**MEMBER, "file": "../../0-2.safetensors"},
        {**MEMBER, "file": []},
        {**MEMBER, "checksum": 3},
        {**MEMBER, "best_epoch": "1"},
        {**MEMBER, "best_epoch": 3},
        {**MEMBER, "history": {}},
        {**MEMBER, "history": [1, 2]},
    ],
)
def test_a_state_has_the_right_types(tmp_path: Path, member: Any) -> None:
    state = {"format": 1, "treecaps": "0.1.0", "run": {}, "members": [MEMBER]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert holds_state(tmp_path)
    (tmp_path / "state.json").write_text(json.dumps({**state, "members": [MEMBER, member]}))
    assert not holds_state(tmp_path)
