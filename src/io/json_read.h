// SPDX-License-Identifier: Apache-2.0
//
// json_read.h: strict JSON in, with the place of every fault.
//
// A strict pass runs before cJSON and refuses what cJSON alone accepts: duplicate keys, bad numbers, integers above
// 2^53, raw control characters, depth beyond PS_MAX_JSON_DEPTH, invalid UTF-8, anything after the value. It records
// where every value starts. Readers walk cursors; the JSON pointer of a place is made only when an error is.
// This is the only file that knows cJSON.
#ifndef PS_IO_JSON_READ_H
#define PS_IO_JSON_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

typedef struct ps_json_doc ps_json_doc;

typedef enum ps_json_type {
    PS_JSON_NULL,
    PS_JSON_BOOL,
    PS_JSON_NUMBER,
    PS_JSON_STRING,
    PS_JSON_ARRAY,
    PS_JSON_OBJECT
} ps_json_type;

// A place in a document: small, copied freely, valid as long as its document. `node` is opaque.
typedef struct ps_json {
    const ps_json_doc *doc;
    const void *node; // NULL: absent
} ps_json;

// `source` is the name shown in errors. The document lives in the arena (cJSON's memory is freed with it).
// PS_BAD_INPUT with line, column and rules json-syntax, json-duplicate-key, json-number, json-depth, json-utf8,
// json-empty, json-trailing.
ps_code ps_json_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_json *root,
                      ps_status *status);

ps_json_type ps_json_type_of(ps_json value);
bool ps_json_is(ps_json value, ps_json_type type);       // false when absent
ps_json ps_json_member(ps_json object, const char *key); // exact key; node NULL when absent or not an object
int64_t ps_json_count(ps_json value);                    // elements of an array, members of an object, else 0

// Walk an array or object in order: for (ps_json e = ps_json_first(v); e.node; e = ps_json_next(e)). O(1) a step.
ps_json ps_json_first(ps_json value);
ps_json ps_json_next(ps_json element);
const char *ps_json_key(ps_json member); // key of a member found in an object
const char *ps_json_text(ps_json value); // of a string; "" otherwise
double ps_json_number(ps_json value);    // of a number; 0 otherwise
bool ps_json_bool(ps_json value);
// The bytes of a value as the file writes them, for exact decimals; *size is 0 for arrays, objects and what is absent.
const char *ps_json_raw(ps_json value, int64_t *size);

// Fail with PS_BAD_INPUT at this place: fills source, line, column and JSON pointer.
ps_code ps_json_fail(ps_json at, const char *rule, ps_status *status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Add this place to a status that a parser of text filled.
ps_code ps_json_fail_place(ps_json at, ps_status *status);

// Refuse unknown keys of an object, with "did you mean". Keys beginning with '_' or '$' are comments and allowed. The
// names end with NULL.
ps_code ps_json_check_keys(ps_json object, const char *const *names, ps_status *status);
ps_code ps_json_expect(ps_json value, ps_json_type type, ps_status *status); // rule json-type

// Typed getters of a member. `required` ones fail when absent (rule missing-key, at the object); otherwise absent
// leaves *out unchanged, so that defaults are set beforehand. null counts as absent. The wrong type, a fraction where
// an integer is wanted, or a value out of [min, max] fails with the range (rules json-type, out-of-range).
typedef enum ps_need { PS_OPTIONAL, PS_REQUIRED } ps_need;
ps_code ps_json_get_int(ps_json object, const char *key, ps_need need, int64_t min, int64_t max, int64_t *out,
                        ps_status *status);
ps_code ps_json_get_int32(ps_json object, const char *key, ps_need need, int32_t min, int32_t max, int32_t *out,
                          ps_status *status);
ps_code ps_json_get_double(ps_json object, const char *key, ps_need need, double min, double max, double *out,
                           ps_status *status);
ps_code ps_json_get_bool(ps_json object, const char *key, ps_need need, bool *out, ps_status *status);
ps_code ps_json_get_string(ps_json object, const char *key, ps_need need, const char **out, ps_status *status);
// Bytes: a string with a unit ("8MiB") or a whole number of bytes for keys that end in _bytes. Rates likewise: a string
// ("400Gb/s") or a number for keys that end in _bytes_per_s.
ps_code ps_json_get_bytes(ps_json object, const char *key, ps_need need, int64_t *out, ps_status *status);
ps_code ps_json_get_rate(ps_json object, const char *key, ps_need need, double *bytes_per_second, ps_status *status);
// A number of milliseconds (keys that end in _ms) or a string with a unit, to nanoseconds, at most max_ns.
ps_code ps_json_get_ms(ps_json object, const char *key, ps_need need, int64_t max_ns, int64_t *ns, ps_status *status);
// The same where a number is milliseconds although its key does not say so.
ps_code ps_json_get_plain_ms(ps_json object, const char *key, ps_need need, int64_t max_ns, int64_t *ns,
                             ps_status *status);

const char *ps_json_source(ps_json value);
const char *ps_json_library_version(void); // of cJSON

#endif
