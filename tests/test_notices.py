"""What was changed in a user's data is said: as warnings in Python, or to whoever asks to be told."""

import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import lograb
from lograb.errors import LograbNotice

TEXT = "# people\nann,bob\nbob,bob\nbob,eve\n"
EXPECTED = ["1 comment line skipped", "self-loops dropped: 1 (their nodes stay)"]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "g.csv").write_text(TEXT)
    return tmp_path / "g.csv"


def told(record):
    """Texts of the notices; each must point at this file, where the user's line is."""
    notices = [item for item in record if issubclass(item.category, LograbNotice)]
    assert {item.filename for item in notices} <= {__file__}
    return [str(item.message) for item in notices]


@pytest.mark.parametrize(
    "call",
    [
        lograb.load_graph,
        lambda path: list(lograb.load_graphs(path)),
        lograb.generate,
        lambda path: lograb.generate_file(path, path.with_name("x.lograb")),
        lambda path: lograb.compare(path, ["membership"], seeds=1),
    ],
)
def test_every_notice_is_one_warning_that_points_at_the_users_line(path, call):
    with pytest.warns(LograbNotice) as record:
        call(path)
    assert told(record) == EXPECTED


def test_the_line_is_the_one_that_asked(path):
    with pytest.warns(LograbNotice) as record:
        lograb.generate(path)
    lines = Path(__file__).read_text().splitlines()
    assert {lines[item.lineno - 1].strip() for item in record} == {"lograb.generate(path)"}


def test_whoever_asks_to_be_told_gets_no_warning(path, tmp_path):
    heard = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lograb.generate_file(path, tmp_path / "x.lograb", notify=heard.append)
        assert heard == EXPECTED
        lograb.load_graph(path, notify=heard.append)
        list(lograb.load_graphs(path, notify=heard.append))
    assert heard == EXPECTED * 3


def test_notices_about_patches_are_told_and_kept(path):
    with pytest.warns(LograbNotice) as record:
        instance = lograb.generate(path, patches={"ann": "x", "bob": "x"})
    assert told(record) == [*EXPECTED, "1 of 3 nodes is in no patch: never observed"]
    assert list(instance.manifest.notices) == told(record)


def test_graphs_that_need_no_change_are_quiet(tmp_path):
    (tmp_path / "g.csv").write_text("ann,bob\nbob,eve\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lograb.generate(tmp_path / "g.csv", patches=[["ann"]])
        lograb.generate(nx.path_graph(4))
        lograb.generate("karate", patches_by="label")


def test_of_notices_that_differ_in_numbers_the_first_is_told():
    matrices = [np.eye(n) for n in (2, 3, 4)] + [2.0 - 2 * np.eye(2)]
    with pytest.warns(LograbNotice) as record:
        assert len(list(lograb.load_graphs(matrices))) == 4
    assert told(record) == ["self-loops dropped: 2 (their nodes stay)",
                            "weights dropped: every non-zero entry is an edge"]
