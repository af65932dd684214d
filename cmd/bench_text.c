/* bench_text.c: the result of `lockstep bench` for people. */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "base/units.h"
#include "bench.h"
#include "bench/warmup.h"

static void print_subject(const ls_rehearsal *x, const bench_job *j, const bench_results *r)
{
    const ls_session *s = &x->session;

    printf("model         %s, batch %lld, device %s, ", s->trial->name,
           (long long)ls_config_int(s->cfg, "batch.per_rank"), ls_config_text(s->cfg, "device"));
    if (s->ranks > 1) printf("%d ranks of ", s->ranks);
    printf("%d thread%s, %s data\n", s->threads, s->threads == 1 ? "" : "s",
           j->real[0] ? "the experiment's own" : "made-up");
    if (j->beside.n > 0)
        printf("beside        %d more that take the same steps, each for itself\n", j->beside.n);
    if (r->crowd.oversubscribed)
        printf("oversubscribed: more threads than the %d cores at hand; this says nothing of scaling\n",
               r->crowd.cores);
}

static void print_rates(const ls_session *s, const bench_result *a)
{
    const ls_spread t = a->times.spread;
    char lo[LS_UNITS_TEXT], mid[LS_UNITS_TEXT], hi[LS_UNITS_TEXT], mean[LS_UNITS_TEXT];

    printf("measured      %d steps after %d of warm-up (at least %d and %g s, until none is faster)\n",
           a->m.steps, a->m.warmup_steps, LS_WARMUP_STEPS, LS_WARMUP_SECONDS);
    printf("step          %s (central 68 %%: %s to %s)\n", ls_units_seconds(t.p50, mid),
           ls_units_seconds(t.p16, lo), ls_units_seconds(t.p84, hi));
    printf("samples/s     %s (%s to %s)%s; mean %s", ls_units_rate(a->rate.p50, mid),
           ls_units_rate(a->rate.p16, lo), ls_units_rate(a->rate.p84, hi),
           s->ranks > 1 ? " of all ranks" : "", ls_units_rate(a->mean.mean, mean));
    if (isfinite(a->mean.error)) printf(" +- %s", ls_units_rate(a->mean.error, mean));
    printf("\n");
}

static void print_ranks(const ls_job_times *t)
{
    char own[LS_UNITS_TEXT], lo[LS_UNITS_TEXT], mid[LS_UNITS_TEXT], hi[LS_UNITS_TEXT];

    if (t->ranks < 2) return;
    /* All step together: whose own work takes longest is who makes the others wait. */
    for (int i = 0; i < 2; i++) {
        const int rank = i == 0 ? t->slowest : t->fastest;
        const ls_rank_times *x = &t->of[rank];
        printf("%s rank  %d on %s: %s of a step without waiting for others, %s samples/s (%s to %s)\n",
               i == 0 ? "slowest" : "fastest", rank, x->host, ls_units_seconds(x->own_s, own),
               ls_units_rate(x->rate.p50, mid), ls_units_rate(x->rate.p16, lo),
               ls_units_rate(x->rate.p84, hi));
    }
}

static void print_exchange(const ls_session *s, const bench_result *a)
{
    char b[32];

    if (s->comm == NULL) return;
    printf("exchange      %s of a step not hidden (%.1f %%; median step of the rank with the most)",
           ls_units_seconds(a->times.exposed_s, b), 100 * a->times.exposed_s / a->times.spread.p50);
    if (s->peers != NULL)
        printf(", %d buckets, %s", ls_peers_buckets(s->peers),
               ls_text_bytes((double)ls_peers_bytes(s->peers), b));
    printf("\n");
}

static void print_data(bool real, const bench_result *a)
{
    char wait[LS_UNITS_TEXT];

    if (!real) return;
    printf("data          %s of a step waiting for samples (%.1f %%; mean of the rank with the most)\n",
           ls_units_seconds(a->times.data_wait_s, wait), 100 * a->times.data_wait_s / a->times.mean.mean);
}

static void print_against(const bench_job *j, const bench_results *r)
{
    const bench_result *a = &r->of[0], *b = &r->of[1];
    const ls_spread t = b->times.spread;
    char lo[LS_UNITS_TEXT], mid[LS_UNITS_TEXT], hi[LS_UNITS_TEXT];

    if (j->n < 2) return;
    printf("with %-8s %s (%s to %s), in turns with the above: a step takes %.3f times as long as that\n",
           j->other, ls_units_seconds(t.p50, mid), ls_units_seconds(t.p16, lo), ls_units_seconds(t.p84, hi),
           r->ratio);
    if (a->times.exposed_s > 0 || b->times.exposed_s > 0)
        printf("              exchange not hidden: %s\n", ls_units_seconds(b->times.exposed_s, mid));
}

static void print_peak(const bench_result *a, const bench_results *r)
{
    char t[3][32];

    printf("FLOP/s        %s = %.1f %% of the measured peak %s (%s); %s per sample\n",
           ls_text_si(a->flop_s, t[0]), 100 * a->flop_s / r->peak.flop_s, ls_text_si(r->peak.flop_s, t[1]),
           r->peak.isa, ls_text_si(a->flops_per_sample, t[2]));
    if (a->flop_s > r->peak.flop_s)
        printf("              more than the peak: counted is the direct formula; Winograd convolutions do "
               "less\n");
    if (r->device.flop_s > 0) {
        printf("bytes         %s/s of nodes' operands = %.1f %% of what the device copies\n",
               ls_text_bytes(a->bytes_s, t[0]), 100 * a->bytes_s / r->device.copy_b_s);
        printf("probe         a device: %sFLOP/s (%s), memory copied %s/s\n",
               ls_text_si(r->device.flop_s, t[0]), r->device.what, ls_text_bytes(r->device.copy_b_s, t[1]));
        return;
    }
    printf("probe         all threads: %sFLOP/s, memory read %s/s, copied %s/s%s\n",
           ls_text_si(r->peak.flop_s, t[0]), ls_text_bytes(r->peak.read_b_s, t[1]),
           ls_text_bytes(r->peak.copy_b_s, t[2]),
           r->crowd.oversubscribed ? "; they take turns on the cores" : "");
    printf("              one thread:  %sFLOP/s, memory read %s/s, copied %s/s\n",
           ls_text_si(r->core.flop_s, t[0]), ls_text_bytes(r->core.read_b_s, t[1]),
           ls_text_bytes(r->core.copy_b_s, t[2]));
}

/* Which memory it is: what fits the one may not fit the other. */
static void print_memory(const ls_session *s, const bench_result *a)
{
    const ls_device_memory *m = &a->memory;
    char t[3][32];

    printf("memory        %s planned, %s used%s: ", ls_text_bytes((double)a->planned, t[0]),
           ls_text_bytes((double)a->used, t[1]), s->ranks > 1 ? ", of each rank" : "");
    if (!m->own) {
        printf("the host's\n");
        return;
    }
    printf("%s of the device's (at most %s)", ls_text_bytes((double)m->used, t[0]),
           ls_text_bytes((double)m->peak, t[1]));
    if (a->used > m->used) printf(", %s of the host's", ls_text_bytes((double)(a->used - m->used), t[2]));
    printf("\n");
}

/* Below a hundredth it explains nothing. */
static void print_stolen(const bench_result *a)
{
    if (a->times.stolen < 0.01) return;
    printf("stolen        %.1f %% of the processors' time: this machine is a virtual one, and its host gave "
           "them to others\n",
           100 * a->times.stolen);
}

void bench_print_text(const ls_rehearsal *x, const bench_job *j, const bench_results *r)
{
    const bench_result *a = &r->of[0];
    const ls_session *s = &x->session;
    const ls_metric_sums *now = &x->c.now;

    print_subject(x, j, r);
    print_rates(s, a);
    print_ranks(&a->times);
    print_exchange(s, a);
    print_data(j->real[0], a);
    print_stolen(a);
    print_against(j, r);
    print_peak(a, r);
    print_memory(s, a);
    printf("allocations   %g per step\n", a->times.allocs_per_step);
    printf("last step    ");
    for (int i = 0; i < now->n; i++) printf(" %s %.5g", now->name[i], ls_metric_mean(now, now->name[i]));
    printf("\n");
}
