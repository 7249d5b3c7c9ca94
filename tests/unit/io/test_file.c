// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "support/cmocka_all.h"

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// A temporary folder, and in it the path of a file of the given bytes.
static char *make_file(ps_arena *arena, const void *bytes, size_t size)
{
    char *folder = ps_text_copy(arena, "/tmp/pipesched-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    char *path = ps_text_format(arena, "%s/file", folder);
    write_bytes(path, bytes, size);
    return path;
}

static void remove_file(ps_arena *arena, const char *path)
{
    unlink(path);
    char *folder = ps_text_copy_n(arena, path, strrchr(path, '/') - path);
    assert_int_equal(rmdir(folder), 0); // nothing else was left in it
}

static void file_is_read_whole_and_terminated(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_file_bytes bytes;
    static char large[300000];
    for (size_t at = 0; at < sizeof large; at++)
        large[at] = (char)(at * 7);
    char *path = make_file(arena, large, sizeof large);
    assert_ok(ps_file_read(arena, path, sizeof large, &bytes, &status), &status);
    assert_int_equal(bytes.size, sizeof large);
    assert_memory_equal(bytes.data, large, sizeof large);
    assert_int_equal(bytes.data[bytes.size], '\0');

    write_bytes(path, "abc", 3);
    assert_ok(ps_file_read(arena, path, 3, &bytes, &status), &status);
    assert_string_equal(bytes.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); // FIPS 180-2
    write_bytes(path, "", 0);
    assert_ok(ps_file_read(arena, path, 0, &bytes, &status), &status);
    assert_int_equal(bytes.size, 0);
    assert_string_equal(bytes.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    remove_file(arena, path);
}

static void file_beyond_the_cap_is_refused(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_file_bytes bytes;
    char *path = make_file(arena, "0123456789", 10);
    assert_int_equal(ps_file_read(arena, path, 9, &bytes, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "file-too-large");
    assert_string_equal(status.message, "the file is larger than 9 B");
    remove_file(arena, path);

    assert_int_equal(ps_file_read(arena, "/dev/zero", 200000, &bytes, &status), PS_BAD_INPUT); // endless, of size 0
    assert_string_equal(status.rule, "file-too-large");
}

static void unreadable_paths_say_why(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_file_bytes bytes;
    assert_int_equal(ps_file_read(arena, "/nonexistent/x.json", 99, &bytes, &status), PS_IO);
    assert_string_equal(status.rule, "file-missing");
    assert_string_equal(status.source, "/nonexistent/x.json");
    assert_string_equal(status.message, "cannot read the file: No such file or directory");
    assert_int_equal(ps_file_read(arena, "/dev/null/x", 99, &bytes, &status), PS_IO);
    assert_string_equal(status.rule, "file-missing");
    assert_int_equal(ps_file_read(arena, "", 99, &bytes, &status), PS_IO);
    assert_string_equal(status.rule, "file-missing");
    assert_int_equal(ps_file_read(arena, "/", 99, &bytes, &status), PS_IO);
    assert_string_equal(status.rule, "file-directory");

    char *path = make_file(arena, "x", 1);
    chmod(path, 0);
    if (geteuid() != 0) { // root may read everything
        assert_int_equal(ps_file_read(arena, path, 99, &bytes, &status), PS_IO);
        assert_string_equal(status.rule, "file-read");
    }
    remove_file(arena, path);
}

static void minus_is_standard_input(void **state)
{
    ps_arena *arena = *state;
    int ends[2];
    int saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "piped", 5), 5);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);

    ps_status status = {0};
    ps_file_bytes bytes;
    ps_code code = ps_file_read(arena, "-", 100, &bytes, &status);
    dup2(saved, STDIN_FILENO);
    close(saved);
    assert_ok(code, &status);
    assert_string_equal(bytes.data, "piped");
}

typedef struct attempt {
    ps_arena *arena;
    const char *path;
} attempt;

static ps_code read_guarded(void *context, ps_status *status)
{
    attempt *one = context;
    ps_file_bytes bytes;
    return ps_file_read(one->arena, one->path, 1 << 20, &bytes, status);
}

static void exhaustion_while_reading_leaves_no_open_file(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) { // more than a process may have open
        ps_arena *arena = ps_arena_new(1000);
        ps_status status = {0};
        attempt one = {arena, "/dev/zero"};
        assert_int_equal(ps_guard(read_guarded, &one, arena, &status), PS_EXHAUSTED);
        ps_arena_free(arena);
    }
}

static void existence_follows_links(void **state)
{
    ps_arena *arena = *state;
    char *path = make_file(arena, "x", 1);
    assert_true(ps_file_exists(path));
    assert_true(ps_file_exists("/"));
    unlink(path);
    assert_false(ps_file_exists(path));
    assert_int_equal(symlink("nowhere", path), 0);
    assert_false(ps_file_exists(path));
    remove_file(arena, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(file_is_read_whole_and_terminated),
        test_in_arena(file_beyond_the_cap_is_refused),
        test_in_arena(unreadable_paths_say_why),
        test_in_arena(minus_is_standard_input),
        cmocka_unit_test(exhaustion_while_reading_leaves_no_open_file),
        test_in_arena(existence_follows_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
