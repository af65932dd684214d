/* Lines whose other end is a machine that does not answer any more, and one where nobody reads for long. */
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "check.h"
#include "comm/lines.h"

enum { SILENCE_S = 2 };

/* Two ends of one connection, rank 0 and rank 1, in this process. */
typedef struct ends {
    lsi_lines *of[2];
    int fd[2];
} ends;

static void join(ends *e)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ls_err err = {0};

    REQUIRE(bind(listener, (const struct sockaddr *)&at, n) == 0 && listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&at, &n) == 0);
    e->fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(connect(e->fd[0], (const struct sockaddr *)&at, sizeof at) == 0);
    e->fd[1] = accept(listener, NULL, NULL);
    REQUIRE(e->fd[1] >= 0);
    close(listener);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(lsi_lines_make(&e->of[i], 2, &err), &err);
        REQUIRE_OK(lsi_lines_connect_take(e->of[i], 1 - i, LSI_LONG, e->fd[i], &err), &err);
    }
}

static void part(ends *e)
{
    lsi_lines_close(e->of[0]);
    lsi_lines_close(e->of[1]);
}

/* From now on nothing reaches rank 1, and nobody says so: as if its machine had no power. */
static void cut_off(const ends *e)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog filter = {1, &nothing};

    REQUIRE(setsockopt(e->fd[1], SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0);
}

/* What becomes of a request of rank 0 within so many seconds. */
static ls_status await(ends *e, ls_transport_request *r, double seconds, bool *over, ls_err *err)
{
    const double until = ls_clock_seconds() + seconds;
    ls_status st = LS_OK;
    bool moved;

    for (*over = false; !*over && st == LS_OK && ls_clock_seconds() < until;) {
        st = lsi_lines_turn(e->of[0], &moved, err);
        if (st == LS_OK) st = lsi_lines_test(e->of[0], r, 1, over, err);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return st;
}

/* Many times what it takes: a busy machine is no failure. */
#define LONG_ENOUGH_S 40.0

static void what_is_sent_is_not_answered(void)
{
    ends e;
    ls_transport_request s, r;
    ls_err err = {0};
    char from[100] = "", to[100];
    bool over;

    join(&e);
    cut_off(&e);
    CHECK_OK(lsi_lines_receive(e.of[0], to, sizeof to, 1, LSI_LONG, 8, &r, &err), &err);
    CHECK_OK(lsi_lines_send(e.of[0], from, sizeof from, 1, LSI_LONG, 7, 0, 1, &s, &err), &err);
    CHECK_EQ_INT(await(&e, &r, LONG_ENOUGH_S, &over, &err), LS_LOST);
    CHECK_EQ_STR(err.text, "the machine of rank 1 has not answered for 2 s");
    part(&e);
}

/* Nothing is under way: only the system's own questions find out. */
static void what_is_awaited_does_not_come(void)
{
    ends e;
    ls_transport_request r;
    ls_err err = {0};
    char to[100];
    bool over;

    join(&e);
    cut_off(&e);
    CHECK_OK(lsi_lines_receive(e.of[0], to, sizeof to, 1, LSI_LONG, 8, &r, &err), &err);
    CHECK_EQ_INT(await(&e, &r, LONG_ENOUGH_S, &over, &err), LS_LOST);
    CHECK_EQ_STR(err.text, "the machine of rank 1 has not answered for 2 s");
    part(&e);
}

/* A rank that computes for long does not look, and its window closes; its machine answers. */
static void nobody_reads_for_long(void)
{
    enum { BYTES = 64 << 20 };
    ends e;
    ls_transport_request s, r;
    ls_err err = {0};
    char *from = ls_alloc(LS_MEM_TEST, BYTES), *to = ls_alloc(LS_MEM_TEST, BYTES);
    bool over, moved;

    REQUIRE(from != NULL && to != NULL);
    memset(from, 7, BYTES);
    join(&e);
    CHECK_OK(lsi_lines_send(e.of[0], from, BYTES, 1, LSI_LONG, 7, 0, 1, &s, &err), &err);
    CHECK_OK(await(&e, &s, 2 * SILENCE_S, &over, &err), &err);
    CHECK(!over);
    CHECK_OK(lsi_lines_receive(e.of[1], to, BYTES, 0, LSI_LONG, 7, &r, &err), &err);
    for (bool come = false; !come;) {
        for (int i = 0; i < 2; i++) REQUIRE_OK(lsi_lines_turn(e.of[i], &moved, &err), &err);
        REQUIRE_OK(lsi_lines_test(e.of[1], &r, 1, &come, &err), &err);
    }
    CHECK(memcmp(from, to, BYTES) == 0);
    ls_free(from);
    ls_free(to);
    part(&e);
}

int main(void)
{
    setenv("LOCKSTEP_HEARTBEAT", "2", 1);
    CHECK_RUN(what_is_sent_is_not_answered);
    CHECK_RUN(what_is_awaited_does_not_come);
    CHECK_RUN(nobody_reads_for_long);
    return CHECK_DONE();
}
