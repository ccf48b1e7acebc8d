"""Rules that no linter knows: sizes, docstrings, names, and what the text may say."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_MODULE_LINES = 600
MAX_TEST_LINES = 1200
MAX_PACKAGE_MODULES = 15
METAPHORS = {
    *("guest", "guests", "stranger", "door", "doors", "house", "room", "rooms", "parcel", "course"),
    *("book", "books", "counterfoils", "herding", "errand", "errands", "lookout", "hands", "sight"),
    *("post", "letter", "wish", "seal", "seals", "landing", "rehearsal", "doubting"),
    *("settling", "telling", "visit", "appetite", "succession", "yardstick", "guard"),
}
"""Words that named modules and classes here once and say nothing to a Kafka engineer."""
LITERAL_NAMES = {"post", "letter", "_LETTER_ESCAPES"}
"""Names that mean the word itself: to post an event, a letter of a pattern."""
DEAD_LETTER = re.compile("dead_?letter", re.IGNORECASE)
"""Connect's own word."""
VAGUE_NAMES = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "misc",
    "base",
    "manager",
    "managers",
}


@cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_module_says_what_it_knows() -> None:
    silent = [p for p in SOURCES if not ast.get_docstring(syntax_tree(p))]
    assert silent == []


def test_no_module_is_a_drawer() -> None:
    assert [p for p in SOURCES if {p.stem, p.parent.name} & VAGUE_NAMES] == []


def public_classes() -> dict[str, list[str]]:
    """Public class names of the package, each with the modules that define it."""
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in syntax_tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(relative(path))
    return found


def test_no_two_public_classes_share_a_name() -> None:
    shared = {name: paths for name, paths in public_classes().items() if len(paths) > 1}
    assert shared == {}


def defined_names(path: Path) -> set[str]:
    """The names of a module: its own, and those of classes, functions, parameters and variables."""
    names = {path.stem, path.parent.name}
    for node in ast.walk(syntax_tree(path)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
    return {name for name in names if not name.startswith("__")}


def is_metaphor(name: str) -> bool:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", DEAD_LETTER.sub("", name))
    return name not in LITERAL_NAMES and bool({word.lower() for word in words} & METAPHORS)


def test_no_metaphor_enters_a_name() -> None:
    found = {relative(p): name for p in SOURCES for name in defined_names(p) if is_metaphor(name)}
    assert found == {}


def test_a_package_has_at_most_fifteen_modules() -> None:
    counts = Counter(relative(p.parent) for p in SOURCES if p.name != "__init__.py")
    large = {name: count for name, count in counts.items() if count > MAX_PACKAGE_MODULES}
    assert large == {}


def test_modules_stay_small() -> None:
    sizes = {relative(p): len(p.read_text("utf-8").splitlines()) for p in SOURCES}
    assert {p: n for p, n in sizes.items() if n > MAX_MODULE_LINES} == {}


def test_tests_stay_readable() -> None:
    sizes = {relative(p): len(p.read_text("utf-8").splitlines()) for p in TESTS}
    assert {p: n for p, n in sizes.items() if n > MAX_TEST_LINES} == {}


def test_packages_hold_a_docstring_and_nothing_else() -> None:
    for path in SOURCES:
        if path.name == "__init__.py" and path != ROOT / "src" / "sparkmirror" / "__init__.py":
            assert len(syntax_tree(path).body) == 1, relative(path)


def test_the_package_itself_installs_the_finder_of_compiled_modules_and_nothing_else() -> None:
    body = syntax_tree(ROOT / "src" / "sparkmirror" / "__init__.py").body
    assert [ast.unparse(statement) for statement in body[1:]] == [
        "from sparkmirror.compiled_modules import install_finder",
        "install_finder()",
    ]


def test_nothing_is_left_for_later() -> None:
    marks = re.compile(
        r"\b(TODO|FIXME|XXX|NotImplementedError)\b|type: ignore|pytest\.(mark\.)?skip\("
    )
    left = [
        f"{relative(path)}: {line.strip()}"
        for path in [*SOURCES, *TESTS]
        if path != Path(__file__)
        for line in path.read_text("utf-8").splitlines()
        if marks.search(line)
    ]
    assert left == []


@cache
def tracked_text() -> list[tuple[str, str]]:
    """Every tracked text file that people wrote, with its content."""
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = listing.stdout.split() or [relative(path) for path in [*SOURCES, *TESTS]]
    kinds = {".py", ".md", ".toml", ".yml", ".yaml", ".sh", ".properties", ""}
    return [
        (name, (ROOT / name).read_text("utf-8", errors="replace"))
        for name in names
        if Path(name).suffix in kinds
        and not name.startswith("tests/golden/")
        and (ROOT / name).is_file()
    ]


def test_no_path_of_one_machine_is_written_down() -> None:
    paths = re.compile(r"(?<![\w.])/(?:work|root|farm)/")
    this = relative(Path(__file__))
    found = [name for name, text in tracked_text() if name != this and paths.search(text)]
    assert found == []


def test_every_sentence_names_its_actor_in_plain_words() -> None:
    """CONTRIBUTING quotes some of these words; `[a-z]` also finds them inside names."""
    words = r"(?<![a-z])(nobody|whoever|somebody|everybody|anew|told)(?![a-z])"
    exempt = {"CONTRIBUTING.md", relative(Path(__file__))}
    found = [
        f"{name}: {line.strip()}"
        for name, text in tracked_text()
        if name not in exempt
        for line in text.splitlines()
        if re.search(words, line, re.IGNORECASE)
    ]
    assert found == []


def test_links_in_the_documents_lead_somewhere() -> None:
    broken = []
    for name, text in tracked_text():
        if not name.endswith(".md"):
            continue
        without_code = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", without_code):
            if "://" not in target and not (ROOT / name).parent.joinpath(target).exists():
                broken.append(f"{name} -> {target}")
    assert broken == []


def test_paths_and_modules_that_documents_name_exist() -> None:
    """A path in backquotes begins at the root, in src/sparkmirror, or at the document itself."""
    package = ROOT / "src" / "sparkmirror"
    first_parts = {path.name for path in (*ROOT.iterdir(), *package.iterdir()) if path.is_dir()}
    named, missing = 0, []
    for name, text in tracked_text():
        if not name.endswith(".md"):
            continue
        without_blocks = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for path in re.findall(r"`([A-Za-z_]\w*/[\w./-]*)`", without_blocks):
            if path.partition("/")[0] not in first_parts:
                continue
            named += 1
            bases = (ROOT, package, (ROOT / name).parent)
            forms = (path, f"{path.rstrip('/')}.py", f"{path.rpartition('.')[0]}.py")
            if not any((base / form).exists() for base in bases for form in forms):
                missing.append(f"{name}: {path}")
    assert named > 100
    assert missing == []


def test_every_make_target_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    explained = set(re.findall(r"^([a-z-]+):.*## .+$", makefile, re.MULTILINE))
    assert set(phony.group(1).split()) == explained
