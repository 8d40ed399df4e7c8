/* children.h - processes of this same binary that a command starts and stops. linux only; inside
 * cli/ only.
 *
 * A child gets SIGTERM when the process that started it dies, however that happens: none is left
 * behind. */
#ifndef CADENZA_CLI_SERVERS_CHILDREN_H
#define CADENZA_CLI_SERVERS_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct child {
    pid_t pid;     /* 0: not started, or ended and noticed */
    int wait_code; /* what waitpid said when it had ended */
};

/* Starts this binary with `arguments` (NULL-terminated, without the program's name); what it prints
 * is appended to the file `log`. Errors: ERR_IO. */
must_use struct error *child_start(const char *const *arguments, const char *log,
                                   struct arena *arena, struct child *child);
/* Has it ended since? True once. */
bool child_has_ended(struct child *child);
/* Asks it to stop: SIGTERM; by force: SIGKILL. Nothing if it has ended. */
void child_stop(const struct child *child, bool by_force);
/* How it ended, in words: "exit code 1", "signal 9". */
const char *child_end(const struct child *child, struct arena *arena);

#endif
