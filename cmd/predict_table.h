/* predict_table.h: the questions of a `lockstep predict`, and their answers. */
#ifndef LS_CMD_PREDICT_TABLE_H
#define LS_CMD_PREDICT_TABLE_H

#include "base/stats.h"
#include "base/text.h"
#include "cli.h"
#include "predict/program.h"
#include "train/alternatives.h"

enum { PREDICT_PLANS = LS_OUTLINE_PLANS, PREDICT_WAYS = 96, PREDICT_LINE = 64, PREDICT_VARIANTS = 2 };

/* A strategy at a batch: its plan is compiled once and holds for all numbers of ranks, or for `only` one. */
typedef struct predict_way {
    char strategy[32];
    int64_t batch;             /* of a rank; 0: as the settings say */
    int only;                  /* of all numbers of ranks it is for this one; 0: for any */
    bool shared;               /* `batch` is what a rank has of batch.global, rounded up */
    int64_t own, global;       /* samples of an update of one rank alone; of all ranks (0: as many of each) */
    int line;                  /* of the table's, that it belongs to */
    char why[LS_ERR_TEXT_MAX]; /* it cannot be had; "": it can */
    ls_program program;
    ls_program alone; /* of one rank, which exchanges and divides nothing, whatever the strategy; */
    char why_alone[LS_ERR_TEXT_MAX]; /* that cannot be had */
    ls_plan_memory memory;           /* of a rank, for as many as `ranks` */
    int recomputed;                  /* units of the model that are computed again, */
    int recomputed_alone;            /* and that one rank alone does */
    int ranks, group;                /* of a model between several ranks; 0: all are one */
    /* The same step under another setting, where that changes it (predict_variants_open). */
    ls_program variant[PREDICT_VARIANTS];
    const char *variant_brief[PREDICT_VARIANTS];
    char variant_name[PREDICT_VARIANTS][48]; /* "with buckets of 32 MiB"; "": it changes nothing */
} predict_way;

/* What a step is compiled from. */
typedef struct predict_step {
    const ls_trial *trial;
    ls_config *cfg; /* afterwards what it was */
    const ls_machine *machine;
    int ranks_per_node, threads; /* of a rank; 0: the cores at hand */
    int ranks;                   /* for exactly so many; 0: for as few as have all that more would have */
    double step_time;            /* of a rank alone, known from elsewhere; 0: from its nodes */
} predict_step;

/* Compiles the step of w->strategy and w->batch.  A strategy that cannot be had is one answer among others:
 * w->why. Release in any case. */
ls_status predict_way_open(predict_way *w, const predict_step *s, ls_err *err) LS_MUST_CHECK;
void predict_way_release(predict_way *w);
/* What is compiled for so many ranks. */
ls_alternative predict_alternative(const predict_way *w, const predict_step *s, int ranks);
/* Whether plans depend on the number of ranks: updates are cut into as many shards whatever that is, so that
 * ranks run batches of other sizes, and other numbers of them (reproducible=true). */
bool predict_by_ranks(const predict_step *s);
/* Compiles what sensitivity asks of a way beside the way itself: overlap turned round, and larger buckets. */
ls_status predict_variants_open(predict_way *w, const predict_step *s, ls_err *err) LS_MUST_CHECK;

/* What was measured of a row (--measured), of all its results together. */
typedef struct predict_measured {
    int n;          /* results; 0: none */
    ls_spread rate; /* samples/s of all ranks: median and central 68 % of their steps */
    double error;   /* predicted over measured samples/s, minus 1 */
    bool within;    /* the measured median is within the band */
} predict_measured;

typedef struct predict_row {
    int way; /* of the table's */
    int ranks;
    char why[LS_ERR_TEXT_MAX]; /* there is no answer; "": there is */
    size_t memory;             /* of a rank, planned for just these ranks; 0: nobody has asked */
    bool unfit;                /* more than may be taken, which `why` says; p is what it would do otherwise */
    ls_prediction p;
    predict_measured measured;
} predict_row;

/* How near predictions came, over all rows that were measured. */
typedef struct predict_nearness {
    int compared, inside;
    double median, largest; /* of the errors, without sign */
    int largest_at;         /* a row */
    ls_text unmatched;      /* what was measured and is compared with nothing, and why: a line each */
} predict_nearness;

/* All questions of a command line, and the answers. */
typedef struct predict_table {
    const char *name;  /* the experiment's */
    int64_t batch;     /* of a rank; 0: several */
    char batches[256]; /* for people: "64 per rank", "16, 32, 64 per rank", "1024 of all ranks" */
    ls_machine machine;
    ls_network network;
    ls_algorithm algorithm;
    ls_job_placement placement; /* as asked for: kind, seed, ranks_per_node; of a list all of its machines */
    int n_placed;               /* so many */
    int engine;                 /* an ls_engine, or -1 */
    double step_time;           /* of a rank alone, as given; 0: from its nodes */
    predict_way way[PREDICT_WAYS];
    int n_ways;
    /* Curves: ways that differ in nothing but what the number of ranks makes of them. */
    char line[PREDICT_WAYS][PREDICT_LINE];
    int n_lines;
    predict_row *rows;
    int n;
    size_t cap;
    bool has_measured; /* rows have what --measured names */
    predict_nearness near;
    struct predict_runs *runs; /* whole runs (predict_run.h); NULL: nobody has asked */
} predict_table;

/* Samples of an update among so many ranks, as `train` counts them. */
int64_t predict_update_of(const predict_way *w, int ranks);
/* What one row of the table asks; predictions of sensitivity and timelines start from it. */
ls_predict_args predict_args_of(const predict_table *t, const predict_row *r);
/* predict_args_of, answered: a placement that is no plain one is drawn here. */
ls_status predict_answer(const predict_table *t, const ls_predict_args *a, ls_prediction *out,
                         ls_err *err) LS_MUST_CHECK;
/* The same with ls_predict_timeline. */
ls_status predict_answer_timeline(const predict_table *t, const ls_predict_args *a, ls_predict_span **spans,
                                  int *n, ls_err *err) LS_MUST_CHECK;

/* --placement (predict_placement.c): a word, or a list whose t->placement.node is to be freed; the list as a
 * whole against t->network.  Fill finds the machines of p->ranks; of a random placement p->node is to be
 * freed, also after an error. */
ls_status predict_placement_read(predict_table *t, const char *word, ls_err *err) LS_MUST_CHECK;
ls_status predict_placement_check(const predict_table *t, ls_err *err) LS_MUST_CHECK;
ls_status predict_placement_fill(const predict_table *t, ls_job_placement *p, ls_err *err) LS_MUST_CHECK;

/* Fills r->p, or r->why, from r->way and r->ranks. */
ls_status predict_answer_row(const predict_table *t, predict_row *r, ls_err *err) LS_MUST_CHECK;

/* Files of --measured: those of the option, and words after it that are no key=value, which leave
 * args->settings. Room for CLI_LIST_MAX + args->n_settings; returns how many. */
int predict_measured_files(cli_args *args, const char **files);
/* Before anything is computed: LS_INVALID names one that is not there. */
ls_status predict_measured_check(const char *const *files, int n, ls_err *err) LS_MUST_CHECK;
/* Reads them and puts what they hold beside the rows; what belongs to no row is in t->near.unmatched.
 * LS_INVALID where that is all, LS_DATA where a file is no result. */
ls_status predict_measured_add(predict_table *t, const cli_args *args, const char *const *files, int n,
                               ls_err *err) LS_MUST_CHECK;

/* "ddp", or where there are several batches "ddp, 32": names the way of a row. */
const char *predict_line_of(const predict_table *t, const predict_row *r);

/* Finds what a rank takes of memory in a row, with a plan for just its ranks; what is more than `limit` (0:
 * none) is said in r->why (predict_memory.c). */
ls_status predict_memory_of(const predict_table *t, predict_row *r, const predict_step *s, size_t limit,
                            ls_err *err) LS_MUST_CHECK;

void predict_print_text(const predict_table *t);
void predict_print_json(const predict_table *t, const char *page);
void predict_print_csv(const predict_table *t);
/* FOLDER/report.html with charts; `page` receives its path. */
ls_status predict_page(const predict_table *t, const char *folder, char *page, size_t size,
                       ls_err *err) LS_MUST_CHECK;

/* A change of one thing that would help, or not. */
typedef struct predict_change {
    char what[64];     /* "twice the bandwidth" */
    const char *brief; /* for a chart on a phone: "bandwidth x 2" */
    double step_s;     /* with it */
} predict_change;
enum { PREDICT_CHANGES = 6 };
/* What changes do to a row; returns how many there are.  Those of settings are among them where the way has
 * its variants. */
int predict_sensitivity(const predict_table *t, const predict_row *r, predict_change *out);

#endif
