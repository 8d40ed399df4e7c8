/* file_test.c - files and folders. */
#include "fiber/file.h"

#include <string.h>

#include "fiber/contract/contract.h"

static const char *
path_of(struct arena *arena, const char *name)
{
    return arena_format(arena, "%s/%s", contract_folder(), name);
}

CONTRACT(file, what_was_written_can_be_read, 1)
{
    struct file *file;
    EXPECT_OK(file_open(path_of(arena, "a"), FILE_READ | FILE_WRITE | FILE_CREATE, arena, &file));
    EXPECT_OK(file_write(file, 0, "hello world", 11, arena));
    EXPECT_OK(file_write(file, 6, "there", 5, arena));
    EXPECT_OK(file_sync(file, arena));
    char bytes[32] = "";
    size_t count;
    EXPECT_OK(file_read(file, 0, bytes, sizeof bytes, &count, arena));
    EXPECT_EQ(count, 11);
    EXPECT(memcmp(bytes, "hello there", 11) == 0);
    EXPECT_OK(file_read(file, 6, bytes, 3, &count, arena));
    EXPECT_EQ(count, 3);
    EXPECT_OK(file_read(file, 100, bytes, 3, &count, arena));
    EXPECT_EQ(count, 0);
    uint64_t size;
    EXPECT_OK(file_size(file, &size, arena));
    EXPECT_EQ(size, 11);
    file_close(file);
}

CONTRACT(file, a_write_past_the_end_leaves_zeros_before_it, 1)
{
    struct file *file;
    EXPECT_OK(file_open(path_of(arena, "a"), FILE_READ | FILE_WRITE | FILE_CREATE, arena, &file));
    EXPECT_OK(file_write(file, 4, "x", 1, arena));
    char bytes[5];
    size_t count;
    EXPECT_OK(file_read(file, 0, bytes, 5, &count, arena));
    EXPECT_EQ(count, 5);
    EXPECT(memcmp(bytes, "\0\0\0\0x", 5) == 0);
    file_close(file);
}

CONTRACT(file, opening_obeys_its_flags, 1)
{
    struct file *file;
    const char *path = path_of(arena, "a");
    EXPECT_KIND(file_open(path, FILE_READ, arena, &file), ERR_NOT_FOUND);
    EXPECT(file == NULL);
    EXPECT_OK(file_open(path, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, arena, &file));
    EXPECT_OK(file_write(file, 0, "abc", 3, arena));
    file_close(file);
    struct error *err = file_open(path, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, arena, &file);
    EXPECT_KIND(err, ERR_IO);
    EXPECT(strstr(err->message, path) != NULL);
    EXPECT_OK(file_open(path, FILE_READ | FILE_WRITE | FILE_TRUNCATE, arena, &file));
    uint64_t size;
    EXPECT_OK(file_size(file, &size, arena));
    EXPECT_EQ(size, 0);
    file_close(file);
}

CONTRACT(file, a_second_opening_does_not_get_the_lock, 1)
{
    struct file *first, *second;
    const char *path = path_of(arena, "lock");
    EXPECT_OK(file_open(path, FILE_WRITE | FILE_CREATE, arena, &first));
    EXPECT_OK(file_open(path, FILE_WRITE, arena, &second));
    EXPECT_OK(file_lock(first, arena));
    EXPECT_KIND(file_lock(second, arena), ERR_BUSY);
    file_close(first);
    EXPECT_OK(file_lock(second, arena));
    file_close(second);
}

static void
look_at_place(const char *path, uint64_t *inode, int64_t *born, struct arena *arena)
{
    struct file *file;
    EXPECT_OK(file_open(path, FILE_READ, arena, &file));
    EXPECT_OK(file_place(file, inode, born, arena));
    file_close(file);
}

CONTRACT(file, its_place_outlives_a_write_and_a_rename_and_is_no_other_s, 1)
{
    const char *path = path_of(arena, "a"), *moved = path_of(arena, "b");
    EXPECT_OK(file_save(path, slice_text("text"), arena));
    uint64_t inode, inode_then, inode_other;
    int64_t born, born_then, born_other;
    look_at_place(path, &inode, &born, arena);
    struct file *file;
    EXPECT_OK(file_open(path, FILE_WRITE | FILE_CREATE, arena, &file));
    EXPECT_OK(file_write(file, 0, "more text", 9, arena));
    EXPECT_OK(file_sync(file, arena));
    file_close(file);
    EXPECT_OK(file_rename(path, moved, arena));
    look_at_place(moved, &inode_then, &born_then, arena);
    EXPECT(inode_then == inode && born_then == born && inode > 0 && born >= 0);
    EXPECT_OK(file_save(path, slice_text("text"), arena));
    look_at_place(path, &inode_other, &born_other, arena);
    EXPECT(inode_other != inode);
}

CONTRACT(file, saving_replaces_the_whole_file, 1)
{
    const char *path = path_of(arena, "a");
    struct slice bytes;
    EXPECT_KIND(file_load(path, 100, arena, &bytes), ERR_NOT_FOUND);
    EXPECT_OK(file_save(path, slice_text("a longer text"), arena));
    EXPECT_OK(file_save(path, slice_text("short"), arena));
    EXPECT_OK(file_load(path, 100, arena, &bytes));
    EXPECT(slice_equal(bytes, slice_text("short")));
    EXPECT_KIND(file_load(path, 4, arena, &bytes), ERR_IO);
    const char **names;
    EXPECT_OK(folder_list(contract_folder(), arena, &names));
    EXPECT_TEXT(names[0], "a"); /* nothing is left beside */
    EXPECT(names[1] == NULL);
}

CONTRACT(folder, names_are_listed_in_order, 1)
{
    const char *deep = path_of(arena, "x/y/z");
    EXPECT_OK(folder_create(deep, arena));
    EXPECT_OK(folder_create(deep, arena));
    for (int i = 40; i >= 10; i--)
        EXPECT_OK(file_save(arena_format(arena, "%s/%d", deep, i), slice_text("!"), arena));
    EXPECT_OK(folder_sync(deep, arena));
    const char **names;
    EXPECT_OK(folder_list(deep, arena, &names));
    for (int i = 0; i <= 30; i++)
        EXPECT_TEXT(names[i], arena_format(arena, "%d", 10 + i));
    EXPECT(names[31] == NULL);
    EXPECT_KIND(folder_list(path_of(arena, "none"), arena, &names), ERR_NOT_FOUND);
}

CONTRACT(file, it_can_be_renamed_and_removed, 1)
{
    const char *from = path_of(arena, "from"), *to = path_of(arena, "to");
    int64_t modified;
    uint64_t size;
    EXPECT_OK(file_save(from, slice_text("new"), arena));
    EXPECT_OK(file_save(to, slice_text("older"), arena));
    EXPECT_OK(file_rename(from, to, arena));
    EXPECT_KIND(file_stat(from, &modified, &size, arena), ERR_NOT_FOUND);
    EXPECT_OK(file_stat(to, &modified, &size, arena));
    EXPECT_EQ(size, 3);
    EXPECT(modified <= clock_wall() + NS_PER_S && modified > clock_wall() - 3600 * NS_PER_S);
    EXPECT_OK(file_remove(to, arena));
    EXPECT_KIND(file_remove(to, arena), ERR_NOT_FOUND);
    EXPECT_KIND(file_rename(from, to, arena), ERR_NOT_FOUND);
}
