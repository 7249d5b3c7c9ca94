// SPDX-License-Identifier: Apache-2.0
//
// main.c: the process around a run: its streams before, its exit status and the caught signal after.
#include <stdio.h>

#include "cli/control.h"
#include "cli/run.h"
#include "cli/terminal.h"

int main(int argc, char **argv)
{
    enum { EXIT_IO = 4 };
    ps_terminal_prepare();
    int exit_status = argc > 0 ? ps_cli_run(argc - 1, argv + 1) : ps_cli_run(0, argv);
    ps_cli_reraise();

    // What was written has been flushed and checked; closing can still fail on some file systems.
    if (fclose(stdout) != 0 && exit_status < EXIT_IO) {
        fputs("pipesched: error: cannot write to standard output\n", stderr);
        return EXIT_IO;
    }
    return exit_status;
}
