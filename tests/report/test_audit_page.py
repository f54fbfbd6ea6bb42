"""The page of an audit, in a real browser: asks nobody, fits a phone, sorts, and shows names as text."""

import json
import re

import networkx as nx
import numpy as np
import pytest
from tests.report.browser import chromium, set_width

import lograb
from lograb.report import write_audit
from lograb.report.audit_charts import trade_off

EVIL = "<script>document.title='taken'</script>"


@pytest.fixture(scope="module")
def findings():
    """An audit of a small organisation, one of whose members has a script for a name."""
    graph = nx.relabel_nodes(nx.connected_caveman_graph(5, 6), lambda i: EVIL if i == 0 else f"person {i}")
    teams = [[name for i, name in enumerate(graph) if i % 2 == side] for side in (0, 1)]
    return lograb.audit(graph, patches=teams, quick=True).to_dict()


@pytest.fixture(scope="module")
def page(findings, tmp_path_factory):
    path = tmp_path_factory.mktemp("audit") / "report.html"
    write_audit(path, findings)
    return path


@pytest.fixture(scope="module")
def browser(page):
    with chromium() as opened:
        opened.get(page.as_uri())
        yield opened


def test_the_answer_comes_first(page, findings):
    text = page.read_text().replace("\u00a0", " ")
    first = re.search(r"<h1>(.*?)</h1>", text)[1]
    assert first == findings["answer"]["headline"]
    parts = ("<h1>", "Reasons not to share", 'id="helps"', 'id="exposed"', 'id="run"')
    place = [text.index(part) for part in parts]
    assert place == sorted(place)


def test_it_is_small_and_whole(page):
    text = page.read_text()
    assert len(text.encode()) < 300_000
    assert not re.search(r"https?:|<link|<img|@import|url\(", text)


def test_names_stay_text(page, browser):
    assert EVIL not in page.read_text()
    assert browser.title.startswith("Privacy audit")
    assert EVIL in browser.find_element("id", "exposed").find_element("xpath", "./..").text


def test_the_browser_complains_of_nothing_and_asks_nobody(browser, page):
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert {url for url in asked if not url.startswith("data:")} <= {page.as_uri()}


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_its_screen(browser, width):
    set_width(browser, width)
    widths = "let e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
    shown, there = browser.execute_script(widths)
    assert there == width
    assert shown <= there


def test_tables_sort_by_click_and_by_key(browser):
    set_width(browser, 1280)
    head = browser.find_element("xpath", "//th[button[text()='can be read']]")

    def column():
        place = browser.execute_script("return arguments[0].cellIndex", head)
        cells = browser.execute_script(
            "return [...arguments[0].closest('table').tBodies[0].rows].map(r => r.cells[arguments[1]])"
            ".filter(c => c && c.dataset.value !== undefined).map(c => Number(c.dataset.value))", head, place)
        return cells

    before = column()
    assert before != sorted(before), "the table is in order already: this test shows nothing"
    button = head.find_element("tag name", "button")
    button.click()
    assert column() == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    button.send_keys("\ue007")  # Enter
    assert column() == sorted(before, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"


def test_every_picture_has_a_title_a_description_and_numbers_beside_it(browser):
    pictures = browser.find_elements("css selector", "figure svg")
    assert pictures
    for picture in pictures:
        assert picture.get_attribute("role") == "img"
        assert picture.find_element("css selector", "title").get_attribute("textContent")
        assert picture.find_element("css selector", "desc").get_attribute("textContent")
    assert browser.find_elements("css selector", "#helps ~ .wide table")
    assert browser.find_elements("css selector", "figure details table")


def test_dark_has_colours_of_its_own(browser):
    def colours():
        style = "let s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        return browser.execute_script(style)

    shown = []
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        shown.append(colours())
    assert shown[0][0] != shown[1][0]
    assert shown[0][1] != shown[1][1]


def test_without_truth_the_page_says_whose_numbers_these_are(findings, tmp_path):
    write_audit(tmp_path / "told.html", findings | {"answer": findings["answer"] | {"estimated": True}})
    assert "own estimate" in (tmp_path / "told.html").read_text()
    write_audit(tmp_path / "told.html", findings | {"answer": findings["answer"] | {"estimated": False}})
    assert "own estimate" not in (tmp_path / "told.html").read_text()


def test_what_is_not_known_is_hatched_and_not_called_unreadable(findings, tmp_path):
    unsure = {"share": 0.0, "share_interval": [0.0, 1.0], "scale_known": False}
    rows = [row | (unsure if row["group"] == "plan" else {}) for row in findings["settings"]]
    numbers = findings["answer"]["numbers"] | unsure
    told = findings["answer"] | {"estimated": True, "level": "unknown", "numbers": numbers}
    write_audit(tmp_path / "told.html", findings | {"answer": told, "settings": rows})
    text = (tmp_path / "told.html").read_text().replace("\u00a0", " ")
    top = text[: text.index("<nav")]
    assert '<span class="badge unknown">Unknown</span>' in top
    assert '<i class="open" style="width: 100.0%">' in top
    assert "100 % not known" in top
    assert "not readable" not in top
    assert "<b>0 %</b>" not in top
    assert 'class="dot open plan"' in text


def test_numbers_stand_by_one_dot_only(findings):
    row = next(row for row in findings["settings"] if row["utility"])
    near = [row | {"share": share, "utility": row["utility"] | {"value": value}}
            for share, value in ((1.0, 1.0), (1.0, 0.99), (0.98, 0.98), (0.5, 0.5), (0.0, 0.1))]  # fmt: skip
    drawn = trade_off(near, 0.1, None)
    dots = [(float(x), float(y)) for x, y in re.findall(r'<circle[^>]*cx="([0-9.]+)" cy="([0-9.]+)"', drawn)]
    labels = re.findall(r'<text class="tick" x="([0-9.]+)" y="([0-9.]+)" text-anchor="middle">(\d)</text>', drawn)
    assert len(labels) >= 3
    for x, y, _ in labels:
        assert sum(abs(float(x) - a) < 16 and abs(float(y) - 4 - b) < 12 for a, b in dots) <= 1


def test_what_is_known_all_the_same_is_not_called_enough(findings, tmp_path):
    row = findings["settings"][0] | {"guessed": 9, "guesses": 10, "share": 0.0}
    advice = findings["recommendation"] | {"setting": row["id"]}
    for known, title in ((0.4, "This keeps to the limit, and still leaks"), (0.0, "What would be enough")):
        told = {"settings": [row | {"guessed_share": known}], "recommendation": advice}
        write_audit(tmp_path / "told.html", findings | told)
        text = (tmp_path / "told.html").read_text().replace("\u00a0", " ")
        assert f"<h3>{title}</h3>" in text
        assert ("40 % with 90 % right" in text) == bool(known)


def test_a_dark_screen_still_prints_dark_ink_on_white_paper(browser):
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    style = "let s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    ink, paper = browser.execute_script(style)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 200
    assert paper == "rgb(255, 255, 255)"


def test_dots_stand_where_they_belong(findings):
    """Dots over each other stay there: a picture that moves them says what is not so."""
    drawn = trade_off(findings["settings"], 0.1, None)
    rows = [row for row in findings["settings"] if row["status"] == "done" and row["utility"]]
    places = {int(number): float(x) for number, x in re.findall(r"<title>(\d+): .*?cx=\"([0-9.]+)\"", drawn)}
    value = {i: row["utility"]["value"] for i, row in enumerate(findings["settings"]) if row in rows}
    assert places.keys() == value.keys()
    slope, start = np.polyfit([value[i] for i in places], list(places.values()), 1)
    for i, x in places.items():
        assert x == pytest.approx(start + slope * value[i], abs=0.2)


@pytest.mark.parametrize("width", [390, 1280])
def test_no_picture_and_no_table_is_cut_off(browser, width):
    set_width(browser, width)
    cut = ("return [...document.querySelectorAll('.card, .wide, figure svg')]"
           ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 40))")  # fmt: skip
    assert browser.execute_script(cut) == []
