// SPDX-License-Identifier: Apache-2.0
//
// gantt.h: a timeline drawn in text, one row a device, to scale.
#ifndef PS_REPORT_GANTT_H
#define PS_REPORT_GANTT_H

#include <stdio.h>

#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/timeline.h"
#include "report/style.h"

// Rows fill style->width columns. A column shows the op that covers most of it; idle is a dot.
void ps_report_gantt(FILE *file, const ps_pipeline *pipeline, const ps_schedule *schedule, const ps_timeline *timeline,
                     const ps_report_style *style);

#endif
