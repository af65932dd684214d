/* batches.c: sizes of batches from sizes of sets. */
#include "train/batches.h"

typedef struct sizes {
    ls_batch_size *list;
    int n;
    int64_t usual;
    int64_t parts; /* of a batch of all ranks: the ranks', or shards */
} sizes;

static void add(sizes *s, ls_mode mode, bool images, int64_t n)
{
    if (n < 1 || (n == s->usual && !images)) return;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].mode == mode && s->list[i].images == images && s->list[i].n == n) return;
    LS_BUG_IF(s->n == LS_BATCH_SIZES);
    s->list[s->n++] = (ls_batch_size){mode, images, n};
}

/* A batch of all ranks in parts, whose sizes differ by one at most. */
static void add_parts(sizes *s, ls_mode mode, int64_t n)
{
    if (n == 0) return;
    add(s, mode, false, (n + s->parts - 1) / s->parts);
    add(s, mode, false, n / s->parts);
}

/* Who gets nothing of a set, or of its end, has a plan for one sample: of what there is to tell, and to hand
 * pieces of the weights to the others. */
static void add_set(sizes *s, int64_t n, int64_t global)
{
    if (n == 0) return;
    add_parts(s, LS_EVAL, n % global);
    if (n % global < s->parts && (n < global || n % global > 0)) add(s, LS_EVAL, false, 1);
}

int ls_batches_odd(ls_batch_size out[LS_BATCH_SIZES], const ls_update *u, int64_t usual, int ranks,
                   const ls_run_sets *sets)
{
    sizes s = {.list = out, .usual = usual, .parts = u->shards > 0 ? u->shards : ranks};

    if (sets->train > 0) {
        add_parts(&s, LS_TRAIN, u->global);
        add_parts(&s, LS_TRAIN, sets->train % u->global);
        if (sets->anywhere || sets->skips > 0) add(&s, LS_TRAIN, false, usual - 1);
    }
    add_set(&s, sets->test, usual * s.parts);
    add_set(&s, sets->val, usual * s.parts);
    if ((u->shards > 0 || sets->single) && sets->test + sets->val > 0) add(&s, LS_EVAL, false, 1);
    if (sets->skips > 0 && sets->test + sets->val > 0) add(&s, LS_EVAL, false, usual - 1);
    if (sets->test > 0) add(&s, LS_EVAL, true, sets->pictures < sets->test ? sets->pictures : sets->test);
    return s.n;
}
