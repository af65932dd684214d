/* tested.c: evaluations of a run: validations, and the test at the end with the best weights.
 *
 * The best weights take the place of the last ones for the test alone: the last are kept in memory and put
 * back afterwards, so that what the run leaves is what it trained. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "exec/pieces.h"
#include "train/aside.h"
#include "train/confusion.h"
#include "train/evaluate.h"
#include "train/run.h"
#include "train/team.h"

ls_status lsi_run_evaluate(lsi_run *r, const ls_dataset *data, bool outputs, ls_confusion *confusion,
                           ls_metric_sums *sums, ls_err *err)
{
    const double before = ls_clock_seconds(),
                 epoch = (double)r->c.epoch + (double)r->c.position / (double)ls_dataset_count(r->train);
    ls_gather gather = {.samples = ls_dataset_count(data),
                        .stride = outputs ? ls_config_int(r->cfg, "train.output_stride") : 0,
                        .confusion = confusion};
    ls_err trouble = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_evaluate(&r->session, data, &gather, sums, err));
    if (lsi_run_leads(r)) LS_TRY(ls_run_check(r->o->run, err)); /* or half a run would be made anew */
    if (lsi_run_leads(r) && ls_gather_write(&gather, r->dir.path, epoch, &trouble) != LS_OK)
        ls_log(LS_LOG_WARN, "%s", trouble.text); /* worth a warning, not the run */
out:
    r->summary.evaluate_s += ls_clock_seconds() - before;
    ls_gather_release(&gather);
    return st;
}

/* -- weights that make room -------------------------------------------------------------------------------
 */

/* Parameters and buffers of this rank; of those that ranks of a machine share, its first rank has them. */
static bool is_kept(const ls_session *s, int i)
{
    const ls_var_role role = ls_state_role(s->state, i);

    if (role != LS_VAR_PARAM && role != LS_VAR_BUFFER) return false;
    return s->comm == NULL || !ls_state_shared(s->state, i) || ls_comm_local_rank(s->comm) == 0;
}

/* -- which weights ----------------------------------------------------------------------------------------
 */

/* What rank 0 has decided. */
typedef struct choice {
    int64_t step; /* of the best checkpoint that is to be read; -1: the weights as they are */
    bool best;    /* those that are tested are the best */
} choice;

static choice choose(lsi_run *r, char path[LS_PATH_MAX + 16])
{
    choice c = {.step = -1};
    char name[LS_CKPT_NAME * 2];
    ssize_t n;

    if (strcmp(ls_config_choice(r->cfg, "train.test_weights"), "best") != 0 || !r->c.has_best) return c;
    (void)ls_ckpt_writer_wait(r->writer, &(ls_err){0});
    snprintf(path, LS_PATH_MAX + 16, "%s/best", r->dir.checkpoints);
    n = readlink(path, name, sizeof name - 1);
    if (n <= 0 && ls_config_int(r->cfg, "train.keep_best") == 0) return c; /* as the user wants it */
    if (n <= 0) {
        ls_log(LS_LOG_WARN,
               "no checkpoint was taken with a validation: the test is with the last weights, not the best "
               "(train.checkpoint_every, train.keep_best)");
        return c;
    }
    name[n] = '\0';
    c.step = ls_ckpt_step_of(name);
    c.best = c.step >= 0;
    if (c.step == r->c.step) c.step = -1; /* the last are the best */
    return c;
}

/* Reads the best weights on rank 0; on failure the last stay, with a warning: the training is done. */
static ls_status read_best(lsi_run *r, choice *c, const char *path, char *kept, ls_err *err)
{
    ls_ckpt *ckpt = NULL;
    ls_err why = {0};
    ls_status st = LS_OK;

    if (ls_ckpt_open(&ckpt, path, &why) != LS_OK ||
        ls_ckpt_load_model(ckpt, r->session.state, &why) != LS_OK) {
        ls_log(LS_LOG_WARN, "%s; the test is with the last weights, not the best", why.text);
        st = ls_aside_put_back(&r->session, is_kept, kept, err);
        *c = (choice){.step = -1};
    }
    if (st == LS_OK) st = ls_pieces_end(r->session.state, err);
    ls_ckpt_close(ckpt);
    return st;
}

/* The best weights on all ranks, the last ones in *kept (NULL: nothing was changed). */
static ls_status take_best(lsi_run *r, choice *c, char **kept, ls_err *err)
{
    char path[LS_PATH_MAX + 16];
    ls_comm *comm = r->session.comm;
    ls_counters ignored = r->c;
    double lacking = 0;
    ls_status st = LS_OK;

    if (lsi_run_leads(r)) *c = choose(r, path);
    if (comm != NULL) LS_TRY(ls_comm_broadcast(comm, c, sizeof *c, 0, "choosing the weights to test", err));
    if (c->step < 0) return LS_OK;
    *kept = ls_aside_room(&r->session, is_kept);
    lacking = *kept == NULL;
    LS_TRY(ls_team_add(comm, &lacking, 1, "keeping the last weights", err));
    if (lacking > 0) {
        if (lsi_run_leads(r))
            ls_log(LS_LOG_WARN, "no memory to keep the last weights: they are tested, not the best");
        ls_free(*kept);
        *kept = NULL;
        *c = (choice){.step = -1};
        return LS_OK;
    }
    LS_TRY(ls_aside_take(&r->session, is_kept, *kept, err));
    if (comm != NULL) LS_TRY(ls_comm_barrier(comm, "keeping the last weights", err));
    LS_TRY(lsi_run_leads(r) ? read_best(r, c, path, *kept, err)
                            : ls_pieces_serve(r->session.state, ls_ckpt_assist, err));
    if (comm != NULL) LS_TRY(ls_comm_broadcast(comm, c, sizeof *c, 0, "choosing the weights to test", err));
    if (c->step < 0 && !lsi_run_leads(r) && r->session.place.sharding == LS_SHARD_WEIGHTS)
        LS_TRY(ls_aside_put_back(&r->session, is_kept, *kept, err));
    LS_TRY(ls_team_share(comm, &r->session, &ignored, err));
out:
    return st;
}

static ls_status put_back(lsi_run *r, char *kept, ls_err *err)
{
    ls_comm *comm = r->session.comm;
    ls_status st = LS_OK;

    if (kept == NULL) return LS_OK;
    if (comm != NULL)
        LS_TRY(ls_comm_barrier(comm, "putting back the last weights", err)); /* all have tested */
    LS_TRY(ls_aside_put_back(&r->session, is_kept, kept, err));
    if (comm != NULL) LS_TRY(ls_comm_barrier(comm, "putting back the last weights", err));
out:
    ls_free(kept);
    return st;
}

/* confusion.json in the run directory; worth a warning, not the run. */
static void write_classes(lsi_run *r, const ls_confusion *confusion)
{
    const char *const *names = NULL;
    const int64_t n = ls_dataset_classes(r->test, &names);
    ls_err trouble = {0};
    json_t *o;

    if (!lsi_run_leads(r) || confusion->classes == 0) return;
    o = ls_confusion_json(confusion, names, n);
    if (o != NULL) {
        json_object_set_new(o, "weights", json_string(r->summary.tested));
        json_object_set_new(o, "step", json_integer((json_int_t)r->summary.tested_step));
    }
    if (o != NULL && ls_confusion_write(o, r->dir.path, &trouble) != LS_OK)
        ls_log(LS_LOG_WARN, "%s", trouble.text);
    json_decref(o);
}

ls_status lsi_run_test(lsi_run *r, bool outputs, ls_metric_sums *sums, ls_err *err)
{
    ls_confusion confusion = {0};
    choice c = {.step = -1};
    char *kept = NULL;
    ls_err back = {0};
    ls_status st = LS_OK;

    LS_TRY(take_best(r, &c, &kept, err));
    r->summary.tested = c.best ? "best" : "last";
    r->summary.tested_step = c.step >= 0 ? c.step : r->c.step;
    LS_TRY(lsi_run_evaluate(r, r->test, outputs, &confusion, sums, err));
    write_classes(r, &confusion);
out:
    ls_confusion_release(&confusion);
    if (st != LS_OK && !r->session.given_up) {
        ls_free(kept);
        return st;
    }
    if (put_back(r, kept, &back) == LS_OK) return st;
    if (err != NULL) *err = back;
    return back.status;
}
