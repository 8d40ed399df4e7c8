"""Former names in Python, in YAML and in texts of C, and in every form that a word takes.

word_rules.py looks at the identifiers of C. A word that people also use in its everyday sense is
refused in names only; all others wherever a reader may meet them."""

import io
import re
import tokenize

GLOSSARY = "docs/glossary.md"
ROW = re.compile(r"^\| ([^|\n]*`[^|\n]*) \|", re.MULTILINE)
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
TEXT = re.compile(r"/\*.*?\*/|(\"(?:\\.|[^\"\\\n])*\")", re.DOTALL)
EVERYDAY = {"book", "figure", "figures", "foreign", "ground", "pace", "plant"}
OWN = "tools/tidy_rules/"  # says what it looks for


def forms(word):
    """The word, its plural, and its forms as a verb."""
    stems = {word, word.removesuffix("s")}
    found = set()
    for stem in stems:
        short = stem.removesuffix("e")
        found |= {stem, f"{stem}s", f"{stem}es", f"{stem}ed", f"{stem}d", f"{stem}ing"}
        found |= {f"{short}ing", f"{short}ed"}
    return found


def former_forms(tree):
    """Form -> the word of the glossary's table of former names."""
    words = set()
    for cell in ROW.findall(tree.texts.get(GLOSSARY, "")):
        words.update(re.findall(r"`(\w+)`", cell))
    return {form: word for word in words for form in forms(word)}


def python_words(text):
    """(line, word, is a name) of the names, comments and texts of a program."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token in tokens:
        if token.type in (tokenize.NAME, tokenize.STRING, tokenize.COMMENT):
            for match in WORD.finditer(token.string):
                line = token.start[0] + token.string.count("\n", 0, match.start())
                yield line, match.group(), token.type == tokenize.NAME


def plain_words(text):
    for number, line in enumerate(text.split("\n"), 1):
        for match in WORD.finditer(line):
            yield number, match.group(), False


def c_words(source):
    for match in WORD.finditer(source.code):
        if not match.group().startswith("cadenza__"):
            yield source.line_of(match.start()), match.group(), True
    for literal in TEXT.finditer(source.text):
        for match in WORD.finditer(literal.group(1) or ""):
            yield source.line_of(literal.start()), match.group(), False


def check_forms(tree):
    former = former_forms(tree)
    found = {path: plain_words(text) for path, text in tree.texts.items()
             if path.endswith((".yaml", ".yml")) and not path.startswith("tests/corpus/")}
    found |= {path: python_words(text) for path, text in tree.texts.items()
              if is_python(path, text) and not path.startswith(OWN)}
    found |= {source.path: c_words(source) for source in tree.sources}
    for path, words in found.items() if former else []:
        for line, name, is_name in words:
            for part in name.lower().split("_"):
                word = former.get(part)
                if word is not None and (is_name or word not in EVERYDAY):
                    tree.find("former", path, line, f"{name}: the glossary has another word")


def is_python(path, text):
    return path.endswith(".py") or text.startswith("#!/usr/bin/env python3")
