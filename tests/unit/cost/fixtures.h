// SPDX-License-Identifier: Apache-2.0
//
// fixtures.h: models, GPUs and jobs that cost tests write by hand, so that they hold whatever loaders and catalog do.
#ifndef PS_TESTS_COST_FIXTURES_H
#define PS_TESTS_COST_FIXTURES_H

#include "pipesched/cost.h"
#include "support/cmocka_all.h"

// Embedding, `blocks` equal decoder layers, final norm, head.
ps_model transformer(ps_arena *arena, const ps_block *block, int32_t blocks, bool tied);

ps_block gpt_block(int64_t hidden, int64_t heads, int64_t vocab, int64_t positions); // f = 4h, biases, dropout
ps_block llama3_8b_block(void);
ps_block llama3_70b_block(void);
ps_block mixtral_block(void);

// Layers that give their times in ns, one after the other.
ps_model timed_model(ps_arena *arena, int32_t layers, int64_t forward, int64_t backward_input, int64_t backward_weight);

ps_group a100_group(int32_t nodes); // 8 GPUs a node, NVLink, 200 Gb/s a GPU
ps_group h100_group(int32_t nodes); // 8 GPUs a node, NVLink, 400 Gb/s a GPU

ps_job plain_job(int64_t seq_length); // bf16, Adam, ZeRO-1, flash attention, no overlap of tensor parallelism
ps_layout plain_layout(void);         // every degree 1

ps_cost_table cost_of(ps_arena *arena, const ps_model *model, const ps_group *group, const ps_job *job,
                      const ps_layout *layout);
// The rule that refuses it; fails the test when nothing does.
const char *rule_of_refusal(ps_arena *arena, const ps_model *model, const ps_group *group, const ps_job *job,
                            const ps_layout *layout, ps_status *status);

// a within `share` of b.
void assert_near(double a, double b, double share);

#endif
