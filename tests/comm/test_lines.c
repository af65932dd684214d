/* Lines: messages arrive whole and in order, whether they are awaited or not, and whatever a socket holds. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "comm/lines.h"

/* Two ends of both lines, rank 0 and rank 1, in this process. */
typedef struct ends {
    lsi_lines *of[2];
    int fd[2];
} ends;

static void join(ends *e)
{
    ls_err err = {0};

    for (int i = 0; i < 2; i++) CHECK_OK(lsi_lines_make(&e->of[i], 2, &err), &err);
    for (int k = 0; k < LSI_LANES; k++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->fd) == 0);
        for (int i = 0; i < 2; i++)
            CHECK_OK(lsi_lines_connect_take(e->of[i], 1 - i, (lsi_lane)k, e->fd[i], &err), &err);
    }
}

static void part(ends *e)
{
    lsi_lines_close(e->of[0]);
    lsi_lines_close(e->of[1]);
}

/* Both ends until nothing moves any more. */
static void settle(ends *e)
{
    ls_err err = {0};
    bool moved[2];

    do
        for (int i = 0; i < 2; i++) CHECK_OK(lsi_lines_turn(e->of[i], &moved[i], &err), &err);
    while (moved[0] || moved[1]);
}

static bool is_over(lsi_lines *l, ls_transport_request *r, int n)
{
    ls_err err = {0};
    bool over = false;

    CHECK_OK(lsi_lines_test(l, r, n, &over, &err), &err);
    return over;
}

static char *filled(size_t bytes, int with)
{
    char *p = ls_alloc(LS_MEM_TEST, bytes);

    for (size_t i = 0; p != NULL && i < bytes; i++) p[i] = (char)(i * 7 + i / 251 + (size_t)with);
    return p;
}

/* Lengths around a socket's, in both directions at once, the awaited ones first and last. */
static void messages_arrive(void)
{
    static const size_t length[] = {1, 8, 4096, 100000, 262144, 1000003};
    enum { N = sizeof length / sizeof *length };
    ends e;
    ls_err err = {0};
    ls_transport_request sends[2][N], receives[2][N];
    char *from[2][N], *to[2][N];

    join(&e);
    for (int early = 0; early < 2; early++) {
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < N; k++) {
                from[i][k] = filled(length[k], i + 10 * k);
                to[i][k] = filled(length[k], 200);
            }
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 2 && round == early; i++)
                for (int k = 0; k < N; k++)
                    CHECK_OK(lsi_lines_send(e.of[i], from[i][k], length[k], 1 - i, LSI_LONG, 100 + k, 0, 1,
                                            &sends[i][k], &err),
                             &err);
            for (int i = 0; i < 2 && round != early; i++)
                for (int k = N - 1; k >= 0; k--)
                    CHECK_OK(lsi_lines_receive(e.of[i], to[i][k], length[k], 1 - i, LSI_LONG, 100 + k,
                                               &receives[i][k], &err),
                             &err);
            settle(&e);
        }
        for (int i = 0; i < 2; i++) {
            CHECK(is_over(e.of[i], sends[i], N));
            CHECK(is_over(e.of[i], receives[i], N));
            for (int k = 0; k < N; k++) CHECK(memcmp(to[i][k], from[1 - i][k], length[k]) == 0);
        }
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < N; k++) {
                ls_free(from[i][k]);
                ls_free(to[i][k]);
            }
    }
    part(&e);
}

/* Tags are used anew: the first that was sent is the first that is received, awaited or not. */
static void equal_tags_keep_their_order(void)
{
    ends e;
    ls_err err = {0};
    ls_transport_request s[4], r[4];
    int from[4] = {1, 2, 3, 4}, to[4] = {0};

    join(&e);
    CHECK_OK(lsi_lines_receive(e.of[1], &to[0], sizeof(int), 0, LSI_LONG, 7, &r[0], &err), &err);
    for (int i = 0; i < 4; i++)
        CHECK_OK(lsi_lines_send(e.of[0], &from[i], sizeof(int), 1, LSI_LONG, 7, 0, 1, &s[i], &err), &err);
    settle(&e);
    CHECK(is_over(e.of[1], &r[0], 1));
    for (int i = 1; i < 4; i++)
        CHECK_OK(lsi_lines_receive(e.of[1], &to[i], sizeof(int), 0, LSI_LONG, 7, &r[i], &err), &err);
    CHECK(is_over(e.of[1], r + 1, 3));
    for (int i = 0; i < 4; i++) CHECK_EQ_INT(to[i], i + 1);
    part(&e);
}

/* What is wanted first overtakes what still waits here, but not what has begun to leave. */
static void turns(void)
{
    enum { N = 4, BYTES = 1 << 20 };
    static const uint64_t turn[N] = {7, 9, 8, 7};
    static const int order[N] = {0, 3, 2, 1};
    ends e;
    ls_err err = {0};
    ls_transport_request s[N], r[N];
    char *from[N], *to = filled(BYTES, 99);
    bool moved;

    join(&e);
    for (int i = 0; i < N; i++) {
        from[i] = filled(BYTES, i);
        CHECK_OK(lsi_lines_send(e.of[0], from[i], BYTES, 1, LSI_LONG, i, turn[i], 1, &s[i], &err), &err);
    }
    for (int i = 0; i < N; i++) { /* only the next of them can come: all go to the same place */
        CHECK_OK(lsi_lines_receive(e.of[1], to, BYTES, 0, LSI_LONG, order[i], &r[i], &err), &err);
        for (int turns = 0; turns < 10000 && !is_over(e.of[1], &r[i], 1); turns++)
            for (int k = 0; k < 2; k++) CHECK_OK(lsi_lines_turn(e.of[k], &moved, &err), &err);
        CHECK(memcmp(to, from[order[i]], BYTES) == 0);
        CHECK(i == N - 1 || !is_over(e.of[0], &s[order[N - 1]], 1));
    }
    for (int i = 0; i < N; i++) ls_free(from[i]);
    ls_free(to);
    part(&e);
}

/* What is short does not wait for what is long, not even for what the system has of it already: there the
 * same tag is another message. */
static void short_ones_do_not_wait(void)
{
    const size_t bytes = 3000000;
    ends e;
    ls_err err = {0};
    ls_transport_request s[2], r[2];
    char *from = filled(bytes, 3), *to = filled(bytes, 4);
    int word = 7, got = 0;
    bool moved;

    join(&e);
    CHECK_OK(lsi_lines_receive(e.of[1], to, bytes, 0, LSI_LONG, 5, &r[0], &err), &err);
    CHECK_OK(lsi_lines_receive(e.of[1], &got, sizeof got, 0, LSI_SHORT, 5, &r[1], &err), &err);
    CHECK_OK(lsi_lines_send(e.of[0], from, bytes, 1, LSI_LONG, 5, 0, 1, &s[0], &err), &err);
    CHECK_OK(lsi_lines_send(e.of[0], &word, sizeof word, 1, LSI_SHORT, 5, 9, 1, &s[1], &err), &err);
    CHECK(is_over(e.of[0], &s[1], 1) && !is_over(e.of[0], &s[0], 1));
    CHECK_OK(lsi_lines_turn(e.of[1], &moved, &err), &err);
    CHECK(is_over(e.of[1], &r[1], 1) && got == word);
    CHECK(!is_over(e.of[1], &r[0], 1));
    settle(&e);
    CHECK(is_over(e.of[1], &r[0], 1) && memcmp(from, to, bytes) == 0);
    ls_free(from);
    ls_free(to);
    part(&e);
}

/* A message of which a part has come when it is asked for. */
static void asked_for_midway(void)
{
    const size_t bytes = 3000000;
    ends e;
    ls_err err = {0};
    ls_transport_request s, r;
    char *from = filled(bytes, 3), *to = filled(bytes, 4);
    bool moved;

    join(&e);
    CHECK_OK(lsi_lines_send(e.of[0], from, bytes, 1, LSI_LONG, 9, 0, 1, &s, &err), &err);
    CHECK_OK(lsi_lines_turn(e.of[1], &moved, &err), &err);
    CHECK(moved);
    CHECK_OK(lsi_lines_receive(e.of[1], to, bytes, 0, LSI_LONG, 9, &r, &err), &err);
    CHECK(!is_over(e.of[1], &r, 1)); /* a socket does not hold all of it */
    settle(&e);
    CHECK(is_over(e.of[1], &r, 1) && is_over(e.of[0], &s, 1));
    CHECK(memcmp(from, to, bytes) == 0);
    ls_free(from);
    ls_free(to);
    part(&e);
}

/* After the first messages nothing is allocated for more of them. */
static void memory_is_used_again(void)
{
    ends e;
    ls_err err = {0};
    uint64_t before = 0;
    char from[5000] = "again", to[5000];

    join(&e);
    for (int i = 0; i < 20; i++) {
        ls_transport_request s, r;
        if (i == 4) before = ls_mem_stats_now().n_allocs;
        if (i % 2 == 0) CHECK_OK(lsi_lines_receive(e.of[1], to, sizeof to, 0, LSI_LONG, i, &r, &err), &err);
        CHECK_OK(lsi_lines_send(e.of[0], from, sizeof from, 1, LSI_LONG, i, 0, 1, &s, &err), &err);
        settle(&e);
        if (i % 2 == 1) CHECK_OK(lsi_lines_receive(e.of[1], to, sizeof to, 0, LSI_LONG, i, &r, &err), &err);
        CHECK(is_over(e.of[1], &r, 1) && is_over(e.of[0], &s, 1));
    }
    CHECK_EQ_INT((int64_t)(ls_mem_stats_now().n_allocs - before), 0);
    part(&e);
}

/* Messages that stay with the lines until they are let go, with their weights: awaited before they come,
 * midway, and afterwards.  No more rooms are made than are in use at once. */
static void messages_are_held(void)
{
    enum { N = 3 };
    const size_t bytes = 3000000;
    ends e;
    ls_err err = {0};
    char *from = filled(bytes, 3);
    uint64_t before = 0;
    bool moved;
    float weight = 0;

    join(&e);
    for (int i = 0; i < 4 * N; i++) {
        ls_transport_request s, r;
        if (i == 2 * N) before = ls_mem_stats_now().n_allocs;
        if (i % N == 0) CHECK_OK(lsi_lines_receive(e.of[1], NULL, bytes, 0, LSI_LONG, i, &r, &err), &err);
        CHECK_OK(lsi_lines_send(e.of[0], from, bytes, 1, LSI_LONG, i, 0, (float)i + 0.5f, &s, &err), &err);
        CHECK_OK(lsi_lines_turn(e.of[1], &moved, &err), &err);
        if (i % N == 1) CHECK_OK(lsi_lines_receive(e.of[1], NULL, bytes, 0, LSI_LONG, i, &r, &err), &err);
        if (i % N < 2) CHECK(!is_over(e.of[1], &r, 1));
        settle(&e);
        if (i % N == 2) CHECK_OK(lsi_lines_receive(e.of[1], NULL, bytes, 0, LSI_LONG, i, &r, &err), &err);
        CHECK(is_over(e.of[1], &r, 1) && is_over(e.of[0], &s, 1));
        CHECK(is_over(e.of[1], &r, 1)); /* however often it is asked */
        CHECK(memcmp(lsi_lines_held(&r, &weight), from, bytes) == 0);
        CHECK(weight == (float)i + 0.5f);
        lsi_lines_let_go(e.of[1], &r);
    }
    CHECK_EQ_INT((int64_t)(ls_mem_stats_now().n_allocs - before), 0);
    ls_free(from);
    part(&e);
}

/* Another length than the awaited one is known to this rank alone, whenever it finds it: LS_DISAGREE would
 * have it wait for the others, who know nothing. */
static void other_lengths_are_refused(void)
{
    enum { AWAITED, COMING, COME, N };
    const size_t bytes = 3000000;
    char *from = filled(bytes, 3), to[12];

    for (int when = 0; when < N; when++)
        for (int held = 0; held < 2; held++) {
            ends e;
            ls_err err = {0};
            ls_transport_request s, r;
            bool moved = true;
            ls_status st = LS_OK;
            join(&e);
            if (when == AWAITED)
                CHECK_OK(lsi_lines_receive(e.of[1], held ? NULL : to, sizeof to, 0, LSI_LONG, 5, &r, &err),
                         &err);
            CHECK_OK(lsi_lines_send(e.of[0], from, when == COME ? 16 : bytes, 1, LSI_LONG, 5, 0, 1, &s, &err),
                     &err);
            while (st == LS_OK && moved) st = lsi_lines_turn(e.of[1], &moved, &err);
            if (when != AWAITED)
                st = lsi_lines_receive(e.of[1], held ? NULL : to, sizeof to, 0, LSI_LONG, 5, &r, &err);
            CHECK_EQ_INT(st, LS_LOST);
            CHECK(strstr(err.text, when == COME ? "rank 0 sent 16 bytes" : "rank 0 sent 3000000 bytes") !=
                  NULL);
            if (when == AWAITED) { /* what follows is not taken for messages */
                CHECK_OK(lsi_lines_turn(e.of[1], &moved, &err), &err);
                CHECK(!moved);
            }
            part(&e);
        }
    ls_free(from);
}

/* A peer that is gone moves nothing, and is not reported at once: whoever started it knows more. */
static void the_end_of_a_peer(void)
{
    ends e;
    ls_err err = {0};
    ls_transport_request r;
    char to[16];
    bool moved = true;

    join(&e);
    CHECK_OK(lsi_lines_receive(e.of[1], to, 16, 0, LSI_LONG, 5, &r, &err), &err);
    lsi_lines_close(e.of[0]);
    CHECK_OK(lsi_lines_turn(e.of[1], &moved, &err), &err);
    CHECK(!moved);
    CHECK(!is_over(e.of[1], &r, 1));
    lsi_lines_close(e.of[1]);
}

int main(void)
{
    CHECK_RUN(messages_arrive);
    CHECK_RUN(equal_tags_keep_their_order);
    CHECK_RUN(turns);
    CHECK_RUN(short_ones_do_not_wait);
    CHECK_RUN(asked_for_midway);
    CHECK_RUN(memory_is_used_again);
    CHECK_RUN(messages_are_held);
    CHECK_RUN(other_lengths_are_refused);
    CHECK_RUN(the_end_of_a_peer);
    return CHECK_DONE();
}
