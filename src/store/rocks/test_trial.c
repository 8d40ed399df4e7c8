/* test_trial.c - see test_trial.h. */
#include "store/rocks/test_trial.h"

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
trial_begin(struct trial *trial, uint32_t shards, uint64_t steps)
{
    *trial = (struct trial){.arena = arena_new(0), .shards = shards, .steps = steps, .openings = 1};
    trial->folder = folder_make_temporary(trial->arena);
    trial->data = arena_format(trial->arena, "%s/data", trial->folder);
    int failed = mkdir(arena_format(trial->arena, "%s/spare", trial->folder), 0700);
    check(failed == 0);
}

void
trial_end(struct trial *trial)
{
    folder_remove(trial->folder);
    arena_free(trial->arena);
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
become(struct trial *trial, const struct trial_run *run)
{
    struct arena *arena = trial->arena;
    char *acked = arena_text(arena, "");
    for (uint32_t i = 0; i < LOAD_SHARDS_MAX; i++)
        acked = arena_format(arena, "%s%" PRIu64 ",", acked, trial->acked[i]);
    set("ROCKS_ACKED", acked);
    set("ROCKS_PADDING", arena_format(arena, "%zu", trial->padding));
    set("ROCKS_FRESH", arena_format(arena, "%" PRIu64, trial->fresh_bytes_max));
    if (run->has_backup)
        set("ROCKS_BACKUP", "yes");
    if (run->action != NULL) {
        set("LD_PRELOAD", ROCKS_SHIM);
        set("FAULT_FOLDER", trial->data);
        set("FAULT_SPARE", arena_format(arena, "%s/spare", trial->folder));
        set("FAULT_COUNT", arena_format(arena, "%s/count", trial->folder));
        set("FAULT_ENDING", run->ending == NULL ? "" : run->ending);
        set("FAULT_ACTION", run->action);
        set("FAULT_AT", arena_format(arena, "%" PRIu64, run->at));
        set("FAULT_SEED", arena_format(arena, "%" PRIu64, run->seed));
    }
    execl(ROCKS_CHILD, ROCKS_CHILD, trial->data, arena_format(arena, "%" PRIu32, trial->shards),
          arena_format(arena, "%" PRIu64, trial->steps), arena_format(arena, "%d", trial->openings),
          NULL);
    _exit(127);
}

/* One word of the process: a durable step. False: its end. */
static bool
hear(struct trial *trial, int from)
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
    if (trial->acked[shard] < step)
        trial->acked[shard] = step;
    trial->acks++;
    return true;
}

int
trial_run(struct trial *trial, const struct trial_run *run)
{
    int ends[2];
    int failed = pipe(ends);
    check(failed == 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        int words = open(arena_format(trial->arena, "%s/words", trial->folder),
                         O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(words, STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        become(trial, run);
    }
    close(ends[1]);
    uint64_t heard = 0;
    while (hear(trial, ends[0]))
        if (++heard == run->kill_after)
            kill(child, SIGKILL); /* what is in the pipe still counts: it was told before */
    close(ends[0]);
    int status;
    while (waitpid(child, &status, 0) < 0)
        check(errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : TRIAL_KILLED;
}

const char *
trial_words(struct trial *trial)
{
    FILE *file = fopen(arena_format(trial->arena, "%s/words", trial->folder), "r");
    char *text = arena_zalloc(trial->arena, 1, 4096);
    if (file == NULL)
        return text;
    size_t length = fread(text, 1, 4095, file);
    fclose(file);
    check(length < 4096);
    return text;
}

uint64_t
trial_calls(struct trial *trial)
{
    char *name = arena_format(trial->arena, "%s/count", trial->folder);
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
    struct trial *trial;
    struct error *err;
    const char *sentence;
};

static void
judge(void *argument)
{
    struct judging *judging = argument;
    struct trial *trial = judging->trial;
    struct rocks_options options = load_options(trial->data);
    struct store *store;
    judging->err = rocks_open(&options, trial->arena, &store);
    if (judging->err != NULL)
        return;
    judging->sentence = load_verify(store, trial->shards, trial->acked, trial->arena);
    store_close(store);
}

const char *
trial_judge(struct trial *trial, struct error **err)
{
    struct judging judging = {.trial = trial};
    linux_run(&(struct linux_options){.loops = 1, .pool_threads = 2}, judge, &judging);
    if (err != NULL)
        *err = judging.err;
    else if (judging.err != NULL)
        return judging.err->message;
    return judging.sentence;
}
