from __future__ import annotations

import pytest

from searcheval.progress import batch, progress


def test_a_batch_gets_one_line_at_the_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SEARCHEVAL_BATCH", "1")
    assert list(progress(range(3), "asking", unit="queries")) == [0, 1, 2]
    assert capsys.readouterr().err == "asking: 3 queries\n"


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("SEARCHEVAL_BATCH", raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert not batch()
    assert list(progress(range(3), "asking", total=3)) == [0, 1, 2]
    assert "asking" in capsys.readouterr().err


def test_a_file_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARCHEVAL_BATCH", raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    assert batch()
