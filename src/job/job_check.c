// SPDX-License-Identifier: Apache-2.0
//
// job_check.c: rules that tie options together, before any model or cluster is known. What depends on those is left to
// the planner; what is refused here can never work.
#include <stdio.h>

#include "pipesched/job.h"
#include "pipesched/limits.h"

static ps_code check_required(const ps_job *job, ps_status *status)
{
    if (job->global_batch_size < 1) {
        ps_fail(status, PS_USAGE, "missing-option", "--global-batch-size is required");
        return ps_fail_hint(status, "the number of sequences of one optimizer step, such as --global-batch-size 1024");
    }
    if (job->seq_length < 1) {
        ps_fail(status, PS_USAGE, "missing-option", "--seq-length is required");
        return ps_fail_hint(status, "the number of tokens of one sequence, such as --seq-length 8192");
    }
    return PS_OK;
}

// Sets as loops: an empty one stands for the single value 1, which every automatic choice includes.
static int32_t choices(const ps_int_set *set)
{
    return set->count > 0 ? set->count : 1;
}

static int64_t choice(const ps_int_set *set, int32_t index)
{
    return set->count > 0 ? set->value[index] : 1;
}

static ps_code check_batch(const ps_job *job, ps_status *status)
{
    int64_t batch = job->global_batch_size;
    for (int32_t index = 0; index < job->micro_batch_size.count; index++)
        if (job->micro_batch_size.value[index] > batch)
            return ps_fail(status, PS_USAGE, "micro-batch-too-large",
                           "a micro-batch of %d sequences is larger than the global batch of %lld",
                           (int)job->micro_batch_size.value[index], (long long)batch);
    return PS_OK;
}

// Stages on a device that a schedule takes: at least, and at most.
typedef struct chunk_range {
    int32_t least;
    int32_t most;
} chunk_range;

static chunk_range chunks_of(int32_t schedule)
{
    switch ((ps_schedule_kind)schedule) {
    case PS_SCHEDULE_INTERLEAVED:
    case PS_SCHEDULE_INTERLEAVED_ZB: return (chunk_range){2, PS_MAX_STAGES};
    case PS_SCHEDULE_LOOPED_BFS:
    case PS_SCHEDULE_ZB: return (chunk_range){1, PS_MAX_STAGES};
    case PS_SCHEDULE_ZB_V:
    case PS_SCHEDULE_V_HALF:
    case PS_SCHEDULE_V_MIN:
    case PS_SCHEDULE_DUALPIPEV:
    case PS_SCHEDULE_DUALPIPE: return (chunk_range){2, 2};
    default: return (chunk_range){1, 1};
    }
}

// Some allowed schedule takes some allowed number of stages on a device.
static ps_code check_chunks(const ps_job *job, ps_status *status)
{
    if (job->schedule.count == 0 || job->vp.count == 0)
        return PS_OK;    // one of them is free to follow the other
    bool several = true; // all allowed schedules need several
    bool one = true;     // all take one only
    for (int32_t index = 0; index < job->schedule.count; index++) {
        chunk_range range = chunks_of(job->schedule.value[index]);
        for (int32_t chunk = 0; chunk < job->vp.count; chunk++)
            if (job->vp.value[chunk] >= range.least && job->vp.value[chunk] <= range.most)
                return PS_OK;
        several = several && range.least > 1;
        one = one && range.most == 1;
    }
    int32_t vp = job->vp.value[0];
    if (several && vp == 1) {
        ps_fail(status, PS_USAGE, "interleaved-needs-vp",
                "no allowed schedule takes one stage on a device, got --vp 1");
        return ps_fail_hint(status, "use --vp 2 or --schedule 1f1b");
    }
    ps_fail(status, PS_USAGE, "vp-needs-interleaved", "no allowed schedule puts %d stages on a device", (int)vp);
    return ps_fail_hint(status,
                        one ? "use --schedule interleaved, or --vp 1" : "use --schedule interleaved, or --vp 2");
}

static ps_code check_stages(const ps_job *job, ps_status *status)
{
    int64_t least = INT64_MAX;
    for (int32_t rank = 0; rank < choices(&job->pp); rank++)
        for (int32_t chunk = 0; chunk < choices(&job->vp); chunk++) {
            int64_t stages = choice(&job->pp, rank) * choice(&job->vp, chunk);
            least = stages < least ? stages : least;
        }
    if (least > PS_MAX_STAGES)
        return ps_fail(status, PS_USAGE, "too-many-stages", "pp times vp is at least %lld, the limit is %d",
                       (long long)least, (int)PS_MAX_STAGES);

    return check_chunks(job, status);
}

ps_code ps_job_check(const ps_job *job, ps_status *status)
{
    PS_TRY(check_required(job, status));
    PS_TRY(check_batch(job, status));
    PS_TRY(check_stages(job, status));
    if (job->memory_limit_bytes > 0 && job->memory_reserve_bytes >= job->memory_limit_bytes)
        return ps_fail(status, PS_USAGE, "memory-reserve",
                       "the reserve of %lld bytes leaves nothing of the limit of %lld bytes",
                       (long long)job->memory_reserve_bytes, (long long)job->memory_limit_bytes);
    return PS_OK;
}
