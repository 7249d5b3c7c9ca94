// SPDX-License-Identifier: Apache-2.0
//
// terminal.c: the standard streams: what they can show, and whether what was written arrived.
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PLAIN_WIDTH = 100, LEAST_WIDTH = 40, MOST_WIDTH = 400 };

void ps_terminal_prepare(void)
{
    // The wrong direction on purpose: a write to what was closed must fail, not vanish.
    for (int number = 0; number <= 2; number++)
        if (fcntl(number, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static int32_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return PLAIN_WIDTH;
    if (size.ws_col < LEAST_WIDTH)
        return LEAST_WIDTH;
    return size.ws_col < MOST_WIDTH ? size.ws_col : MOST_WIDTH;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] != '\0';
}

ps_report_style ps_terminal_style(bool to_file)
{
    // Only the character set is taken from the locale: numbers look the same everywhere.
    setlocale(LC_CTYPE, "");
    bool unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (to_file || !isatty(STDOUT_FILENO))
        return (ps_report_style){.color = false, .unicode = unicode, .width = PLAIN_WIDTH};
    const char *kind = getenv("TERM");
    bool is_dumb = !kind || strcmp(kind, "dumb") == 0;
    return (ps_report_style){.color = !is_dumb && !is_set("NO_COLOR"), .unicode = unicode, .width = terminal_width()};
}

bool ps_terminal_shows_progress(void)
{
    return isatty(STDERR_FILENO) == 1;
}

ps_code ps_terminal_write(const char *text, size_t size, ps_status *status)
{
    errno = 0;
    if ((size > 0 && fwrite(text, 1, size, stdout) != size) || fflush(stdout) != 0)
        return ps_fail(status, PS_IO, "stdout-write", "cannot write to standard output: %s", strerror(errno));
    return PS_OK;
}
