"""One meaning for each word: tags of structs, former names, and ids of the catalogue.

The glossary says which names the tree had for things that the field has words for; this keeps them
from coming back. What is stored or on the wire has its names from its .proto files, and these are
not looked at."""

import re

GLOSSARY = "docs/glossary.md"
CATALOGUE = "docs/catalogue/"
TAG = re.compile(r"^(?:struct|enum|union) (\w+)\s*\{", re.MULTILINE)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
PROBE = re.compile(r"\bprobe\([^;]*;")
CITED = re.compile(r"\b[A-J]-\d{3}\b")
DEFINED = re.compile(r"^- \*\*([A-Z]-T?\d+)\*\*", re.MULTILINE)
# Rows of the glossary's table of former names: | `former` | now |, the former ones in backquotes.
FORMER = re.compile(r"^\| ([^|\n]*`[^|\n]*) \|", re.MULTILINE)
STEM = re.compile(r"(?:s|d|ed|ing)$")  # plurals and forms of verbs
# Sentences that nobody who grew up with the language would write, over the end of a line, too.
GERMANIC = re.compile(
    r"\b(whoever|anew|deaf to|none any more"
    r"|(?<!there\s)is no (?:JSON|YAML|UUID|number|text|list|map|name|word|key|token|node|region"
    r"|member))\b"
    .replace(" ", r"(?:\s+(?:\*\s+)?)"), re.IGNORECASE)
GERMANIC_PARTS = {"whoever", "anew", "deaf"}  # of identifiers


NO_PRODUCT = ("src/sim/", "src/fiber/sim/")


def is_product(source):
    """Of the platform the simulated one is the double: its structs have the same tags."""
    is_test = source.is_test or "_bench." in source.path or "_fuzz." in source.path
    return source.top is not None and not is_test and not source.path.startswith(NO_PRODUCT)


def former_words(tree):
    """Words that no identifier may have as a part: those of the glossary's table."""
    words = set(GERMANIC_PARTS)
    for cell in FORMER.findall(tree.texts.get(GLOSSARY, "")):
        words.update(re.findall(r"`(\w+)`", cell))
    return words


def repeated_tags(tree):
    """(source, offset, tag, where it was first) of tags that the product defines again."""
    first = {}
    for source in tree.sources:
        for match in TAG.finditer(source.code) if is_product(source) else []:
            tag = match.group(1)
            if tag in first:
                yield source, match.start(), tag, first[tag]
            first.setdefault(tag, source.path)


def check_tags(tree):
    for source, offset, tag, path in repeated_tags(tree):
        line = source.line_of(offset)
        if not tree.is_allowed(source, line, tag):
            tree.find("tags", source.path, line, f"defines {tag} again: it is in {path}")


def names(source):
    """(offset, name): identifiers, and the names of probes."""
    for match in IDENTIFIER.finditer(source.code):
        if not match.group().startswith("cadenza__"):
            yield match.start(), match.group()
    for call in PROBE.finditer(source.text):
        for match in IDENTIFIER.finditer(call.group()):
            yield call.start(), match.group()


def comment_words(source):
    """(offset, word) of the comments; names of stored messages are cited as they are."""
    for comment in COMMENT.finditer(source.text):
        if not source.code[comment.start() : comment.end()].strip():
            for match in IDENTIFIER.finditer(comment.group()):
                yield comment.start() + match.start(), match.group()


def former_in_code(tree):
    words = former_words(tree)
    for source in tree.sources if words else []:
        for offset, name in [*names(source), *comment_words(source)]:
            for part in name.lower().split("_"):
                if STEM.sub("", part) in words or part in words:
                    yield source, source.line_of(offset), name, part
        stem = source.path.rpartition("/")[2].partition(".")[0]
        for part in stem.lower().split("_"):
            if STEM.sub("", part) in words or part in words:
                yield source, 1, source.path, part


def check_former(tree):
    for source, line, name, part in former_in_code(tree):
        if not tree.is_allowed(source, line, name):
            sentence = f"{name}: the glossary has another word for {part}"
            tree.find("words", source.path, line, sentence)


def check_english(tree):
    for path, text in tree.texts.items():
        if path.startswith(("src/", "docs/", "tests/", "tools/")) or "/" not in path:
            for match in [] if path.endswith(".py") else GERMANIC.finditer(text):
                number = text.count("\n", 0, match.start()) + 1
                tree.find("english", path, number, f'says "{" ".join(match.group().split())}"')


def check_catalogue(tree):
    known = set()
    for path, text in tree.texts.items():
        if path.startswith(CATALOGUE):
            known.update(DEFINED.findall(text))
    for source in tree.sources:
        for match in CITED.finditer(source.text):
            if match.group() not in known:
                line = source.line_of(match.start())
                tree.find("catalogue", source.path, line, f"{match.group()} is not in {CATALOGUE}")
