/* ranks.c: gathers the times of all ranks. */
#include "bench/ranks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

/* -- one rank ---------------------------------------------------------------------------------------------
 */

/* `scratch` holds a number per step. */
static ls_rank_times times_of(const ls_measure *m, double samples, double *scratch)
{
    const int n = m->steps;
    ls_rank_times t = {.allocs_per_step = m->allocs_per_step, .stolen = m->stolen};

    if (gethostname(t.host, sizeof t.host - 1) != 0) snprintf(t.host, sizeof t.host, "?");
    for (int i = 0; i < n; i++) scratch[i] = m->end_s[i] - m->begin_s[i];
    t.step_s = ls_spread_of(scratch, (size_t)n);
    t.rate = ls_spread_rate(t.step_s, samples);
    for (int i = 0; i < n; i++) scratch[i] = m->end_s[i] - m->begin_s[i] - m->waiting_s[i];
    t.own_s = ls_spread_of(scratch, (size_t)n).p50;
    t.exposed_s = ls_spread_keep(m->exposed_s, (size_t)n, scratch).p50;
    t.data_wait_s = ls_mean_of(m->data_s, (size_t)n).mean;
    return t;
}

static void iterate(const ls_measure *m, double samples, int iterations, double *rate)
{
    const int length = m->steps >= LS_ITERATION_STEPS ? LS_ITERATION_STEPS : m->steps;

    for (int i = 0; i < iterations; i++) {
        const int first = i * length, last = first + length - 1;
        rate[i] = samples * length / (m->end_s[last] - m->begin_s[first]);
    }
}

/* -- all ranks --------------------------------------------------------------------------------------------
 */

static ls_status make_room(ls_job_times *t, ls_err *err)
{
    t->of = ls_alloc(LS_MEM_CLI, sizeof *t->of * (size_t)t->ranks);
    t->step_s = ls_alloc(LS_MEM_CLI, sizeof *t->step_s * (size_t)t->steps);
    t->iteration = ls_alloc(LS_MEM_CLI, sizeof *t->iteration * (size_t)t->iterations);
    if (t->of == NULL || t->step_s == NULL || t->iteration == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for the times of %d ranks", t->ranks);
    return LS_OK;
}

/* When the last rank began and ended each step: `begin` becomes the former, t->step_s the difference. */
static ls_status step_together(ls_job_times *t, const ls_measure *m, double *begin, ls_comm *comm,
                               ls_err *err)
{
    const size_t bytes = sizeof *begin * (size_t)t->steps;
    ls_status st = LS_OK;

    memcpy(begin, m->begin_s, bytes);
    memcpy(t->step_s, m->end_s, bytes);
    if (comm != NULL) {
        LS_TRY(ls_comm_max(comm, begin, t->steps, "when steps began", err));
        LS_TRY(ls_comm_max(comm, t->step_s, t->steps, "when steps ended", err));
    }
    for (int i = 0; i < t->steps; i++) t->step_s[i] -= begin[i];
    t->mean = ls_batch_means(t->step_s, (size_t)t->steps);
    t->spread = ls_spread_keep(t->step_s, (size_t)t->steps, begin);
out:
    return st;
}

static void look_at_ranks(ls_job_times *t)
{
    for (int r = 0; r < t->ranks; r++) {
        const ls_rank_times *x = &t->of[r];
        if (x->own_s > t->of[t->slowest].own_s) t->slowest = r;
        if (x->own_s < t->of[t->fastest].own_s) t->fastest = r;
        if (x->exposed_s > t->exposed_s) t->exposed_s = x->exposed_s;
        if (x->data_wait_s > t->data_wait_s) t->data_wait_s = x->data_wait_s;
        if (x->allocs_per_step > t->allocs_per_step) t->allocs_per_step = x->allocs_per_step;
        if (x->stolen > t->stolen) t->stolen = x->stolen;
    }
}

ls_status ls_job_times_gather(ls_job_times *out, const ls_measure *m, double samples, ls_comm *comm,
                              ls_err *err)
{
    double *scratch = ls_alloc(LS_MEM_CLI, sizeof *scratch * (size_t)m->steps);
    ls_rank_times mine;
    ls_status st = LS_OK;

    *out = (ls_job_times){.ranks = comm != NULL ? ls_comm_size(comm) : 1, .steps = m->steps};
    out->iterations = m->steps >= LS_ITERATION_STEPS ? m->steps / LS_ITERATION_STEPS : 1;
    if (scratch == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for the times of %d steps", m->steps);
        goto out;
    }
    LS_TRY(make_room(out, err));
    mine = times_of(m, samples, scratch);
    out->of[0] = mine;
    if (comm != NULL)
        LS_TRY(ls_comm_gather_all(comm, &mine, sizeof mine, out->of, "gathering times of ranks", err));
    iterate(m, samples, out->iterations, out->iteration);
    if (comm != NULL)
        LS_TRY(ls_comm_sum(comm, out->iteration, out->iterations, "adding up rates of ranks", err));
    LS_TRY(step_together(out, m, scratch, comm, err));
    look_at_ranks(out);
out:
    ls_free(scratch);
    return st;
}

void ls_job_times_release(ls_job_times *t)
{
    ls_free(t->of);
    ls_free(t->step_s);
    ls_free(t->iteration);
    *t = (ls_job_times){0};
}

ls_status ls_job_zero(ls_comm *comm, double *zero, ls_err *err)
{
    ls_status st = LS_OK;

    if (comm != NULL) LS_TRY(ls_comm_barrier(comm, "before timing", err));
    *zero = ls_clock_seconds();
    if (comm != NULL && ls_comm_hosts(comm) == 1) LS_TRY(ls_comm_max(comm, zero, 1, "starting clocks", err));
out:
    return st;
}
