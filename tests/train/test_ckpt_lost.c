/* test_ckpt_lost.c: a checkpoint that two ranks write together and that fails says that the run goes on where
 * it does: after a failure of the disk, not after the loss of a rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "check.h"
#include "ckpt/ckpt.h"
#include "exec/pieces.h"
#include "ranks_test.h"
#include "train/rehearsal.h"

enum { RANKS = 2 };

static char folder[64], said[4096];

static void note(void *arg, ls_log_level level, bool shown, const char *line, size_t n)
{
    const size_t at = strlen(said);

    (void)arg;
    (void)level;
    (void)shown;
    snprintf(said + at, sizeof said - at, "%.*s", (int)n, line);
}

static void lead(const ls_session *s, bool lost)
{
    const ls_ckpt_keep keep = {.last = 1, .at_once = true};
    ls_ckpt_writer *w = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_ckpt_writer_create(&w, folder, keep, ls_ckpt_bytes(s->state), &err), &err);
    if (!lost) { /* there is no such disk any more */
        char reserve[80];
        snprintf(reserve, sizeof reserve, "%s/.reserve", folder);
        REQUIRE(unlink(reserve) == 0 && rmdir(folder) == 0);
    }
    ls_log_set_hook(&(ls_log_hook){.keep = LS_LOG_WARN, .line = note});
    REQUIRE_OK(ls_ckpt_writer_submit(w, 1, s->state, 1, NULL, 0, &err), &err);
    ls_log_set_hook(NULL);
    CHECK((ls_pieces_end(s->state, &err) == LS_OK) == !lost);
    CHECK(strstr(said, "checkpoint of step 1") != NULL);
    CHECK(strstr(said, "the last good one stays") != NULL);
    CHECK((strstr(said, "the run goes on") != NULL) == !lost);
    ls_ckpt_writer_destroy(w);
}

static void be_rank(ls_comm *comm, const void *arg)
{
    const bool lost = *(const bool *)arg;
    const char *const settings[] = {"ranks=2", "batch.per_rank=1", "model.depth=2", "parallel.strategy=fsdp"};
    ls_experiment x = {0};
    ls_rehearsal r = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_experiment_load(&x, "vit-tiny", settings, (int)(sizeof settings / sizeof *settings), &err),
               &err);
    REQUIRE_OK(ls_rehearsal_open(&r, &x, 1, false, comm, &err), &err);
    if (r.session.rank == 0)
        lead(&r.session, lost);
    else if (lost)
        ls_comm_abort(comm, "killed");
    else
        CHECK_OK(ls_pieces_serve(r.session.state, ls_ckpt_assist, &err), &err);
    ls_rehearsal_release(&r);
    ls_experiment_release(&x);
}

static void run_ranks(bool lost)
{
    char command[80];

    snprintf(folder, sizeof folder, "/tmp/lockstep-ckpt-lost-XXXXXX");
    REQUIRE(mkdtemp(folder) != NULL);
    ranks_each(RANKS, be_rank, &lost);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
}

static void a_disk_does_not_end_a_run(void)
{
    run_ranks(false);
}

static void a_rank_does(void)
{
    run_ranks(true);
}

int main(void)
{
    if (setenv("LOCKSTEP_TUNE", "off", 1) != 0) return 1;
    CHECK_RUN(a_disk_does_not_end_a_run);
    CHECK_RUN(a_rank_does);
    return CHECK_DONE();
}
