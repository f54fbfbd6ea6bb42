"""What README and docs say is so: commands and snippets run, links lead somewhere, lines are short.

All blocks of a page marked ``sh`` or ``python`` run in order, in one folder that starts with the small files of
`write_inputs`; Python blocks share one namespace. A comment on the line above a block says what it needs:

``<!-- needs: mirror -->``      real datasets (see the fixture `mirror`); such blocks alone get to see them
``<!-- needs: gnn -->``         an optional dependency (see `OPTIONAL`)
``<!-- not run: REASON -->``    for installations and long runs: instead it is checked that script, command,
                                options and arguments exist
"""

import json
import os
import random
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
LONGEST = 120
RUN = ("sh", "python")
SHOWN = ("text", "console", "json", "toml", "csv", "html")
OPTIONAL = {"gnn": ("torch", "torch_geometric"), "scikit-learn": ("sklearn",), "pandas": ("pandas",)}
SECONDS = 300


def name_of(page):
    return page.relative_to(ROOT).as_posix()


# --- the files that the pages use ---------------------------------------------------------------------------


DEPARTMENTS = {
    "research": ["Ada", "Ben", "Cleo", "Dov", "Elif", "Femi", "Gita", "Hugo", "Iris", "Jon"],
    "sales": ["Kofi", "Lena", "Malik", "Nora", "Omar", "Pia", "Quin", "Rosa", "Sven", "Tara"],
    "support": ["Uma", "Viktor", "Wen", "Ximena", "Yann", "Zoe", "Anouk", "Bram", "Carla", "Dmitri"],
}


def write_inputs(folder):
    """Write the small files that pages take for granted, all about the same thirty people.

    friends.csv : an edge list of names, without a header; nobody is without a friend in the own department
    departments.csv : a table node,group
    """
    rng = random.Random(7)
    pairs = set()
    for people in DEPARTMENTS.values():
        pairs |= {(people[i], people[rng.randrange(i)]) for i in range(1, len(people))}  # a tree: all connected
        pairs |= set(rng.sample(list(combinations(people, 2)), 10))
    everybody = [name for people in DEPARTMENTS.values() for name in people]
    pairs |= set(rng.sample(list(combinations(everybody, 2)), 10))
    unique = sorted({tuple(sorted(pair)) for pair in pairs})
    (folder / "friends.csv").write_text("".join(f"{a},{b}\n" for a, b in unique))
    rows = [f"{name},{group}\n" for group, people in DEPARTMENTS.items() for name in people]
    (folder / "departments.csv").write_text("node,group\n" + "".join(rows))


# --- collecting blocks --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block: where its code starts, and what the comment above it says."""

    language: str
    code: str
    line: int
    needs: str | None = None
    not_run: str | None = None


def collect(text):
    """List the blocks of a page; whatever would silently escape the tests is refused."""
    blocks, lines, opened = [], text.splitlines(), None
    for number, line in enumerate(lines, start=1):
        fence = re.fullmatch(r"(\s*)```\s*(.*?)\s*", line)
        if fence is None:
            continue
        if opened is None:
            opened = number, len(fence[1]), fence[2]
            continue
        first, indent, language = opened
        if fence[2]:
            raise ValueError(f"line {number}: a block opens inside the one of line {first}")
        if language not in RUN + SHOWN:
            raise ValueError(f"line {first}: a block's language must be one of {RUN + SHOWN}, got '{language}'")
        code = "\n".join(part[indent:] for part in lines[first : number - 1])
        blocks.append(Block(language, code, first + 1, **read_mark(lines[first - 2] if first > 1 else "", first)))
        opened = None
    if opened is not None:
        raise ValueError(f"line {opened[0]}: the block is never closed")
    return blocks


def read_mark(line, number):
    """Read the comment above a block; one that is no mark is a misspelt mark."""
    if "<!--" not in line:
        return {}
    mark = re.fullmatch(r"\s*<!-- (needs|not run): (\S.*) -->", line)
    if mark is None or (mark[1] == "needs" and mark[2] not in ("mirror", *OPTIONAL)):
        raise ValueError(f"line {number - 1}: '{line.strip()}' must be a mark: needs: "
                         f"{', '.join(('mirror', *OPTIONAL))}; or not run: REASON")  # fmt: skip
    return {mark[1].replace(" ", "_"): mark[2]}


# --- running blocks -----------------------------------------------------------------------------------------

DRIVER = r"""
import json, os, subprocess, sys
page, blocks = json.load(open(sys.argv[1]))
sys.argv = [page]
namespace = {"__name__": "__main__"}
for line, language, code, environment in blocks:
    os.environ.pop("LOGRAB_MIRROR", None)
    os.environ.update(environment)
    print(f"{page}:{line}", file=sys.stderr, flush=True)
    if language == "python":
        exec(compile("\n" * (line - 1) + code, page, "exec"), namespace)
    elif (code := subprocess.run(["bash", "-euo", "pipefail", "-c", code]).returncode) != 0:
        sys.exit(f"the block ended with exit code {code}")
"""


def run_blocks(page, blocks, folder, mirror=None):
    """Run blocks in order in a process of their own; network and caches are out of reach."""
    inside = folder / "page"
    inside.mkdir()
    write_inputs(inside)
    chosen = [(block.line, block.language, block.code,
               {"LOGRAB_MIRROR": str(mirror)} if block.needs == "mirror" else {}) for block in blocks]  # fmt: skip
    (folder / "blocks.json").write_text(json.dumps([str(page), chosen]))
    nowhere = "http://127.0.0.1:9"
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LOGRAB_CACHE": str(folder / "cache"),
        "http_proxy": nowhere, "https_proxy": nowhere, "no_proxy": "",
    }  # fmt: skip
    return subprocess.run([sys.executable, "-c", DRIVER, folder / "blocks.json"], cwd=inside, env=environment,
                          capture_output=True, text=True, check=False, timeout=SECONDS)  # fmt: skip


def missing(needs):
    """Whether an optional dependency is not there."""
    return any(find_spec(module) is None for module in OPTIONAL.get(needs, ()))


@pytest.mark.parametrize("page", [p for p in PAGES if re.search(r"^\s*```(sh|python)", p.read_text(), re.M)],
                         ids=name_of)  # fmt: skip
def test_blocks_run(page, tmp_path, request):
    blocks = [block for block in collect(page.read_text()) if block.language in RUN]
    for block in blocks:
        if block.not_run is not None:
            check_without_running(block)
    mirror = None
    if any(block.needs == "mirror" for block in blocks):
        try:
            mirror = request.getfixturevalue("mirror")
        except pytest.skip.Exception:
            mirror = None
    possible = [block for block in blocks if block.not_run is None and not missing(block.needs)
                and (block.needs != "mirror" or mirror is not None)]  # fmt: skip
    done = run_blocks(page, possible, tmp_path, mirror)
    assert done.returncode == 0, done.stderr[-3000:]
    left_out = [f"line {block.line} ({block.needs})" for block in blocks
                if block.not_run is None and block not in possible]  # fmt: skip
    if left_out:
        pytest.skip(f"{len(possible)} blocks ran; these need what is not there: {', '.join(left_out)}")


# --- commands that are not run ------------------------------------------------------------------------------


def check_without_running(block):
    """Check that the commands of a block could run: scripts, commands, options and arguments exist."""
    assert block.language == "sh", f"line {block.line}: only sh blocks may be left out"
    for line in block.code.splitlines():
        for words in simple_commands(line):
            check_command(words, f"line {block.line}, '{' '.join(words)}'")


def simple_commands(line):
    """Split a line into commands, without comments and without assignments in front."""
    commands = [[]]
    for word in shlex.split(line, comments=True):
        if word in ("&&", "||", ";", "|"):
            commands.append([])
        elif commands[-1] or not re.fullmatch(r"\w+=.*", word):
            commands[-1].append(word)
    return [words for words in commands if words]


def check_command(words, where):
    """Check one command; a kind that is not known here has to be run."""
    tool, *rest = words
    if tool == "python" and rest and rest[0].endswith(".py"):
        check_script(rest[0], rest[1:], where)
    elif tool == "lograb":
        check_options(rest, where)
    elif tool == "pip":
        assert rest[0] == "install", where
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for extra in re.findall(r"[\w-]+", " ".join(re.findall(r"\[(.*?)\]", " ".join(rest)))):
            assert extra in extras, f"{where}: there is no extra '{extra}'"
    else:
        assert tool in ("pytest", "ruff", "mypy", "export"), f"{where}: run it, or teach this test '{tool}'"


def check_script(path, arguments, where):
    """Let a benchmark read its arguments without running."""
    done = subprocess.run([sys.executable, ROOT / path, *arguments, "--dry-run"], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, f"{where}: {done.stderr}"


def check_options(words, where):
    """Hold a command's options against its --help."""
    script = Path(sys.executable).parent / "lograb"
    command = [word for word in words[:1] if not word.startswith("-")]
    done = subprocess.run([script, *command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{where}: {done.stderr}"
    for word in words:
        if word.startswith("-"):
            option = re.escape(word.partition("=")[0])
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", done.stdout), f"{where}: there is no option {word}"


# --- links, lines, names ------------------------------------------------------------------------------------


def prose(text):
    """Leave out the fenced blocks."""
    return re.sub(r"^\s*```.*?^\s*```\s*$", "", text, flags=re.M | re.S)


def anchors(text):
    """List the anchors that a page's headings get."""
    found = []
    for title in re.findall(r"^#+ +(.*?)\s*$", prose(text), flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return found


def links(text):
    """List the targets of a page's relative links and images."""
    found = re.findall(r"!?\[[^\]]*\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text)))
    return [target for target in found if not re.match(r"\w+:", target)]


def broken_links(page):
    """Name the relative links of a page that lead nowhere."""
    broken = []
    for target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            broken.append(target)
    return broken


@pytest.mark.parametrize("page", sorted({*PAGES, *ROOT.glob("*.md")}), ids=name_of)
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


def test_every_page_is_reached_from_the_index():
    found, new = set(), [ROOT / "docs" / "index.md"]
    while new:
        page = new.pop().resolve()
        if page in found or page.suffix != ".md":
            continue
        found.add(page)
        new += [page.parent / target.partition("#")[0] for target in links(page.read_text()) if target[0] != "#"]
    assert {page.resolve() for page in DOCS} <= found


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_lines_are_short(page):
    generated = page.parent.name == "tables"  # by `lograb report --markdown`: rows are as long as they are
    lines = enumerate(page.read_text().splitlines(), start=1)
    assert [n for n, line in lines if len(line) > LONGEST and not (generated and line.startswith("| "))] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page):
    files = [path.as_posix() for room in ("src", "tests", "benchmarks", "examples")
             for path in (ROOT / room).rglob("*.py")]  # fmt: skip
    for span in re.findall(r"`([^`\n]*)`", prose(page.read_text())):
        for name in re.findall(r"[\w./-]*\w\.py\b", span):
            assert any(file.endswith("/" + name.removeprefix("../")) for file in files), f"there is no {name}"


def test_pages_that_code_names_exist():
    for room in ("src", "benchmarks", "examples"):
        for file in (ROOT / room).rglob("*.py"):
            for name in re.findall(r"\bdocs/[\w/-]+\.\w+", re.sub(r"https?://\S+", "", file.read_text())):
                assert (ROOT / name).is_file(), f"{file.name} names {name}"


def test_architecture_shows_every_room():
    page = (ROOT / "docs" / "architecture.md").read_text()
    tree = next(block.code for block in collect(page) if "src/lograb/" in block.code)
    inside = tree.split("src/lograb/\n")[1].splitlines()
    shown = {name.rstrip("/") for line in inside if line.startswith("  ")
             for name in re.findall(r"(?:^  |\s{2,})(\w+\.py|\w+/)(?=\s)", line)}  # fmt: skip
    there = {path.name for path in (ROOT / "src" / "lograb").iterdir()
             if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__")}  # fmt: skip
    assert shown == there


def test_the_format_names_every_column():
    from lograb.archive.schema import RULES

    page = (ROOT / "docs" / "reference" / "file-format.md").read_text()
    assert [column for column in RULES if f"`{column}`" not in page] == []


# --- these tests can fail -----------------------------------------------------------------------------------


def page_of(*blocks):
    return "# Page\n\n" + "\n\n".join(blocks) + "\n"


def fenced(language, code, mark=None):
    return (f"<!-- {mark} -->\n" if mark else "") + f"```{language}\n{code}\n```"


def test_blocks_share_a_folder_and_a_namespace_in_order(tmp_path):
    text = page_of(fenced("python", "people = open('friends.csv').read().split()"),
                   fenced("sh", "echo written > note.txt"), fenced("text", "not for running"),
                   fenced("python", "assert people and open('note.txt').read() == 'written\\n'"),
                   fenced("sh", "python -c 'import lograb' && test -n \"$(command -v lograb)\""))  # fmt: skip
    blocks = [block for block in collect(text) if block.language in RUN]
    assert [block.line for block in blocks] == [4, 8, 16, 20]
    done = run_blocks(tmp_path / "page.md", blocks, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("language", "code"), [
    ("python", "raise ValueError"),
    ("python", "no_such_name"),
    ("python", "import sys; sys.exit(3)"),
    ("python", "import lograb; lograb.generate('karate', sigma=-1)"),
    ("python", "import lograb; lograb.load_graph('cora')"),
    ("sh", "false\ntrue"),
    ("sh", "false | true"),
    ("sh", "echo $no_such_variable"),
    ("sh", "lograb generate karate --no-such-option -o k.lograb"),
    ("sh", "lograb generate cora -o c.lograb"),
])  # fmt: skip
def test_a_broken_block_fails(language, code, tmp_path):
    before, after = (fenced("python", f"print('{when}')") for when in ("before", "after"))
    done = run_blocks(tmp_path / "page.md", collect(page_of(before, fenced(language, code), after)), tmp_path)
    assert done.returncode != 0
    assert done.stdout.startswith("before")
    assert "after" not in done.stdout
    assert "page.md:8" in done.stderr


@pytest.mark.parametrize("text", [
    page_of(fenced("", "lograb --help")),
    page_of(fenced("bash", "lograb --help")),
    page_of(fenced("sh", "lograb --help", "need: mirror")),
    page_of(fenced("sh", "lograb --help", "needs: luck")),
    page_of(fenced("sh", "lograb --help", "not run:")),
    page_of("```sh\nlograb --help"),
])  # fmt: skip
def test_what_would_escape_is_refused(text):
    with pytest.raises(ValueError, match="line 3|line 4"):
        collect(text)


@pytest.mark.parametrize(("command", "fine"), [
    ("pip install '.[dev]' && pytest", True),
    ("pip install '.[no-such-extra]'", False),
    ("OMP_NUM_THREADS=1 python benchmarks/variational.py recovery 20 50   # comment", True),
    ("python benchmarks/generation.py cora growth", True),
    ("python benchmarks/no_such_script.py", False),
    ("python benchmarks/variational.py no-such-part", False),
    ("python benchmarks/generation.py cora no-such-part", False),
    ("lograb demo -o report.html", True),
    ("lograb demo --no-such-option", False),
    ("lograb no-such-command", False),
    ("make all", False),
])  # fmt: skip
def test_what_is_not_run_is_checked(command, fine):
    (block,) = collect(page_of(fenced("sh", command, "not run: takes long")))
    assert block.not_run == "takes long"
    if fine:
        check_without_running(block)
    else:
        with pytest.raises(AssertionError, match=r"line 5"):
            check_without_running(block)


def test_broken_links_and_anchors_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# One Title: `code`, and more\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text("# Page\n[a](other.md) [b](other.md#one-title-code-and-more) [c](other.md#twice-1)\n"
                    "[d](#page) [e](none.md) [f](other.md#none)\n[g](#none) ![h](none.svg) `[i](none.md)` [j](https://a.b)\n")
    assert broken_links(page) == ["none.md", "other.md#none", "#none", "none.svg"]
