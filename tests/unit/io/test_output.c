// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "io/file.h"
#include "support/cmocka_all.h"

// A folder of its own for each test, and paths in it.
typedef struct folder {
    ps_arena *arena;
    char path[64];
} folder;

static int folder_setup(void **state)
{
    folder *one = calloc(1, sizeof *one);
    one->arena = ps_arena_new(0);
    strcpy(one->path, "/tmp/pipesched-test-XXXXXX");
    *state = one;
    return mkdtemp(one->path) ? 0 : -1;
}

static int count_files(const folder *one)
{
    int count = -2; // . and ..
    DIR *open = opendir(one->path);
    while (readdir(open))
        count++;
    closedir(open);
    return count;
}

static int folder_teardown(void **state)
{
    folder *one = *state;
    DIR *open = opendir(one->path);
    for (struct dirent *entry = readdir(open); entry; entry = readdir(open))
        unlinkat(dirfd(open), entry->d_name, 0);
    closedir(open);
    int removed = rmdir(one->path);
    ps_arena_free(one->arena);
    free(one);
    return removed;
}

static char *in(folder *one, const char *name)
{
    return ps_text_format(one->arena, "%s/%s", one->path, name);
}

static ps_output *open_output(folder *one, const char *path)
{
    ps_output *output;
    ps_status status = {0};
    assert_ok(ps_output_open(one->arena, path, &output, &status), &status);
    return output;
}

static void write_plan(folder *one, const char *path, const char *text)
{
    ps_status status = {0};
    ps_output *output = open_output(one, path);
    fputs(text, ps_output_file(output));
    assert_ok(ps_output_commit(output, &status), &status);
}

static void assert_content(folder *one, const char *path, const char *text)
{
    ps_status status = {0};
    ps_file_bytes bytes;
    assert_ok(ps_file_read(one->arena, path, 1 << 20, &bytes, &status), &status);
    assert_string_equal(bytes.data, text);
}

static void output_appears_whole_at_commit(void **state)
{
    folder *one = *state;
    ps_status status = {0};
    char *path = in(one, "plan.json");
    ps_output *output = open_output(one, path);
    fputs("half", ps_output_file(output));
    fflush(ps_output_file(output));
    assert_false(ps_file_exists(path));
    fputs(" whole", ps_output_file(output));
    assert_ok(ps_output_commit(output, &status), &status);
    assert_content(one, path, "half whole");
    assert_int_equal(count_files(one), 1);
}

static void old_file_stays_until_commit_and_after_discard(void **state)
{
    folder *one = *state;
    char *path = in(one, "plan.json");
    write_plan(one, path, "old");

    ps_arena *run = ps_arena_new(0);
    ps_output *output;
    ps_status status = {0};
    assert_ok(ps_output_open(run, path, &output, &status), &status);
    fputs("new", ps_output_file(output));
    ps_arena_free(run); // the run failed before the end
    assert_content(one, path, "old");
    assert_int_equal(count_files(one), 1);

    write_plan(one, path, "new");
    assert_content(one, path, "new");
}

static void mode_is_that_of_any_new_file_or_of_the_old_one(void **state)
{
    folder *one = *state;
    struct stat about;
    mode_t mask = umask(027);
    write_plan(one, in(one, "new"), "x");
    umask(mask);
    assert_int_equal(stat(in(one, "new"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    chmod(in(one, "new"), 0604);
    write_plan(one, in(one, "new"), "y");
    assert_int_equal(stat(in(one, "new"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0604);
}

static void links_survive_and_their_targets_are_written(void **state)
{
    folder *one = *state;
    char *link = in(one, "link");
    assert_int_equal(symlink("second", link), 0);
    assert_int_equal(symlink(in(one, "target"), in(one, "second")), 0);
    write_plan(one, link, "through a dangling link");
    assert_content(one, in(one, "target"), "through a dangling link");
    write_plan(one, link, "again");
    assert_content(one, in(one, "target"), "again");
    struct stat about;
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(count_files(one), 3);

    assert_int_equal(symlink("loop", in(one, "loop")), 0);
    ps_output *output;
    ps_status status = {0};
    assert_int_equal(ps_output_open(one->arena, in(one, "loop"), &output, &status), PS_IO);
    assert_string_equal(status.rule, "file-write");
}

static void assert_refused(folder *one, const char *path)
{
    ps_output *output;
    ps_status status = {0};
    assert_int_equal(ps_output_open(one->arena, path, &output, &status), PS_IO);
    assert_string_equal(status.rule, "file-write");
    assert_string_equal(status.source, path);
}

static void places_that_cannot_be_written_are_refused_at_once(void **state)
{
    folder *one = *state;
    assert_refused(one, in(one, "missing/plan.json"));
    assert_refused(one, one->path);
    assert_refused(one, in(one, "new/"));
    assert_refused(one, "");
    assert_int_equal(count_files(one), 0);
    if (geteuid() != 0) { // root may write everywhere
        write_plan(one, in(one, "kept"), "x");
        chmod(in(one, "kept"), 0444);
        assert_refused(one, in(one, "kept"));
        chmod(one->path, 0555);
        assert_refused(one, in(one, "plan.json"));
        chmod(one->path, 0755);
    }
}

static void devices_are_written_and_not_replaced(void **state)
{
    folder *one = *state;
    write_plan(one, "/dev/null", "x");
    struct stat about;
    assert_int_equal(stat("/dev/null", &about), 0);
    assert_true(S_ISCHR(about.st_mode));

    assert_int_equal(mkfifo(in(one, "fifo"), 0600), 0);
    int reader = open(in(one, "fifo"), O_RDONLY | O_NONBLOCK);
    write_plan(one, in(one, "fifo"), "x");
    char byte = 0;
    assert_int_equal(read(reader, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close(reader);
    assert_int_equal(stat(in(one, "fifo"), &about), 0);
    assert_true(S_ISFIFO(about.st_mode));
}

static void full_disk_is_reported(void **state)
{
    folder *one = *state;
    for (int size = 1; size < 1000000; size *= 100) { // fails in the last flush, and long before it
        ps_output *output = open_output(one, "/dev/full");
        for (int at = 0; at < size; at++)
            putc('x', ps_output_file(output));
        ps_status status = {0};
        assert_int_equal(ps_output_commit(output, &status), PS_IO);
        assert_string_equal(status.rule, "file-write");
        assert_string_equal(status.source, "/dev/full");
        if (size == 1)
            assert_string_equal(status.message, "cannot write the output: No space left on device");
    }
}

static void failed_write_leaves_the_old_file_and_nothing_else(void **state)
{
    folder *one = *state;
    char *path = in(one, "plan.json");
    write_plan(one, path, "old");
    ps_output *output = open_output(one, path);
    for (int at = 0; at < 100000; at++)
        putc('x', ps_output_file(output));

    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int at = 0; at < 100000; at++)
        putc('x', ps_output_file(output));
    ps_status status = {0};
    ps_code code = ps_output_commit(output, &status);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_FSIZE, &limit);

    assert_int_equal(code, PS_IO);
    assert_string_equal(status.rule, "file-write");
    assert_content(one, path, "old");
    assert_int_equal(count_files(one), 1);
}

static void failed_rename_is_reported_and_cleaned_up(void **state)
{
    folder *one = *state;
    char *path = in(one, "plan.json");
    ps_output *output = open_output(one, path);
    assert_int_equal(mkdir(path, 0700), 0); // somebody puts a folder there meanwhile
    ps_status status = {0};
    assert_int_equal(ps_output_commit(output, &status), PS_IO);
    assert_string_equal(status.rule, "file-write");
    assert_int_equal(count_files(one), 1);
    assert_int_equal(rmdir(path), 0);
}

static void two_outputs_of_one_folder_do_not_meet(void **state)
{
    folder *one = *state;
    ps_status status = {0};
    ps_output *first = open_output(one, in(one, "a"));
    ps_output *second = open_output(one, in(one, "b"));
    fputs("first", ps_output_file(first));
    fputs("second", ps_output_file(second));
    assert_ok(ps_output_commit(second, &status), &status);
    assert_ok(ps_output_commit(first, &status), &status);
    assert_content(one, in(one, "a"), "first");
    assert_content(one, in(one, "b"), "second");
}

static void minus_is_standard_output_and_stays_open(void **state)
{
    folder *one = *state;
    ps_status status = {0};
    assert_ptr_equal(ps_output_file(open_output(one, NULL)), stdout);
    ps_output *output = open_output(one, "-");
    assert_ptr_equal(ps_output_file(output), stdout);
    assert_ok(ps_output_commit(output, &status), &status);
    assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
}

#define test_in_folder(function) cmocka_unit_test_setup_teardown(function, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_folder(output_appears_whole_at_commit),
        test_in_folder(old_file_stays_until_commit_and_after_discard),
        test_in_folder(mode_is_that_of_any_new_file_or_of_the_old_one),
        test_in_folder(links_survive_and_their_targets_are_written),
        test_in_folder(places_that_cannot_be_written_are_refused_at_once),
        test_in_folder(devices_are_written_and_not_replaced),
        test_in_folder(full_disk_is_reported),
        test_in_folder(failed_write_leaves_the_old_file_and_nothing_else),
        test_in_folder(failed_rename_is_reported_and_cleaned_up),
        test_in_folder(two_outputs_of_one_folder_do_not_meet),
        test_in_folder(minus_is_standard_output_and_stays_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
