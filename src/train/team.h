/* team.h: what the ranks of a run do together besides training: agree, share, add up.
 *
 * All functions but the first are collective, and with one rank they do nothing.  Rank 0 leads: it alone has
 * the run directory, the checkpoints and the reports. */
#ifndef LS_TRAIN_TEAM_H
#define LS_TRAIN_TEAM_H

#include "comm/comm.h"
#include "config/experiment.h"
#include "train/counters.h"
#include "train/session.h"

/* From here on waits are reported and ended as parallel.stall_s and parallel.stall_limit say; before, ranks
 * compile, each as long as it takes. */
void ls_team_watch(ls_comm *c, ls_config *cfg);
/* LS_DISAGREE unless all ranks were started with the same experiment; the text names a rank and the settings
 * that differ, with both values.  Where the data lie, and how many threads read them, may differ.  It comes
 * before anything that ranks do together because a setting says so: they would wait for one another in
 * different places, and say that instead. */
ls_status ls_team_agree(ls_comm *c, const ls_experiment *x, ls_err *err) LS_MUST_CHECK;
/* LS_DISAGREE unless all ranks have compiled the same plans; the text names a rank and the first of its plans
 * (training or gradients and update, by stage; evaluation) that differs from rank 0's. */
ls_status ls_team_agree_on_plans(ls_comm *c, const ls_session *s, ls_err *err) LS_MUST_CHECK;
/* After what each rank does for itself, and what mostly fails on all alike: a file that is not there, a batch
 * that the data do not have.  `st` and `err` say how it went here.  The first rank on which it failed keeps
 * its error, to be told by it alone; the others get its status with an empty text once that rank has gone. */
ls_status ls_team_fail_once(ls_comm *c, ls_status st, const char *what, ls_err *err) LS_MUST_CHECK;
/* Variables and counters of rank 0. */
ls_status ls_team_share(ls_comm *c, ls_session *s, ls_counters *counters, ls_err *err) LS_MUST_CHECK;
/* Rank 0's text, at most `size` bytes with its end. */
ls_status ls_team_share_text(ls_comm *c, char *text, size_t size, const char *what,
                             ls_err *err) LS_MUST_CHECK;
/* The sums of all ranks together, and of what they tell one another (NULL: nothing). */
ls_status ls_team_sum(ls_comm *c, ls_metric_sums *m, ls_control *control, ls_err *err) LS_MUST_CHECK;
/* Any number of values, element by element, in the order of ranks. */
ls_status ls_team_add(ls_comm *c, double *values, int64_t n, const char *what, ls_err *err) LS_MUST_CHECK;
enum { LS_TEAM_SETS = 3 };
/* LS_DISAGREE unless all ranks have opened the same data for training, test and validation (NULL: none):
 * numbers of samples, fields, classes, and a few samples of each set.  The text has both sides, with their
 * machines. */
ls_status ls_team_agree_on_data(ls_comm *c, const ls_dataset *const sets[LS_TEAM_SETS],
                                ls_err *err) LS_MUST_CHECK;
/* LS_DISAGREE unless all replicas of the model are the same.  The text names the ranks that are in the
 * minority, or both sides where there is none, and the first variable.  What ranks of a machine share is
 * compared between machines alone, and a piece between the ranks of several groups that have the same. */
ls_status ls_team_compare_weights(ls_comm *c, const ls_session *s, ls_err *err) LS_MUST_CHECK;
/* In the log of rank 0: what that leaves out, if anything. */
void ls_team_say_what_is_compared(const ls_comm *c, const ls_session *s);
/* What one rank or machine has to be compared. */
typedef struct ls_vote {
    uint64_t word; /* a hash */
    int32_t piece; /* of what: with others of the same number; 0 where all have the same */
    int32_t side;  /* the judge's own */
} ls_vote;
/* Whether the n hashes, by rank or machine (`kind`), are equal as far as they are of the same; if not, whose
 * are not is in `text`. */
bool ls_verify_judge(ls_vote *v, int n, const char *kind, char *text, size_t bytes);

#endif
