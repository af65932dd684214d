/* test_read.c: a plan that others wrote is refused where it does not hold together, with its place, its value
 * and what to do. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "plans_test.h"

static void refuse(const char *text, const char *why)
{
    ls_document d;
    int n;
    ls_err err = {0};

    CHECK_STATUS(ls_document_parse(&d, text, strlen(text), "p.json", 0, &n, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, "p.json: ");
    CHECK_CONTAINS(err.text, why);
    ls_document_release(&d);
}

static void files_without_a_plan(void)
{
    refuse("", "no plan is in it");
    refuse("{\"event\":\"plan\"}\n", "no plan is in it");
    refuse("{\"event\":\"document\",\"format\":7,\"plans\":[]}", "format 7");
    refuse("{\"event\":\"document\",\"format\":\"1\",\"plans\":[{}]}", "format 0");
    refuse("{\"event\":\"document\",\"format\":1,\"plans\":[]}", "it has no plan");
    refuse("{\"event\":\"document\",\"format\":1,\"plans\":{}}", "it has no plan");
    refuse("{\"event\":\"document\",\"format\":1,\"plans\":[{}]}", "the plan: it has no");
    refuse("{\"event\":\"document\",\"format\":1,\"plans\":[3]}", "the plan: it is no object");
    refuse("{\"event\":\"document\",\"format\":1,\"plans\":[{},{}]}", "plan 1 of 2: the plan: it has no");
}

static void texts_that_are_no_json(void)
{
    refuse("{\"event\":", "byte 9");
    refuse("{}\n[1, 2", "byte 8");
    refuse("{\"event\":\"document\",\"event\":\"document\"}", "duplicate");
    refuse("{\"event\":\"docu\x01ment\"}", "control character");
    refuse("{\"event\":\"docu\nment\"}", "byte ");
    refuse("{\"event\":\"docu\\qment\"}", "invalid escape");
    refuse("{\"event\":\"\\ud800\"}", "byte ");
    refuse("{\"event\":\"a\\u0000b\"}", "byte ");
    refuse("{\"event\":\"\xff\xfe\"}", "byte ");
    refuse("{\"event\":1e999}", "byte ");
    refuse("{\"event\":99999999999999999999}", "byte ");
}

/* -- one thing wrong in a good plan -----------------------------------------------------------------------
 */

/* A small plan with a collective and an edge by control, which this one rank's has none of. */
static json_t *good_plan(void)
{
    ls_document d;
    json_t *plan;
    int first, last;

    small_plan_document(&(small_plan){.more = true}, &d);
    plan = ls_document_json(&d);
    REQUIRE(plan != NULL && d.n_nodes > 4 && d.n_buffers > 3 && d.n_edges > 2);
    first = d.nodes[0].id;
    last = d.nodes[d.n_nodes - 1].id;
    json_array_append_new(
        json_object_get(plan, "edges"),
        json_pack("{s:i, s:i, s:s, s:i}", "from", first, "to", last, "kind", "barrier", "value", -1));
    json_array_append_new(json_object_get(plan, "collectives"),
                          json_pack("{s:s, s:i, s:i, s:i, s:i, s:[i]}", "kind", "all_reduce", "bucket", 0,
                                    "bytes", 256, "start", d.nodes[1].id, "end", last, "waits_for", first));
    ls_document_release(&d);
    return plan;
}

/* Takes the plan over; `why` NULL: it is read. */
static void read_take(json_t *plan, const char *why)
{
    json_t *o = json_pack("{s:s, s:i, s:[o]}", "event", "document", "format", 1, "plans", plan);
    char *text = json_dumps(o, 0);
    ls_document d;
    int n;
    ls_err err = {0};

    REQUIRE(text != NULL);
    if (why == NULL) {
        CHECK_OK(ls_document_parse(&d, text, strlen(text), "p.json", 0, &n, &err), &err);
        ls_document_release(&d);
    } else {
        refuse(text, why);
        CHECK_STATUS(ls_document_parse(&d, text, strlen(text), "p.json", 0, &n, &err), LS_DATA, &err);
        CHECK_CONTAINS(err.text, "write the file anew");
        ls_document_release(&d);
    }
    free(text);
    json_decref(o);
}

/* Member `key` of item `at` of a list (NULL: of the plan itself) becomes `value`, which is taken over; NULL:
 * it goes. */
static void spoil(const char *list, size_t at, const char *key, json_t *value, const char *why)
{
    json_t *plan = good_plan(), *o = list != NULL ? json_array_get(json_object_get(plan, list), at) : plan;

    REQUIRE(o != NULL);
    if (value != NULL)
        json_object_set_new(o, key, value);
    else
        json_object_del(o, key);
    read_take(plan, why);
}

/* Number `key` of item `at`. */
static int member(const char *list, size_t at, const char *key)
{
    json_t *plan = good_plan();
    const json_t *o = json_array_get(json_object_get(plan, list), at);
    const int x = (int)json_integer_value(json_object_get(o, key));

    json_decref(plan);
    return x;
}

static void a_good_plan_is_read(void)
{
    read_take(good_plan(), NULL);
}

static void the_plan_itself(void)
{
    spoil(NULL, 0, "part", json_string("half"), "\"part\" is \"half\", must be step, gradients, update or");
    spoil(NULL, 0, "stage", json_integer(-1), "\"stage\" is -1");
    spoil(NULL, 0, "batch", json_real(1.5), "\"batch\" is 1.5, must be a whole number");
    spoil(NULL, 0, "batch", json_integer(0), "\"batch\" is 0, must be 1 to");
    spoil(NULL, 0, "runs_per_step", json_integer(0), "\"runs_per_step\" is 0, must be 1 to");
    spoil(NULL, 0, "flops", json_integer(-3), "\"flops\" is -3");
    spoil(NULL, 0, "flops", json_real(1e300), "\"flops\" is 1.0000000000000001e300");
    spoil(NULL, 0, "hash", json_string("12"), "\"hash\" is \"12\"");
    spoil(NULL, 0, "hash", json_string("0123456789abcdeg"), "\"hash\" is");
    spoil(NULL, 0, "arena_bytes", json_integer(-1), "\"arena_bytes\" is -1");
    spoil(NULL, 0, "memory", json_object(), "memory: it has no");
    spoil(NULL, 0, "memory", NULL, "memory: it is no object");
    spoil(NULL, 0, "nodes", NULL, "it has no \"nodes\"");
    spoil(NULL, 0, "edges", json_string("none"), "\"edges\" is \"none\", must be a list");
}

static void the_total_is_the_sum_of_its_parts(void)
{
    static const char *const why[] = {"less than its parts", "1 more than its parts"};

    for (int k = 0; k < 2; k++) {
        json_t *plan = good_plan(), *memory = json_object_get(plan, "memory");
        const json_int_t total = json_integer_value(json_object_get(memory, "total"));
        json_object_set_new(memory, "total", json_integer(total + (k == 0 ? -1 : 1)));
        read_take(plan, why[k]);
    }
}

/* Other events stand around a document; a second one, or half of something, does not. */
static void what_follows_the_document(void)
{
    static const char *const after[] = {"\n{\"event\":\"plan\"}\n", NULL, "garbage", "{\"event\":"};
    static const char *const why[] = {NULL, "a second document begins", "byte ", "byte "};
    json_t *o = json_pack("{s:s, s:i, s:[o]}", "event", "document", "format", 1, "plans", good_plan());
    char *one = json_dumps(o, 0);

    REQUIRE(one != NULL);
    for (size_t k = 0; k < sizeof after / sizeof after[0]; k++) {
        ls_text text = {0};
        ls_document d;
        int n;
        ls_err err = {0};
        ls_text_add(&text, "%s\n%s", one, after[k] != NULL ? after[k] : one);
        if (why[k] != NULL) refuse(text.data, why[k]);
        if (why[k] == NULL) {
            CHECK_OK(ls_document_parse(&d, text.data, text.length, "p.json", 0, &n, &err), &err);
            ls_document_release(&d);
        }
        ls_text_release(&text);
    }
    free(one);
    json_decref(o);
}

static void texts_with_control_characters(void)
{
    spoil("nodes", 1, "layer", json_string("a\x1b[2Jb"), "node 1: \"layer\" is \"a\\u001B[2Jb\", must be");
    spoil("nodes", 1, "attributes", json_string("a\nb"), "node 1: \"attributes\" is \"a\\nb\"");
    spoil("nodes", 1, "op", json_string("a\tb"), "node 1: \"op\"");
    spoil("nodes", 1, "impl", json_string("\xe2\x80\xae"), "node 1: \"impl\" is \"\\u202E\"");
    spoil("values", 0, "name", json_string("\x7f"), "value 0: \"name\"");
    spoil("values", 0, "layout", json_string("\xc2\x9b"), "value 0: \"layout\" is \"\\u009B\"");
    spoil("buffers", 0, "name", json_string("\r"), "buffer 0: \"name\" is \"\\r\"");
    spoil("nodes", 1, "layer", json_integer(3), "node 1: \"layer\" is 3, must be a text");
}

static void values(void)
{
    spoil("values", 1, "id", json_integer(member("values", 0, "id")), "value 1: its id");
    spoil("values", 0, "id", json_integer((json_int_t)1 << 32), "value 0: \"id\" is 4294967296");
    spoil("values", 0, "kind", json_string("wish"), "value 0: \"kind\" is \"wish\"");
    spoil("values", 0, "dtype", json_string("f8"), "value 0: \"dtype\" is \"f8\"");
    spoil("values", 0, "category", json_string("toys"), "value 0: \"category\" is \"toys\"");
    spoil("values", 0, "bytes", json_integer(-1), "value 0: \"bytes\" is -1");
    spoil("values", 0, "bytes", json_integer(1), "value 0: \"bytes\" is 1, and f32 (4, 8) takes 128");
    spoil("values", 0, "bytes", json_integer(129), "value 0: \"bytes\" is 129, and f32 (4, 8) takes 128");
    spoil("values", 0, "shape", json_pack("[i,s]", 8, "x"),
          "value 0: dimension 1 of its \"shape\" is \"x\", must be a whole number");
    spoil("values", 0, "shape", json_pack("[i,i]", 4, -8), "value 0: \"shape\" is (4, -8)");
    spoil("values", 0, "shape", json_pack("[I,I]", (json_int_t)1 << 40, (json_int_t)1 << 40),
          "value 0: \"shape\"");
    spoil("values", 0, "shape", json_pack("[i,i,i,i,i,i,i]", 1, 1, 1, 1, 1, 1, 1),
          "value 0: \"shape\" has 7 dimensions");
    spoil("values", 0, "fetch", json_integer(1), "value 0: \"fetch\" is 1, must be true or false");
    spoil("values", 0, "buffer", json_integer(1000), "value 0: \"buffer\" is 1000");
    spoil("values", 0, "node", json_integer(9999), "value 0: \"node\" is 9999, and no node has that id");
    spoil("values", 0, "node", json_integer(member("nodes", 0, "id")), "for an input, which none makes");
    spoil("values", 3, "node", json_integer(-1), "makes it, and \"node\" is another");
}

static void nodes(void)
{
    spoil("nodes", 2, "queue", json_string("gpu"),
          "node 2: \"queue\" is \"gpu\", must be compute, comm, copy or host");
    spoil("nodes", 2, "queue", json_string("feed"), "node 2: \"queue\" is \"feed\", must be");
    spoil("nodes", 2, "queue", NULL, "node 2: it has no \"queue\"");
    spoil("nodes", 2, "op", json_string(""), "node 2: its \"op\" is empty");
    spoil("nodes", 2, "id", json_integer(member("nodes", 0, "id")),
          "places 0 and 2 of \"nodes\" have one \"id\", which is ");
    spoil("nodes", 2, "id", json_integer(-2), "node 2: \"id\" is -2");
    spoil("nodes", 2, "inputs", json_pack("[i]", 777), "node 2: inputs 0 is value 777, which is not there");
    spoil("nodes", 2, "inputs", json_pack("[s]", "x"), "node 2: inputs 0 is \"x\", must be the id of");
    spoil("nodes", 2, "inputs", json_pack("[f]", 1.5), "node 2: inputs 0 is 1.5, must be the id of a value");
    spoil("nodes", 2, "inputs", json_integer(3), "node 2: \"inputs\" is 3, must be a list");
    spoil("nodes", 2, "seconds", json_integer(-1), "node 2: \"seconds\" is -1");
    spoil("nodes", 2, "scratch_bytes", json_real(0.5), "node 2: \"scratch_bytes\" is 0.5");
}

/* What node `at` makes, or reads, first. */
static json_t *ids_of(size_t at, const char *key)
{
    json_t *plan = good_plan(),
           *ids = json_deep_copy(json_object_get(json_array_get(json_object_get(plan, "nodes"), at), key));

    json_decref(plan);
    return ids;
}

static void wiring(void)
{
    spoil("nodes", 3, "outputs", ids_of(2, "outputs"), "node 3: it makes value");
    spoil("nodes", 3, "outputs", ids_of(0, "inputs"), "which is an input");
    spoil("nodes", 1, "inputs", ids_of(3, "outputs"), "node 1: it reads value");
    spoil("nodes", 1, "inputs", ids_of(1, "outputs"), "node 1: it reads value");
}

static void edges(void)
{
    json_t *plan = good_plan();
    const size_t last = json_array_size(json_object_get(plan, "edges")) - 1;
    json_t *back = json_array_get(json_object_get(plan, "edges"), last);
    const int from = member("edges", last, "from"), to = member("edges", last, "to");

    spoil("edges", 0, "from", json_integer(4444), "edge 0: \"from\" is 4444, and no node has that id");
    spoil("edges", 0, "to", json_integer(4444), "edge 0: \"to\" is 4444, and no node has that id");
    spoil("edges", 0, "to", json_integer(((json_int_t)1 << 32) + to), "edge 0: \"to\" is 42949");
    spoil("edges", 0, "kind", json_string("hope"), "edge 0: \"kind\" is \"hope\", must be value, overwrite,");
    spoil("edges", 0, "value", json_integer(777), "edge 0: \"value\" is 777, which is not there");
    spoil("edges", 0, "value", NULL, "edge 0: it has no \"value\"");
    spoil("edges", 0, "value", json_integer(-1), "edge 0: \"value\" is -1: an edge by value has one");
    spoil("edges", last, "value", json_integer(member("values", 0, "id")), "an edge by control -1");
    spoil("edges", 0, "value", json_integer(member("values", 0, "id")), "does not come from node");
    spoil("edges", 0, "to", json_integer(to), "does not read value");
    spoil("edges", last, "to", json_integer(from), "to itself");
    /* A circle: there is a way from the first node to the last, and this leads back. */
    json_object_set_new(back, "from", json_integer(to));
    json_object_set_new(back, "to", json_integer(from));
    read_take(plan, "back to node");
}

static void buffers_and_their_lifetimes(void)
{
    const size_t arena = 1;
    const int bytes = member("buffers", 1, "bytes");

    REQUIRE(bytes > 0);
    spoil("buffers", arena, "kind", json_string("heap"), "buffer 1: \"kind\" is \"heap\"");
    spoil("buffers", arena, "home", json_string("moon"), "buffer 1: \"home\" is \"moon\"");
    spoil("buffers", arena, "offset", json_integer(-64), "buffer 1: \"offset\" is -64");
    spoil("buffers", arena, "bytes", json_integer(-1), "buffer 1: \"bytes\" is -1");
    spoil("buffers", arena, "bytes", json_integer(1 << 30), "buffer 1: its offset");
    spoil("buffers", arena, "offset", json_integer(1 << 30), "reach beyond the");
    spoil("buffers", arena, "offset", json_integer(INT64_MAX), "reach beyond the");
    spoil("buffers", arena, "first", json_integer(-1), "buffer 1: \"first\" is -1");
    spoil("buffers", arena, "last", json_integer(1000), "buffer 1: \"last\" is 1000");
    spoil("buffers", arena, "exchange", json_integer(2), "buffer 1: \"exchange\" is 2 for a buffer of kind");
    spoil("buffers", arena, "offset", json_pack("{}"), "buffer 1: \"offset\" is an object");
}

/* Two buffers of the arena, both with some bytes. */
static void lifetimes_that_go_back_or_overlap(void)
{
    json_t *plan = good_plan(), *list = json_object_get(plan, "buffers"), *some[2];
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(list) && n < 2; i++) {
        json_t *b = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(b, "kind")), "arena") != 0) continue;
        if (json_integer_value(json_object_get(b, "bytes")) > 0) some[n++] = b;
    }
    REQUIRE(n == 2);
    json_object_set(some[1], "offset", json_object_get(some[0], "offset"));
    json_object_set(some[1], "first", json_object_get(some[0], "first"));
    json_object_set(some[1], "last", json_object_get(some[0], "last"));
    read_take(json_deep_copy(plan), "'s, too, while node");
    json_object_set_new(some[1], "first", json_integer(2));
    json_object_set_new(some[1], "last", json_integer(1));
    read_take(plan, "it is in use from node 2 back to node 1");
}

static void exchange_buffers_end_with_their_bucket(void)
{
    const char *why[] = {NULL, "reach beyond the 256 of what it lies in"};

    for (int i = 0; i < 2; i++) {
        json_t *plan = good_plan();
        json_array_append_new(json_object_get(plan, "buffers"),
                              json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "kind", "exchange",
                                        "name", "", "category", "comm", "home", "rank", "offset", 192 + i,
                                        "bytes", 64, "exchange", 1, "first", 0, "last", 1));
        read_take(plan, why[i]);
    }
}

static void collectives(void)
{
    const int last = member("collectives", 0, "end"), first = member("nodes", 0, "id");

    spoil("collectives", 0, "kind", json_string("none"), "collective 0: \"kind\" is \"none\"");
    spoil("collectives", 0, "start", json_integer(4444), "collective 0: \"start\" is 4444");
    spoil("collectives", 0, "end", json_integer(first), "collective 0: it ends with node");
    spoil("collectives", 0, "bucket", json_integer(-2), "collective 0: \"bucket\" is -2");
    spoil("collectives", 0, "bucket", json_integer(99999),
          "collective 0: \"bucket\" is 99999, and the plans have 1 collectives");
    spoil("collectives", 0, "bytes", json_integer(-2), "collective 0: \"bytes\" is -2");
    spoil("collectives", 0, "waits_for", json_pack("[i]", 4444),
          "it waits for node 4444, which is not there");
    spoil("collectives", 0, "waits_for", json_pack("[i]", last), "which runs after its start");
    spoil("collectives", 0, "waits_for", json_pack("[f]", 1.5), "waits_for 0 is 1.5, must be the id of");
    spoil("collectives", 0, "waits_for", NULL, "collective 0: it has no \"waits_for\"");
}

int main(void)
{
    CHECK_RUN(files_without_a_plan);
    CHECK_RUN(texts_that_are_no_json);
    CHECK_RUN(a_good_plan_is_read);
    CHECK_RUN(the_plan_itself);
    CHECK_RUN(the_total_is_the_sum_of_its_parts);
    CHECK_RUN(what_follows_the_document);
    CHECK_RUN(texts_with_control_characters);
    CHECK_RUN(values);
    CHECK_RUN(nodes);
    CHECK_RUN(wiring);
    CHECK_RUN(edges);
    CHECK_RUN(buffers_and_their_lifetimes);
    CHECK_RUN(lifetimes_that_go_back_or_overlap);
    CHECK_RUN(exchange_buffers_end_with_their_bucket);
    CHECK_RUN(collectives);
    return CHECK_DONE();
}
