"""Tables of runs: the paper's figure beside ours, and every number of theirs."""

import csv
import io
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import wilcoxon
from tests.report.browser import chromium, set_width

from lograb.experiments.config import find_config, preset_names
from lograb.metrics.significance import holm, signed_rank
from lograb.report.figures import COLOURS, draw_svg, save_figure
from lograb.report.overview import PROTOCOL, leaderboard, write_overview
from lograb.report.pages import write_pages
from lograb.report.table import LATEX, Table, joined_csv
from lograb.report.tabulate import tabulate
from lograb.score import METRICS


def run(name="afr", f1=0.5, seed=0, status="done", reason="", dataset="cora", settings=None, **instance):
    spec = {"task": "reconstruction", "origin": {"source": dataset}, "instance": instance | {"seed": seed},
            "method": name, "version": "1", "settings": settings or {},
            "options": {"features": False}}  # fmt: skip
    scores = (
        {"f1": {"global": f1, "recovered": f1 + 0.1}, "floor": 0.2, "ceiling": 0.9} if status == "done" else {}
    )
    return {"name": name, "spec": spec, "status": status, "reason": reason, "scores": scores, "diagnostics": {},
            "seconds": {"method": 2.0}, "peak_memory": 2**21,
            "versions": {"lograb": "1", "code": "abc"}}  # fmt: skip


def cell(row, column, result=None, problem="", task="reconstruction"):
    return {"row": row, "column": column, "dataset": row, "problem": problem, "result": result, "instance": {},
            "task": task}


def table(cells, paper=None, **layout):
    return tabulate("x", "A table", "", {"digits": 3, "unit": 0.01} | layout, paper or {}, cells)


def test_mean_and_spread_stand_beside_the_paper():
    cells = [cell("cora", "AFR", run(f1=f1, seed=i)) for i, f1 in enumerate((0.4, 0.5, 0.6))]
    made = table(cells, {"cora": {"AFR": [74.3, 0.5]}})
    assert made.columns == ["instance", "paper F1", "F1", "seeds", "floor", "ceiling"]
    assert made.rows == [["cora", "0.743 ± 0.005", "0.500 ± 0.100", "3", "0.200", "0.900"]]


def test_every_task_has_its_own_measure():
    links = run("degree") | {"scores": {"auroc": 0.7, "floor": 0.5}}
    links["spec"]["task"] = "links"
    told = run("statistics") | {"scores": {"nodes": 34}}
    told["spec"]["task"] = "statistics"
    cells = [cell("cora", "AFR", run(f1=0.4)), cell("cora", "degree", links, task="links"),
             cell("cora", "statistics", told, task="statistics")]  # fmt: skip
    made = table(cells)
    assert made.columns == ["instance", "method", "F1", "AUROC", "seeds", "floor", "ceiling"]
    assert [row[1:4] for row in made.rows] == [["AFR", "0.400", ""], ["degree", "", "0.700"],
                                               ["statistics", "", ""]]  # fmt: skip
    both = table(cells[:2], {"cora": {"AFR": 50.0}})
    assert both.columns[2:5] == ["paper F1", "F1", "AUROC"]


def test_several_numbers_of_a_run():
    made = table([cell("cora", "AFR", run())], {"cora": {"AFR": {"seconds.method": "2.8m"}}},
                 scores=("f1.recovered", "seconds.method", "peak_memory"), unit=1)  # fmt: skip
    assert made.columns[1:5] == ["f1 recovered", "paper seconds", "seconds", "peak MiB"]
    assert made.rows[0][1:5] == ["0.600", "2.8m", "2", "2"]


def test_floor_and_ceiling_stand_only_beside_scores_that_they_bound():
    cells = [cell("cora", "AFR", run())]
    assert table(cells, scores=("seconds.method", "peak_memory")).columns[-1] == "seeds"
    assert table(cells, scores=("node_coverage",), wide=True).columns[-1] == "seeds"
    assert table(cells, scores=("seconds.method", "f1.global")).columns[-2:] == ["floor", "ceiling"]
    model = run("gcn") | {"scores": {"parameters": 900, "f1_micro": 0.7, "floor": 0.6}}
    both = [*cells, cell("cora", "gcn", model, task="classification")]
    assert table(both[1:], scores=("parameters",)).columns[-1] == "seeds"
    assert [row[-2:] for row in table(both, scores=("f1.global", "parameters")).rows] == [
        ["0.200", "0.900"], ["–", "–"]]  # fmt: skip


def test_presets_with_the_score_over_recovered_nodes_say_that_floor_and_ceiling_are_not():
    for name in preset_names():
        config = find_config(name)[name]
        if "f1.recovered" in (config.table.score, *config.table.scores):
            assert "Floor and ceiling are global." in " ".join(config.about.split()), name


def test_curves_over_noise_in_units_of_a_vector_s_entries():
    points = ((0.9, 0.1, 100), (0.5, 0.3, 100), (0.8, 0.05, 400))
    cells = [cell(f"citation {i}", "posterior", run(f1=f1)) | {"instance": {"sigma": sigma, "cluster_size": q}}
             for i, (f1, sigma, q) in enumerate(points)]  # fmt: skip
    curves = table(cells, score="f1.global", figure="noise", by=("cluster_size",)).figure["series"]
    assert [(c["name"], c["x"], c["y"]) for c in curves] == [
        ("cluster size 100", ["1", "3"], [0.9, 0.5]), ("cluster size 400", ["1"], [0.8])]  # fmt: skip


def test_an_instance_without_data_takes_one_line_and_a_failure_one_note():
    cells = [cell("coco-sp", method, problem="cannot get x.zip: https://x: refused") for method in ("AFR", "GAE")]
    failed = [cell("cora", method, run(status="failed", reason="Boom")) for method in ("AFR", "GAE")]
    made = table(cells + failed)
    assert [row[:3] for row in made.rows] == [["coco-sp", "all", "no data"], ["cora", "AFR", "failed"],
                                              ["cora", "GAE", "failed"]]  # fmt: skip
    assert made.notes == ["coco-sp: no data: cannot get x.zip", "AFR, GAE: failed on cora: Boom"]


def test_what_did_not_run_says_why():
    cells = [
        cell("cora", "AFR", run(status="failed", reason="Boom: x")),
        cell("coco-sp", "AFR", problem="no file"),
    ]
    made = table(cells)
    assert [row[1] for row in made.rows] == ["failed", "no data"]
    assert made.notes == ["coco-sp: no data: no file", "AFR: failed on cora: Boom: x"]


def test_a_note_on_missing_data_leaves_out_where_it_was_looked_for():
    made = table([cell("coco-sp", "AFR", problem="cannot get x.zip; looked in /home/me; try again")])
    assert made.notes == ["coco-sp: no data: cannot get x.zip"]


def test_lines_that_were_not_run_become_a_note():
    cells = [cell("cora", "AFR", run()), cell("cora", "GAE"), cell("pubmed", "GAE"), cell("citeseer", "AFR")]
    made = table(cells)
    assert [row[0] for row in made.rows] == ["cora"]
    assert made.notes == ["Not run: GAE on cora; pubmed", "Not run: AFR on citeseer"]


def protection(epsilon, accuracy, seed=0):
    found = run("protection", seed=seed)
    found["spec"]["task"] = "protection"
    found["scores"] = {"accuracy": accuracy, "guarantee": "conditional" if epsilon else "none",
                       "epsilon": {"edge": epsilon} if epsilon else {}}  # fmt: skip
    return found


def test_a_wide_table_has_a_line_for_each_instance():
    cells = [cell("cora", "AFR", run(f1=f1, seed=i)) for i, f1 in enumerate((0.4, 0.6))]
    cells += [cell("cora", "GAE", run(name="gae", f1=0.3)), cell("cora", "protection", protection(2.5, 0.8))]
    cells += [cell("citeseer", "AFR", run()), cell("citeseer", "GAE"),
              cell("citeseer", "protection", protection(None, 0.7))]  # fmt: skip
    made = table(cells, {"cora": {"AFR": [74.3, 0.5]}}, wide=True, score="f1.global",
                 beside=("accuracy", "guarantee", "epsilon.edge"))  # fmt: skip
    assert made.columns == ["instance", "AFR", "GAE", "accuracy", "guarantee", "epsilon edge", "seeds", "floor",
                            "ceiling"]  # fmt: skip
    assert made.rows == [
        ["cora", "0.500 ± 0.141 (0.743)", "0.300", "0.800", "conditional", "2.500", "1–2", "0.200", "0.900"],
        ["citeseer", "0.500", "not run", "0.700", "none", "none", "1", "0.200", "0.900"],
    ]


def test_relative_curves_are_divided_by_their_first_value_and_averaged():
    cells = []
    for dataset, values in (("cora", (0.8, 0.4)), ("citeseer", (0.5, 0.125))):
        for f1, defences in zip(values, ([], ["gaussian:epsilon=2.0,delta=1e-05"])):
            made = cell(f"{dataset} {defences}", "AFR", run(f1=f1, dataset=dataset))
            cells.append(made | {"dataset": dataset, "instance": {"defences": defences}})
    drawn = table(cells, score="f1.global", figure="epsilon", relative=True).figure
    assert drawn["series"] == [{"name": "AFR", "x": ["none", "2"], "y": [1.0, pytest.approx(0.375)],
                                "sd": [0.0, pytest.approx(0.125 * 2**0.5)]}]  # fmt: skip


def test_pages_of_markdown(tmp_path):
    cells = [cell("cora", f"AFR (alpha={a})", run(f1=a, settings={"alpha": a})) for a in (0.2, 0.4)]
    made = replace(table(cells, figure="alpha"), about="word " * 60, command="lograb reproduce x --store DIR")
    paths = write_pages(tmp_path, [made])
    assert [path.name for path in paths] == ["index.md", "x.md", "x.svg"]
    page = (tmp_path / "x.md").read_text()
    assert "lograb reproduce x --store DIR" in page
    assert "| cora | AFR (alpha=0.4) | 0.400 | 1 | 0.200 | 0.900 |" in page
    assert max(len(line) for line in page.splitlines() if line[:1] != "|") <= 120
    assert "(x.svg)" in page
    ElementTree.parse(tmp_path / "x.svg")
    assert "(x.md)" in (tmp_path / "index.md").read_text()


def test_signed_rank_and_holm():
    ours, theirs = (
        [0.9, 0.8, 0.7, 0.95, 0.6, 0.65, 0.77, 0.5, 0.4],
        [0.1, 0.2, 0.31, 0.4, 0.2, 0.3, 0.1, 0.2, 0.15],
    )
    assert signed_rank(ours, theirs) == pytest.approx(2 / 2**9)
    assert signed_rank(ours, theirs) == wilcoxon(ours, theirs).pvalue
    assert signed_rank([1, 2], [1, 2]) == 1
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_the_test_is_told_with_its_lower_bound():
    cells = [cell(f"d{i}", column, run(name=column, f1=0.5 + (column == "AFR") * (i + 1) / 20))
             for i in range(9) for column in ("AFR", "GAE")]  # fmt: skip
    paper = {f"d{i}": {"AFR": 60 + i, "GAE": 50 + i / 2} for i in range(9)}
    notes = table(cells, paper, against="AFR").notes
    assert len(notes) == 2
    assert all("GAE p = 0.0039, 0.0039 after Holm (n = 9)" in note for note in notes)
    assert all("cannot be below 0.0039" in note for note in notes)


def test_only_datasets_of_the_paper_and_seeds_that_both_have_are_tested():
    ours = {(i, seed): 0.5 + i / 20 if seed == 0 else 0.0 for i in range(5) for seed in (0, 1)}
    cells = [cell(f"d{i}", "AFR", run(f1=f1, seed=seed)) for (i, seed), f1 in ours.items()]
    cells += [cell(f"d{i}", "GAE", run(name="gae", f1=0.4 if i < 4 else 0.99)) for i in range(5)]
    (note, printed) = table(cells, {f"d{i}": {"AFR": 70 + i, "GAE": 50} for i in range(4)}, against="AFR").notes
    assert "ours on the paper's datasets, over the seeds that both have: GAE p = 0.1250, 0.1250" in note
    assert "(n = 4). With 4 datasets" in note
    assert "as printed: GAE p = 0.1250" in printed
    (every,) = table(cells, against="AFR").notes
    assert "ours, over the seeds that both have" in every
    assert "(n = 5)" in every


def test_every_form_has_every_cell():
    made = table([cell("a_b|c", "AFR", run(f1=0.4)), cell("a_b|c", "AFR", run(f1=0.6, seed=1))])
    assert list(csv.reader(io.StringIO(made.render("csv"))))[1] == made.rows[0]
    assert r"a\_b|c & 0.500 $\pm$ 0.141 & 2" in made.render("latex")
    assert r"\toprule" in made.render("latex")
    assert r"| a_b\|c | 0.500 ± 0.141 | 2 |" in made.render("markdown")


def test_latex_maps_whatever_the_tables_of_presets_print():
    for name in preset_names():
        config = find_config(name)[name]
        methods = (*config.attacks, *config.models, *config.links)
        texts = [*map(str, config.instances), str(config.paper), *PROTOCOL,
                 *(label for one in methods for label, _ in one.variants())]  # fmt: skip
        made = Table(name, name, ["instance", *texts, *METRICS.values()], [["–", "0.5 ± 0.1", "noise, σ √q", "→"]])
        assert made.render("latex").isascii(), name
    assert r"cora $\varepsilon$ = $\infty$" in Table("", "", ["instance"], [["cora ε = ∞"]]).render("latex")


def test_tables_of_a_family_are_one_csv():
    tables = [Table("a", "", ["instance", "F1", "seeds"], [["cora", "0.5", "3"]]),
              Table("b", "", ["instance", "method", "F1"], [["cora, all", "AFR", "0.6"]])]  # fmt: skip
    assert list(csv.reader(io.StringIO(joined_csv(tables)))) == [
        ["table", "instance", "F1", "seeds", "method"], ["a", "cora", "0.5", "3", ""],
        ["b", "cora, all", "0.6", "", "AFR"]]  # fmt: skip


def test_text_is_as_wide_as_it_may_be_and_every_block_names_its_rows():
    columns = ["instance", "method", *(f"score{i}" for i in range(20))]
    rows = [[f"row{i}", "afr", *(f"{i}.{j:03}" for j in range(20))] for i in range(3)]
    made = Table("t", "t", columns, rows)
    shown = made.render("text", 60)
    assert 50 < max(map(len, shown.splitlines())) <= 60
    blocks = [[line.split() for line in block.splitlines() if "─" not in line] for block in shown.split("\n\n")]
    assert len(blocks) > 1
    for number, line in enumerate([columns, *rows]):
        assert [block[number][:2] for block in blocks] == [line[:2]] * len(blocks)
        assert [cell for block in blocks for cell in block[number][2:]] == line[2:]
    assert "\n\n" not in made.render("text")
    assert made.render("text", 5).count("row0") == 20  # a column that does not fit stands alone


@pytest.mark.parametrize(("labels", "head", "short"), [
    (["d = 2: cora defences=none", "d = 1: cora defences=none"], "instance: cora", ["d = 2: none", "d = 1: none"]),
    (["cora k=8 p=0.6", "cora k=16 p=0.6"], "instance: cora", ["k=8 p=0.6", "k=16 p=0.6"]),
    (["cora ε = 1", "citeseer ε = 1"], "instance", ["cora ε = 1", "citeseer ε = 1"]),
    (["cora", "cora strategy=random"], "instance", ["cora", "cora strategy=random"]),  # one would have no name
    (["a=x b", "c=x b"], "instance", ["a=x b", "c=x b"]),  # both would be called x
    (["cora"], "instance", ["cora"]),
])  # fmt: skip
def test_names_of_rows_are_short_and_still_differ(labels, head, short):
    made = Table("t", "t", ["instance", "f1"], [[label, "0.5"] for label in labels])
    lines = [line.rpartition("  ")[0].rstrip() for line in made.render("text").splitlines() if "─" not in line]
    assert lines == [head, *short]
    for form in ("csv", "latex", "markdown"):
        assert all((label.translate(LATEX) if form == "latex" else label) in made.render(form) for label in labels)


def test_different_code_is_told():
    cells = [cell("cora", "AFR", run()), cell("cora", "AFR", run(seed=1) | {"versions": {"code": "xyz"}})]
    assert "different source code: 1 by abc, 1 by xyz" in table(cells).notes[0]


def test_curves_follow_a_setting(tmp_path):
    cells = [cell("cora", f"AFR (alpha={x})", run(f1=x, settings={"alpha": x})) for x in (0.1, 0.5, 0.9)]
    made = table(cells, figure="alpha")
    (curve,) = made.figure["series"]
    assert (curve["name"], curve["x"], curve["y"]) == ("AFR", [0.1, 0.5, 0.9], [0.1, 0.5, 0.9])
    svg = draw_svg(made.figure, "a <title>")
    assert 'role="img"' in svg
    assert "a &lt;title&gt;" in svg
    assert svg.count("<circle") == 3


SIGHT = {
    "all cones": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""Machado, Oliveira and Fernandes (2009), on linear RGB."""
XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0178, 0.1095, 0.8727]])


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_of_curves_differ_for_all_eyes(sight):
    rgb = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in COLOURS])
    light = np.clip(((rgb + 0.055) / 1.055) ** 2.4 @ np.transpose(SIGHT[sight]), 0, 1)
    x, y, z = (116 * np.cbrt(light @ XYZ.T)).T
    lab = np.stack([y, 500 / 116 * (x - y), 200 / 116 * (y - z)], 1)
    gaps = [np.linalg.norm(a - b) for a, b in combinations(lab, 2)]
    assert min(gaps) > 15


def test_figures_are_the_same_bytes_every_time(tmp_path):
    pytest.importorskip("matplotlib")
    figure = {"x": "d", "y": "F1", "series": [{"name": "a", "x": ["one", "two"], "y": [0.1, 0.2], "sd": [0, 0.1]}]}
    first = [path.read_bytes() for path in save_figure(figure, "t", tmp_path / "a", "f")]
    assert first == [path.read_bytes() for path in save_figure(figure, "t", tmp_path / "b", "f")]


def test_only_like_is_ranked_with_like():
    runs = [run("a", 0.5), run("b", 0.7), run("c", 0.9, k=16), run("d", 0.9, seed=1),
            run("e", 0.99) | {"status": "failed"}]  # fmt: skip
    lines = [(line["method"], line["place"]) for line in leaderboard(runs, "reconstruction")]
    assert sorted(lines) == [("a", 2), ("b", 1), ("c", 1), ("d", 1)]


def test_graphs_of_one_name_are_told_apart_by_their_checksums(tmp_path):
    def of(name, f1, sha256):
        made = run(name, f1, dataset="friends.csv")
        made["spec"]["origin"]["sha256"] = sha256
        return made

    same = [of("a", 0.5, "1" * 64), of("b", 0.7, "1" * 64)]
    other = of("c", 0.9, "2" * 64)
    assert [line["protocol"][0] for line in leaderboard(same, "reconstruction")] == ["friends.csv"] * 2
    lines = leaderboard([*same, other], "reconstruction")
    assert [(line["method"], line["place"], line["protocol"][0]) for line in lines] == [
        ("b", 1, "friends.csv 11111111"), ("a", 2, "friends.csv 11111111"),
        ("c", 1, "friends.csv 22222222")]  # fmt: skip
    write_overview(tmp_path / "x.html", [], [*same, other | {"status": "failed"}])
    assert "friends.csv 22222222" in (tmp_path / "x.html").read_text()


def test_the_page_holds_everything_and_nothing_from_outside(tmp_path):
    cells = [cell("cora", f"AFR (alpha={x})", run(f1=x, settings={"alpha": x})) for x in (0.1, 0.5)]
    made = table(cells, figure="alpha").to_dict()
    bad = run("<b>odd</b>", status="failed", reason="Boom <script>")
    write_overview(tmp_path / "x.html", [made], [*(c["result"] for c in cells), bad])
    text = (tmp_path / "x.html").read_text()
    assert "http" not in text.replace("http-equiv", "")
    assert "<svg" in text
    assert "Boom &lt;script&gt;" in text
    assert "<b>odd</b>" not in text
    assert "Beside the scores stand a floor" in text
    assert len(text) < 300_000


@pytest.mark.parametrize("width", [1280, 390])
def test_wide_tables_and_figures_fit_the_screen(tmp_path, width):
    columns = [f"a rather long column {i}" for i in range(6 if width == 1280 else 3)]
    cells = [cell("cora", column, run(f1=x, settings={"alpha": x})) for column in columns for x in (0.1, 0.5)]
    made = table(cells, figure="alpha").to_dict() | {"columns": ["instance", *columns]}
    made["rows"] = [["cora", *("0.500 ± 0.100 (0.743)" for _ in columns)]]
    write_overview(tmp_path / "x.html", [made], [cells[0]["result"]])
    with chromium() as browser:
        set_width(browser, width)
        browser.get((tmp_path / "x.html").as_uri())
        told = browser.execute_script("""
            const table = document.querySelector(".wide"), box = table.getBoundingClientRect();
            const drawn = document.querySelector("svg.figure").getBoundingClientRect();
            return {left: Math.min(box.left, drawn.left), right: Math.max(box.right, drawn.right),
                    table: box.width,
                    shadow: getComputedStyle(table).backgroundAttachment, body: document.body.clientWidth,
                    page: document.documentElement.scrollWidth};""")
    assert told["left"] >= 0
    assert told["right"] <= width
    assert told["page"] <= width
    assert told["shadow"] == "local, scroll"
    assert width == 390 or told["table"] > told["body"]
