/* predict_table.h: the questions of a `lockstep predict`, and their answers. */
#ifndef LS_CMD_PREDICT_TABLE_H
#define LS_CMD_PREDICT_TABLE_H

#include "cli.h"
#include "predict/program.h"

enum { PREDICT_PLANS = LS_OUTLINE_PLANS, PREDICT_WAYS = 8 };

/* A strategy: its plan is compiled once and holds for all numbers of ranks. */
typedef struct predict_way {
    char strategy[32];
    char why[LS_ERR_TEXT_MAX]; /* it cannot be had; "": it can */
    ls_program program;
    ls_plan_memory memory; /* of a rank, for as many as `ranks` */
    int ranks, group;      /* of a model between several ranks; 0: all are one */
} predict_way;

/* What a step is compiled from. */
typedef struct predict_step {
    const ls_trial *trial;
    ls_config *cfg; /* afterwards what it was */
    const ls_machine *machine;
    int ranks_per_node, threads; /* threads 0: the cores at hand */
    int ranks;                   /* for exactly so many; 0: for as few as have all that more would have */
    double step_time;            /* of a rank alone, known from elsewhere; 0: from its nodes */
} predict_step;

/* Compiles the step of w->strategy.  A strategy that cannot be had is one answer among others: w->why.
 * Release in any case. */
ls_status predict_way_open(predict_way *w, const predict_step *s, ls_err *err) LS_MUST_CHECK;
void predict_way_release(predict_way *w);

typedef struct predict_row {
    int way; /* of the table's */
    int ranks;
    char why[LS_ERR_TEXT_MAX]; /* there is no answer; "": there is */
    ls_prediction p;
} predict_row;

/* All questions of a command line, and the answers. */
typedef struct predict_table {
    const char *name; /* the experiment's */
    int64_t batch;    /* of a rank */
    ls_machine machine;
    ls_network network;
    ls_algorithm algorithm;
    ls_job_placement placement; /* as asked for: kind, seed, ranks_per_node */
    int engine;                 /* an ls_engine, or -1 */
    double step_time;           /* of a rank alone, as given; 0: from its nodes */
    predict_way way[PREDICT_WAYS];
    int n_ways;
    predict_row *rows;
    int n;
    size_t cap;
} predict_table;

/* What one row of the table asks; predictions of sensitivity and timelines start from it. */
ls_predict_args predict_args_of(const predict_table *t, const predict_row *r);
/* predict_args_of, answered: a placement that is no plain one is drawn here. */
ls_status predict_answer(const predict_table *t, const ls_predict_args *a, ls_prediction *out,
                         ls_err *err) LS_MUST_CHECK;

/* Fills r->p, or r->why, from r->way and r->ranks. */
ls_status predict_answer_row(const predict_table *t, predict_row *r, ls_err *err) LS_MUST_CHECK;

void predict_print_text(const predict_table *t);
void predict_print_json(const predict_table *t, const char *page);
void predict_print_csv(const predict_table *t);
/* FOLDER/report.html with charts; `page` receives its path. */
ls_status predict_page(const predict_table *t, const char *folder, char *page, size_t size,
                       ls_err *err) LS_MUST_CHECK;

/* A change of one thing that would help, or not. */
typedef struct predict_change {
    const char *what; /* "twice the bandwidth" */
    double step_s;    /* with it */
} predict_change;
enum { PREDICT_CHANGES = 6 };
/* What changes do to a row; returns how many there are. */
int predict_sensitivity(const predict_table *t, const predict_row *r, predict_change *out);

#endif
