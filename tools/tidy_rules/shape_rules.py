"""How the code reads: sizes, format, and whether a file explains itself."""

import re
import shutil
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor

FUNCTION_LINES = 70
FILE_SAYS = re.compile(r"/\* ([\w.-]+\.[ch]) - ")
FILE_LINES_WARN = 500
FILE_LINES = 1000
DEPTH = 4
COLUMNS = 100
MADE_PAGES = ("docs/cli.md", "docs/settings.md", "docs/bench.md", "docs/shape.md")
DOCUMENTED_PERCENT = 90
ASSERT = re.compile(r"\b(check|check_that|unreachable|_Static_assert|static_assert)\s*\(")
CODE_ENDINGS = (".c", ".h", ".py", ".cmake")


def check_functions(tree):
    lengths = []
    for source in tree.sources:
        for item in source.functions():
            first, last = source.line_of(item.start), source.line_of(item.end)
            name = f"{source.path}:{item.name}"
            lengths.append(last - first + 1)
            tree.limit("function-length", source.path, first, name, lengths[-1], FUNCTION_LINES,
                       f"lines of {item.name}:")
            tree.limit("nesting", source.path, first, name, item.depth, DEPTH,
                       f"blocks within blocks in {item.name}:")
    if lengths:
        median = statistics.median(lengths)
        tree.notes.append(f"{len(lengths)} functions, median {median:g} lines, most {max(lengths)}")


def check_file_length(tree):
    for path, text in tree.texts.items():
        if path.endswith(CODE_ENDINGS):
            count = text.count("\n")
            tree.limit("file-length", path, 1, path, count, FILE_LINES, "lines:")
            if count > FILE_LINES_WARN:
                tree.notes.append(f"{path} has {count} lines: time to split it by responsibility?")


def check_headers(tree):
    for source in tree.sources:
        if source.is_header:
            guard = re.search(r"^#ifndef (CADENZA_\w+_H)\n#define \1\n", source.code, re.MULTILINE)
            if not guard or not source.code.rstrip().endswith("#endif"):
                tree.find("guards", source.path, 1, "has no include guard CADENZA_..._H")


def check_leading_comments(tree):
    for source in tree.sources:
        if not source.text.startswith(("/*", "//")):
            tree.find("file-comment", source.path, 1, "does not begin by saying what it is for")
        named = FILE_SAYS.match(source.text)
        if named and named.group(1) != source.path.rpartition("/")[2]:
            tree.find("file-comment", source.path, 1, f"says that it is {named.group(1)}")


def check_prototypes(tree):
    """A prototype is documented by a comment in its paragraph above it, or behind it."""
    known, missing = 0, []
    for source in tree.sources:
        for item in source.items if source.is_header else []:
            if item.kind == "prototype" and _has_comment(source, item):
                known += 1
            elif item.kind == "prototype":
                missing.append((source.path, source.line_of(item.start), item.name))
    if known + len(missing) == 0:
        return
    share = 100 * known / (known + len(missing))
    tree.notes.append(f"{share:.1f} % of {known + len(missing)} prototypes are documented")
    if share < DOCUMENTED_PERCENT:
        for path, line, name in missing:
            tree.find("prototypes", path, line, f"{name} says nothing; {share:.0f} % in all do")


def _has_comment(source, item):
    paragraph = source.text[: item.start].rpartition("\n\n")[2]
    if re.search(r"^(/\*|//| \*)", paragraph, re.MULTILINE):
        return True
    return re.match(r"[ \t]*(/\*|//)", source.text[item.end + 1 :]) is not None


def report_asserts(tree):
    lines, asserts = {}, {}
    for source in tree.sources:
        if source.top and source.path.endswith(".c") and not source.is_test:
            lines[source.top] = lines.get(source.top, 0) + len(source.lines)
            asserts[source.top] = asserts.get(source.top, 0) + len(ASSERT.findall(source.code))
    if lines:
        density = {top: 1000 * asserts[top] / lines[top] for top in lines}
        total = 1000 * sum(asserts.values()) / sum(lines.values())
        by_folder = ", ".join(f"{top} {density[top]:.0f}" for top in sorted(density))
        tree.notes.append(f"asserts per 1000 lines: {total:.0f} ({by_folder})")


def _prose(text):
    """(number, line) of a page, but for its tables and blocks of code."""
    is_block = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            is_block = not is_block
        elif not is_block and not line.startswith("    ") and not line.lstrip().startswith("|"):
            yield number, line


def check_columns(tree):
    for path, text in tree.texts.items():
        if path.endswith(".md") and path not in MADE_PAGES:
            for number, line in _prose(text):
                if len(line) > COLUMNS:
                    sentence = f"{len(line)} columns, the most is {COLUMNS}"
                    tree.find("columns", path, number, sentence)
        if path.endswith((".c", ".h", ".py")):
            for number, line in enumerate(text.split("\n"), 1):
                if len(line) > COLUMNS:
                    sentence = f"{len(line)} columns, the most is {COLUMNS}"
                    tree.find("columns", path, number, sentence)


def check_format(tree):
    """clang-format 14, as .clang-format says; other versions disagree with it in details."""
    files = [source.path for source in tree.sources if source.path.startswith(("src/", "tests/"))]
    tool = shutil.which("clang-format-14")
    if tool is None:
        tree.find("format", ".clang-format", 1, "clang-format-14 is missing: run tools/setup test")
        return
    batches = [files[i : i + 12] for i in range(0, len(files), 12)]

    def run(batch):
        command = [tool, "--dry-run", "--Werror", "--ferror-limit=1", *batch]
        done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
        return done.stderr

    with ThreadPoolExecutor(4) as pool:
        seen = set()
        for output in pool.map(run, batches):
            for path, line in re.findall(r"^([^\s:]+):(\d+):\d+: error", output, re.MULTILINE):
                if path not in seen:
                    seen.add(path)
                    tree.find("format", path, line, "is not as clang-format has it: make format")
