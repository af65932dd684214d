/* predict_run.h: what `lockstep predict` says of whole runs: time, money, failures, and what to choose. */
#ifndef LS_CMD_PREDICT_RUN_H
#define LS_CMD_PREDICT_RUN_H

#include "predict/failures.h"
#include "predict/offers.h"
#include "predict/trainings.h"
#include "predict_table.h"
#include "report/report.h"

/* What is asked of a run. */
typedef struct predict_wish {
    const char *until;  /* as given; NULL: nothing is asked */
    ls_period length;   /* LS_PERIOD_NONE: until an accuracy */
    double accuracy;    /* 0 to 1 */
    int64_t samples;    /* of an epoch; 0: not known */
    bool samples_given; /* by --samples, and not from the data set */
    double price;       /* of a machine for an hour; 0: not given, and costs are in machine-hours */
    ls_limits limits;
    bool fails;    /* failures are asked about: */
    double mtbf_s; /* of one machine */
    double restart_s;
    double checkpoint_s; /* 0: by its bytes, */
    double checkpoint_bytes_s;
    double checkpoint_bytes; /* which are those of all variables */
} predict_wish;

/* The options of the command line; LS_INVALID for those that make no sense or lack another one. */
ls_status predict_wish_read(predict_wish *w, const cli_args *args, ls_err *err) LS_MUST_CHECK;

/* A row's run. */
typedef struct predict_run {
    char why[1024];     /* there is no answer; "": there is */
    int64_t batch;      /* samples of an update, of all ranks */
    ls_reached reached; /* of an accuracy */
    ls_interval steps;
    ls_interval training; /* seconds without failures */
    ls_failures failures; /* of the job; with wish.fails this and what follows: */
    double young_s, daly_s;
    bool ends_alone; /* the only checkpoint is at the end */
    ls_failures_cost expected;
    int offer; /* of the offers */
} predict_run;

typedef struct predict_runs {
    predict_wish wish;
    ls_trainings trainings;
    predict_run *of;  /* of every row of the table */
    ls_offer *offers; /* those that have an answer, by ranks */
    int n;
    int cheapest, fastest; /* offers; -1: none is within the limits */
} predict_runs;

/* Finds samples and trainings, which takes files; to be called before anything is compiled. */
ls_status predict_runs_open(predict_runs **out, const predict_wish *w, const cli_experiment *x,
                            const cli_args *args, ls_err *err) LS_MUST_CHECK;
/* Answers t->runs for all rows. */
ls_status predict_runs_answer(predict_table *t, const predict_step *s, ls_err *err) LS_MUST_CHECK;
void predict_runs_close(predict_runs *q); /* accepts NULL */
/* Whether a limit was given and nothing is within: exit code 1. */
bool predict_runs_none(const predict_table *t);

/* The parts of the outputs. */
void predict_runs_print(const predict_table *t);
json_t *predict_runs_json(const predict_table *t);
json_t *predict_run_json(const predict_table *t, const predict_row *r);
void predict_run_csv_head(void); /* ",batch_per_rank,..." */
void predict_run_csv(const predict_table *t, const predict_row *r);
/* A heading, a chart of cost against time, and the table of runs (predict_page_cost.c). */
ls_status predict_page_cost(ls_report *doc, const predict_table *t, ls_err *err) LS_MUST_CHECK;

/* "12:03 h" or "4.512 s"; money or machine-hours; "8 ranks ddp, 32". */
const char *predict_time(double s, char *buf);
const char *predict_money(double cost, char *buf);
const char *predict_row_name(const predict_table *t, const predict_row *r, char *buf, size_t size);
/* "may be beyond --budget", "interpolated between ...": what is to be known of a run beside its figures; ""
 * of most. */
const char *predict_run_remarks(const predict_table *t, const predict_row *r, char *buf, size_t size);

#endif
