/* test_collectives.c: lengths of vectors as they are written, and results of exchanges read from files. */
#include <string.h>

#include "base/json.h"
#include "bench/collectives.h"
#include "check.h"

static void sizes_are_read(void)
{
    ls_collectives_args a = {0};
    ls_err err = {0};

    CHECK_OK(ls_collectives_sizes(&a, NULL, &err), &err);
    CHECK(a.n_sizes == 9 && a.bytes[0] == 1024 && a.bytes[8] == 64 << 20);
    CHECK_OK(ls_collectives_sizes(&a, "4KiB,1MiB,2MB", &err), &err);
    CHECK(a.n_sizes == 3 && a.bytes[0] == 4096 && a.bytes[1] == 1 << 20 && a.bytes[2] == 2000000);
    CHECK_STATUS(ls_collectives_sizes(&a, "", &err), LS_INVALID, &err);
    CHECK_STATUS(ls_collectives_sizes(&a, "4KiB,", &err), LS_INVALID, &err);
    CHECK_STATUS(ls_collectives_sizes(&a, "4KiB,1KiB", &err), LS_INVALID, &err);
    CHECK_STATUS(ls_collectives_sizes(&a, "6", &err), LS_INVALID, &err);
    CHECK_STATUS(ls_collectives_sizes(&a, "5GiB", &err), LS_INVALID, &err);
}

/* What is written is read again. */
static void results_come_back(void)
{
    ls_collective_time of = {.kind = LS_COLL_REDUCE_SCATTER,
                             .wire = LS_WIRE_BF16,
                             .bytes = 1 << 20,
                             .ranks = 5,
                             .hosts = 2,
                             .most_on_host = 3,
                             .rounds = 7,
                             .repeats = 2,
                             .seconds = {1e-3, 1.25e-3, 2e-3},
                             .core_s = 3e-4,
                             .sent_bytes = 262144};
    double cores[5] = {3e-4, 3e-4, 3e-4, 3e-4, 3e-4};
    const ls_collective_times all = {
        .of = &of, .n = 1, .rank_core_s = cores, .ranks = 5, .cores = 4, .host = "here"};
    ls_collective_times back = {0};
    json_t *o = ls_collective_json(&all, 0, "1.2.3", 1700000000);
    ls_text text = {0};
    ls_err err = {0};

    ls_text_add(&text, "{\"event\": \"bench\"}\n\n");
    ls_json_add(&text, o, JSON_COMPACT);
    ls_text_add(&text, "\n  \n");
    ls_json_add(&text, o, JSON_COMPACT);
    CHECK_OK(ls_collectives_parse(&back, text.data, text.length, &err), &err);
    CHECK(back.n == 2 && strcmp(back.host, "here") == 0 && back.cores == 4);
    for (int i = 0; i < back.n; i++) {
        const ls_collective_time *t = &back.of[i];
        CHECK(t->kind == of.kind && t->wire == of.wire && t->bytes == of.bytes && t->ranks == 5 &&
              t->hosts == 2 && t->most_on_host == 3 && t->rounds == 7 && t->repeats == 2);
        CHECK(t->seconds.p16 == of.seconds.p16 && t->seconds.p50 == of.seconds.p50 &&
              t->seconds.p84 == of.seconds.p84 && t->core_s == of.core_s && t->sent_bytes == of.sent_bytes);
        CHECK(ls_collective_wire_bytes(t) == 524288);
    }
    ls_collective_times_release(&back);
    ls_text_release(&text);
    json_decref(o);
}

/* Each field, made wrong, is named with its line. */
static void nonsense_is_refused(void)
{
    static const char good[] =
        "{\"event\":\"collectives\",\"format\":1,\"kind\":\"all_reduce\",\"wire\":\"f32\",\"bytes\":4096,"
        "\"ranks\":2,\"hosts\":1,\"most_ranks_of_host\":2,\"rounds\":5,\"repeats\":1,\"seconds\":{\"p16\":1,"
        "\"p50\":2,\"p84\":3},\"core_s\":1,\"sent_bytes\":0}";
    static const struct {
        const char *from, *to, *says;
    } wrong[] = {{"\"format\":1", "\"format\":9", "\"format\""},
                 {"all_reduce", "all_redoes", "all_redoes"},
                 {"\"f32\"", "\"f31\"", "f31"},
                 {"4096", "4.96", "\"bytes\""},
                 {"\"ranks\":2", "\"ranks\":1", "do not fit"},
                 {"\"ranks\":2", "\"ranks\":3", "do not fit"},
                 {"\"hosts\":1", "\"hosts\":2", "do not fit"},
                 {"\"rounds\":5", "\"rounds\":0", "\"rounds\""},
                 {"\"p16\":1", "\"p16\":9", "\"seconds\""},
                 {"\"p50\":2", "\"p50\":0", "\"seconds\""},
                 {"\"core_s\":1", "\"core_s\":-1", "\"core_s\""},
                 {"\"sent_bytes\":0", "\"sent_bites\":0", "\"sent_bytes\""},
                 {"{\"event", "x\"event", "no JSON"}};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *at = strstr(good, wrong[i].from);
        ls_collective_times t = {0};
        ls_text text = {0};
        ls_err err = {0};
        CHECK(at != NULL);
        ls_text_add(&text, "%s\n%.*s%s%s\n", good, (int)(at - good), good, wrong[i].to,
                    at + strlen(wrong[i].from));
        CHECK_STATUS(ls_collectives_parse(&t, text.data, text.length, &err), LS_DATA, &err);
        CHECK_CONTAINS(err.text, "line 2");
        CHECK_CONTAINS(err.text, wrong[i].says);
        ls_collective_times_release(&t);
        ls_text_release(&text);
    }
}

int main(void)
{
    CHECK_RUN(sizes_are_read);
    CHECK_RUN(results_come_back);
    CHECK_RUN(nonsense_is_refused);
    return CHECK_DONE();
}
