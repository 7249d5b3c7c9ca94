// SPDX-License-Identifier: Apache-2.0
//
// model_json.h: the parts of the native format's loader.
#ifndef PS_MODEL_MODEL_JSON_H
#define PS_MODEL_MODEL_JSON_H

#include "io/json_read.h"
#include "model/model_names.h"
#include "pipesched/model.h"

// The architecture of one entry (model_arch.c). True when the entry has any key of architecture.
bool ps_arch_given(ps_json entry);
// Fills class, kind, block and parameters. Rules unknown-kind, key-not-applicable, heads-divide, head-dim, two-ffns
// and others.
ps_code ps_arch_read(ps_arena *arena, ps_json entry, ps_layer *layer, ps_status *status);
// Every key of architecture.
int32_t ps_arch_num_keys(void);
const char *ps_arch_key_name(int32_t key);
// The kinds that have an architecture, for hints.
extern const char *const ps_arch_kind_names[];
extern const int32_t ps_arch_num_kinds;

// "measurements" (model_measured.c): sets measured[layer] where some set has times for it. Rules unknown-layer,
// duplicate-measurement, bad-value.
ps_code ps_measurements_read(ps_arena *arena, ps_json list, ps_model *model, bool *measured, ps_status *status);

// The same of a file beside the model, whose layers are not known yet.
ps_code ps_measurements_read_any(ps_arena *arena, ps_json list, ps_measurement **out, int32_t *count,
                                 ps_status *status);
bool ps_measurement_same_conditions(const ps_measurement *a, const ps_measurement *b);

// "edges" and "constraints" (model_graph.c). Rules dag-unsupported (PS_ILLEGAL), duplicate-edge, pin-conflict.
ps_code ps_edges_check(ps_arena *arena, ps_json list, const ps_layer_names *names, const ps_model *model,
                       ps_status *status);
ps_code ps_constraints_read(ps_arena *arena, ps_json list, const ps_layer_names *names, ps_model *model,
                            ps_status *status);

#endif
