// SPDX-License-Identifier: Apache-2.0
//
// file.c: whole files into memory, with a cap, and their SHA-256.
#include "io/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "pipesched/limits.h"

// A descriptor that the arena closes when control leaves by another way.
typedef struct input {
    const char *path;
    int descriptor; // -1: closed
} input;

static void close_input(void *context)
{
    input *file = context;
    if (file->descriptor > STDIN_FILENO)
        close(file->descriptor);
    file->descriptor = -1;
}

static ps_code fail_read(const char *path, int error, ps_status *status)
{
    char reason[128];
    if (strerror_r(error, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", error);
    const char *rule = error == ENOENT || error == ENOTDIR ? "file-missing"
                       : error == EISDIR                   ? "file-directory"
                                                           : "file-read";
    ps_fail(status, PS_IO, rule, "cannot read the file: %s", reason);
    return ps_fail_at(status, path, 0, 0, NULL);
}

// Everything up to the end, but not more than one byte beyond max_bytes.
static ps_code read_all(ps_arena *arena, const input *file, int64_t max_bytes, ps_file_bytes *out, ps_status *status)
{
    struct stat about;
    int64_t capacity = 1 << 16;
    if (fstat(file->descriptor, &about) == 0 && S_ISREG(about.st_mode))
        capacity = about.st_size + 1; // one more, so that the end is seen without growing
    if (capacity > max_bytes + 1)
        capacity = max_bytes + 1;

    out->data = ps_new_raw(arena, char, capacity + 1);
    while (out->size <= max_bytes) {
        if (out->size == capacity) {
            capacity = capacity < max_bytes / 2 ? 2 * capacity : max_bytes + 1;
            char *moved = ps_new_raw(arena, char, capacity + 1);
            memcpy(moved, out->data, (size_t)out->size);
            out->data = moved;
        }
        ssize_t count = read(file->descriptor, out->data + out->size, (size_t)(capacity - out->size));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fail_read(file->path, errno, status);
        if (count == 0) {
            out->data[out->size] = '\0';
            return PS_OK;
        }
        out->size += count;
    }
    char most[32];
    ps_fail(status, PS_BAD_INPUT, "file-too-large", "the file is larger than %s", ps_format_bytes(max_bytes, most));
    return ps_fail_at(status, file->path, 0, 0, NULL);
}

ps_code ps_file_read(ps_arena *arena, const char *path, int64_t max_bytes, ps_file_bytes *out, ps_status *status)
{
    assert(max_bytes >= 0 && max_bytes <= PS_MAX_FILE_BYTES);
    input *file = ps_new(arena, input, 1);
    *file = (input){.path = path, .descriptor = STDIN_FILENO};
    ps_arena_defer(arena, close_input, file);
    if (strcmp(path, "-") != 0)
        file->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (file->descriptor < 0)
        return fail_read(path, errno, status);

    *out = (ps_file_bytes){0};
    ps_code code = read_all(arena, file, max_bytes, out, status);
    close_input(file);
    PS_TRY(code);
    ps_sha256(out->data, out->size, out->sha256);
    return PS_OK;
}

bool ps_file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

void ps_sha256(const void *data, int64_t size, char hexadecimal[65])
{
    SHA256Data(data, (size_t)size, hexadecimal);
}
