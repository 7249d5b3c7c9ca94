// SPDX-License-Identifier: Apache-2.0
//
// dialect.c: the table of targets.
#include "job/dialect.h"

#include <stddef.h>

static const ps_dialect dialects[] = {
    {"deepspeed", ps_dialect_deepspeed, NULL},
    {"megatron", ps_dialect_megatron, NULL},
    {"torchtitan", ps_dialect_torchtitan, ps_caution_torchtitan},
};

int32_t ps_dialect_count(void)
{
    return (int32_t)(sizeof dialects / sizeof dialects[0]);
}

const ps_dialect *ps_dialect_at(int32_t index)
{
    return &dialects[index];
}
