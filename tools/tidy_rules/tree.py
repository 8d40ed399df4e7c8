"""The tree that is checked: its files, its layers, its ratchet, and where findings go."""

import json
import re
import subprocess
from pathlib import Path

from .c_source import CSource

RATCHET = "tools/tidy-ratchet.json"
NOT_OURS = {".git", ".venv", "__pycache__"}
BUILT = {"build", "bin", "data"}  # at the root only
ALLOW = re.compile(r"tidy: allow ([\w-]+) - \w")


class Tree:
    def __init__(self, root):
        self.root = Path(root)
        self.findings = {}  # rule -> list of "file:line: sentence"
        self.notes = []  # what is reported and fails nothing
        self.paths = sorted(self._list())
        self.names = {path.rpartition("/")[2] for path in self.paths}
        self.texts = {}  # path -> text of the files that are text
        for path in self.paths:
            self._read(path)
        self.sources = [CSource(p, t) for p, t in self.texts.items() if p.endswith((".c", ".h"))]
        self.layers, self.rooms = self._read_layers()
        self.ratchet = json.loads(self.texts.get(RATCHET, "{}"))
        self.ratchet_seen = {}  # rule -> {name: number now}, for --lower

    def find(self, rule, path, line, sentence):
        self.findings.setdefault(rule, []).append(f"{path}:{line}: {sentence}")

    def is_allowed(self, source, line, word):
        """Whether a comment on this line or the one above allows `word`, with a reason."""
        for text in source.lines[max(0, line - 2) : line]:
            if word in ALLOW.findall(text):
                return True
        return False

    def limit(self, rule, path, line, name, number, most, sentence):
        """A number that must not pass `most`, or what the ratchet has for `name`: and then it must
        be exactly that, so that every step down is kept."""
        kept = self.ratchet.get(rule, {}).get(name)
        if kept is None:
            if number > most:
                self.find(rule, path, line, f"{sentence} {number}, the most is {most}")
            return
        self.ratchet_seen.setdefault(rule, {})[name] = number
        if number > kept:
            self.find(rule, path, line, f"{sentence} {number}, the ratchet allows {kept}")
        elif number < kept:
            self.find(rule, path, line, f"{sentence} {number}: better; run tools/tidy --lower")

    def _list(self):
        command = ["git", "-C", str(self.root), "ls-files", "-co", "--exclude-standard", "-z"]
        if (self.root / ".git").exists():
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode == 0:
                names = done.stdout.decode().split("\0")
                return [n for n in names if n and (self.root / n).is_file()]
        return [p.relative_to(self.root).as_posix() for p in self._walk(self.root)]

    def _walk(self, folder):
        for entry in folder.iterdir():
            if entry.name in NOT_OURS or (folder == self.root and entry.name in BUILT):
                continue
            if entry.is_dir():
                yield from self._walk(entry)
            else:
                yield entry

    def _read(self, path):
        if path.startswith("tests/corpus/"):
            return  # bytes for parsers, text only by chance
        data = (self.root / path).read_bytes()
        if b"\0" in data:
            return
        try:
            self.texts[path] = data.decode()
        except UnicodeDecodeError:
            self.find("text", path, 1, "is text that is not UTF-8")

    def _read_layers(self):
        """Folder (or main.c) of src/ -> its height, 0 at the bottom; and folder -> room -> height,
        from lines "folder: top | middle | bottom"."""
        lines = [l.split("#")[0] for l in self.texts.get("src/LAYERS", "").splitlines()]
        folders = [l.split() for l in lines if l.strip() and ":" not in l]
        layers = {word: len(folders) - i for i, words in enumerate(folders) for word in words}
        rooms = {}
        for line in lines:
            folder, is_rooms, levels = line.partition(":")
            levels = levels.split("|")
            for i, level in enumerate(levels) if is_rooms else []:
                for room in level.split():
                    rooms.setdefault(folder.strip(), {})[room] = len(levels) - i
        return layers, rooms
