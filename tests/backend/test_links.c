/* test_links.c: collectives of devices in a group of one, and what moves tensors to and from their vectors:
 * on `far` with a library of the tests' own (tools/fake_nccl.c), or with LS_TEST_DEVICE=cuda on a GPU with
 * NCCL. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "check.h"

enum { N = 1000, BYTES = N * (int)sizeof(float) };

static ls_device *dev;
static const ls_links *links;
static ls_link *link_of_one;
static ls_buffer memory;

/* Who asks for libnccl.so.2 from here on gets this one: libraries are known by the name in them. */
static void load_fake(void)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/tests/fake/libnccl.so.2", getenv("LS_BUILD_DIR"));
    REQUIRE(dlopen(path, RTLD_NOW) != NULL);
    setenv("LOCKSTEP_FAR_LINKS", "1", 1);
}

static void *at(int floats)
{
    return ls_buffer_address(&memory, (size_t)floats * sizeof(float));
}

static void write_numbers(int first, int n, float from)
{
    float x[N];
    ls_err err = {0};

    for (int i = 0; i < n; i++) x[i] = from + (float)i;
    REQUIRE_OK(ls_buffer_write(&memory, (size_t)first * sizeof *x, x, (size_t)n * sizeof *x, &err), &err);
}

static float number(int i)
{
    float x;
    ls_err err = {0};

    REQUIRE_OK(ls_buffer_read(&memory, (size_t)i * sizeof x, &x, sizeof x, &err), &err);
    return x;
}

static void every_collective_of_one_leaves_what_it_gave(void)
{
    static const ls_collective kinds[] = {LS_COLL_ALL_REDUCE, LS_COLL_REDUCE_SCATTER, LS_COLL_ALL_GATHER,
                                          LS_COLL_BROADCAST};
    ls_err err = {0};

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        write_numbers(0, N, (float)k);
        CHECK_OK(links->run(link_of_one, kinds[k], at(0), N, 0, &err), &err);
        CHECK_EQ_INT((long long)number(0), (long long)k);
        CHECK_EQ_INT((long long)number(N - 1), (long long)k + N - 1);
        CHECK_OK(links->check(link_of_one, &err), &err);
    }
}

static void pieces_are_moved_weighed_and_cleared(void)
{
    ls_link_piece p[80];
    ls_err err = {0};

    write_numbers(0, N, 1);
    write_numbers(N, 2, 0.5F);   /* a weight, and 1.5 behind it */
    for (int i = 0; i < 80; i++) /* more than one launch has room for; sizes that no vector divides */
        p[i] = (ls_link_piece){at(3000 + 5 * i), at(5 * i), 5 * (int64_t)sizeof(float),
                               i % 2 == 0 ? at(N) : NULL};
    CHECK_OK(links->move(link_of_one, p, 80, &err), &err);
    for (int i = 0; i < 400; i++) CHECK_NEAR(number(3000 + i), (i / 5 % 2 == 0 ? 0.5 : 1) * (i + 1), 0);
    p[0] = (ls_link_piece){at(3000), NULL, 16, NULL};
    p[1] = (ls_link_piece){(char *)at(3004) + 2, (char *)at(0) + 2, 2, NULL}; /* 16 bits of a number */
    CHECK_OK(links->move(link_of_one, p, 2, &err), &err);
    CHECK_NEAR(number(3003), 0, 0);
    CHECK_NEAR(number(3005), 6, 0);
}

/* Ranks of weight 0 add zeros, also where theirs are not finite. */
static void what_weighs_nothing_is_nothing(void)
{
    ls_link_piece p;
    float x[2] = {INFINITY, NAN}, zero = 0;
    ls_err err = {0};

    REQUIRE_OK(ls_buffer_write(&memory, 0, x, sizeof x, &err), &err);
    REQUIRE_OK(ls_buffer_write(&memory, 400, &zero, sizeof zero, &err), &err);
    p = (ls_link_piece){at(500), at(0), 8, at(100)};
    CHECK_OK(links->move(link_of_one, &p, 1, &err), &err);
    CHECK_NEAR(number(500), 0, 0);
    CHECK_NEAR(number(501), 0, 0);
}

static void what_was_given_up_fails(void)
{
    ls_err err = {0};

    links->give_up(link_of_one);
    links->give_up(link_of_one);
    CHECK_STATUS(links->run(link_of_one, LS_COLL_ALL_REDUCE, at(0), N, 0, &err), LS_LOST, &err);
    CHECK_OK(links->check(link_of_one, &err), &err);
}

int main(void)
{
    const char *name = getenv("LS_TEST_DEVICE");
    char id[LS_LINK_ID], about[64], place[LS_LINK_PLACE];
    ls_err err = {0};

    if (name == NULL) name = "far";
    if (strcmp(name, "far") == 0) load_fake();
    if (ls_device_open(&dev, name, 1, &err) != LS_OK) CHECK_SKIP(err.text);
    links = dev->backend->links;
    if (links == NULL) CHECK_SKIP("this device has no links");
    if (links->probe(dev, about, sizeof about, place, &err) != LS_OK) CHECK_SKIP(err.text);
    printf("%s at %s\n", about, place);
    REQUIRE_OK(links->name_group(dev, id, &err), &err);
    REQUIRE_OK(links->open(&link_of_one, dev, id, 0, 1, &err), &err);
    REQUIRE_OK(ls_buffer_alloc(&memory, dev, (size_t)4 * BYTES, &err), &err);
    CHECK_RUN(every_collective_of_one_leaves_what_it_gave);
    CHECK_RUN(pieces_are_moved_weighed_and_cleared);
    CHECK_RUN(what_weighs_nothing_is_nothing);
    CHECK_RUN(what_was_given_up_fails);
    links->close(link_of_one);
    ls_buffer_free(&memory);
    ls_device_close(dev);
    return CHECK_DONE();
}
