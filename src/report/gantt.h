// SPDX-License-Identifier: Apache-2.0
//
// gantt.h: a timeline drawn in text, one row a device, to scale.
#ifndef PS_REPORT_GANTT_H
#define PS_REPORT_GANTT_H

#include <stdio.h>

#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/step.h"
#include "pipesched/timeline.h"
#include "report/style.h"

typedef struct ps_gantt {
    const ps_pipeline *pipeline;
    const ps_schedule *schedule;
    const ps_timeline *timeline;
    const ps_step *step; // what ends the step; NULL: not known
    const ps_step_timeline *tail;
} ps_gantt;

// Rows fill style->width columns. A column shows the op that covers most of it; idle is a dot. Of what ends the step a
// row shows what the device waits for: what is exposed of its gradients' reduction, the barrier, the optimizer, what is
// exposed of the gather.
void ps_report_gantt(FILE *file, const ps_gantt *gantt, const ps_report_style *style);

#endif
