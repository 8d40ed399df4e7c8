/* test_crash.c - see test_crash.h. */
#include "store/rocks/test_crash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "fiber/linux/linux.h"

void
crash_begin(struct crash_fixture *crash_fixture, uint32_t shards, uint64_t steps)
{
    *crash_fixture = (struct crash_fixture){
        .arena = arena_new(0), .shards = shards, .steps = steps, .openings = 1};
    crash_fixture->folder = folder_make_temporary(crash_fixture->arena);
    crash_fixture->data = arena_format(crash_fixture->arena, "%s/data", crash_fixture->folder);
    int failed = mkdir(arena_format(crash_fixture->arena, "%s/spare", crash_fixture->folder), 0700);
    check(failed == 0);
}

void
crash_end(struct crash_fixture *crash_fixture)
{
    folder_remove(crash_fixture->folder);
    arena_free(crash_fixture->arena);
}

/* ---- the other process ---- */

static void
set(const char *name, const char *value)
{
    int failed = setenv(name, value, 1);
    check(failed == 0);
}

/* After fork, before exec. */
static void
become(struct crash_fixture *crash_fixture, const struct crash_run *run)
{
    struct arena *arena = crash_fixture->arena;
    char *acked = arena_text(arena, "");
    for (uint32_t i = 0; i < LOAD_SHARDS_MAX; i++)
        acked = arena_format(arena, "%s%" PRIu64 ",", acked, crash_fixture->acked[i]);
    set("ROCKS_ACKED", acked);
    set("ROCKS_PADDING", arena_format(arena, "%zu", crash_fixture->padding));
    set("ROCKS_FRESH", arena_format(arena, "%" PRIu64, crash_fixture->fresh_bytes_max));
    if (run->has_backup)
        set("ROCKS_BACKUP", "yes");
    if (run->action != NULL) {
        set("LD_PRELOAD", ROCKS_SHIM);
        set("FAULT_FOLDER", crash_fixture->data);
        set("FAULT_SPARE", arena_format(arena, "%s/spare", crash_fixture->folder));
        set("FAULT_COUNT", arena_format(arena, "%s/count", crash_fixture->folder));
        set("FAULT_ENDING", run->ending == NULL ? "" : run->ending);
        set("FAULT_ACTION", run->action);
        set("FAULT_AT", arena_format(arena, "%" PRIu64, run->at));
        set("FAULT_SEED", arena_format(arena, "%" PRIu64, run->seed));
    }
    execl(ROCKS_CHILD, ROCKS_CHILD, crash_fixture->data,
          arena_format(arena, "%" PRIu32, crash_fixture->shards),
          arena_format(arena, "%" PRIu64, crash_fixture->steps),
          arena_format(arena, "%d", crash_fixture->openings), NULL);
    _exit(127);
}

/* One word of the process: a durable step. False: its end. */
static bool
receive(struct crash_fixture *crash_fixture, int from)
{
    uint8_t word[12];
    size_t have = 0;
    while (have < sizeof word) {
        ssize_t count = read(from, word + have, sizeof word - have);
        if (count <= 0)
            return false;
        have += (size_t)count;
    }
    uint32_t shard;
    uint64_t step;
    memcpy(&shard, word, 4);
    memcpy(&step, word + 4, 8);
    check(shard < LOAD_SHARDS_MAX);
    if (crash_fixture->acked[shard] < step)
        crash_fixture->acked[shard] = step;
    crash_fixture->acks++;
    return true;
}

int
crash_run(struct crash_fixture *crash_fixture, const struct crash_run *run)
{
    int ends[2];
    int failed = pipe(ends);
    check(failed == 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        int words = open(arena_format(crash_fixture->arena, "%s/words", crash_fixture->folder),
                         O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(words, STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        become(crash_fixture, run);
    }
    close(ends[1]);
    uint64_t received = 0;
    while (receive(crash_fixture, ends[0]))
        if (++received == run->kill_after)
            kill(child, SIGKILL); /* what is in the pipe still counts: it was told before */
    close(ends[0]);
    int status;
    while (waitpid(child, &status, 0) < 0)
        check(errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : CRASH_KILLED;
}

const char *
crash_output(struct crash_fixture *crash_fixture)
{
    FILE *file = fopen(arena_format(crash_fixture->arena, "%s/words", crash_fixture->folder), "r");
    char *text = arena_zalloc(crash_fixture->arena, 1, 4096);
    if (file == NULL)
        return text;
    size_t length = fread(text, 1, 4095, file);
    fclose(file);
    check(length < 4096);
    return text;
}

uint64_t
crash_calls(struct crash_fixture *crash_fixture)
{
    char *name = arena_format(crash_fixture->arena, "%s/count", crash_fixture->folder);
    FILE *file = fopen(name, "r");
    unsigned long long calls = 0;
    if (file == NULL)
        return 0;
    int read = fscanf(file, "%llu", &calls);
    fclose(file);
    return read == 1 ? calls : 0;
}

/* ---- judging ---- */

struct judging {
    struct crash_fixture *crash_fixture;
    struct error *err;
    const char *sentence;
};

static void
judge(void *argument)
{
    struct judging *judging = argument;
    struct crash_fixture *crash_fixture = judging->crash_fixture;
    struct rocks_options options = load_options(crash_fixture->data);
    struct store *store;
    judging->err = rocks_open(&options, crash_fixture->arena, &store);
    if (judging->err != NULL)
        return;
    judging->sentence =
        load_verify(store, crash_fixture->shards, crash_fixture->acked, crash_fixture->arena);
    store_close(store);
}

const char *
crash_judge(struct crash_fixture *crash_fixture, struct error **err)
{
    struct judging judging = {.crash_fixture = crash_fixture};
    linux_run(&(struct linux_options){.loops = 1, .pool_threads = 2}, judge, &judging);
    if (err != NULL)
        *err = judging.err;
    else if (judging.err != NULL)
        return judging.err->message;
    return judging.sentence;
}
