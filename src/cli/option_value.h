// SPDX-License-Identifier: Apache-2.0
//
// option_value.h: one word of the command line to a value of its option's type.
#ifndef PS_CLI_OPTION_VALUE_H
#define PS_CLI_OPTION_VALUE_H

#include "cli/options.h"

// Store `text` at the option's place in `values`. PS_USAGE, rule bad-value, with the option as the source.
ps_code ps_option_set(ps_arena *arena, const ps_option *option, const char *text, void *values, ps_status *status);

// "1,2.5,3ms" to nanoseconds, at most PS_MAX_LAYER_NS each; `option` is the name in errors ("--weights").
ps_code ps_times_parse(ps_arena *arena, const char *option, const char *text, ps_number_list *out, ps_status *status);

// PS_USAGE, rule mixed-units, when some lists have bare numbers and others have units. The names are those of the
// options.
ps_code ps_memory_units_agree(const ps_number_list *const *list, const char *const *name, int32_t count,
                              ps_status *status);

// PS_USAGE, rule bad-value, when --memory-limit has a 0 in it, which means nothing.
ps_code ps_memory_limit_expect(const ps_number_list *limit, ps_status *status);

// Value of entry `index`: a single number stands for all.
int64_t ps_number_at(const ps_number_list *list, int64_t index);
// PS_USAGE, rule list-length, unless the list is empty, one number, or `count` numbers ("one per stage").
ps_code ps_numbers_expect(const ps_number_list *list, const char *option, int64_t count, const char *what,
                          ps_status *status);

#endif
