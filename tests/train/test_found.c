/* test_found.c: what is said of gradients that are not finite: names of parameters and of ranks; and the list
 * of overflows that tests ask for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lockstep/nn.h"
#include "train/fault.h"
#include "train/found.h"

/* As a sum over ranks leaves it. */
static ls_found found_on(int64_t parameter, int n, const int *ranks)
{
    ls_found f = {.parameter = parameter, .scale = 1, .by_rank = true};

    for (int i = 0; i < n; i++) f.rank[ranks[i] % LS_GUARD_SLOTS] += ldexpf(1, ranks[i] / LS_GUARD_SLOTS);
    return f;
}

static ls_graph *record(void)
{
    ls_step *s = NULL;
    ls_graph *g;
    ls_value x;

    REQUIRE_OK(ls_step_create(&s, 2, LS_TRAIN, NULL), NULL);
    x = ls_linear(s, ls_input(s, "x", LS_F32, LS_SHAPE(-1, 3)), "fc", .out = 1);
    ls_minimise(s, ls_reduce_mean(ls_square(x), LS_ALL_AXES, false), "*",
                (ls_optimiser){.rule = LS_SGD, .lr = 0.1});
    g = ls_step_graph_take(s);
    ls_step_destroy(s);
    return g;
}

static void ranks_and_parameters_have_names(void)
{
    ls_graph *g = record();
    char text[256];
    ls_found f = {.parameter = 2};

    CHECK_EQ_STR(ls_found_text(&f, g, 1, text, sizeof text), "the gradient of \"fc.bias\" is not finite");
    f = found_on(1, 1, (const int[]){2});
    CHECK_EQ_STR(ls_found_text(&f, g, 4, text, sizeof text),
                 "the gradient of \"fc.weight\" is not finite on rank 2 of 4");
    f = found_on(1, 3, (const int[]){0, 17, 127});
    CHECK_EQ_STR(ls_found_text(&f, g, 128, text, sizeof text),
                 "the gradient of \"fc.weight\" is not finite on ranks 0, 17 and 127 of 128");
    f = found_on(1, 0, NULL);
    CHECK_CONTAINS(ls_found_text(&f, g, 4, text, sizeof text), "in the sum over 4 ranks");
    f = found_on(3, 1, (const int[]){1}); /* a number that no parameter has */
    CHECK_EQ_STR(ls_found_text(&f, g, 2, text, sizeof text), "a gradient is not finite on rank 1 of 2");
    ls_graph_destroy(g);
}

/* All ranks at once are as exact as one, in numbers of 16 bits, too. */
static void every_rank_is_found(void)
{
    ls_found f = {.by_rank = true};

    for (int rank = 0; rank < LS_FOUND_RANKS; rank += 3)
        f.rank[rank % LS_GUARD_SLOTS] += ldexpf(1, rank / LS_GUARD_SLOTS);
    for (int i = 0; i < LS_GUARD_SLOTS; i++) f.rank[i] = ls_bf16_to_f32(ls_bf16_from_f32(f.rank[i]));
    for (int rank = 0; rank < LS_FOUND_RANKS; rank++) CHECK(ls_found_on(&f, rank) == (rank % 3 == 0));
    CHECK(!ls_found_on(&f, LS_FOUND_RANKS));
}

static void lists_of_overflows_are_read(void)
{
    static const char *const wrong[] = {"3", "3@", "@1", "0@1", "3@-1", "3@1;4@1", "x@1", "3@1,,4@1"};
    const char *list;
    ls_err err;

    setenv(LS_FAULT_OVERFLOW, "3@0,12@1", 1);
    CHECK_OK(ls_fault_overflows(&list, NULL), NULL);
    CHECK(ls_fault_is_listed(list, 3, 0) && ls_fault_is_listed(list, 12, 1));
    CHECK_EQ_INT(ls_fault_last_rank(list), 1);
    CHECK_EQ_INT(ls_fault_last_rank(NULL), -1);
    CHECK(!ls_fault_is_listed(list, 3, 1) && !ls_fault_is_listed(list, 1, 0) &&
          !ls_fault_is_listed(NULL, 3, 0));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv(LS_FAULT_OVERFLOW, wrong[i], 1);
        err = (ls_err){0};
        CHECK_EQ_INT(ls_fault_overflows(&list, &err), LS_INVALID);
        CHECK_CONTAINS(err.text, "is no STEP@RANK");
    }
    unsetenv(LS_FAULT_OVERFLOW);
    CHECK_OK(ls_fault_overflows(&list, NULL), NULL);
    CHECK(list == NULL);
}

int main(void)
{
    CHECK_RUN(ranks_and_parameters_have_names);
    CHECK_RUN(every_rank_is_found);
    CHECK_RUN(lists_of_overflows_are_read);
    return CHECK_DONE();
}
