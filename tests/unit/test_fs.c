#include "lib/check.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "lib/fault.h"

struct fixture {
    char dir[64];
    char path[128]; /* dir/file */
    pawl_error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/pawl-fs-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/file", f->dir);
    *state = f;
    return 0;
}

/* Removes what a test left, one level of directories deep for each name in it. */
static void remove_all(const char *path)
{
    DIR *dir = opendir(path);

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char inner[600];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0) {
            remove_all(inner);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    remove_all(f->dir);
    free(f);
    return 0;
}

static size_t count_files(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

static void assert_content(struct fixture *f, const char *expected)
{
    char text[64];
    size_t len = 0;

    assert_ok(pawl__fs_read_small(f->path, text, sizeof(text), &len, &f->error), &f->error);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
}

static void test_join_puts_exactly_one_slash_between(void **state)
{
    (void)state;
    static const struct {
        const char *dir;
        const char *name;
        const char *path;
    } rows[] = {
        { "a", "b", "a/b" }, { "a/", "b", "a/b" }, { "a///", "b", "a/b" },    { "/", "b", "/b" },
        { "//", "b", "/b" }, { "", "b", "b" },     { "/a/b", "c", "/a/b/c" }, { ".", "b", "./b" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *path = pawl__fs_join(rows[i].dir, rows[i].name);
        assert_string_equal(path, rows[i].path);
        free(path);
    }
}

static void test_make_dir_creates_parents_for_the_owner_alone(void **state)
{
    struct fixture *f = *state;
    char path[128];
    struct stat info;

    snprintf(path, sizeof(path), "%s/a/b//c/", f->dir);
    assert_ok(pawl__fs_make_dir(path, &f->error), &f->error);
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_ok(pawl__fs_make_dir(path, &f->error), &f->error); /* there already */
    assert_ok(pawl__fs_make_dir("/", &f->error), &f->error);
    assert_ok(pawl__fs_make_dir(".", &f->error), &f->error);
}

static void test_make_dir_refuses_what_is_no_directory(void **state)
{
    struct fixture *f = *state;
    char below[160];
    char link[128];

    assert_ok(pawl__fs_replace(f->path, pawl_view_of("x"), &f->error), &f->error);
    assert_status(pawl__fs_make_dir(f->path, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, f->path);
    snprintf(below, sizeof(below), "%s/below", f->path);
    assert_status(pawl__fs_make_dir(below, &f->error), PAWL_INVALID, &f->error);
    snprintf(link, sizeof(link), "%s/link", f->dir);
    assert_int_equal(symlink("/nonexistent/place", link), 0);
    assert_status(pawl__fs_make_dir(link, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_status(pawl__fs_make_dir("", &f->error), PAWL_NOT_FOUND, &f->error);
    char name[NAME_MAX + 8];
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    assert_status(pawl__fs_make_dir(name, &f->error), PAWL_INVALID, &f->error);
}

static void test_replace_writes_whole_contents_for_the_owner_alone(void **state)
{
    struct fixture *f = *state;
    struct stat info;

    assert_ok(pawl__fs_replace(f->path, pawl_view_of("first"), &f->error), &f->error);
    assert_content(f, "first");
    assert_ok(pawl__fs_replace(f->path, pawl_view_of("2"), &f->error), &f->error);
    assert_content(f, "2");
    assert_ok(pawl__fs_replace(f->path, (pawl_view){ NULL, 0 }, &f->error), &f->error);
    assert_content(f, "");
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(count_files(f->dir), 1); /* no temporary file stayed */
}

static void test_replace_needs_its_directory(void **state)
{
    struct fixture *f = *state;
    char path[128];

    snprintf(path, sizeof(path), "%s/no/file", f->dir);
    assert_status(pawl__fs_replace(path, pawl_view_of("x"), &f->error), PAWL_NOT_FOUND, &f->error);
    assert_message(&f->error, path);
    assert_status(pawl__fs_replace(f->dir, pawl_view_of("x"), &f->error), PAWL_INVALID, &f->error);
    assert_int_equal(count_files(f->dir), 0);
}

#ifdef PAWL_FAILPOINTS
/* Stopped between any two steps, the old content is there up to the rename and the new one from
 * then on, and no temporary file stays. */
static void test_replace_is_all_or_nothing_at_every_step(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *rule;
        const char *content;
    } rows[] = {
        { "fs.replace.sync.before=error:NO_SPACE", "old" },
        { "fs.replace.rename.before=error:NO_SPACE", "old" },
        { "fs.replace.rename.after=error:NO_SPACE", "new" },
        { "fs.sync_dir.before=error:NO_SPACE", "new" },
        { "fs.sync_dir.after=error:NO_SPACE", "new" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_ok(pawl__fs_replace(f->path, pawl_view_of("old"), &f->error), &f->error);
        assert_ok(pawl__failpoint_set(rows[i].rule, &f->error), &f->error);
        assert_status(
            pawl__fs_replace(f->path, pawl_view_of("new"), &f->error), PAWL_NO_SPACE, &f->error);
        assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
        assert_content(f, rows[i].content);
        assert_int_equal(count_files(f->dir), 1);
    }
}

static void test_a_directory_that_cannot_be_made_durable_is_an_error(void **state)
{
    struct fixture *f = *state;
    char path[128];

    snprintf(path, sizeof(path), "%s/a/b", f->dir);
    /* The names of f->dir, a and b, in this order. */
    assert_ok(pawl__failpoint_set("fs.sync_dir.before=error@3", &f->error), &f->error);
    assert_status(pawl__fs_make_dir(path, &f->error), PAWL_IO, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_int_equal(access(path, F_OK), 0);
}

/* The one who made it was killed before its name was on disk: what is stored in it now would be lost
 * with it. */
static void test_the_name_of_a_directory_that_is_there_is_made_durable(void **state)
{
    struct fixture *f = *state;
    char path[128];

    snprintf(path, sizeof(path), "%s/a", f->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_ok(pawl__failpoint_set("fs.sync_dir.before=error", &f->error), &f->error);
    assert_status(pawl__fs_make_dir(path, &f->error), PAWL_IO, &f->error);
    assert_ok(pawl__failpoint_set("fs.sync_dir.before=error:DENIED", &f->error), &f->error);
    assert_ok(pawl__fs_make_dir(path, &f->error), &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
}
#endif

static void test_read_small_takes_the_limit_and_refuses_one_more(void **state)
{
    struct fixture *f = *state;
    char text[6] = "";
    size_t len = 42;

    assert_ok(pawl__fs_replace(f->path, pawl_view_of("12345"), &f->error), &f->error);
    assert_ok(pawl__fs_read_small(f->path, text, sizeof(text), &len, &f->error), &f->error);
    assert_string_equal(text, "12345");
    assert_int_equal(len, 5);
    len = 42;
    assert_status(pawl__fs_read_small(f->path, text, 5, &len, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "has more than 4 bytes");
    assert_int_equal(len, 42);
    assert_ok(pawl__fs_replace(f->path, (pawl_view){ "a\0b", 3 }, &f->error), &f->error);
    assert_ok(pawl__fs_read_small(f->path, text, sizeof(text), &len, &f->error), &f->error);
    assert_memory_equal(text, "a\0b", 4);
    assert_int_equal(len, 3);
}

static void test_read_small_says_what_it_could_not_read(void **state)
{
    struct fixture *f = *state;
    char text[8];
    size_t len = 42;

    assert_status(pawl__fs_read_small(f->path, text, sizeof(text), &len, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_message(&f->error, f->path);
    assert_int_equal(f->error.native, ENOENT);
    assert_status(
        pawl__fs_read_small(f->dir, text, sizeof(text), &len, &f->error), PAWL_INVALID, &f->error);
    assert_int_equal(len, 42);
}

static void test_read_small_does_not_wait_for_a_pipe(void **state)
{
    struct fixture *f = *state;
    char text[8];
    size_t len = 42;

    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_status(
        pawl__fs_read_small(f->path, text, sizeof(text), &len, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "is not a file");
    assert_int_equal(len, 42);
}

static void test_what_a_person_gives_may_be_a_pipe(void **state)
{
    struct fixture *f = *state;
    char text[8];
    char path[32];
    int ends[2];
    size_t len = 0;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "12345", 5), 5);
    close(ends[1]);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    assert_ok(pawl__fs_read_given(path, text, sizeof(text), &len, &f->error), &f->error);
    assert_string_equal(text, "12345");
    close(ends[0]);
}

static void test_sync_needs_a_directory(void **state)
{
    struct fixture *f = *state;

    assert_ok(pawl__fs_sync_dir(f->dir, &f->error), &f->error);
    assert_ok(pawl__fs_sync_parent(f->path, &f->error), &f->error); /* the file need not be there */
    assert_ok(pawl__fs_sync_parent("bare-name", &f->error), &f->error);
    assert_ok(pawl__fs_sync_parent("/tmp", &f->error), &f->error);
    assert_ok(pawl__fs_replace(f->path, pawl_view_of("x"), &f->error), &f->error);
    assert_status(pawl__fs_sync_dir(f->path, &f->error), PAWL_INVALID, &f->error);
    assert_status(pawl__fs_sync_dir("/nonexistent", &f->error), PAWL_NOT_FOUND, &f->error);
}

static void test_free_bytes_asks_the_file_system(void **state)
{
    struct fixture *f = *state;
    uint64_t bytes = 42;

    assert_status(
        pawl__fs_free_bytes("/nonexistent", &bytes, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_true(bytes == 42);
    assert_ok(pawl__fs_free_bytes(f->dir, &bytes, &f->error), &f->error);
    assert_true(bytes != 42);
}

static void test_free_bytes_for_what_is_not_there_are_those_above_it(void **state)
{
    struct fixture *f = *state;
    char path[sizeof(f->dir) + 32];
    uint64_t bytes = UINT64_MAX;

    snprintf(path, sizeof(path), "%s/not/there/yet", f->dir);
    assert_ok(pawl__fs_free_bytes_for(path, &bytes, &f->error), &f->error);
    assert_true(bytes != UINT64_MAX);
    assert_ok(pawl__fs_free_bytes_for("not/there", &bytes, &f->error), &f->error);
    assert_ok(pawl__fs_free_bytes_for("/not/there", &bytes, &f->error), &f->error);
    snprintf(path, sizeof(path), "%s/not", f->dir);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_everything_survives_every_failed_allocation(void **state)
{
    struct fixture *f = *state;
    char path[128];
    int round = 0;

    FAULT_WALK (walk) {
        snprintf(path, sizeof(path), "%s/%d/a/b", f->dir, round++);
        pawl_status status = pawl__fs_make_dir(path, &f->error);
        if (status == PAWL_OK) {
            status = pawl__fs_replace(f->path, pawl_view_of("x"), &f->error);
        }
        if (status == PAWL_OK) {
            char *joined = pawl__fs_join(f->dir, "x");
            status = joined == NULL ? PAWL_NOMEM : PAWL_OK;
            free(joined);
        }
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_join_puts_exactly_one_slash_between),
        TEST(test_make_dir_creates_parents_for_the_owner_alone),
        TEST(test_make_dir_refuses_what_is_no_directory),
        TEST(test_replace_writes_whole_contents_for_the_owner_alone),
        TEST(test_replace_needs_its_directory),
#ifdef PAWL_FAILPOINTS
        TEST(test_replace_is_all_or_nothing_at_every_step),
        TEST(test_a_directory_that_cannot_be_made_durable_is_an_error),
        TEST(test_the_name_of_a_directory_that_is_there_is_made_durable),
#endif
        TEST(test_read_small_takes_the_limit_and_refuses_one_more),
        TEST(test_read_small_says_what_it_could_not_read),
        TEST(test_read_small_does_not_wait_for_a_pipe),
        TEST(test_what_a_person_gives_may_be_a_pipe),
        TEST(test_sync_needs_a_directory),
        TEST(test_free_bytes_asks_the_file_system),
        TEST(test_free_bytes_for_what_is_not_there_are_those_above_it),
        TEST(test_everything_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("fs", tests, NULL, NULL);
}
