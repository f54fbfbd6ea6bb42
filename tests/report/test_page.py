"""The page of a comparison: whole in itself, small, and readable on a phone."""

import re

import pytest

import lograb
from lograb import LograbError
from lograb.report import check_page_name, check_table_name, write_page
from lograb.score import percent


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "page.html"
    table = lograb.compare("karate", ["membership", "afr", "posterior"], p=0.6, k=8, sigma=0.05)
    table.to_html(path, command="lograb compare <karate>")
    return path.read_text()


def test_it_asks_nobody_for_anything(page):
    assert not re.search(r"https?:|//|@import|url\(|<script|<link|<img", page)
    assert len(page.encode()) < 300_000


def test_it_fits_a_phone(page):
    assert '<meta name="viewport" content="width=device-width' in page
    assert "max-width: 40rem" in page
    assert "prefers-color-scheme: dark" in page
    assert page.count('data-label="F1"') == 3  # what the narrow layout writes before each number


def test_best_and_failing_attacks_are_marked(page):
    rows = dict(re.findall(r'<td>(\w+)<span class="tag">([\w ]+)</span>', page))
    assert rows == {"afr": "below the floor", "posterior": "best"}


def test_what_users_write_is_escaped(page):
    assert "lograb compare &lt;karate&gt;" in page


def test_names_are_checked_before_anything_is_written(tmp_path):
    for check, name in ((check_page_name, "a.md"), (check_table_name, "a.pdf"), (check_table_name, "no/a.html")):
        with pytest.raises(LograbError):
            check(tmp_path / name)
    (tmp_path / "a.md").write_text("mine")
    with pytest.raises(LograbError, match="earlier report"):
        check_table_name(tmp_path / "a.md")
    (tmp_path / "b.html").touch()
    check_page_name(tmp_path / "b.html")


def test_no_attack_no_page(tmp_path):
    with pytest.raises(LograbError, match="no attack could run"):
        write_page(tmp_path / "p.html", {}, [{"method": "a", "trivial": False, "problem": "no"}])
    assert not (tmp_path / "p.html").exists()


@pytest.mark.parametrize(("share", "text"), [(0.0, "0 %"), (1.0, "100 %"), (0.953, "95 %"), (0.998, "99.8 %"),
                                             (0.99999, "99.9 %"), (0.001, "0.1 %"), (1e-9, "0.1 %")])  # fmt: skip
def test_nothing_is_rounded_to_all_or_nothing(share, text):
    assert percent(share) == text
