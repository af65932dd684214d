/* failures.h: what failures of machines, and checkpoints against them, add to a run.
 *
 * A job stops when any of its machines fails.  Failures are independent and exponential: at any moment the
 * next one is as far away as at any other.  Training is lost back to the last checkpoint, and machines may
 * fail again while a checkpoint is written or the job starts again. */
#ifndef LS_PREDICT_FAILURES_H
#define LS_PREDICT_FAILURES_H

/* Seconds, all above 0. */
typedef struct ls_failures {
    double mtbf_s;       /* of the job: the mean time between failures of any of its machines */
    double checkpoint_s; /* while one is written, nothing is trained */
    double restart_s;    /* from a failure until training goes on from the last checkpoint */
} ls_failures;

/* Seconds of training between two checkpoints that make the expected time least, and their first order. */
double ls_failures_daly(const ls_failures *f);
double ls_failures_young(const ls_failures *f);

/* Expectations for a run of so many seconds of training with a checkpoint after every `interval_s` of them
 * and one at its end.  They add up: seconds = training + checkpoints_s + lost_s. */
typedef struct ls_failures_cost {
    double seconds;       /* INFINITY: it would never end */
    double scatter_s;     /* standard deviation of one run's time around that */
    double checkpoints_s; /* that are of use */
    double lost_s;        /* training and checkpoints done again, and restarts */
    double failures;      /* how many */
} ls_failures_cost;

ls_failures_cost ls_failures_expect(const ls_failures *f, double training_s, double interval_s);

#endif
