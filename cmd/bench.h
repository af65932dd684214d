/* bench.h: what the files of `lockstep bench` share: bench.c runs the command, bench_measure.c measures, the
 * others show the result. */
#ifndef LS_CMD_BENCH_H
#define LS_CMD_BENCH_H

#include "backend/backend.h"
#include "bench/probe.h"
#include "bench/ranks.h"
#include "cli.h"
#include "train/rehearsal.h"

enum { BENCH_VARIANTS = 2 }; /* the experiment, and what it is timed against */

typedef struct bench_job bench_job;
typedef struct bench_results bench_results;

/* Prints the result of the first variant, in rank 0. */
typedef void (*bench_printer)(const ls_rehearsal *x, const bench_job *j, const bench_results *r);

/* --beside N: ranks that take the experiment's steps while it is measured, each for itself; starts as {0}. */
typedef struct bench_shared bench_shared;
typedef struct bench_beside {
    int n;
    bench_shared *shared; /* by all of them */
    ls_launch_options options;
    ls_start start; /* of the measured rank and the others */
    ls_comm *comm;  /* of these; set in each */
} bench_beside;

/* What all ranks know. */
struct bench_job {
    const cli_args *args;
    cli_ranks ranks[BENCH_VARIANTS];
    bool real[BENCH_VARIANTS]; /* data=real */
    int n;
    bench_beside beside;
    char other[128]; /* the setting in which the second differs */
    int cores;       /* usable on this machine; 0: this process is bound to its own */
    bench_printer print;
};

/* One variant, of all ranks. */
typedef struct bench_result {
    ls_measure m;       /* of this rank */
    ls_job_times times; /* of all ranks */
    ls_spread rate;     /* samples per second, of all ranks */
    ls_estimate mean;   /* of that */
    double flops_per_sample, all_flops_per_sample, flop_s;
    double bytes_s;          /* operands that nodes of a rank's plans read and write, per second */
    size_t planned, used;    /* bytes of a rank */
    ls_device_memory memory; /* where they are: of a device with its own, its part of `used` */
} bench_result;

struct bench_results {
    bench_result of[BENCH_VARIANTS];
    double ratio;        /* with two: the median of the first one's steps over the second's next to them */
    ls_probe peak;       /* of all ranks at once */
    ls_probe core;       /* of one thread alone */
    ls_yardstick device; /* where a device with memory of its own computes, `peak` is that of all such */
    ls_crowd crowd;
    json_t *beside_s; /* --beside: the median step of each of the others meanwhile; NULL: there were none */
    int64_t begin_ms, run_ms, stop_ms; /* since 1970: the beginning, the first timed step, the end */
};

/* Opens the variants of `x`, measures them and fills `r`.  Collective.  Release in any case. */
ls_status bench_measure(ls_rehearsal x[BENCH_VARIANTS], const bench_job *j, const ls_place *place,
                        ls_comm *comm, bench_results *r, ls_err *err) LS_MUST_CHECK;
void bench_release(ls_rehearsal x[BENCH_VARIANTS], bench_results *r);

/* Before ranks are started: how they will be.  Nothing is done for n == 0.  Close in any case. */
ls_status bench_beside_open(bench_beside *b, int n, const cli_ranks *r, ls_err *err) LS_MUST_CHECK;
void bench_beside_close(bench_beside *b);
/* In all ranks but the first: takes steps until that one has measured. */
ls_status bench_beside_run(const bench_beside *b, const bench_job *j, const ls_place *place,
                           ls_err *err) LS_MUST_CHECK;
/* In the first: when it has compiled, lets the others compile, and returns when all have taken steps; ... */
ls_status bench_beside_begin(const bench_beside *b, ls_err *err) LS_MUST_CHECK;
/* ... the median step of other i since then, in seconds (NAN: it has not ended one yet); ... */
double bench_beside_step(const bench_beside *b, int i);
/* ... and lets them end. */
void bench_beside_end(const bench_beside *b);

/* The printer of a format; LS_INVALID when there is none of that name. */
#define BENCH_FORMATS "text, json, horovod, cosmogan or mlperf"
ls_status bench_format(const char *name, bench_printer *out, ls_err *err) LS_MUST_CHECK;
void bench_print_text(const ls_rehearsal *x, const bench_job *j, const bench_results *r);
/* The object that the next one prints. */
json_t *bench_json(const ls_rehearsal *x, const bench_job *j, const bench_results *r);
void bench_print_json(const ls_rehearsal *x, const bench_job *j, const bench_results *r);

/* --export FILE: measures the parts of the step and writes them.  Collective. */
ls_status bench_export(ls_rehearsal *x, const bench_job *j, const bench_results *r,
                       ls_err *err) LS_MUST_CHECK;
/* --compare A B: returns the exit code. */
int bench_compare(const cli_args *args);
/* --collectives: what it takes along, and the measurement, which returns the exit code. */
ls_status bench_collectives_check(const cli_args *args, ls_err *err) LS_MUST_CHECK;
int bench_collectives(const cli_args *args);

#endif
