/* test_verify.c: which rank is blamed for weights that differ. */
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "exec/peers.h"
#include "exec/state.h"
#include "graph/graph.h"
#include "tensors.h"
#include "train/team.h"

/* -- the vote ---------------------------------------------------------------------------------------------
 */

enum { MOST = 8 };

/* Of ranks that have pieces in turn, as those of groups do; with one piece all have the same. */
static bool judge(const uint64_t *word, int n, int pieces, const char *kind, char *text, size_t bytes)
{
    ls_vote v[MOST];

    for (int i = 0; i < n; i++) v[i] = (ls_vote){.word = word[i], .piece = i % pieces};
    return ls_verify_judge(v, n, kind, text, bytes);
}

static void the_minority_is_named(void)
{
    char text[512], want[64];

    for (int odd = 0; odd < 3; odd++) {
        uint64_t word[3] = {7, 7, 7};
        CHECK(judge(word, 3, 1, "rank", text, sizeof text));
        word[odd] = 8;
        CHECK(!judge(word, 3, 1, "rank", text, sizeof text));
        snprintf(want, sizeof want, "rank %d: other weights than ranks", odd);
        CHECK_CONTAINS(text, want);
    }
}

static void without_a_majority_both_sides_are(void)
{
    const uint64_t two[2] = {1, 2}, four[4] = {1, 2, 2, 1}, all[3] = {1, 2, 3};
    char text[512];

    CHECK(!judge(two, 2, 1, "rank", text, sizeof text));
    CHECK_EQ_STR(text, "other weights on rank 0 than on rank 1; too few agree to say whose are wrong");
    CHECK(!judge(four, 4, 1, "machine", text, sizeof text));
    CHECK_EQ_STR(
        text, "other weights on machines 0, 3 than on machines 1, 2; too few agree to say whose are wrong");
    CHECK(!judge(all, 3, 1, "rank", text, sizeof text));
    CHECK_CONTAINS(text, "too few agree");
}

/* Two pieces, which never agree with one another; nobody is blamed who was not compared. */
static void pieces_are_compared_with_the_same(void)
{
    static const struct {
        int n;
        uint64_t word[MOST];
        const char *text; /* NULL: all agree */
    } cases[] = {
        {4, {1, 2, 1, 2}, NULL},
        {4,
         {1, 2, 3, 4},
         "other weights on ranks 0, 1 than on ranks 2, 3; too few agree to say whose are wrong"},
        {4, {1, 2, 1, 4}, "other weights on rank 1 than on rank 3; too few agree to say whose are wrong"},
        {6, {1, 2, 3, 4, 1, 2}, "ranks 2, 3: other weights than ranks 0, 1, 4, 5, which agree"},
        {6, {1, 2, 1, 2, 1, 1}, "rank 5: other weights than ranks 1, 3, which agree"},
        /* Two groups are wrong, each in another piece: both are known. */
        {6, {3, 2, 1, 4, 1, 2}, "ranks 0, 3: other weights than ranks 1, 2, 4, 5, which agree"},
        /* Whose second piece is wrong nobody knows, and nobody is blamed for it. */
        {8, {1, 2, 3, 2, 1, 4, 1, 4}, "rank 2: other weights than ranks 0, 4, 6, which agree"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512] = "";
        CHECK_EQ_INT(judge(cases[i].word, cases[i].n, 2, "rank", text, sizeof text), cases[i].text == NULL);
        CHECK_EQ_STR(text, cases[i].text != NULL ? cases[i].text : "");
    }
}

/* -- ranks with variables ---------------------------------------------------------------------------------
 */

typedef struct rank {
    ls_comm *comm;
    int number, flipped; /* the rank whose weights have another bit; -1: none */
    int group;           /* so many ranks have a model between them; 0: each has one */
    ls_status status;
    ls_err err;
} rank;

enum { ELEMENTS = 100 }; /* that a rank has of a variable */

/* Three variables, of which groups have pieces; the last piece is not full. */
static void add_variables(ls_graph *g, int group)
{
    static const char *const names[] = {"conv1.weight", "conv2.weight", "fc.weight"};

    for (int i = 0; i < 3; i++) {
        const ls_value w =
            ls_graph_var(g, names[i], LS_VAR_PARAM, LS_F32, LS_SHAPE(ELEMENTS), (ls_init){LS_INIT_NORMAL, 1});
        ls_var *var = g->vars[i];
        ls_graph_fetch(ls_copy(w), names[i]);
        if (group == 0) continue;
        var->home = LS_HOME_SHARDED;
        var->whole = LS_SHAPE(group * ELEMENTS - 1);
        var->pieces = group;
        var->group = LS_GROUP_SHARD;
    }
}

static void flip_bit(const ls_state *state, int element)
{
    const ls_tensor *t = ls_state_find(state, "conv2.weight");
    const size_t at = (size_t)element * sizeof(uint32_t);
    uint32_t word;
    ls_err err = {0};

    REQUIRE_OK(ls_tensor_read(t, at, &word, sizeof word, &err), &err);
    word ^= 1;
    REQUIRE_OK(ls_tensor_write(t, at, &word, sizeof word, &err), &err);
}

static void *compare(void *arg)
{
    rank *r = arg;
    ls_device *dev = NULL;
    ls_peers *peers = NULL;
    ls_state *state = NULL;
    ls_graph *g = NULL;
    ls_plan *plan = NULL;
    ls_session session = {0};
    ls_err err = {0};

    ls_comm_set_shard_group(r->comm, r->group);
    REQUIRE_OK(ls_device_open(&dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_peers_create(&peers, r->comm, &(ls_peers_options){0}, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    ls_state_set_peers(state, peers);
    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    add_variables(g, r->group);
    REQUIRE_OK(ls_plan_compile_take(&plan, g, dev, state, &err), &err);
    init_state(state, 1);
    if (r->number == r->flipped) flip_bit(state, ELEMENTS - 2);
    /* What lies beyond the end of a variable is nobody's, and compared with nothing. */
    if (r->group > 0 && r->number == r->group - 1) flip_bit(state, ELEMENTS - 1);
    session.state = state;
    r->status = ls_team_compare_weights(r->comm, &session, &r->err);
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_peers_destroy(peers);
    ls_device_close(dev);
    return NULL;
}

static void flip(int ranks, int group, int flipped, rank all[MOST])
{
    ls_comm *comms[MOST];
    pthread_t threads[MOST];
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_threads(comms, ranks, &err), &err);
    for (int i = 0; i < ranks; i++) {
        all[i] = (rank){.comm = comms[i], .number = i, .flipped = flipped, .group = group};
        REQUIRE(pthread_create(&threads[i], NULL, compare, &all[i]) == 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < ranks; i++) ls_comm_close(comms[i]);
}

static void a_flipped_bit_is_found_on_any_rank(void)
{
    rank all[MOST];
    char want[64];

    flip(3, 0, -1, all);
    for (int i = 0; i < 3; i++) CHECK_EQ_INT(all[i].status, LS_OK);
    for (int odd = 0; odd < 3; odd++) {
        flip(3, 0, odd, all);
        snprintf(want, sizeof want, "comparing weights: rank %d: other weights than ranks", odd);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ_INT(all[i].status, LS_DISAGREE);
            CHECK_CONTAINS(all[i].err.text, want);
            CHECK_CONTAINS(all[i].err.text, "first in \"conv2.weight\"");
        }
    }
}

static void of_two_ranks_neither_is_blamed(void)
{
    rank all[MOST];

    for (int odd = 0; odd < 2; odd++) {
        flip(2, 0, odd, all);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ_INT(all[i].status, LS_DISAGREE);
            CHECK_CONTAINS(all[i].err.text, "on rank 0 than on rank 1; too few agree");
        }
    }
}

/* Two ranks have a model between them; the other groups have the same. */
static void a_flipped_bit_is_found_in_a_piece(void)
{
    static const struct {
        int ranks, odd;
        const char *text;
    } cases[] = {{6, 3, "comparing weights: rank 3: other weights than ranks 1, 5, which agree"},
                 {6, 4, "comparing weights: rank 4: other weights than ranks 0, 2, which agree"},
                 {4, 3, "comparing weights: other weights on rank 1 than on rank 3; too few agree"}};
    rank all[MOST];

    flip(4, 2, -1, all);
    for (int i = 0; i < 4; i++) CHECK_EQ_INT(all[i].status, LS_OK);
    flip(2, 2, 1, all); /* one group: nobody has the same */
    for (int i = 0; i < 2; i++) CHECK_EQ_INT(all[i].status, LS_OK);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        flip(cases[k].ranks, 2, cases[k].odd, all);
        for (int i = 0; i < cases[k].ranks; i++) {
            CHECK_EQ_INT(all[i].status, LS_DISAGREE);
            CHECK_CONTAINS(all[i].err.text, cases[k].text);
            CHECK_CONTAINS(all[i].err.text, "first in \"conv2.weight\"");
        }
    }
}

int main(void)
{
    CHECK_RUN(the_minority_is_named);
    CHECK_RUN(without_a_majority_both_sides_are);
    CHECK_RUN(pieces_are_compared_with_the_same);
    CHECK_RUN(a_flipped_bit_is_found_on_any_rank);
    CHECK_RUN(of_two_ranks_neither_is_blamed);
    CHECK_RUN(a_flipped_bit_is_found_in_a_piece);
    return CHECK_DONE();
}
