/* test_ckpt_memory_slow.c: saving and loading a model that four ranks have in pieces takes little beside the
 * pieces: on no rank more than 1.2 times a shard and a unit, by the allocator's counters and by what the
 * system says of the process. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "ckpt/ckpt.h"
#include "exec/memory.h"
#include "exec/pieces.h"
#include "ranks_test.h"
#include "train/rehearsal.h"

enum { RANKS = 4, WIDTH = 512, DEPTH = 6 };

static char folder[] = "/tmp/lockstep-ckpt-memory-XXXXXX";

/* -- what a process takes ---------------------------------------------------------------------------------
 */

typedef struct watching {
    size_t live, resident; /* when it began */
} watching;

static size_t of_status(const char *field)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, field, strlen(field)) == 0) kib = strtoull(line + strlen(field) + 1, NULL, 10);
    if (f != NULL) fclose(f);
    return (size_t)kib * 1024;
}

static watching watch(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    REQUIRE(fd >= 0 && write(fd, "5", 1) == 1 && close(fd) == 0); /* the high-water mark begins anew */
    ls_mem_restart_peak();
    return (watching){ls_mem_stats_now().peak_bytes, of_status("VmRSS:")};
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What was taken at most since then, beside what was there. */
static size_t taken(const watching *w)
{
    const size_t resident = of_status("VmHWM:"), peak = ls_mem_stats_now().peak_bytes;

    return larger(resident > w->resident ? resident - w->resident : 0, peak - w->live);
}

/* -- a rank -----------------------------------------------------------------------------------------------
 */

static size_t shard_bytes(const ls_session *s)
{
    ls_plan_memory m = {0};

    ls_memory_add_state(&m, s->state);
    return m.total;
}

static uint64_t hash_of_pieces(const ls_state *s)
{
    uint64_t all = 0;
    ls_err err = {0};

    for (int i = 0; i < ls_state_count(s); i++) {
        uint64_t hash = 0;
        if (!ls_state_in_pieces(s, i)) continue; /* what every rank has, it gets from rank 0 */
        REQUIRE_OK(ls_tensor_hash(ls_state_at(s, i), all, &hash, &err), &err);
        all = hash;
    }
    return all;
}

static void save(const ls_session *s)
{
    const ls_ckpt_keep keep = {.last = 1, .at_once = ls_pieces_any(s->state, NULL)};
    ls_ckpt_writer *w = NULL;
    ls_err err = {0};

    if (s->rank != 0) {
        REQUIRE_OK(ls_pieces_serve(s->state, ls_ckpt_assist, &err), &err);
        return;
    }
    REQUIRE_OK(ls_ckpt_writer_create(&w, folder, keep, ls_ckpt_bytes(s->state), &err), &err);
    REQUIRE_OK(ls_ckpt_writer_submit(w, 1, s->state, 1, NULL, 0, &err), &err);
    REQUIRE_OK(ls_ckpt_writer_wait(w, &err), &err);
    REQUIRE_OK(ls_pieces_end(s->state, &err), &err);
    ls_ckpt_writer_destroy(w);
}

static void load(const ls_session *s)
{
    char path[256], name[LS_CKPT_NAME];
    ls_ckpt *c = NULL;
    ls_err err = {0};

    if (s->rank != 0) {
        REQUIRE_OK(ls_pieces_serve(s->state, ls_ckpt_assist, &err), &err);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", folder, ls_ckpt_name(1, name));
    REQUIRE_OK(ls_ckpt_open(&c, path, &err), &err);
    REQUIRE_OK(ls_ckpt_load_state(c, s->state, &err), &err);
    REQUIRE_OK(ls_pieces_end(s->state, &err), &err);
    ls_ckpt_close(c);
}

static void check_taken(const char *what, int rank, size_t bytes, size_t shard)
{
    const size_t unit = (size_t)12 * WIDTH * WIDTH * sizeof(float); /* a block's weights */
    const double most = 1.2 * (double)(shard + unit);

    printf("  rank %d, %s: %.1f MiB beside a shard of %.1f MiB; a unit has %.1f MiB\n", rank, what,
           (double)bytes / (1 << 20), (double)shard / (1 << 20), (double)unit / (1 << 20));
    CHECK((double)(shard + bytes) < most);
}

static void be_rank(ls_comm *comm, const void *strategy)
{
    char width[32], depth[32], how[64];
    const char *const settings[] = {"ranks=4",       "batch.per_rank=1", width, depth,
                                    "model.heads=4", "model.mlp=2048",   how};
    ls_experiment x = {0};
    ls_rehearsal r = {0};
    ls_err err = {0};
    watching w;
    uint64_t before;
    size_t shard;
    bool last = true;

    snprintf(width, sizeof width, "model.width=%d", WIDTH);
    snprintf(depth, sizeof depth, "model.depth=%d", DEPTH);
    snprintf(how, sizeof how, "parallel.strategy=%s", (const char *)strategy);
    REQUIRE_OK(ls_experiment_load(&x, "vit-tiny", settings, (int)(sizeof settings / sizeof *settings), &err),
               &err);
    REQUIRE_OK(ls_rehearsal_open(&r, &x, 1, false, comm, &err), &err);
    REQUIRE_OK(ls_rehearsal_step(&r, &last, &err), &err); /* so that optimisers remember something */
    shard = shard_bytes(&r.session);
    before = hash_of_pieces(r.session.state);
    w = watch();
    save(&r.session);
    check_taken("saving", r.session.rank, taken(&w), shard);
    REQUIRE_OK(ls_state_init(r.session.state, 77, &err), &err);
    CHECK(hash_of_pieces(r.session.state) != before);
    w = watch();
    load(&r.session);
    check_taken("loading", r.session.rank, taken(&w), shard);
    CHECK(hash_of_pieces(r.session.state) == before);
    ls_rehearsal_release(&r);
    ls_experiment_release(&x);
}

static void shards_and_a_unit_are_enough(void)
{
    ranks_each(RANKS, be_rank, "fsdp");
    ranks_each(RANKS, be_rank, "zero1");
}

int main(void)
{
    char command[128];

    if (setenv("LOCKSTEP_TUNE", "off", 1) != 0 || mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(shards_and_a_unit_are_enough);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) return 1;
    return CHECK_DONE();
}
