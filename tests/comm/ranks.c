/* ranks.c: see ranks.h. */
#include "ranks.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { MOST = 16 };

typedef struct thread_rank {
    ls_comm *c;
    rank_fn fn;
    const void *arg;
    int wrong;
} thread_rank;

static void *thread_main(void *arg)
{
    thread_rank *t = arg;

    t->wrong = t->fn(t->c, t->arg);
    ls_comm_close(t->c);
    return NULL;
}

int run_threads(int n, rank_fn fn, const void *arg)
{
    ls_err err = {0};
    ls_comm *c[MOST];
    pthread_t id[MOST];
    thread_rank t[MOST];
    int wrong = 0;

    REQUIRE(n <= MOST);
    REQUIRE_OK(ls_comm_open_threads(c, n, &err), &err);
    for (int i = 0; i < n; i++) {
        t[i] = (thread_rank){c[i], fn, arg, 0};
        REQUIRE(pthread_create(&id[i], NULL, thread_main, &t[i]) == 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(id[i], NULL);
        wrong += t[i].wrong;
    }
    return wrong;
}

static int process_main(const ls_comm_heap *heap, int rank, int n, rank_fn fn, const void *arg)
{
    ls_err err = {0};
    ls_comm *c;

    if (ls_comm_open_local(&c, ls_comm_heap_fd(heap), rank, n, &err) != LS_OK) {
        printf("rank %d: %s\n", rank, err.text);
        return 100;
    }
    int wrong = fn(c, arg);
    ls_comm_close(c);
    fflush(stdout);
    return wrong > 100 ? 100 : wrong;
}

int run_processes(int n, rank_fn fn, const void *arg)
{
    ls_err err = {0};
    ls_comm_heap *heap;
    pid_t pid[MOST];
    int wrong = 0;

    REQUIRE(n <= MOST);
    REQUIRE_OK(ls_comm_heap_create(&heap, n, &err), &err);
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        pid[i] = fork();
        REQUIRE(pid[i] >= 0);
        if (pid[i] == 0) _exit(process_main(heap, i, n, fn, arg));
    }
    for (int i = 0; i < n; i++) {
        int status = 0;
        waitpid(pid[i], &status, 0);
        wrong += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    }
    ls_comm_heap_destroy(heap);
    return wrong;
}

int expect_status(const ls_comm *c, ls_status st, ls_status want, const ls_err *err, const char *what)
{
    if (st == want) return 0;
    printf("rank %d: %s: %s, expected %s: %s\n", ls_comm_rank(c), what, ls_status_name(st),
           ls_status_name(want), err->text);
    return 1;
}

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

float noise(uint64_t a, uint64_t b, uint64_t i)
{
    return (float)((double)(int64_t)mix(mix(mix(a) + b) + i) * 0x1p-63);
}

void dawdle(uint64_t *state)
{
    *state = mix(*state);
    switch (*state % 8) {
    case 0: sched_yield(); break;
    case 1:
        for (volatile int i = 0; i < 20000; i++) {
        }
        break;
    default: break;
    }
}

float tree_value(uint64_t seed, int64_t n_leaves, int64_t first, int64_t width, int64_t i)
{
    if (width == 1) return noise(seed, (uint64_t)first, (uint64_t)i);
    float left = tree_value(seed, n_leaves, first, width / 2, i);
    if (first + width / 2 >= n_leaves) return left;
    return left + tree_value(seed, n_leaves, first + width / 2, width / 2, i);
}

void deal(int64_t shards, int size, int rank, int64_t *first, int64_t *end)
{
    *first = shards * rank / size;
    *end = shards * (rank + 1) / size;
}

void fill_parts(ls_exchange *x, uint64_t seed, int64_t n_leaves, int64_t n)
{
    for (int j = 0; j < ls_exchange_parts(x); j++) {
        int64_t first, end, width = 1;
        ls_exchange_part_range(x, j, &first, &end);
        while (width < end - first) width *= 2;
        for (int64_t i = 0; i < n; i++)
            ls_exchange_part(x, j)[i] = tree_value(seed, n_leaves, first, width, i);
    }
}
