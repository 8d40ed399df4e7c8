"""Runs all rules on a tree and says what they found."""

import json

from . import former_rules, law_rules, shape_rules, text_rules, word_rules
from .tree import RATCHET, Tree

CHECKS = [
    law_rules.check_includes,
    law_rules.check_calls,
    law_rules.check_loops,
    law_rules.check_globals,
    law_rules.check_faults,
    shape_rules.check_functions,
    shape_rules.check_file_length,
    shape_rules.check_headers,
    shape_rules.check_leading_comments,
    shape_rules.check_prototypes,
    shape_rules.check_columns,
    shape_rules.check_format,
    shape_rules.report_asserts,
    text_rules.check_whitespace,
    text_rules.check_words,
    text_rules.check_size,
    text_rules.check_readmes,
    text_rules.check_links,
    text_rules.check_named_files,
    text_rules.check_code_files,
    text_rules.check_cited_files,
    text_rules.check_journeys,
    text_rules.check_recipes,
    word_rules.check_tags,
    word_rules.check_former,
    word_rules.check_english,
    word_rules.check_catalogue,
    former_rules.check_forms,
]
RULES = (
    "text layers libraries unsafe-calls banned-calls loops globals faults function-length nesting "
    "file-length guards file-comment prototypes columns format whitespace tabs unfinished "
    "private-paths file-size readmes links tags words english catalogue former ratchet").split()


def check(root):
    tree = Tree(root)
    for run in CHECKS:
        run(tree)
    for rule, names in tree.ratchet.items():
        for name in names:
            if name not in tree.ratchet_seen.get(rule, {}):
                tree.find("ratchet", RATCHET, 1, f"{rule} of {name} is not needed any more")
    assert set(tree.findings) <= set(RULES)
    return tree


def report(root):
    tree = check(root)
    for rule in RULES:
        for finding in tree.findings.get(rule, []):
            print(f"{finding} [{rule}]")
    for note in tree.notes:
        print(f"tidy: {note}")
    failed = len(tree.findings)
    print(f"{len(RULES) - failed} passed, {failed} failed")
    return 1 if failed else 0


def lower_ratchet(root):
    """Writes the numbers of now where they are smaller; what is fine by itself leaves the file."""
    most = {"function-length": shape_rules.FUNCTION_LINES, "nesting": shape_rules.DEPTH,
            "file-length": shape_rules.FILE_LINES}
    tree = check(root)
    kept = {}
    for rule, names in tree.ratchet_seen.items():
        for name, number in sorted(names.items()):
            number = min(number, tree.ratchet[rule][name])
            if number > most[rule]:
                kept.setdefault(rule, {})[name] = number
    (tree.root / RATCHET).write_text(json.dumps(kept, indent=4) + "\n")
    return 0
