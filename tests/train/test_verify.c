/* test_verify.c: which rank is blamed for weights that differ. */
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "exec/state.h"
#include "graph/graph.h"
#include "tensors.h"
#include "train/team.h"

/* -- the vote ---------------------------------------------------------------------------------------------
 */

static void the_minority_is_named(void)
{
    char text[512], want[64];

    for (int odd = 0; odd < 3; odd++) {
        uint64_t word[3] = {7, 7, 7};
        CHECK(ls_verify_judge(word, 3, "rank", text, sizeof text));
        word[odd] = 8;
        CHECK(!ls_verify_judge(word, 3, "rank", text, sizeof text));
        snprintf(want, sizeof want, "rank %d: other weights than ranks", odd);
        CHECK_CONTAINS(text, want);
    }
}

static void without_a_majority_both_sides_are(void)
{
    const uint64_t two[2] = {1, 2}, four[4] = {1, 2, 2, 1}, all[3] = {1, 2, 3};
    char text[512];

    CHECK(!ls_verify_judge(two, 2, "rank", text, sizeof text));
    CHECK_EQ_STR(text, "other weights on rank 0 than on rank 1; too few agree to say whose are wrong");
    CHECK(!ls_verify_judge(four, 4, "machine", text, sizeof text));
    CHECK_EQ_STR(
        text, "other weights on machines 0, 3 than on machines 1, 2; too few agree to say whose are wrong");
    CHECK(!ls_verify_judge(all, 3, "rank", text, sizeof text));
    CHECK_CONTAINS(text, "too few agree");
}

/* -- ranks with variables ---------------------------------------------------------------------------------
 */

typedef struct rank {
    ls_comm *comm;
    int number, flipped; /* the rank whose weights have another bit; -1: none */
    ls_status status;
    ls_err err;
} rank;

static void *compare(void *arg)
{
    rank *r = arg;
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_graph *g = NULL;
    ls_plan *plan = NULL;
    ls_session session = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"conv1.weight", "conv2.weight", "fc.weight"};
        const ls_value w =
            ls_graph_var(g, names[i], LS_VAR_PARAM, LS_F32, LS_SHAPE(100), (ls_init){LS_INIT_NORMAL, 1});
        ls_graph_fetch(ls_copy(w), names[i]);
    }
    REQUIRE_OK(ls_plan_compile_take(&plan, g, dev, state, &err), &err);
    init_state(state, 1);
    if (r->number == r->flipped) {
        const ls_tensor *t = ls_state_find(state, "conv2.weight");
        uint32_t word;
        REQUIRE_OK(ls_tensor_read(t, 99 * sizeof word, &word, sizeof word, &err), &err);
        word ^= 1;
        REQUIRE_OK(ls_tensor_write(t, 99 * sizeof word, &word, sizeof word, &err), &err);
    }
    session.state = state;
    r->status = ls_team_compare_weights(r->comm, &session, &r->err);
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_device_close(dev);
    return NULL;
}

static void flip(int ranks, int flipped, rank all[3])
{
    ls_comm *comms[3];
    pthread_t threads[3];
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_threads(comms, ranks, &err), &err);
    for (int i = 0; i < ranks; i++) {
        all[i] = (rank){.comm = comms[i], .number = i, .flipped = flipped};
        REQUIRE(pthread_create(&threads[i], NULL, compare, &all[i]) == 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < ranks; i++) ls_comm_close(comms[i]);
}

static void a_flipped_bit_is_found_on_any_rank(void)
{
    rank all[3];
    char want[64];

    flip(3, -1, all);
    for (int i = 0; i < 3; i++) CHECK_EQ_INT(all[i].status, LS_OK);
    for (int odd = 0; odd < 3; odd++) {
        flip(3, odd, all);
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
    rank all[3];

    for (int odd = 0; odd < 2; odd++) {
        flip(2, odd, all);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ_INT(all[i].status, LS_DISAGREE);
            CHECK_CONTAINS(all[i].err.text, "on rank 0 than on rank 1; too few agree");
        }
    }
}

int main(void)
{
    CHECK_RUN(the_minority_is_named);
    CHECK_RUN(without_a_majority_both_sides_are);
    CHECK_RUN(a_flipped_bit_is_found_on_any_rank);
    CHECK_RUN(of_two_ranks_neither_is_blamed);
    return CHECK_DONE();
}
