"""Rules for every file of the tree: whitespace, size, words, links, and a README where code is."""

import posixpath
import re

BYTES_MAX = 1_000_000
TABS_BELONG = ("Makefile", ".tsv", ".go", "go.mod", "go.sum")
# Spelled in two parts: this file is checked too.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
PRIVATE_PATH = re.compile(r"(?<![\w.])/(?:wo" r"rk|fa" r"rm)\b(?![-.])")
NAMED = re.compile(r"`((?:src|tools|tests|docs|cmake|packaging)/[\w./-]+)`")
CODE_FILE = re.compile(r"`([\w./-]+\.(?:c|h|inc|proto|py))`")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CITED_FILE = re.compile(r"(?<![\w./*-])([a-z][\w./-]*\.[ch])\b(?!\()")
PLACEHOLDER = re.compile(r"(?:.*/)?x(?:_test)?\.\w+")  # `x.c` is any file
HISTORY = ("CHANGELOG.md", "changes/")  # says what was there then
CODE_NAME = re.compile(r"`(?:struct )?([A-Za-z]+_\w+)(?:\(\))?(?: \*)?`")
RECIPES = "CONTRIBUTING.md"
JOURNEYS = "docs/architecture.md"
# `function` (`folder/file.c`), and `function`, `folder/file.c` inside of brackets
HOP = re.compile(r"`(\w+)`(?:,\s+|\s+\()`([\w/]+\.[ch])`")
FAULTS = "docs/faults.md"
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def check_whitespace(tree):
    for path, text in tree.texts.items():
        if text and not text.endswith("\n"):
            tree.find("whitespace", path, text.count("\n") + 1, "has no newline at its end")
        if "\r" in text:
            tree.find("whitespace", path, 1, "has carriage returns")
        for number, line in enumerate(text.split("\n"), 1):
            if line.endswith((" ", "\t")):
                tree.find("whitespace", path, number, "ends with white space")
            if "\t" in line and not path.endswith(TABS_BELONG):
                tree.find("tabs", path, number, "has a tab")


def check_words(tree):
    for path, text in tree.texts.items():
        if path.endswith("go.sum"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for match in UNFINISHED.finditer(line):
                tree.find("unfinished", path, number, f"says {match.group()}: do it or file it")
            if PRIVATE_PATH.search(line):
                tree.find("private-paths", path, number, "names a path of one machine")


def check_size(tree):
    for path in tree.paths:
        size = (tree.root / path).stat().st_size
        if size > BYTES_MAX:
            tree.find("file-size", path, 1, f"has {size} bytes, the most is {BYTES_MAX}")


def check_readmes(tree):
    folders = {posixpath.dirname(source.path) for source in tree.sources}
    for folder in sorted(folders):
        if folder.startswith("src/") and f"{folder}/README.md" not in tree.texts:
            tree.find("readmes", folder, 1, "has code and no README.md")


def check_links(tree):
    """Relative links of the pages lead to something."""
    for path, text in tree.texts.items():
        if not path.endswith(".md"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for target in LINK.findall(line):
                name = target.partition("#")[0]
                if name and "://" not in name and not name.startswith("mailto:"):
                    where = tree.root / posixpath.dirname(path) / name
                    if not where.exists():
                        tree.find("links", path, number, f"links to {name}, which is not there")


def check_named_files(tree):
    """Files that a page names in backquotes are there, so that recipes stay true. NAME is any."""
    for path, text in tree.texts.items():
        for number, line in enumerate(text.split("\n") if path.endswith(".md") else [], 1):
            for name in NAMED.findall(line):
                if "NAME" not in name and not (tree.root / name.rstrip("/")).exists():
                    tree.find("links", path, number, f"names {name}, which is not there")


def check_code_files(tree):
    """A code file that a page names without its whole path is there: of a README in its folder, in
    a room of it, or beside it; of any page in src/. A page of docs/ may also give the last part
    alone."""
    for path, text in tree.texts.items():
        if not path.endswith(".md") or path.startswith(HISTORY):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for name in CODE_FILE.findall(line):
                if not PLACEHOLDER.fullmatch(name) and not _is_there(tree, path, name):
                    tree.find("links", path, number, f"names {name}, which is not there")


def check_cited_files(tree):
    """C files that comments name are there, by their name or the last part of their path."""
    for source in tree.sources:
        for comment in COMMENT.finditer(source.text):
            for match in CITED_FILE.finditer(comment.group()):
                name = match.group(1)
                is_there = name in tree.names or any(p.endswith(f"/{name}") for p in tree.paths)
                if not is_there and not name.endswith(".pb-c.h"):
                    line = source.line_of(comment.start() + match.start())
                    tree.find("links", source.path, line, f"names {name}, which is not there")


def _is_there(tree, page, name):
    folder = posixpath.dirname(page)
    places = ["", "src", folder]
    if not page.endswith("README.md"):
        return _is_one_of(tree, places, name) or ("/" not in name and name in tree.names)
    in_rooms = (p for p in tree.paths if p.startswith(f"{folder}/") and p.endswith(f"/{name}"))
    return _is_one_of(tree, [*places, posixpath.dirname(folder)], name) or any(in_rooms)


def _is_one_of(tree, folders, name):
    return any((tree.root / folder / name).is_file() for folder in folders)


def check_journeys(tree):
    """A name that the journeys follow by a file is in that file."""
    text = tree.texts.get(JOURNEYS, "")
    for match in HOP.finditer(text):
        name, path = match.groups()
        if not re.search(rf"\b{name}\b", tree.texts.get(f"src/{path}", name)):
            number = text.count("\n", 0, match.start()) + 1
            tree.find("links", JOURNEYS, number, f"says that {name} is in {path}: it is not")


def check_recipes(tree):
    """What a recipe names is in the code or a fault. module_x stands for any."""
    used = set(re.findall(r"^\| `(\w+)` \|", tree.texts.get(FAULTS, ""), re.MULTILINE))
    for path, text in tree.texts.items():
        if path.endswith((".c", ".h", ".cmake", "CMakeLists.txt")):
            used.update(re.findall(r"\w+", text))
    for number, line in enumerate(tree.texts.get(RECIPES, "").split("\n"), 1):
        for name in CODE_NAME.findall(line):
            if name not in used and not name.startswith("module_"):
                tree.find("links", RECIPES, number, f"names {name}, which no code has")
