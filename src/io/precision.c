// SPDX-License-Identifier: Apache-2.0
//
// precision.c: names of number formats, as users write them.
#include "pipesched/precision.h"

#include <string.h>

static const char *const names[PS_PRECISIONS] = {"bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"};

const char *ps_precision_name(ps_precision precision)
{
    return names[precision];
}

int ps_precision_named(const char *name)
{
    for (int precision = 0; precision < PS_PRECISIONS; precision++)
        if (strcmp(names[precision], name) == 0)
            return precision;
    return -1;
}
