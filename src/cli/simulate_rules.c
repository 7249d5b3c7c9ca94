// SPDX-License-Identifier: Apache-2.0
//
// simulate_rules.c: rule files in `simulate`: they stand where a named schedule would.
#include "cli/simulate_rules.h"

#include "schedule/rule_file.h"

ps_code ps_rules_simulation_load(ps_run *run, const char *name, const ps_bare_options *bare, ps_rules_simulation *out,
                                 ps_status *status)
{
    bool given_vp = ps_option_given(&run->parsed, "vp");
    ps_bare_options numbers = *bare;
    ps_rules rules;
    PS_TRY(ps_rules_load(run->arena, name, &rules, status));
    if (rules.placement == PS_RULE_GIVEN && given_vp) {
        ps_fail(status, PS_USAGE, "conflicting-options",
                "--vp does not go with rules that give a rank to each of their %d stages", (int)rules.num_given);
        return ps_fail_hint(status, "leave --vp out");
    }
    if (rules.placement == PS_RULE_V && !given_vp)
        numbers.vp = 2;
    // Counts and choices are held to what any order takes; what these rules take is in them.
    ps_schedule_family any = ps_bare_auto;
    ps_bare_ground ground = {.name = name, .splits_backward = rules.splits_backward, .recomputes = rules.recomputes};
    any.name = name;
    PS_TRY(ps_bare_shape(run->arena, &numbers, &any, &ground.shape, status));
    PS_TRY(ps_rules_place(run->arena, &rules, &ground.shape, &ground.device, status));
    PS_TRY(ps_bare_pipeline_on(run->arena, &numbers, &ground, &out->pipeline, status));
    PS_TRY(ps_rules_generate(run->arena, &rules, &out->pipeline, &out->schedule, status));
    out->source = rules.source;
    out->virtual_stages = (ground.shape.num_stages + ground.shape.num_devices - 1) / ground.shape.num_devices;
    return PS_OK;
}
