/* test_join_link.c: joining a group of devices ends when a rank gives up, whatever the library does. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "backend/backend.h"
#include "check.h"
#include "exec/join_link.h"

enum { RANKS = 2 };

struct ls_link {
    int rank;
};

static atomic_int inside, may_join;

/* As a library that waits for a rank: until the test is over. */
static ls_status open_later(ls_link **out, ls_device *dev, const char id[LS_LINK_ID], int rank, int ranks,
                            ls_err *err)
{
    static ls_link links[RANKS];

    (void)dev;
    atomic_fetch_add(&inside, 1);
    while (!atomic_load(&may_join)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (strcmp(id, "broken") == 0) return ls_fail(err, LS_DEVICE, "made up");
    links[rank].rank = ranks * 10 + rank;
    *out = &links[rank];
    return LS_OK;
}

static const ls_links library = {.name = "test", .open = open_later};

typedef struct member {
    ls_comm *comm;
    const char *id;
    ls_link *link;
    ls_status status;
    ls_err err;
} member;

static void *join(void *arg)
{
    member *m = arg;
    struct ls_peers peers = {.comm = m->comm, .links = &library};
    char id[LS_LINK_ID] = "";

    strcpy(id, m->id);
    m->status = lsi_join_link(&peers, &m->link, id, ls_comm_rank(m->comm), RANKS, &m->err);
    return NULL;
}

static void wait_until_inside(int n)
{
    while (atomic_load(&inside) < n) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void open_members(member m[RANKS], const char *id)
{
    ls_comm *comm[RANKS];
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_threads(comm, RANKS, &err), &err);
    for (int i = 0; i < RANKS; i++) m[i] = (member){.comm = comm[i], .id = id};
    atomic_store(&inside, 0);
    atomic_store(&may_join, 0);
}

static void all_join(const char *id, ls_status expected)
{
    pthread_t thread[RANKS];
    member m[RANKS];

    open_members(m, id);
    for (int i = 0; i < RANKS; i++) REQUIRE(pthread_create(&thread[i], NULL, join, &m[i]) == 0);
    wait_until_inside(RANKS);
    atomic_store(&may_join, 1);
    for (int i = 0; i < RANKS; i++) {
        pthread_join(thread[i], NULL);
        CHECK_STATUS(m[i].status, expected, &m[i].err);
        CHECK(expected == LS_OK ? m[i].link->rank == RANKS * 10 + i : m[i].link == NULL);
        if (expected != LS_OK) CHECK_CONTAINS(m[i].err.text, "made up");
    }
    for (int i = 0; i < RANKS; i++) ls_comm_close(m[i].comm);
}

static void members_join(void)
{
    all_join("a group", LS_OK);
    all_join("broken", LS_DEVICE);
}

static void a_rank_that_gives_up_is_not_waited_for(void)
{
    pthread_t thread;
    member m[RANKS];

    open_members(m, "a group");
    REQUIRE(pthread_create(&thread, NULL, join, &m[0]) == 0);
    wait_until_inside(1);
    ls_comm_abort(m[1].comm, "no memory");
    pthread_join(thread, NULL); /* the library still waits */
    CHECK_STATUS(m[0].status, LS_LOST, &m[0].err);
    CHECK_CONTAINS(m[0].err.text, "rank 1 is gone (no memory");
    CHECK_CONTAINS(m[0].err.text, "joining a group of devices");
    CHECK(m[0].link == NULL);
    atomic_store(&may_join, 1);
    for (int i = 0; i < RANKS; i++) ls_comm_close(m[i].comm);
}

int main(void)
{
    CHECK_RUN(members_join);
    CHECK_RUN(a_rank_that_gives_up_is_not_waited_for);
    return CHECK_DONE();
}
