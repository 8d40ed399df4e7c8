"""A C file as the rules see it: no parser, but enough of one for a formatted tree.

`code` is the text with comments and the insides of literals blanked, position by position, so that
an offset means the same in both. `plain` has preprocessor lines blanked too: macros hold half
statements. On `plain`, walk() splits the file scope into items: functions, prototypes, variables.
"""

import re
from bisect import bisect_right

LITERAL = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
NOT_NEWLINE = re.compile(r"[^\n]")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|\bprintf_like\([^)]*\)", re.DOTALL)
CONTROL_BLOCK = re.compile(r"(?:\) |\belse |\bdo |[;{}:]\s*)$")


def _blank(match):
    text = NOT_NEWLINE.sub(" ", match.group())
    return text if match.group()[0] == "/" else '"' + text[1:-1] + '"'


class Item:
    """Something at file scope. kind: function, prototype, variable or other."""

    def __init__(self, kind, name, start, end, head):
        self.kind = kind
        self.name = name
        self.start = start
        self.end = end
        self.head = head  # the declaration without its braces
        self.body = (0, 0)
        self.depth = 0  # deepest nesting of blocks in a function


class CSource:
    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        self.code = LITERAL.sub(_blank, text)
        self.plain = DIRECTIVE.sub(lambda m: NOT_NEWLINE.sub(" ", m.group()), self.code)
        self._starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.items = list(self._walk())

    @property
    def is_header(self):
        return self.path.endswith(".h")

    @property
    def is_test(self):
        """Test programs and what only they use: they may do some things that the server may not."""
        return self.path.startswith("tests/") or "_test." in self.path or "/test" in self.path

    @property
    def top(self):
        """The folder of src/ that the file belongs to, main.c for itself, else None."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "src" and len(parts) > 1 else None

    def line_of(self, offset):
        return bisect_right(self._starts, offset)

    def functions(self):
        return [item for item in self.items if item.kind == "function"]

    def _walk(self):
        depth, begin, opened, blocks, deepest = 0, 0, 0, [], 0
        is_function = False
        for mark in re.finditer(r"[{};]", self.plain):
            at, sign = mark.start(), mark.group()
            if sign == "{":
                if depth == 0 and not is_function:
                    is_function = self._opens_function(begin, at)
                    opened = at
                blocks.append(bool(CONTROL_BLOCK.search(self.plain, max(0, at - 80), at)))
                depth += 1
                deepest = max(deepest, sum(blocks[1:]))
            elif sign == "}" and depth > 0:
                depth -= 1
                blocks.pop()
            ends = depth == 0 and (sign == ";" or (sign == "}" and is_function))
            if ends:
                yield self._item(begin, at, is_function, opened, deepest)
                begin, is_function, deepest = at + 1, False, 0

    def _opens_function(self, begin, at):
        head = ATTRIBUTE.sub("", self.plain[begin:at]).rstrip()
        return head.endswith(")") and "=" not in head

    def _item(self, begin, end, is_function, opened, deepest):
        start = begin + len(self.plain[begin:end]) - len(self.plain[begin:end].lstrip())
        if is_function:
            head = " ".join(self.plain[start:opened].split())
            item = Item("function", _function_name(head), start, end, head)
            item.body, item.depth = (opened, end), deepest
            return item
        head = " ".join(_without_braces(self.plain[start:end]).split())
        kind, name = _classify(ATTRIBUTE.sub("", head).strip())
        return Item(kind, name, start, end, head)


def _function_name(head):
    if head.startswith("TEST("):
        return head
    found = re.search(r"(\w+)\s*\(", ATTRIBUTE.sub("", head))
    return found.group(1) if found else head


def _without_braces(text):
    depth, kept = 0, []
    for char in text:
        depth -= char == "}"
        if depth == 0:
            kept.append(char)
        depth += char == "{"
    return "".join(kept)


def _classify(head):
    declared = head.split("=", 1)[0].strip()
    if not declared or re.match(r"(typedef|_Static_assert|static_assert)\b", declared):
        return "other", ""
    if re.fullmatch(r"(struct|union|enum)\s*\w*(\s*\{\})?", declared):
        return "other", ""
    paren = declared.find("(")
    if paren >= 0 and not re.match(r"\(\s*\*", declared[paren:]):
        found = re.search(r"(\w+)\s*\(", declared)
        is_macro = re.fullmatch(r"\w+\s*\(.*\)", declared)  # DEFINE_SOMETHING(x);
        return ("other" if is_macro or not found else "prototype", found.group(1) if found else "")
    names = re.findall(r"\w+", declared.split("[")[0] if paren < 0 else declared[paren:])
    return "variable", names[-1] if paren < 0 and names else (names[0] if names else "")
