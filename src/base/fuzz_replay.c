/* fuzz_replay.c - main() of a fuzz target built without libFuzzer: runs it once over each kept
 * input.
 *
 * Arguments are files and folders (not nested). Inputs run in order of their paths, so that a
 * failure is the same on every machine. A missing or empty folder fails: a corpus that got lost
 * must not pass. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    check_that(file != NULL, "%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    check_that(size >= 0, "%s: %s", path, strerror(errno));
    rewind(file);
    uint8_t *data = malloc((size_t)size + (size == 0)); /* exact, so that reading past it is seen */
    check(data != NULL);
    size_t got = fread(data, 1, (size_t)size, file);
    check_that(got == (size_t)size, "%s: short read", path);
    fclose(file);
    printf("%s\n", path);
    fflush(stdout); /* the last line names the input that crashed */
    LLVMFuzzerTestOneInput(data, got);
    free(data);
}

static int
is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int
run_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_input, alphasort);
    check_that(count >= 0, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        check(length > 0 && (size_t)length < sizeof path);
        run_file(path);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int
main(int count, char **arguments)
{
    int passed = 0;
    bool has_empty = false;
    for (int i = 1; i < count; i++) {
        struct stat status;
        check_that(stat(arguments[i], &status) == 0, "%s: %s", arguments[i], strerror(errno));
        int ran = 1;
        if (S_ISDIR(status.st_mode))
            ran = run_folder(arguments[i]);
        else
            run_file(arguments[i]);
        has_empty = has_empty || ran == 0;
        passed += ran;
    }
    bool is_good = passed > 0 && !has_empty;
    printf("%d passed, %d failed\n", passed, is_good ? 0 : 1);
    return is_good ? 0 : 1;
}
