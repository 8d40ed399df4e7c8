/* dynamic_follow.c - reads the dynamic file again when it changed. See dynamic.h.
 *
 * A fiber checks the time and the size of the file. They are noted before it is read, so a change
 * while reading is seen at the next check; and also when what was read is bad, so that a broken
 * file is logged once and not at every check. */
#include "base/check.h"
#include "config/dynamic_inside.h"
#include "fiber/file.h"
#include "fiber/loop.h"

/* Reads the file into force. Yields. */
static struct error *
read_file(struct dynamic *dynamic, const char *file, struct arena *arena)
{
    struct slice yaml;
    struct error *err = file_load(file, CONFIG_FILE_SIZE_MAX, arena, &yaml);
    return err != NULL ? err : dynamic_load(dynamic, yaml, file, arena);
}

/* Notes what the file is like now; *is_changed: not as it was. Yields. */
static struct error *
stat_file(struct dynamic *dynamic, const char *file, bool *is_changed, struct arena *arena)
{
    int64_t modified;
    uint64_t size;
    struct error *err = file_stat(file, &modified, &size, arena);
    if (err != NULL)
        return err;
    *is_changed = modified != dynamic->follower.modified || size != dynamic->follower.size;
    dynamic->follower.modified = modified;
    dynamic->follower.size = size;
    return NULL;
}

static void
look(struct dynamic *dynamic)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    const char *file = dynamic->follower.file;
    bool is_changed = false;
    struct error *err = stat_file(dynamic, file, &is_changed, arena);
    bool was_lost = dynamic->follower.is_lost;
    if (err == NULL && (is_changed || was_lost))
        err = read_file(dynamic, file, arena);
    dynamic->follower.is_lost = err != NULL && err->kind != ERR_BAD_REQUEST;
    bool is_logged = was_lost && dynamic->follower.is_lost;
    if (err != NULL && !is_logged && !fiber_is_cancelled())
        log_fail(dynamic->log, "the dynamic settings stay as they were", log_text("file", file),
                 log_error(err));
}

static void
follow(void *argument)
{
    struct dynamic *dynamic = argument;
    for (;;) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep(dynamic->follower.interval, arena) != NULL)
            break; /* cancelled */
        dynamic_retry_retired(dynamic);
        look(dynamic);
    }
    dynamic->follower.fiber = NULL;
    latch_done(&dynamic->open);
}

struct error *
dynamic_follow(struct dynamic *dynamic, const char *file, int64_t interval, struct arena *arena)
{
    check_that(dynamic->follower.fiber == NULL, "a file is followed already");
    check(interval > 0 && loop_index(loop_self()) == 0);
    bool is_changed;
    struct error *err = stat_file(dynamic, file, &is_changed, arena);
    if (err == NULL)
        err = read_file(dynamic, file, arena);
    if (err != NULL)
        return error_wrap(err, "dynamic settings");
    dynamic->follower.file = arena_text(dynamic->arena, file);
    dynamic->follower.interval = interval;
    latch_add(&dynamic->open, 1);
    dynamic->follower.fiber = fiber_start("dynamic settings", follow, dynamic);
    return NULL;
}

void
dynamic_stop_following(struct dynamic *dynamic)
{
    if (dynamic->follower.fiber != NULL)
        fiber_cancel(dynamic->follower.fiber);
}

int64_t
dynamic_interval(const struct config *config)
{
    int64_t interval = config_duration(config, "dynamicconfig.filebased.pollInterval");
    return interval > DYNAMIC_INTERVAL_MAX ? DYNAMIC_INTERVAL_MAX : interval;
}
