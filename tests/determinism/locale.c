// SPDX-License-Identifier: Apache-2.0
//
// locale.c: preloaded into the tool, sets every category of the locale before main(), as a program that uses the
// library may have done: what the library reads and writes must not depend on it.
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void set_locale(void)
{
    if (setlocale(LC_ALL, "") && localeconv()->decimal_point[0] == ',')
        return;
    fputs("locale.c: this is no locale with a decimal comma\n", stderr);
    exit(99);
}
