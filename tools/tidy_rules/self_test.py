"""Does each rule fire? A small clean tree passes; every breach planted in it is found, at its line.

A rule that has become blind looks like a clean tree, so this runs with the tests.
"""

import shutil
import tempfile
from pathlib import Path

from .run import RULES, check

HEADER = """/* cup.h - a cup that holds one number. */
#ifndef CADENZA_BASE_CUP_H
#define CADENZA_BASE_CUP_H

struct cup;

/* What the cup holds. */
int cup_read(const struct cup *cup);
#endif
"""
SOURCE = """/* cup.c - how a cup holds its number. */
#include "base/cup.h"

static const int sizes[] = {1, 2};
static const char *const names[] = {"small; {", "tall"};

struct cup {
    int number; /* at most the first of sizes */
};

int
cup_read(const struct cup *cup)
{
    return cup->number < sizes[0] ? cup->number : names[1][0];
}
"""
CLEAN = {
    "docs/glossary.md": "# Glossary\n\n| former | now |\n|---|---|\n| `errand` | task |\n",
    "docs/catalogue/A.md": "# A\n\n- **A-001** one\n",
    "src/LAYERS": "# the law\nmain.c\nserver\nwire net\nfiber\nbase\nnet: high | . | low\n",
    "src/net/high/README.md": "# high\n",
    "src/net/low/README.md": "# low\n",
    "src/base/README.md": "# base\n\nSee [the cup](cup.h).\n",
    "src/base/cup.h": HEADER,
    "src/base/cup.c": SOURCE,
    "src/net/README.md": "# net\n",
    "src/net/line.c": '/* line.c - uses what stands below. */\n#include "base/cup.h"\n',
    "src/wire/README.md": "# wire\n",
    "src/wire/known.c": '/* known.c - generated messages are of wire/. */\n'
                        '#include "uber/cadence/api/v1/domain.pb-c.h"\n',
}
LINE = "/* line.c - a line. */\n"
TEST_LINE = "/* line_test.c - a line. */\n"


def _long_function(lines):
    return LINE + "void\nlong_one(void)\n{\n" + "    step();\n" * lines + "}\n"


def _deep_function(depth):
    opened = "".join("    " * i + "if (a) {\n" for i in range(1, depth + 1))
    closed = "".join("    " * i + "}\n" for i in range(depth, 0, -1))
    return LINE + "void\ndeep(int a)\n{\n" + opened + closed + "}\n"


def _in_function(statement):
    return LINE + "void\nstep(void)\n{\n    " + statement + "\n}\n"


# (rule, file, text, line where it must be found)
BREACHES = [
    ("text", "docs/page.md", b"caf\xe9\n", 1),
    ("layers", "src/net/line.c", LINE + '#include "server/server.h"\n', 2),
    ("layers", "src/net/line.c", LINE + '#include "wire/known.h"\n', 2),
    ("layers", "src/base/cup.c", LINE + '#include "uber/cadence/api/v1/domain.pb-c.h"\n', 2),
    ("layers", "src/net/line.c", LINE + '#include "line.h"\n', 2),
    ("layers", "src/attic/old.c", LINE, 1),
    ("layers", "src/net/low/line.c", LINE + '#include "net/high/line.h"\n', 2),
    ("layers", "src/net/low/line.c", LINE + '#include "net/line.h"\n', 2),
    ("layers", "src/net/line.c", LINE + '#include "net/attic/line.h"\n', 2),
    ("libraries", "src/net/line.c", LINE + "#include <rocksdb/c.h>\n", 2),
    ("unsafe-calls", "src/base/cup.c", _in_function('strcpy(text, "x");'), 5),
    ("banned-calls", "src/net/line.c", _in_function("void *block = malloc(1);"), 5),
    ("banned-calls", "src/net/line.c", _in_function("int64_t now = time(NULL);"), 5),
    ("banned-calls", "src/net/line.c", _in_function("pthread_mutex_lock(&mutex);"), 5),
    ("banned-calls", "src/net/line.c", _in_function("return socket(1, 2, 3);"), 5),
    ("banned-calls", "src/net/line_test.c", _in_function("srand(1);"), 5),
    ("loops", "src/net/line.c", _in_function("struct loop *zero = loop_at(0);"), 5),
    ("loops", "src/net/line.c", _in_function("check(loop_index(loop_self()) == 0);"), 5),
    ("loops", "src/base/cup.c", _in_function("loop_post_answer(loop, &message);"), 5),
    ("loops", "src/net/server.c", LINE, 1),
    ("globals", "src/net/line.c", LINE + "static int count;\n", 2),
    ("globals", "src/net/line.c", LINE + "static int counts[2] = {1, 2};\n", 2),
    ("globals", "src/net/line.c", LINE + "static const char *names[] = {NULL};\n", 2),
    ("globals", "src/net/line.c", LINE + "static void (*hook)(void);\n", 2),
    ("globals", "src/net/line.c", LINE + "static _Thread_local int current;\n", 2),
    ("globals", "src/net/line.c", _in_function("static int calls = 0;"), 5),
    ("faults", "src/net/line.c", LINE + "#ifdef CADENZA_FAULT_forget\n#endif\n", 2),
    ("function-length", "src/net/line.c", _long_function(67), 2),
    ("nesting", "src/net/line.c", _deep_function(5), 2),
    ("file-length", "src/net/line.c", LINE + "\n" * 1000, 1),
    ("guards", "src/base/cup.h", "/* cup.h - no guard. */\n", 1),
    ("file-comment", "src/net/line.c", '#include "base/cup.h"\n', 1),
    ("file-comment", "src/net/line.c", "/* cup.c - moved. */\n", 1),
    ("links", "src/net/line.c", LINE + "/* One,\n * see gone.h. */\n", 3),
    ("prototypes", "src/base/cup.h", HEADER.replace("/* What the cup holds. */", ""), 8),
    ("columns", "docs/page.md", "| a table may |\n\n" + "word " * 20 + "words\n", 3),
    ("columns", "tests/wide.py", "x = 1" + "0" * 96 + "\n", 1),
    ("format", "src/net/line.c", LINE + "void f (void);\n", 2),
    ("whitespace", "docs/page.md", "one\ntwo \n", 2),
    ("whitespace", "docs/page.md", "no newline", 1),
    ("tabs", "docs/page.md", "a\tb\n", 1),
    ("unfinished", "docs/page.md", "TO" + "DO: write\n", 1),
    ("unfinished", "src/net/line.c", "/* line.c - X" + "XX */\n", 1),
    ("private-paths", "docs/page.md", "one\nsee /wo" + "rk/main\n", 2),
    ("file-size", "docs/picture", b"\0" * 1_000_001, 1),
    ("readmes", "src/fiber/loop.c", LINE, 1),
    ("links", "docs/page.md", "[nothing](nowhere.md)\n", 1),
    ("links", "docs/page.md", "see `src/base/no" + "where.c`\n", 1),
    ("links", "docs/page.md", "see `net/cup.c`\n", 1),
    ("links", "src/net/README.md", "| `cup.c` | what `line.c` uses |\n", 1),
    ("links", "src/net/low/README.md", "one\nsee `high/line.c`\n", 2),
    ("links", "docs/architecture.md", "one\n`cup_fill`\n(`base/cup.c`)\n", 2),
    ("links", "CONTRIBUTING.md", "fill `struct cup_of_tea`\n", 1),
    ("tags", "src/net/line.c", LINE + "struct cup {\n    int a;\n};\n", 2),
    ("words", "src/net/line.c", _in_function("errand_run();"), 5),
    ("words", "src/net/line.c", _in_function("run_errands();"), 5),
    ("words", "src/net/line.c", LINE + "/* One\n * errand. */\n", 3),
    ("words", "src/net/errand.c", "/* errand.c - one. */\n", 1),
    ("english", "docs/page.md", "one\nwho" + "ever comes\n", 2),
    ("english", "src/net/line.c", LINE + "/* It is de" + "af\n * to it. */\n", 2),
    ("words", "src/net/line.c", _in_function("begin_an" + "ew();"), 5),
    ("catalogue", "src/net/line.c", "/* line.c - see A-0" + "99. */\n", 1),
    ("words", "src/net/line.c", _in_function('probe("errand_done");'), 5),
    ("former", "src/net/line.c", _in_function('say("an errand");'), 5),
    ("former", "src/net/line.c", _in_function("run(errands);"), 5),
    ("former", "tests/cup.py", "def run_errand():\n    pass\n", 1),
    ("former", "tests/cup.py", "x = 1\ny = 2  # two errands\n", 2),
    ("former", "packaging/alerts.yaml", "a: 1\nb: one errand\n", 2),
    ("ratchet", "tools/tidy-ratchet.json", '{"nesting": {"src/net/gone.c:gone": 9}}\n', 1),
    ("nesting", "tools/tidy-ratchet.json", '{"nesting": {"src/base/cup.c:cup_read": 9}}\n', 11),
]
# What looks like a breach and is none.
INNOCENT = [
    ("docs/page.md", "    code " + "word " * 20 + "words\n\n| a | " + "word " * 20 + "|\n"),
    ("docs/page.md", "`base/cup.c`, `src/base/cup.c`, `cup.h`, `x_test.c`\n"),
    ("docs/architecture.md", "`cup_read` (`base/cup.c`) reads\n"),
    ("src/net/README.md", "`line.c` and `base/cup.c`\n"),
    ("src/net/low/README.md", "`line.c`, `net/line.c`, `../line.c`\n"),
    ("src/README.md", "`line.c` of a room\n"),
    ("src/net/high/line.c", LINE + '#include "net/low/line.h"\n#include "net/line.h"\n'),
    ("src/net/low/line_test.c", TEST_LINE + '#include "net/high/line.h"\n'),
    ("src/net/line.c", _in_function("port->free(block), queue.send(1), memory_free(block);")),
    ("src/net/line.c", _in_function("free(b); /* tidy: allow free - a library gave it */")),
    ("src/net/line.c", LINE + "/* malloc(1), time(NULL) */\n"),
    ("src/net/server.c", _in_function("loop_post(loop_at(1), &message);").replace(
        "line.c", "server.c")),
    ("src/net/line_test.c", _in_function("loop_call_surely(loop_at(1), look, argument);").replace(
        "line.c", "line_test.c")),
    ("src/net/line.c", _in_function('say("malloc(1)");')),
    ("src/net/line.c", LINE + "static const struct a b = {.c = 1};\n"),
    ("src/net/line.c", LINE + "struct a;\n\nenum b { C };\n"),
    ("src/net/line.c", _long_function(66)),
    ("src/net/line.c", _deep_function(4)),
    ("src/base/heap.c", LINE.replace("line.c", "heap.c") + "static _Thread_local int selected;\n"),
    ("src/net/line_test.c", TEST_LINE + "static int count;\n"),
]


def _plant(root, path, content):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())


def _check_with(style, path=None, content=None):
    """The findings of the clean tree with one file more, or changed."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copy(style, root / ".clang-format")
        for name, text in CLEAN.items():
            _plant(root, name, text)
        if path:
            _plant(root, path, content)
        return check(root).findings


def _wrong_breach(findings, rule, path, line):
    """The message if the rule is blind to the breach, else None."""
    place = path.rsplit("/", 1)[0] if rule == "readmes" else path
    if rule == "nesting" and path.endswith(".json"):
        place = "src/base/cup.c"
    if any(f.startswith(f"{place}:{line}: ") for f in findings.get(rule, [])):
        return None
    return f"{rule} does not see its breach in {path}:{line}; found {findings}"


def run(root):
    style = root / ".clang-format"
    wrong = []
    findings = _check_with(style)
    if findings:
        wrong.append(f"the clean tree is not clean: {findings}")
    for rule, path, content, line in BREACHES:
        wrong.append(_wrong_breach(_check_with(style, path, content), rule, path, line))
    for path, content in INNOCENT:
        findings = _check_with(style, path, content)
        wrong.append(f"{content!r} is innocent; found {findings}" if findings else None)
    for rule in sorted(set(RULES) - {breach[0] for breach in BREACHES}):
        wrong.append(f"{rule} has no planted breach")

    messages = [message for message in wrong if message]
    for message in messages:
        print(f"tools/tidy_rules/self_test.py:1: {message}")
    total = 1 + len(BREACHES) + len(INNOCENT)
    print(f"{total - len(messages)} passed, {len(messages)} failed")
    return 1 if messages else 0
