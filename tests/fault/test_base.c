/* Every allocation of the base layer fails once. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "check.h"
#include "faults.h"

#define NOMEM_IF(cond)                                                                                       \
    do {                                                                                                     \
        if (cond) {                                                                                          \
            st = ls_fail(err, LS_NOMEM, "no memory: %s", #cond);                                             \
            goto out;                                                                                        \
        }                                                                                                    \
    } while (0)

static ls_status use_arena(void *arg, ls_err *err)
{
    (void)arg;
    ls_status st = LS_OK;
    ls_arena *arena = NULL;
    LS_TRY(ls_arena_create(&arena, LS_MEM_TEST, err));
    for (int i = 0; i < 500; i++) {
        /* Small objects fill blocks; every hundredth is too large for one. */
        unsigned char *p = ls_arena_alloc(arena, i % 100 == 99 ? 50000 : 200);
        NOMEM_IF(!p);
        memset(p, 0xff, 200);
    }
    char *text = ls_arena_strdup(arena, "name");
    NOMEM_IF(!text);
    char *joined = ls_arena_printf(arena, "%s.%*d", text, 70000, 1);
    NOMEM_IF(!joined);
    CHECK_EQ_INT(strlen(joined), 70005);
out:
    ls_arena_destroy(arena);
    return st;
}

static ls_status use_text(void *arg, ls_err *err)
{
    (void)arg;
    ls_status st = LS_OK;
    ls_text t = {0};
    for (int i = 0; i < 2000; i++) {
        size_t before = t.length;
        ls_text_add(&t, "%d ", i);
        CHECK(t.failed ? t.length == before : t.length > before);
    }
    CHECK(!t.data || strlen(t.data) == t.length);
    NOMEM_IF(t.failed);
out:
    ls_text_release(&t);
    return st;
}

static ls_status use_blocks(void *arg, ls_err *err)
{
    (void)arg;
    ls_status st = LS_OK;
    char *copy = ls_strdup(LS_MEM_TEST, "copy"), *block = NULL;
    NOMEM_IF(!copy);
    block = ls_alloc(LS_MEM_TEST, 10);
    NOMEM_IF(!block);
    for (size_t size = 20; size < 100000; size *= 3) {
        char *larger = ls_realloc(LS_MEM_TEST, block, size);
        NOMEM_IF(!larger);
        block = larger;
    }
out:
    ls_free(block);
    ls_free(copy);
    return st;
}

static void arena(void)
{
    check_faults("arena", use_arena, NULL);
}

static void text(void)
{
    check_faults("text", use_text, NULL);
}

static void blocks(void)
{
    check_faults("blocks", use_blocks, NULL);
}

int main(void)
{
    CHECK_RUN(arena);
    CHECK_RUN(text);
    CHECK_RUN(blocks);
    return CHECK_DONE();
}
