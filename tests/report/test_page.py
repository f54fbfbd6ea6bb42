"""The page of a comparison: whole in itself, small, and readable on a phone."""

import re

import pytest

import lograb
from lograb import LograbError
from lograb.report import check_page_name, check_table_name, headline, write_page
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


ROW = {"f1": 0.407, "floor": 0.401, "precision": 0.28, "recall": 0.72, "beats_floor": False}


def test_the_headline_speaks_of_recall_only_where_claims_are_right():
    assert headline(ROW) == "The embeddings add nothing measurable here (F1 0.407, floor 0.401)"
    middle = headline(ROW | {"f1": 0.5, "beats_floor": True})
    assert "72 %" not in middle
    assert "only 28 % of the claims are right" in middle
    assert headline(ROW | {"precision": 0.8, "beats_floor": True}).startswith("72 % of all edges are found")


def test_a_page_about_a_defended_instance_says_so(tmp_path, page):
    assert "of all edges are found" in page
    silos = lograb.generate("karate", patches=[range(17), range(17, 34)], k=8)
    chosen = ["truncate:k=2", "withhold:what=eigenvalues", "gaussian:epsilon=1"]
    defended = lograb.defend(silos, chosen, releases=3)
    table = lograb.compare(defended, ["membership", "posterior"])
    table.to_html(tmp_path / "page.html")
    shown = (tmp_path / "page.html").read_text()
    assert not table.best.beats_floor
    assert "<h1>The embeddings add nothing measurable here (F1 0." in shown
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", shown))
    assert facts["defences"].startswith("truncate:k=2; withhold")
    assert facts["defences"].endswith("eigenvalues withheld; mean of 3 releases")
    assert "radius" not in facts["patches"]
    assert "seed" not in facts
    plain = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert (plain["defences"], plain["seed"]) == ("none", "0")
    assert "radius d = 1" in plain["patches"]


def test_a_printed_comparison_is_its_table():
    def refuses(seen, rng):
        raise LograbError("cannot, for a reason that is longer than any column")

    table = lograb.compare("karate", ["membership", "posterior", refuses], p=0.6, k=8, sigma=0.05, seeds=2)
    lines = str(table).splitlines()
    assert lines[0] == repr(table)
    assert lines[1].split() == list(table.columns)
    assert [line.split()[0] for line in lines[2:]] == ["membership", "posterior", "refuses"]
    assert lines[1].index("floor") == lines[2].index(f"{table.rows[0]['floor']:.3f}", lines[1].index("floor"))
    low, high = table.rows[1]["interval"]
    assert 0 <= low <= high <= 1
