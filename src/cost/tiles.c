// SPDX-License-Identifier: Apache-2.0
//
// tiles.c: rounds of tiles (NVIDIA's guide to the performance of matrix multiplication calls them waves).
#include "cost/tiles.h"

#include <math.h>
#include <stddef.h>

// Tile sizes of cuBLAS, and what a tile reaches of the rate of the largest: it loads more for each product. Profiles of
// four GPT models on A100 (Qi et al. 2024, table 6) come out 2 % apart with these shares.
static const struct {
    double rows;
    double columns;
    double reached;
} tiles[] = {{256, 128, 1}, {128, 256, 1}, {128, 128, 0.93}, {128, 64, 0.85}};

double ps_tiles_busy_share(double multiprocessors, double rows, double columns, double matrices)
{
    double best = 0;

    if (!(multiprocessors > 0) || !(rows > 0) || !(columns > 0) || !(matrices > 0))
        return 1;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        double count = ceil(rows / tiles[i].rows) * ceil(columns / tiles[i].columns) * matrices;
        double filled = rows / tiles[i].rows * (columns / tiles[i].columns) * matrices;
        double share = tiles[i].reached * filled / (ceil(count / multiprocessors) * multiprocessors);
        if (share > best)
            best = share;
    }
    return best;
}
