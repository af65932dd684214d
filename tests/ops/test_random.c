/* test_random.c: what random ops draw: the right numbers, the right statistics, and dependence on seed,
 * stream, step and global sample index alone.  Every check runs on every backend; seeds are fixed, so nothing
 * here is left to chance: a bound of five standard deviations holds or does not, for good. */
#include <math.h>
#include <string.h>

#include "backend/backend.h"
#include "base/rng.h"
#include "check.h"
#include "op_plan.h"
#include "ops/ops.h"
#include "passes/autodiff.h"

#define MAX_DRAWS 65536

static const ls_rng_key key0 = {20240607, 3, 17, 100};

typedef enum what { UNIFORM, NORMAL, DROPOUT, CHANNELS } what;

typedef struct request {
    what kind;
    ls_shape shape;
    double p; /* standard deviation, or probability of dropping */
    const char *stream;
} request;

static const char *device; /* of the current round */

static void set_key(op_plan *p, ls_rng_key k)
{
    uint32_t w[4] = {k.seed_lo, k.seed_hi, k.step, k.sample_base};

    tensor_write(op_plan_find(p, "key"), w, sizeof w);
}

/* A plan whose fetch "y" holds the draws; dropout works on ones, so that y is the mask. */
static void open_plan(op_plan *p, const request *r)
{
    ls_value key, y = {NULL, -1}, ones;

    op_plan_begin(p);
    key = ls_graph_input(p->g, "key", LS_I32, LS_SHAPE(4));
    ones = ls_fill(p->g, r->shape, LS_F32, 1.0);
    switch (r->kind) {
    case UNIFORM: y = ls_random_uniform(key, r->shape, r->stream); break;
    case NORMAL: y = ls_random_normal(key, r->shape, r->p, r->stream); break;
    case DROPOUT: y = ls_dropout(ones, key, r->p, false, r->stream); break;
    case CHANNELS: y = ls_dropout(ones, key, r->p, true, r->stream); break;
    }
    ls_graph_fetch(y, "y");
    op_plan_compile(p, device);
}

static int64_t draw(const request *r, ls_rng_key key, float *out)
{
    op_plan p;
    int64_t n = ls_shape_count(r->shape);

    REQUIRE(n <= MAX_DRAWS);
    open_plan(&p, r);
    set_key(&p, key);
    run_plan(p.plan);
    tensor_read(op_plan_find(&p, "y"), out, sizeof *out * (size_t)n);
    op_plan_end(&p);
    return n;
}

/* -- the numbers ---------------------------------------------------------------------------------------- */

static void uniform_is_the_generator(void)
{
    /* All four words use the sign bit of the i32 key, and the sample index wraps around. */
    ls_rng_key key = {0xdeadbeefu, 0x80000001u, 0xfffffff0u, 0xfffffffeu};
    request r = {UNIFORM, LS_SHAPE(5, 7), 0, "some.layer"};
    static float y[MAX_DRAWS];

    draw(&r, key, y);
    for (uint32_t s = 0; s < 5; s++)
        for (uint32_t e = 0; e < 7; e++)
            CHECK_NEAR(y[s * 7 + e], ls_rng_uniform(ls_rng_word(&key, ls_rng_stream("some.layer"), s, e)), 0);
}

static void normal_is_the_generator(void)
{
    request r = {NORMAL, LS_SHAPE(3, 11), 0.25, "noise"};
    uint32_t stream = ls_rng_stream("noise");
    static float y[MAX_DRAWS];

    draw(&r, key0, y);
    for (uint32_t s = 0; s < 3; s++)
        for (uint32_t e = 0; e < 11; e++) {
            uint32_t a = ls_rng_word(&key0, stream, s, e / 2 * 2),
                     b = ls_rng_word(&key0, stream, s, e / 2 * 2 + 1);
            CHECK_NEAR(y[s * 11 + e], 0.25 * ls_rng_normal(a, b, (int)(e % 2)), 1e-6);
        }
}

static void dropout_is_the_generator(void)
{
    request r = {DROPOUT, LS_SHAPE(4, 3, 5), 0.3, "drop"};
    uint32_t stream = ls_rng_stream("drop");
    static float y[MAX_DRAWS];

    draw(&r, key0, y);
    for (uint32_t s = 0; s < 4; s++)
        for (uint32_t e = 0; e < 15; e++) {
            bool dropped = (double)ls_rng_uniform(ls_rng_word(&key0, stream, s, e)) < 0.3;
            CHECK_NEAR(y[s * 15 + e], dropped ? 0 : 1 / 0.7, 2e-7);
        }
    r.kind = CHANNELS;
    draw(&r, key0, y);
    for (uint32_t s = 0; s < 4; s++)
        for (uint32_t e = 0; e < 15; e++) {
            bool dropped = (double)ls_rng_uniform(ls_rng_word(&key0, stream, s, e / 5)) < 0.3;
            CHECK_NEAR(y[s * 15 + e], dropped ? 0 : 1 / 0.7, 2e-7);
        }
}

/* -- statistics ---------------------------------------------------------------------------------------------
 */

/* Mean and mean squared deviation from `centre`. */
static void moments(const float *y, int64_t n, double centre, double *mean, double *square)
{
    *mean = *square = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)y[i] - centre;
        *mean += (double)y[i] / (double)n;
        *square += d * d / (double)n;
    }
}

static void uniform_statistics(void)
{
    request r = {UNIFORM, LS_SHAPE(64, 1000), 0, "u"};
    static float y[MAX_DRAWS];
    int64_t n = draw(&r, key0, y), outside = 0;
    double mean, square;

    moments(y, n, 0.5, &mean, &square);
    CHECK_NEAR(mean, 0.5, 5 * sqrt(1.0 / 12 / (double)n));
    CHECK_NEAR(square, 1.0 / 12, 5 * sqrt(1.0 / 180 / (double)n));
    for (int64_t i = 0; i < n; i++)
        if (y[i] < 0 || y[i] >= 1) outside++;
    CHECK_EQ_INT(outside, 0);
}

static void normal_statistics(void)
{
    request r = {NORMAL, LS_SHAPE(64, 1000), 2, "n"};
    static float y[MAX_DRAWS];
    int64_t n = draw(&r, key0, y), beyond = 0;
    double mean, square, share = 0.0455002638963584; /* of a normal distribution beyond two deviations */

    moments(y, n, 0, &mean, &square);
    CHECK_NEAR(mean, 0, 5 * 2 / sqrt((double)n));
    CHECK_NEAR(square, 4, 5 * 4 * sqrt(2.0 / (double)n));
    for (int64_t i = 0; i < n; i++) beyond += fabsf(y[i]) > 4;
    CHECK_NEAR((double)beyond / (double)n, share, 5 * sqrt(share * (1 - share) / (double)n));
}

static void dropout_statistics(void)
{
    static const double ps[] = {0.1, 0.5, 0.75};
    static float y[MAX_DRAWS];

    for (int k = 0; k < 3; k++) {
        request r = {DROPOUT, LS_SHAPE(32, 8, 10, 10), ps[k], "d"};
        int64_t n = draw(&r, key0, y), kept = 0;
        double keep = 1 - ps[k];
        for (int64_t i = 0; i < n; i++) kept += y[i] != 0;
        CHECK_NEAR((double)kept / (double)n, keep, 5 * sqrt(keep * (1 - keep) / (double)n));
        r.kind = CHANNELS;
        n = draw(&r, key0, y);
        kept = 0;
        for (int64_t i = 0; i < n; i += 100) {
            bool whole = true;
            for (int64_t j = i; j < i + 100; j++) whole = whole && y[j] == y[i];
            CHECK(whole);
            kept += y[i] != 0;
        }
        CHECK_NEAR((double)kept / 256, keep, 5 * sqrt(keep * (1 - keep) / 256));
    }
}

/* -- dependence ---------------------------------------------------------------------------------------------
 */

/* Eight samples drawn at once, and drawn as three and five by two ranks. */
static void only_the_global_sample_counts(void)
{
    static const what kinds[] = {UNIFORM, NORMAL, DROPOUT, CHANNELS};
    static float all[MAX_DRAWS], part[MAX_DRAWS];

    for (int k = 0; k < 4; k++) {
        request r = {kinds[k], LS_SHAPE(8, 6, 7), 0.5, "layer"};
        ls_rng_key key = key0;
        draw(&r, key, all);
        r.shape = LS_SHAPE(3, 6, 7);
        draw(&r, key, part);
        CHECK_EQ_MEM(all, part, sizeof(float) * 3 * 42);
        r.shape = LS_SHAPE(5, 6, 7);
        key.sample_base += 3;
        draw(&r, key, part);
        CHECK_EQ_MEM(all + 3 * 42, part, sizeof(float) * 5 * 42);
    }
}

/* Two sets of draws share no more elements than chance allows and are not correlated. */
static void check_unrelated(const float *a, const float *b, int64_t n)
{
    int64_t equal = 0;
    double product = 0;

    for (int64_t i = 0; i < n; i++) {
        equal += a[i] == b[i];
        product += ((double)a[i] - 0.5) * ((double)b[i] - 0.5) * 12 / (double)n;
    }
    CHECK(equal <= 1); /* expected: n / 2^24 */
    CHECK_NEAR(product, 0, 5 / sqrt((double)n));
}

static void everything_else_counts_too(void)
{
    request r = {UNIFORM, LS_SHAPE(16, 256), 0, "a"}, other = {UNIFORM, LS_SHAPE(16, 256), 0, "b"};
    ls_rng_key key;
    static float base[MAX_DRAWS], y[MAX_DRAWS];
    int64_t n = draw(&r, key0, base);

    draw(&other, key0, y);
    check_unrelated(base, y, n);
    key = key0;
    key.step++;
    draw(&r, key, y);
    check_unrelated(base, y, n);
    key = key0;
    key.seed_lo++;
    draw(&r, key, y);
    check_unrelated(base, y, n);
    key = key0;
    key.seed_hi++;
    draw(&r, key, y);
    check_unrelated(base, y, n);
    check_unrelated(base, base + 256, n - 256); /* neighbouring samples */
}

/* The same plan, step after step: a new step gives new draws, an old one its old draws again. */
static void steps_can_be_repeated(void)
{
    request r = {UNIFORM, LS_SHAPE(4, 64), 0, "a"};
    op_plan p;
    ls_rng_key key = key0;
    float first[256], second[256];

    open_plan(&p, &r);
    set_key(&p, key);
    run_plan(p.plan);
    tensor_read(op_plan_find(&p, "y"), first, sizeof first);
    key.step++;
    set_key(&p, key);
    run_plan(p.plan);
    tensor_read(op_plan_find(&p, "y"), second, sizeof second);
    check_unrelated(first, second, 256);
    set_key(&p, key0);
    run_plan(p.plan);
    tensor_read(op_plan_find(&p, "y"), second, sizeof second);
    CHECK_EQ_MEM(first, second, sizeof first);
    op_plan_end(&p);
}

/* dy passes exactly where x passed, with the same factor. */
static void gradient_redraws_the_mask(void)
{
    for (int per_channel = 0; per_channel < 2; per_channel++) {
        ls_shape shape = LS_SHAPE(6, 5, 9);
        ls_value x, key, y, dx;
        op_plan p;
        op_plan_begin(&p);
        key = ls_graph_input(p.g, "key", LS_I32, LS_SHAPE(4));
        x = ls_graph_input(p.g, "x", LS_F32, shape);
        y = ls_dropout(x, key, 0.4, per_channel != 0, "mask");
        ls_autodiff(y, (ls_value){p.g, -1}, 1, &x, &dx);
        ls_graph_fetch(y, "y");
        ls_graph_fetch(dx, "dx");
        op_plan_compile(&p, device);
        for (int64_t i = 0; i < ls_shape_count(shape); i++) tensor_put(op_plan_find(&p, "x"), i, 1);
        set_key(&p, key0);
        run_plan(p.plan);
        CHECK(tensor_equal(op_plan_find(&p, "y"), op_plan_find(&p, "dx")));
        op_plan_end(&p);
    }
}

/* -- refusals
 * ------------------------------------------------------------------------------------------------- */

static void check_refused(op_plan *p, const char *part)
{
    ls_err err = {0};

    CHECK_STATUS(ls_graph_status(p->g, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, part);
    op_plan_end(p);
}

static void wrong_requests_are_refused(void)
{
    op_plan p;

    op_plan_begin(&p);
    ls_random_uniform(ls_graph_input(p.g, "key", LS_F32, LS_SHAPE(4)), LS_SHAPE(2), "u");
    check_refused(&p, "i32 (4)");
    op_plan_begin(&p);
    ls_random_normal(ls_graph_input(p.g, "key", LS_I32, LS_SHAPE(4)), LS_SHAPE_SCALAR, 1, "n");
    check_refused(&p, "first dimension");
    op_plan_begin(&p);
    ls_dropout(ls_graph_input(p.g, "x", LS_F32, LS_SHAPE(2)), ls_graph_input(p.g, "key", LS_I32, LS_SHAPE(4)),
               1.0, false, "d");
    check_refused(&p, "[0, 1)");
    op_plan_begin(&p);
    ls_dropout(ls_graph_input(p.g, "x", LS_F32, LS_SHAPE(2)), ls_graph_input(p.g, "key", LS_I32, LS_SHAPE(4)),
               0.5, true, "d");
    check_refused(&p, "channels");
}

int main(void)
{
    for (int i = 0; ls_backends[i] != NULL; i++) {
        if (!device_is_tested(ls_backends[i])) continue;
        device = ls_backends[i]->name;
        CHECK_RUN(uniform_is_the_generator);
        CHECK_RUN(normal_is_the_generator);
        CHECK_RUN(dropout_is_the_generator);
        CHECK_RUN(uniform_statistics);
        CHECK_RUN(normal_statistics);
        CHECK_RUN(dropout_statistics);
        CHECK_RUN(only_the_global_sample_counts);
        CHECK_RUN(everything_else_counts_too);
        CHECK_RUN(steps_can_be_repeated);
        CHECK_RUN(gradient_redraws_the_mask);
    }
    CHECK_RUN(wrong_requests_are_refused);
    return CHECK_DONE();
}
