/* ranks_test.h: runs an experiment on forked ranks and reads what it left. */
#ifndef TESTS_TRAIN_RANKS_TEST_H
#define TESTS_TRAIN_RANKS_TEST_H

#include <jansson.h>
#include <stdbool.h>

#include "comm/comm.h"

enum { RANKS_MAX = 16, RANKS_SETTINGS = 32 };

typedef struct ranks_job {
    const char *folder, *name, *model; /* the run is folder/name */
    int ranks, threads;                /* threads 0: 1 */
    bool resume;
    const char *odd; /* a setting that only the last rank has, or NULL */
    const char *settings[RANKS_SETTINGS];
} ranks_job;

/* Forks `ranks` that are connected, each of which does be_rank and ends as its checks did; waits for all, and
 * checks that none failed. */
void ranks_each(int ranks, void (*be_rank)(ls_comm *comm, const void *arg), const void *arg);

/* codes[rank] receives 0, or 10 minus the status with which its training failed; with `odd` the error's text
 * is then in folder/name.<rank>. */
void ranks_run(const ranks_job *j, int codes[RANKS_MAX]);
/* A metric (as train/loss_step) of all steps, at most n; returns how many. */
int ranks_metric(const ranks_job *j, const char *metric, double *values, int n);
/* train/loss_step. */
int ranks_losses(const ranks_job *j, double *losses, int n);
/* The hash of the weights in the end; "none" where there is none. */
void ranks_hash(const ranks_job *j, char hash[32]);
/* summary.json, to be released by json_decref; NULL: there is none. */
json_t *ranks_summary(const ranks_job *j);

#endif
