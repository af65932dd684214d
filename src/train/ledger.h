/* ledger.h: where the seconds of a run went, over all its processes.
 *
 * The parts add up to the run's wall time: from each process's start to its end, without the time between
 * two processes, when nothing ran.  What a process did after the checkpoint that the next one continues from
 * counts as redone there. */
#ifndef LS_TRAIN_LEDGER_H
#define LS_TRAIN_LEDGER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ls_ledger {
    double setup;      /* before the first step of the first process */
    double compute;    /* training steps */
    double evaluate;   /* validation and test passes */
    double comm;       /* waiting for other ranks */
    double data;       /* waiting for samples */
    double checkpoint; /* the training thread's share of writing them */
    double restart;    /* before the first step of every later process */
    double redone;     /* lost between a checkpoint and the end of a process */
    double idle;       /* the rest: reports, summaries */
} ls_ledger;

double ls_ledger_total(const ls_ledger *l);
/* {"compute": seconds, ...}; NULL when memory runs out. */
json_t *ls_ledger_json(const ls_ledger *l);
/* The reverse.  What is missing is 0; without an object all of `seconds` is idle. */
void ls_ledger_read(ls_ledger *l, const json_t *from, double seconds);

/* The ledger that summary.json of the run in `folder` holds, where it is of the same step and has more of it
 * than *l: what came after the checkpoint (the test pass, the wait for the disk) need not be done again. */
void ls_ledger_recall(ls_ledger *l, const char *folder, int64_t step);
/* Seconds that the run in `folder` is known to have taken: by its summary.json, or, where it had no time to
 * write a last one, by its last line of metrics if that is later; 0 when there is neither. */
double ls_ledger_known_seconds(const char *folder);
/* A process is about to make its first step, `setup` seconds after its start.  `resumed`: it continues from a
 * checkpoint whose ledger *l is, in a run that had taken `known` seconds. */
void ls_ledger_begin(ls_ledger *l, bool resumed, double known, double setup);

#endif
