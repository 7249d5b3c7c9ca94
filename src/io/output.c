// SPDX-License-Identifier: Apache-2.0
//
// output.c: output by temporary file and rename.
//
// An existing target that is no regular file (/dev/null, a FIFO) is written directly, for a rename would replace it. A
// symbolic link is followed, so that the link stays and what it names is replaced. A replaced file keeps its mode.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "io/file.h"

enum { MOST_LINKS = 40, MOST_TEMPORARY_NAMES = 1000, LONGEST_PATH = 4096 };

struct ps_output {
    FILE *file;
    const char *shown;  // the path as the user gave it
    const char *target; // where links lead; NULL: standard output
    char *temporary;    // moved to `target` by commit
    bool has_temporary; // it exists and is to be removed when not committed
    bool is_standard;
};

static ps_code fail_write(const char *shown, int error, ps_status *status)
{
    char reason[128] = "an earlier write failed";
    if (error != 0 && strerror_r(error, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", error);
    bool exhausted = error == ENOMEM; // of a stream's buffer
    ps_fail(status, exhausted ? PS_EXHAUSTED : PS_IO, exhausted ? "out-of-memory" : "file-write",
            "cannot write the output: %s", reason);
    return ps_fail_at(status, shown, 0, 0, NULL);
}

static void discard(void *context)
{
    ps_output *output = context;
    if (output->file && !output->is_standard)
        fclose(output->file);
    output->file = NULL;
    if (output->has_temporary)
        unlink(output->temporary);
    output->has_temporary = false;
}

// Length of the directory part with its slash; 0: the current directory.
static int64_t directory_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash - path + 1 : 0;
}

// Follow links of the last component; what the others hide does not matter, as the rename follows them itself.
static ps_code resolve_links(ps_arena *arena, ps_output *output, ps_status *status)
{
    struct stat device;
    output->target = output->shown;
    if (stat(output->target, &device) == 0 && !S_ISREG(device.st_mode))
        return PS_OK; // opened as it is: where /dev/stdout leads on a pipe has no name
    for (int32_t link = 0; link < MOST_LINKS; link++) {
        struct stat about;
        if (lstat(output->target, &about) != 0 || !S_ISLNK(about.st_mode))
            return PS_OK;
        char *to = ps_new_raw(arena, char, LONGEST_PATH);
        ssize_t size = readlink(output->target, to, LONGEST_PATH - 1);
        if (size < 0)
            return fail_write(output->shown, errno, status);
        to[size] = '\0';
        int64_t prefix = to[0] == '/' ? 0 : directory_size(output->target);
        output->target = ps_text_format(arena, "%.*s%s", (int)prefix, output->target, to);
    }
    return fail_write(output->shown, ELOOP, status);
}

// A new file beside the target. The mode is what the umask leaves of 0666, as for any file that a program makes.
static int create_temporary(ps_output *output, int64_t room)
{
    int64_t prefix = directory_size(output->target);
    for (int32_t attempt = 0; attempt < MOST_TEMPORARY_NAMES; attempt++) {
        snprintf(output->temporary, (size_t)room, "%.*s.pipesched-%ld-%d.tmp", (int)prefix, output->target,
                 (long)getpid(), (int)attempt);
        int descriptor = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
    }
    return -1;
}

static ps_code open_target(ps_arena *arena, ps_output *output, ps_status *status)
{
    struct stat about;
    bool exists = stat(output->target, &about) == 0;
    size_t length = strlen(output->target);
    if (length == 0)
        return fail_write(output->shown, ENOENT, status);
    if ((exists && S_ISDIR(about.st_mode)) || output->target[length - 1] == '/') {
        fail_write(output->shown, EISDIR, status);
        return ps_fail_hint(status, "name a file in it");
    }

    int descriptor;
    if (exists && !S_ISREG(about.st_mode)) {
        descriptor = open(output->target, O_WRONLY | O_CLOEXEC);
    } else {
        if (exists && access(output->target, W_OK) != 0) // a rename would succeed all the same
            return fail_write(output->shown, errno, status);
        int64_t room = directory_size(output->target) + 64;
        output->temporary = ps_new(arena, char, room);
        descriptor = create_temporary(output, room);
        output->has_temporary = descriptor >= 0;
    }
    if (descriptor < 0)
        return fail_write(output->shown, errno, status);
    if (exists && output->has_temporary)
        (void)fchmod(descriptor, about.st_mode & 07777); // best effort: the content matters more
    output->file = fdopen(descriptor, "w");
    if (!output->file) {
        int error = errno;
        close(descriptor);
        discard(output);
        return fail_write(output->shown, error, status);
    }
    return PS_OK;
}

ps_code ps_output_open(ps_arena *arena, const char *path, ps_output **out, ps_status *status)
{
    ps_output *output = ps_new(arena, ps_output, 1);
    if (!path || strcmp(path, "-") == 0) {
        *output = (ps_output){.file = stdout, .shown = "standard output", .is_standard = true};
    } else {
        output->shown = ps_text_copy(arena, path);
        ps_arena_defer(arena, discard, output);
        PS_TRY(resolve_links(arena, output, status));
        PS_TRY(open_target(arena, output, status));
    }
    *out = output;
    return PS_OK;
}

FILE *ps_output_file(ps_output *output)
{
    return output->file;
}

ps_code ps_output_write(ps_output *output, const char *data, size_t size, ps_status *status)
{
    errno = 0;
    return fwrite(data, 1, size, output->file) == size ? PS_OK : fail_write(output->shown, errno, status);
}

ps_code ps_stream_flush(FILE *file, ps_status *status)
{
    bool failed_earlier = ferror(file) != 0;
    errno = 0;
    if (fflush(file) == 0 && !failed_earlier)
        return PS_OK;
    return fail_write(NULL, errno, status);
}

// Regular files are synced, so that a rename never shows a file whose content is still to come; devices need not be.
static ps_code close_stream(ps_output *output, ps_status *status)
{
    if (ps_stream_flush(output->file, status) != PS_OK)
        return ps_fail_at(status, output->shown, 0, 0, NULL);
    if (output->has_temporary && fsync(fileno(output->file)) != 0)
        return fail_write(output->shown, errno, status);
    FILE *file = output->file;
    if (output->is_standard)
        return PS_OK;
    output->file = NULL;
    return fclose(file) == 0 ? PS_OK : fail_write(output->shown, errno, status);
}

ps_code ps_output_commit(ps_output *output, ps_status *status)
{
    ps_code code = close_stream(output, status);
    if (code == PS_OK && output->has_temporary) {
        if (rename(output->temporary, output->target) == 0)
            output->has_temporary = false;
        else
            code = fail_write(output->shown, errno, status);
    }
    if (code != PS_OK)
        discard(output);
    return code;
}
