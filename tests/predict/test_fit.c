/* test_fit.c: links are found again in times that were made from them, with noise; and what times cannot tell
 * is said. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "check.h"
#include "predict/collective.h"
#include "predict/fit.h"
#include "predict/nnls.h"

enum { MOST = 2000 };

/* -- least squares ----------------------------------------------------------------------------------------
 */

static void least_squares_are_not_negative(void)
{
    static const double rows[][3] = {{1, 0, 2}, {1, 1, 2}, {1, 2, 2}, {1, 3, 2}};
    static const double up[] = {1, 3, 5, 7}, down[] = {7, 5, 3, 1};
    ls_nnls a = {.n = 3}, b = {.n = 3}, none = {.n = 3};
    double x[3], v[3];

    /* The third column says what the first one does: one of them is enough. */
    for (int i = 0; i < 4; i++) ls_nnls_add(&a, rows[i], up[i], 1);
    ls_nnls_solve(&a, x);
    CHECK_NEAR(x[0] + 2 * x[2], 1, 1e-9);
    CHECK_NEAR(x[1], 2, 1e-9);
    /* A slope below 0 is none: the mean is left. */
    for (int i = 0; i < 4; i++) ls_nnls_add(&b, rows[i], down[i], 1);
    ls_nnls_solve(&b, x);
    CHECK_NEAR(x[0] + 2 * x[2], 4, 1e-9);
    CHECK_NEAR(x[1], 0, 0);
    ls_nnls_variance(&b, x, v);
    CHECK_NEAR(v[x[0] > 0 ? 0 : 2], x[0] > 0 ? 0.25 : 0.0625, 1e-9); /* of a mean of four */
    CHECK_NEAR(v[1], 0, 0);
    /* What depends on another column, or is in no equation, has no variance; the others keep theirs. */
    x[0] = x[2] = 1;
    x[1] = 0;
    ls_nnls_variance(&b, x, v);
    CHECK_NEAR(v[0], 0.25, 1e-9);
    CHECK_NEAR(v[2], 0, 0);
    {
        static const double gone[] = {1, 0, 0};
        ls_nnls c = {.n = 3};
        for (int i = 0; i < 4; i++) ls_nnls_add(&c, gone, 1, 1);
        x[1] = 1;
        ls_nnls_variance(&c, x, v);
        CHECK_NEAR(v[0], 0.25, 1e-9);
        CHECK(v[1] == 0 && v[2] == 0);
    }
    ls_nnls_solve(&none, x);
    CHECK(x[0] == 0 && x[1] == 0 && x[2] == 0);
}

/* -- times made from links --------------------------------------------------------------------------------
 */

typedef struct made {
    ls_collective_time of[MOST];
    int n;
    uint64_t seed;
} made;

static double noise(made *m, double relative)
{
    const ls_rng_key key = {.seed_lo = (uint32_t)m->seed, .step = (uint32_t)m->n};
    uint32_t word[4];

    ls_rng_block(&key, 7, 0, 0, word);
    m->seed += 0x10001;
    return exp(relative * ls_rng_normal(word[0], word[1], 0));
}

static ls_transfer_cost truth(const ls_network *n, const ls_collective_time *t)
{
    static const ls_transfer_kind kinds[] = {[LS_COLL_ALL_REDUCE] = LS_TRANSFER_ALL_REDUCE,
                                             [LS_COLL_REDUCE_SCATTER] = LS_TRANSFER_REDUCE_SCATTER,
                                             [LS_COLL_ALL_GATHER] = LS_TRANSFER_ALL_GATHER};
    const ls_transfer x = {
        .kind = kinds[t->kind], .algorithm = LS_ALGORITHM_OURS, .bytes = ls_collective_wire_bytes(t)};

    return ls_transfer_closed(n, &x, t->ranks, t->most_on_host);
}

/* All kinds and sizes of one number of ranks. */
static void make(made *m, const ls_network *n, int ranks, int hosts, int64_t least, int64_t most,
                 double relative)
{
    for (int64_t bytes = least; bytes <= most; bytes *= 4)
        for (int kind = LS_COLL_ALL_REDUCE; kind <= LS_COLL_ALL_GATHER; kind++) {
            ls_collective_time t = {.kind = (ls_collective)kind,
                                    .bytes = bytes,
                                    .ranks = ranks,
                                    .hosts = hosts,
                                    .most_on_host = ranks / hosts,
                                    .rounds = 21,
                                    .repeats = 1};
            const ls_transfer_cost c = truth(n, &t);
            const double s = c.seconds * noise(m, relative);
            t.seconds = (ls_spread){0.95 * s, s, 1.08 * s};
            t.core_s = c.core_s * noise(m, relative);
            t.sent_bytes = c.wire_bytes;
            REQUIRE(m->n < MOST);
            m->of[m->n++] = t;
        }
}

static const ls_network cluster = {
    .kind = LS_NETWORK_FLAT, .inside = {2e-6, 8e9, 1e-6, 5e-11}, .node = {25e-6, 1.2e9, 4e-6, 2e-10}};

static void make_cluster(made *m, uint64_t seed, double relative)
{
    static const int shapes[][2] = {{2, 1}, {4, 1}, {8, 1}, {2, 2}, {4, 4}, {8, 2}, {16, 4}, {32, 8}};

    *m = (made){.seed = seed};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        make(m, &cluster, shapes[i][0], shapes[i][1], 1024, 64 << 20, relative);
}

static bool has_note(const ls_fit *f, const char *text)
{
    for (int i = 0; i < f->n_notes; i++)
        if (strstr(f->note[i], text) != NULL) return true;
    return false;
}

static void print_notes(const ls_fit *f)
{
    for (int i = 0; i < f->n_notes; i++) printf("note: %s\n", f->note[i]);
}

/* Within the stated standard errors: most within two of them, none beyond four, and they are small. */
static int check_link(const ls_fit_link *got, const ls_link *want, double relative)
{
    const double *g = got->figure,
                 w[] = {want->latency_s, want->bytes_s, want->message_s, want->core_s_per_byte};
    int far = 0;

    for (int k = 0; k < LS_FIT_FIGURES; k++) {
        const double off = fabs(g[k] / w[k] - 1);
        if (!CHECK(off < 4 * got->error[k] + 1e-6 && got->error[k] < 3 * relative))
            printf("%s: %g, not %g; stated error %g\n", ls_fit_figure_name((ls_fit_figure)k), g[k], w[k],
                   got->error[k]);
        far += off > 2 * got->error[k] + 1e-6;
    }
    return far;
}

static void links_are_found_in_noise(void)
{
    made *m = ls_alloc(LS_MEM_TEST, sizeof *m);
    int far = 0;

    REQUIRE(m != NULL);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        ls_fit f;
        ls_err err = {0};
        make_cluster(m, seed, 0.06);
        REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
        CHECK(f.inside.measured && f.node.measured && f.used == m->n);
        far += check_link(&f.inside, &cluster.inside, 0.06);
        far += check_link(&f.node, &cluster.node, 0.06);
        CHECK(f.error > 0.045 && f.error < 0.075);
        CHECK(f.error_per_doubling > 0.03 && f.error_per_doubling < 0.15);
        CHECK_EQ_INT(f.measured_ranks, 32);
        CHECK_EQ_INT(f.measured_nodes, 8);
        CHECK_EQ_INT(f.ranks_per_node, 8);
        if (!CHECK_EQ_INT(f.n_notes, 0)) print_notes(&f);
    }
    CHECK(far <= 8); /* of 40: two standard deviations miss 1 in 22 */
    ls_free(m);
}

/* Without noise nothing is left over; one time in ten that is far off changes little. */
static void what_is_far_off_counts_little(void)
{
    made *m = ls_alloc(LS_MEM_TEST, sizeof *m);
    ls_fit f;
    ls_err err = {0};

    REQUIRE(m != NULL);
    make_cluster(m, 1, 0);
    REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
    CHECK(f.error < 1e-3);
    CHECK_NEAR(f.node.figure[LS_FIT_RATE], 1.2e9, 1e6);
    CHECK_NEAR(f.node.figure[LS_FIT_LATENCY], 25e-6, 1e-7);
    for (int i = 0; i < m->n; i += 10) {
        m->of[i].seconds.p16 *= 4;
        m->of[i].seconds.p50 *= 4;
        m->of[i].seconds.p84 *= 4;
    }
    REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
    CHECK(fabs(f.node.figure[LS_FIT_RATE] / 1.2e9 - 1) < 0.05 &&
          fabs(f.node.figure[LS_FIT_LATENCY] / 25e-6 - 1) < 0.1);
    CHECK(f.error > 0.1); /* but it is seen */
    ls_free(m);
}

/* A shaper that lets the first bytes through at once, and ranks that are woken late: short vectors take
 * anything, and the rate is that of the long ones, also for those who measured the fewest ranks alone. */
static void short_vectors_do_not_blur_the_rate(void)
{
    made *m = ls_alloc(LS_MEM_TEST, sizeof *m);
    const ls_network n = {.kind = LS_NETWORK_FLAT, .node = {2e-5, 2.5e7, 7e-6, 2e-10}};

    REQUIRE(m != NULL);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        ls_fit f;
        ls_err err = {0};
        *m = (made){.seed = seed};
        make(m, &n, 2, 2, 256, 16 << 20, 0.01);
        make(m, &n, 4, 4, 256, 16 << 20, 0.01);
        for (int i = 0; i < m->n; i++) {
            const double strange = m->of[i].bytes >= 1 << 18 ? 1 : i % 3 == 0 ? 9 : i % 3 == 1 ? 0.1 : 0.3;
            m->of[i].seconds.p16 *= strange;
            m->of[i].seconds.p50 *= strange;
            m->of[i].seconds.p84 *= strange;
        }
        REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
        CHECK_NEAR(f.node.figure[LS_FIT_RATE] / n.node.bytes_s, 1, 0.03);
        CHECK(f.error < 0.06 && f.error_per_doubling < 0.06);
    }
    ls_free(m);
}

static void what_times_cannot_tell_is_said(void)
{
    made *m = ls_alloc(LS_MEM_TEST, sizeof *m);
    ls_network n = cluster, filled = {0};
    ls_fit f;
    ls_err err = {0};

    REQUIRE(m != NULL);
    /* One machine, one number of ranks. */
    *m = (made){.seed = 1};
    make(m, &n, 2, 1, 1024, 64 << 20, 0.02);
    REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
    CHECK(f.inside.measured && !f.node.measured && f.error_per_doubling == 0 && f.measured_nodes == 1);
    CHECK(has_note(&f, "nothing is known of links between machines"));
    CHECK(has_note(&f, "inside: only 2 ranks were measured"));
    ls_fit_fill(&f, &filled);
    CHECK(filled.measured_nodes == 1 && filled.node.bytes_s > 0 && filled.kind == LS_NETWORK_FLAT);
    CHECK_EQ_INT(filled.measured_per_node, 2);
    /* A rank for each machine. */
    *m = (made){.seed = 2};
    make(m, &n, 2, 2, 1024, 64 << 20, 0.02);
    make(m, &n, 4, 4, 1024, 64 << 20, 0.02);
    REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
    CHECK(!f.inside.measured && f.node.measured && f.error_per_doubling > 0);
    CHECK(has_note(&f, "nothing is known of links inside one"));
    ls_fit_fill(&f, &filled);
    CHECK(filled.measured_per_node == 1 && filled.inside.bytes_s == filled.node.bytes_s);
    /* Long vectors alone, and short ones. */
    *m = (made){.seed = 3};
    make(m, &n, 2, 2, 4 << 20, 64 << 20, 0.02);
    make(m, &n, 4, 4, 4 << 20, 64 << 20, 0.02);
    REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
    CHECK(has_note(&f, "the shortest vectors (4.00 MiB)") && has_note(&f, "the latency is not well known"));
    *m = (made){.seed = 4};
    make(m, &n, 2, 2, 1024, 4096, 0.02);
    make(m, &n, 4, 4, 1024, 4096, 0.02);
    REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
    CHECK(has_note(&f, "the longest vectors (4.00 KiB)") && has_note(&f, "only 2 lengths of vectors"));
    /* Ranks without cores, and 16 bits that take twice as long as they should. */
    make_cluster(m, 5, 0.02);
    for (int i = 0; i < m->n; i++) m->of[i].oversubscribed = m->of[i].ranks == 8;
    m->of[m->n] = m->of[m->n - 3];
    m->of[m->n].wire = LS_WIRE_BF16;
    m->of[m->n].seconds.p50 = 2 * truth(&n, &m->of[m->n]).seconds;
    m->n++;
    REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
    CHECK(has_note(&f, "54 times of ranks that shared cores were left out"));
    CHECK(has_note(&f, "16 bits on the wire take 2.0") || has_note(&f, "16 bits on the wire take 1.9"));
    /* Nothing at all. */
    CHECK_STATUS(ls_fit_network(&f, m->of, 0, &err), LS_DATA, &err);
    CHECK_STATUS(ls_fit_network(&f, &m->of[m->n - 1], 1, &err), LS_DATA, &err);
    ls_free(m);
}

/* Machines of several ranks whose processors are as slow as the wire, or slower: the wire may show nowhere.
 * Both links were measured all the same; what is written explains what was measured, and its error is of
 * that.
 */
static void processors_that_hide_the_wire(void)
{
    static const ls_link inside[] = {{2e-6, 8e9, 1e-6, 2e-10}, {2e-6, 8e9, 1e-6, 4e-10}};
    static const double core[] = {1e-9, 4e-10};
    made *m = ls_alloc(LS_MEM_TEST, sizeof *m);

    REQUIRE(m != NULL);
    for (int of = 0; of < 2; of++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            const ls_network n = {
                .kind = LS_NETWORK_FLAT, .inside = inside[of], .node = {2e-5, 1e10, 4e-6, core[of]}};
            ls_network filled = {0};
            ls_fit f;
            ls_err err = {0};
            *m = (made){.seed = seed};
            make(m, &n, 16, 2, 1024, 64 << 20, 0.03);
            make(m, &n, 32, 4, 1024, 64 << 20, 0.03);
            REQUIRE_OK(ls_fit_network(&f, m->of, m->n, &err), &err);
            CHECK(f.inside.measured && f.node.measured);
            ls_fit_fill(&f, &filled);
            CHECK(filled.inside.bytes_s >= 1 && filled.node.bytes_s >= 1);
            CHECK(f.error > 0.015 && f.error < 0.06);
            for (int i = 0; i < m->n; i++) {
                const double is = truth(&filled, &m->of[i]).seconds, was = truth(&n, &m->of[i]).seconds;
                if (!CHECK(m->of[i].bytes < LS_FIT_LONG || fabs(is / was - 1) < 0.15))
                    printf("seed %d: %lld bytes take %g, not %g; the wire has %g +- %g\n", (int)seed,
                           (long long)m->of[i].bytes, is, was, filled.node.bytes_s,
                           f.node.error[LS_FIT_RATE]);
            }
        }
    ls_free(m);
}

int main(void)
{
    CHECK_RUN(least_squares_are_not_negative);
    CHECK_RUN(links_are_found_in_noise);
    CHECK_RUN(what_is_far_off_counts_little);
    CHECK_RUN(short_vectors_do_not_blur_the_rate);
    CHECK_RUN(what_times_cannot_tell_is_said);
    CHECK_RUN(processors_that_hide_the_wire);
    return CHECK_DONE();
}
