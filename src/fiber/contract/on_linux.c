/* on_linux.c - runs the contract on the real platform. */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fiber/contract/contract.h"
#include "fiber/linux/linux.h"

const bool contract_is_simulated = false;

static int
remove_entry(const char *path, const struct stat *stat, int type, struct FTW *state)
{
    return remove(path);
}

/* The process works inside the folder meanwhile: so its name need not be kept anywhere. */
void
contract_run(unsigned loops, void (*function)(void *argument), void *argument)
{
    char folder[] = "/tmp/cadenza-contract-XXXXXX";
    char before[PATH_MAX];
    check(mkdtemp(folder) != NULL && getcwd(before, sizeof before) != NULL);
    check(chdir(folder) == 0);
    linux_run(&(struct linux_options){.loops = loops}, function, argument);
    check(chdir(before) == 0);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *
contract_folder(void)
{
    return ".";
}
