"""What holds the architecture: who includes whom, who may call what, and no hidden state."""

import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">\n]+)[">]', re.MULTILINE)
GENERATED = re.compile(r"\.pb-c\.h$")  # made by the protobuf compiler, owned by wire/

# A library is known to few folders, so that it can be replaced there. Prefix of the include ->
# folders below src/ (tests may use what they need).
LIBRARIES = {
    "uv.h": ["fiber"],
    "nghttp2/": ["net"],
    "rocksdb/": ["store/rocks"],
    "sqlite3.h": ["visibility"],
    "openssl/": ["fiber", "net", "base", "access"],
    "yaml.h": ["config"],
    "jwt.h": ["access"],
    "microhttpd.h": ["net", "ui", "server"],  # ui: to come
    "pthread.h": ["base", "fiber"],
    "threads.h": ["base", "fiber"],
}

# Banned everywhere: they do not know the size of what they write, or hide errors.
UNSAFE = "strcpy strcat sprintf vsprintf gets strtok atoi atol atoll alloca"
# Banned outside base/ and fiber/, by reason: what stands beside may use the group too.
BANNED = {
    "memory comes from base/memory.h or an arena": (
        "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf "
        "aligned_alloc posix_memalign", []),
    "time comes from fiber/": (
        "time gettimeofday clock_gettime clock timespec_get usleep sleep nanosleep "
        "clock_nanosleep alarm", ["tests"]),
    "randomness comes from fiber/ or base/random.h": (
        "rand srand rand_r random srandom drand48 lrand48 getrandom getentropy arc4random", []),
    "threads belong to fiber/": (
        r"pthread_\w+ thrd_\w+ mtx_\w+ fork vfork", ["tests"]),
    "sockets belong to fiber/": (
        r"socket socketpair accept accept4 connect bind listen send recv sendto recvfrom "
        r"sendmsg recvmsg setsockopt poll ppoll select epoll_\w+ getaddrinfo", ["tests"]),
    "files belong to fiber/": (
        "open openat creat read write pread pwrite fsync fdatasync fopen fdopen mmap unlink "
        "rename mkdir rmdir opendir ftruncate flock", ["tests", "store/rocks", "cli", "main.c"]),
    "signals belong to fiber/": ("signal sigaction sigprocmask raise kill", ["tests", "main.c"]),
    "the environment is read by config/, cli/ and main.c": (
        "getenv secure_getenv setenv putenv", ["tests", "config", "cli", "main.c"]),
    "the process ends in main.c": (
        "exit _exit abort quick_exit atexit", ["tests", "cli", "main.c"]),
}
# Loops are of the process. What an owner wants of another goes by route/, which knows where owners
# live; a loop by its number, or work for another loop, is only for what belongs to the process
# itself. Files and folders below src/ that have such a thing, and what it is:
LOOP_CALLS = ("loop_post loop_post_answer loop_post_answers loop_call loop_call_surely "
              "loop_call_every loop_at loop_count loop_index")
OWN_LOOPS = {
    "access/access.c": "tokens that a loop knows",
    "access/key_set.c": "keys are given to all loops",
    "access/signer.c": "keys are given to all loops",
    "api/forward/hold.c": "the queue of calls that came to this process",
    "api/forward/parked.c": "each loop ends the calls that are parked on it",
    "config/dynamic.c": "a set of values goes when no loop reads it any more",
    "config/dynamic_follow.c": "the file of settings is read by loop 0",
    "domain/owner/isolation.c": "a process shows all its loops which groups are drained",
    "domain/owner/publish.c": "a process shows all its loops a change that is durable",
    "matching/life.c": "the lists of a process are drained and closed loop by loop",
    "net/server.c": "connections are given to loops",
    "replication/peer.c": "each loop has clients of its own, which end with the process",
    "rpc/service.c": "calls are counted by the loop that served them",
    "server/server.c": "the life of the process",
    "server/skip.c": "time is skipped by a process of one loop",
    "store/batch.c": "a thread of a store wakes who waits",
    "store/store.c": "a thread of a store wakes who waits",
    "store/memory/engine.c": "the store in memory has a loop of its own",
    "store/memory/read.c": "the store in memory has a loop of its own",
    "system/frame.c": "each loop has workers of its own, which end with the process",
    "visibility/sqlite/readers.c": "threads of SQLite wake who waits",
    "visibility/sqlite/writer.c": "threads of SQLite wake who waits",
}
# State at file scope that the tree has on purpose.
GLOBALS = {"src/base/test.c": "the tests register themselves before main() runs"}
THREAD_LOCAL = {"base": "the selected heap", "fiber": "the loop of this thread"}


def _calls(words):
    return re.compile(rf"(?<![\w.>])({'|'.join(words.split())})\s*\(")


UNSAFE_CALL = _calls(UNSAFE)
BANNED_CALLS = [(_calls(words), why, more) for why, (words, more) in BANNED.items()]
LOOP_CALL = _calls(LOOP_CALLS)
NOT_A_CALL = re.compile(r"(?:^|[\n;{}])\s*(?:static |inline |struct |const )*\w+[ *]+$")


def check_includes(tree):
    for source in tree.sources:
        if source.top is None:
            continue
        if source.top not in tree.layers:
            tree.find("layers", source.path, 1, f"{source.top} has no line in src/LAYERS")
            continue
        for match in INCLUDE.finditer(source.text):
            if not source.code[match.start() : match.end()].strip():
                continue  # inside a comment
            line = source.line_of(match.start())
            if match.group(1) == "<":
                _check_library(tree, source, line, match.group(2))
            else:
                _check_include(tree, source, line, match.group(2))


def _check_library(tree, source, line, name):
    for prefix, folders in LIBRARIES.items():
        if name.startswith(prefix) and not source.is_test:
            if not _is_in(source, folders) and not tree.is_allowed(source, line, "include"):
                places = ", ".join(f"{folder}/" for folder in folders)
                tree.find("libraries", source.path, line, f"<{name}> is for {places} only")


def _check_include(tree, source, line, name):
    top = "wire" if GENERATED.search(name) else name.split("/")[0]
    if "/" not in name or top not in tree.layers:
        sentence = f'"{name}" does not begin with a folder of src/LAYERS'
        tree.find("layers", source.path, line, sentence)
    elif top != source.top and tree.layers[top] >= tree.layers[source.top]:
        where = "beside" if tree.layers[top] == tree.layers[source.top] else "above"
        sentence = f'includes "{name}", but {top} stands {where} {source.top} in src/LAYERS'
        tree.find("layers", source.path, line, sentence)
    elif top == source.top and top in tree.rooms:
        _check_room(tree, source, line, name)


def _room_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else "."


def _check_room(tree, source, line, name):
    """The law inside of a folder: tests and what only they use may look anywhere."""
    if source.is_test or "_fuzz." in source.path:
        return
    rooms = tree.rooms[source.top]
    own, other = _room_of(source.path.removeprefix("src/")), _room_of(name)
    for room in (own, other):
        if room not in rooms and room != "test":
            sentence = f"{source.top}/{room} has no place in src/LAYERS"
            tree.find("layers", source.path, line, sentence)
            return
    if other != own and (other == "test" or rooms[other] >= rooms[own]):
        sentence = f'includes "{name}", but {other} does not stand below {own} in src/LAYERS'
        tree.find("layers", source.path, line, sentence)


def _is_in(source, folders):
    if "tests" in folders and source.is_test:
        return True
    return any(
        source.path == f"src/{folder}" or source.path.startswith(f"src/{folder}/")
        for folder in folders)


def check_calls(tree):
    for source in tree.sources:
        for match in UNSAFE_CALL.finditer(source.code):
            _report_call(tree, source, match, "has no bound or hides errors", "unsafe-calls")
        if _is_in(source, ["base", "fiber"]):
            continue
        for pattern, why, folders in BANNED_CALLS:
            if not _is_in(source, folders):
                for match in pattern.finditer(source.code):
                    _report_call(tree, source, match, why, "banned-calls")


def check_loops(tree):
    users = set()
    for source in tree.sources:
        if source.is_test or _is_in(source, ["fiber", "route"]):
            continue
        for match in LOOP_CALL.finditer(source.code):
            users.add(source.path)
            if not _is_in(source, list(OWN_LOOPS)):
                why = "owners are reached through route/; what is of the process is in OWN_LOOPS"
                _report_call(tree, source, match, why, "loops")
    for name in OWN_LOOPS:
        if f"src/{name}" in tree.texts and f"src/{name}" not in users:
            tree.find("loops", f"src/{name}", 1, "is in OWN_LOOPS and calls none of it")


def _report_call(tree, source, match, why, rule):
    line = source.line_of(match.start())
    word = match.group(1)
    before = source.code[max(0, match.start() - 60) : match.start()]
    is_declaration = NOT_A_CALL.search(before) and not before.rstrip().endswith("return")
    if not is_declaration and not tree.is_allowed(source, line, word):
        tree.find(rule, source.path, line, f"calls {word}(): {why}")


def check_globals(tree):
    for source in tree.sources:
        if source.is_test or source.path in GLOBALS:
            continue
        for item in source.items:
            if item.kind == "variable" and not _is_constant(item.head):
                _report_global(tree, source, item.start, item.name, item.head)
        for item in source.functions():
            body = source.plain[item.body[0] : item.body[1]]
            for match in re.finditer(r"[;{}]\s*(static\b[^;{=]*)", body):
                if not _is_constant(match.group(1)):
                    at = item.body[0] + match.start(1)
                    _report_global(tree, source, at, f"static in {item.name}", match.group(1))


def _is_constant(head):
    declared = head.split("=", 1)[0]
    if declared.startswith("extern") and "(" in declared:
        return True
    after_star = declared.rsplit("*", 1)[-1]
    return re.search(r"\bconst\b", after_star) is not None


def _report_global(tree, source, at, name, head):
    line = source.line_of(at)
    if "_Thread_local" in head and source.top in THREAD_LOCAL:
        return
    if not tree.is_allowed(source, line, "global"):
        tree.find("globals", source.path, line, f"{name} is mutable state outside any value")


def check_faults(tree):
    """Every injected fault is described, so that make soak knows what has to find it."""
    page = tree.texts.get("docs/faults.md", "")
    for source in tree.sources:
        for match in re.finditer(r"\bCADENZA_FAULT_(\w+)", source.code):
            if f"| `{match.group(1)}` |" not in page:
                line = source.line_of(match.start())
                sentence = f"fault {match.group(1)} has no row in docs/faults.md"
                tree.find("faults", source.path, line, sentence)
