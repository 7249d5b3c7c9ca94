// SPDX-License-Identifier: Apache-2.0
//
// tiles.h: how much of a GPU a matrix product of a given shape keeps busy.
#ifndef PS_COST_TILES_H
#define PS_COST_TILES_H

// Share of its time, 0 to 1, in which `multiprocessors` compute tiles of `matrices` products of rows x columns each:
// tiles are dealt out in rounds, edges are computed whole, and the last round leaves multiprocessors idle. The best of
// the tile sizes that libraries choose from, of which small ones reach less. 1 where the number is not known (0).
double ps_tiles_busy_share(double multiprocessors, double rows, double columns, double matrices);

#endif
