// SPDX-License-Identifier: Apache-2.0
//
// calibration_summary.h: what a calibration was fitted to, and how well it holds.
#ifndef PS_REPORT_CALIBRATION_SUMMARY_H
#define PS_REPORT_CALIBRATION_SUMMARY_H

#include <stdio.h>

#include "pipesched/calibrate.h"

// `runs` and `report` may be NULL: a calibration of collectives or layers alone.
void ps_report_calibration(ps_arena *arena, FILE *file, const ps_measured_runs *runs, const ps_calibration *calibration,
                           const ps_calibration_report *report, const ps_calibration_sources *sources);

#endif
