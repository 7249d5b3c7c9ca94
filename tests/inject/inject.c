// SPDX-License-Identifier: Apache-2.0
//
// inject.c: preloaded into the tool, makes one chosen call of the C library fail.
//
//   INJECT_CALL   the call: malloc (with calloc, realloc and the aligned ones), open, read, write, flush, close, sync
//                 or rename
//   INJECT_AT     which of them fails, from 1 on; 0: none
//   INJECT_STICKY set: all later ones fail too, as on a full disk
//   INJECT_ERRNO  the errno it fails with
//   INJECT_SKIP   libraries whose own calls always work, by how their names begin: "libpopt,libhwloc"
//   INJECT_COUNT  a file that receives, at exit, how many such calls there were
//
// Counting starts at main(), so that the dynamic linker is left alone. Streams in memory and standard error are left
// alone too: the first are the allocator's matter, the second is where the tool reports.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// glibc's own names of the allocator, there for those who wrap it.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*linker_fini)(void), void *stack_end);

static bool armed;
static const char *chosen = "";
static long fail_at;
static bool sticky;
static int fail_errno;
static const char *skipped = "";
static atomic_long seen;

static int (*real_main)(int, char **, char **);

// The next function of that name behind this library.
#define REAL(name) (__extension__(__typeof__(&name)) dlsym(RTLD_NEXT, #name))

// Whether the code that returns to `caller` belongs to a library in the list.
static bool is_skipped(void *caller)
{
    Dl_info about;
    if (!skipped[0] || !dladdr(caller, &about) || !about.dli_fname)
        return false;
    const char *slash = strrchr(about.dli_fname, '/');
    const char *name = slash ? slash + 1 : about.dli_fname;
    for (const char *entry = skipped; *entry; entry += strcspn(entry, ","), entry += *entry == ',')
        if (strncmp(entry, name, strcspn(entry, ",")) == 0)
            return true;
    return false;
}

static bool fails_for(const char *call, void *caller)
{
    if (!armed || strcmp(call, chosen) != 0 || is_skipped(caller))
        return false;
    long number = atomic_fetch_add(&seen, 1) + 1;
    if (fail_at == 0 || number < fail_at || (number > fail_at && !sticky))
        return false;
    errno = fail_errno;
    return true;
}

// Of the function that it stands in.
#define fails(call) fails_for((call), __builtin_return_address(0))

static void write_count(void)
{
    armed = false;
    const char *path = getenv("INJECT_COUNT");
    int descriptor = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (descriptor < 0)
        return;
    char text[32];
    int size = snprintf(text, sizeof text, "%ld\n", atomic_load(&seen));
    (void)!syscall(SYS_write, descriptor, text, (size_t)size);
    syscall(SYS_close, descriptor);
}

static int armed_main(int argc, char **argv, char **environment)
{
    const char *at = getenv("INJECT_AT");
    const char *number = getenv("INJECT_ERRNO");
    chosen = getenv("INJECT_CALL") ? getenv("INJECT_CALL") : "";
    fail_at = at ? atol(at) : 0;
    sticky = getenv("INJECT_STICKY") != NULL;
    skipped = getenv("INJECT_SKIP") ? getenv("INJECT_SKIP") : "";
    fail_errno = number ? atoi(number) : EIO;
    atexit(write_count);
    armed = true;
    return real_main(argc, argv, environment);
}

int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*linker_fini)(void), void *stack_end)
{
    real_main = start;
    return REAL(__libc_start_main)(armed_main, argc, argv, init, fini, linker_fini, stack_end);
}

void *malloc(size_t size)
{
    return fails("malloc") ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails("malloc") ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails("malloc") ? NULL : __libc_realloc(old, size);
}

// Here so that the copy counts for the library that asked for it.
char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = fails("malloc") ? NULL : __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails("malloc") ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *result = fails("malloc") ? NULL : __libc_memalign(alignment, size);
    if (!result)
        return ENOMEM;
    *out = result;
    return 0;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails("open") ? NULL : REAL(fopen)(path, mode);
}

ssize_t read(int descriptor, void *data, size_t size)
{
    return fails("read") ? -1 : syscall(SYS_read, descriptor, data, size);
}

static bool is_watched(FILE *stream)
{
    return fileno(stream) >= 0 && fileno(stream) != STDERR_FILENO;
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *stream)
{
    if (is_watched(stream) && fails("write")) {
        stream->_flags |= _IO_ERR_SEEN; // as the real one does
        return 0;
    }
    return REAL(fwrite)(data, size, count, stream);
}

int fflush(FILE *stream)
{
    if (stream && is_watched(stream) && fails("flush")) {
        stream->_flags |= _IO_ERR_SEEN;
        return EOF;
    }
    return REAL(fflush)(stream);
}

// A close that fails has closed all the same.
int close(int descriptor)
{
    bool failed = fails("close");
    int result = (int)syscall(SYS_close, descriptor);
    if (failed)
        errno = fail_errno;
    return failed ? -1 : result;
}

int fclose(FILE *stream)
{
    bool failed = is_watched(stream) && fails("close");
    int result = REAL(fclose)(stream);
    if (failed)
        errno = fail_errno;
    return failed ? EOF : result;
}

int fsync(int descriptor)
{
    return fails("sync") ? -1 : (int)syscall(SYS_fsync, descriptor);
}

int rename(const char *from, const char *to)
{
    return fails("rename") ? -1 : REAL(rename)(from, to);
}
