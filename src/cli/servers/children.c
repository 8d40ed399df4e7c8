/* children.c - see children.h.
 *
 * fork and exec, because a child must ask the kernel for the signal that it gets when its parent
 * dies, and only code that runs in the child can. Between the two are only calls that are allowed
 * after a fork of a process with threads. */
#include "cli/servers/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

#define THIS_BINARY   "/proc/self/exe"
#define EXIT_NO_START 127 /* as shells say it */

/* In the child, until it is another program. */
static _Noreturn void
become(char *const *arguments, int output, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    /* tidy: allow sigprocmask - the child must get its signals, whatever this thread blocked */
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); /* Ctrl-C is for the parent, which then stops its children in order */
    bool is_orphan = getppid() != parent; /* it died before the line above */
    if (!is_orphan && dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
        execv(THIS_BINARY, arguments);
    _exit(EXIT_NO_START);
}

static char **
with_program_name(const char *const *arguments, struct arena *arena)
{
    size_t count = 0;
    while (arguments[count] != NULL)
        count++;
    char **all = arena_zalloc(arena, count + 2, sizeof *all);
    all[0] = "cadenza";
    for (size_t i = 0; i < count; i++)
        all[i + 1] = (char *)arguments[i];
    return all;
}

struct error *
child_start(const char *const *arguments, const char *log, struct arena *arena, struct child *child)
{
    check(arguments[0] != NULL);
    char **all = with_program_name(arguments, arena);
    int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (output < 0)
        return error_new(arena, ERR_IO, "%s: %s", log, strerror(errno));
    pid_t parent = getpid();
    /* tidy: allow fork - a process of its own, not a thread; see the top of this file */
    pid_t pid = fork();
    if (pid == 0)
        become(all, output, parent);
    int reason = errno;
    close(output);
    if (pid < 0)
        return error_new(arena, ERR_IO, "no new process: %s", strerror(reason));
    *child = (struct child){.pid = pid};
    return NULL;
}

bool
child_has_ended(struct child *child)
{
    if (child->pid == 0)
        return false;
    pid_t ended = waitpid(child->pid, &child->wait_code, WNOHANG);
    check(ended == 0 || ended == child->pid);
    if (ended == 0)
        return false;
    child->pid = 0;
    return true;
}

void
child_stop(const struct child *child, bool by_force)
{
    if (child->pid == 0)
        return;
    check(child->pid > 1);
    /* tidy: allow kill - a child of ours that was not waited for yet, so the number is its own */
    kill(child->pid, by_force ? SIGKILL : SIGTERM);
}

const char *
child_end(const struct child *child, struct arena *arena)
{
    check(child->pid == 0); /* it has ended */
    if (WIFSIGNALED(child->wait_code))
        return arena_format(arena, "signal %d", WTERMSIG(child->wait_code));
    return arena_format(arena, "exit code %d", WEXITSTATUS(child->wait_code));
}
