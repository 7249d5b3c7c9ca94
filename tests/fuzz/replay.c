// SPDX-License-Identifier: Apache-2.0
//
// replay.c: main() for a fuzz target without libFuzzer: runs every file named, so that any compiler replays a corpus.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1 << 22);
    if (!file || !data) {
        fprintf(stderr, "cannot read %s\n", path);
        return 1;
    }
    size_t size = fread(data, 1, 1 << 22, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int index = 1; index < argc; index++)
        failed |= replay(argv[index]);
    printf("%d inputs replayed\n", argc - 1);
    return argc < 2 ? 1 : failed;
}
