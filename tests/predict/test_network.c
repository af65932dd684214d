/* test_network.c: networks are read as they are written, and refused with the place of what is wrong; presets
 * say where their figures are from; ways use links that there are. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "check.h"
#include "predict/network.h"

#define LINKS "\"inside\":{\"latency_s\":1e-6,\"bytes_s\":5e9},\"node\":{\"latency_s\":2e-6,\"bytes_s\":1e9}"
#define HEAD  "{\"format\":\"lockstep-network\",\"version\":1,\"name\":\"x\","
#define FLAT  ",\"topology\":{\"kind\":\"flat\"}"
#define TREE(switches, machines)                                                                             \
    HEAD LINKS ",\"topology\":{\"kind\":\"tree\",\"switches\":[" switches "],\"machines\":[" machines "]}}"
#define ROOT "{\"name\":\"root\",\"latency_s\":1e-7}"
#define LEAF "{\"name\":\"leaf\",\"parent\":\"root\",\"up_bytes_s\":4e9}"

static ls_network read_text(const char *text)
{
    ls_network n;
    ls_err err = {0};

    REQUIRE_OK(ls_network_parse(&n, text, strlen(text), "a.json", &err), &err);
    return n;
}

static void refused(const char *text, const char *where, const char *why)
{
    ls_network n;
    ls_err err = {0};

    CHECK_STATUS(ls_network_parse(&n, text, strlen(text), "a.json", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "a.json");
    CHECK_CONTAINS(err.text, where);
    CHECK_CONTAINS(err.text, why);
    ls_network_release(&n);
}

/* -- files ------------------------------------------------------------------------------------------------
 */

static void fields_are_read(void)
{
    ls_network n = read_text(
        "{\"machine\":{},\"network\":" HEAD
        "\"about\":\"why\",\"source\":\"me\",\"ranks_per_node\":4,\"error\":0.05,\"error_per_doubling\":0.02,"
        "\"measured_ranks\":8,\"measured_nodes\":2,\"measured_per_node\":3,"
        "\"inside\":{\"latency_s\":1e-6,\"bytes_s\":5e9,\"message_s\":1e-7,\"core_s_per_byte\":2e-10},"
        "\"node\":{\"latency_s\":2e-6,\"bytes_s\":1000000000},\"sources\":{\"node.bytes_s\":\"a ruler\"},"
        "\"topology\":{\"kind\":\"fat-tree\",\"levels\":[{\"children\":4,\"taper\":2,\"latency_s\":1e-7},"
        "{\"children\":8}]}}}");

    CHECK_EQ_STR(n.name, "x");
    CHECK_EQ_STR(n.about, "why");
    CHECK_EQ_STR(n.source, "me");
    CHECK_EQ_INT(n.ranks_per_node, 4);
    CHECK_NEAR(n.error, 0.05, 0);
    CHECK_NEAR(n.error_per_doubling, 0.02, 0);
    CHECK_EQ_INT(n.measured_ranks, 8);
    CHECK_EQ_INT(n.measured_nodes, 2);
    CHECK_EQ_INT(n.measured_per_node, 3);
    CHECK_NEAR(n.inside.core_s_per_byte, 2e-10, 0);
    CHECK_NEAR(n.inside.message_s, 1e-7, 0);
    CHECK_NEAR(n.node.bytes_s, 1e9, 0);
    CHECK_NEAR(n.node.core_s_per_byte, 0, 0);
    CHECK_EQ_INT(n.kind, LS_NETWORK_FAT_TREE);
    CHECK_EQ_INT(n.n_levels, 2);
    CHECK_NEAR(n.level[0].taper, 2, 0);
    CHECK_NEAR(n.level[1].taper, 1, 0);
    CHECK_EQ_INT(n.n_sources, 1);
    CHECK_EQ_STR(n.sources[0].text, "a ruler");
    CHECK_EQ_INT(ls_network_size(&n), 32);
    ls_network_release(&n);
    CHECK(n.arena == NULL);
}

static void broken_files_are_refused(void)
{
    refused("", "a.json:1", "no JSON");
    refused("{\"format\":", "a.json:1", "no JSON");
    refused("[]", "a.json", "must be an object with \"format\"");
    refused("{\"network\":3}", "a.json", "\"network\" is no object");
    refused("{}", "format", "missing");
    refused("{\"format\":\"lockstep-machine\",\"version\":1}", "format", "must be \"lockstep-network\"");
    refused("{\"format\":\"lockstep-network\",\"version\":2}", "version", "this program reads version 1");
    refused("{\"format\":\"lockstep-network\",\"version\":\"1\"}", "version", "must be a whole number");
    refused(HEAD "\"name\":\"y\"," LINKS FLAT "}", "a.json:1", "duplicate");
    refused(HEAD LINKS "}", "topology", "missing");
    refused(HEAD LINKS FLAT ",\"ranks_per_nod\":4}", "ranks_per_nod", "did you mean \"ranks_per_node\"?");
    refused(HEAD LINKS FLAT ",\"ranks_per_node\":0}", "ranks_per_node: is 0", "from 1 to 4096");
    refused(HEAD LINKS FLAT ",\"error\":-0.1}", "error: is -0.1", "from 0 to 10");
    refused(HEAD LINKS FLAT ",\"about\":\"a\\u001bb\"}", "about", "a text of one line");
    refused(HEAD LINKS FLAT ",\"sources\":{\"node.rate\":\"x\"}}", "sources.node.rate", "unknown field");
    refused(HEAD LINKS FLAT ",\"sources\":{\"node.bytes_s\":7}}", "sources.node.bytes_s: is 7", "a text");
}

#define LINK(inside, node) HEAD "\"inside\":{" inside "},\"node\":{" node "}" FLAT "}"
#define GOOD               "\"latency_s\":0,\"bytes_s\":1e9"

static void figures_have_ranges(void)
{
    ls_network n = read_text(LINK(GOOD, GOOD)); /* no latency at all is fine */

    ls_network_release(&n);
    refused(LINK(GOOD, "\"latency_s\":0,\"bytes_s\":0"), "node.bytes_s: is 0", "a number from 1 to 1e+18");
    refused(LINK(GOOD, "\"latency_s\":0,\"bytes_s\":-5"), "node.bytes_s: is -5", "a number from 1");
    refused(LINK("\"latency_s\":-1e-6,\"bytes_s\":1e9", GOOD), "inside.latency_s", "a number from 0 to 1000");
    refused(LINK("\"latency_s\":1e-6", GOOD), "inside.bytes_s", "missing");
    refused(LINK(GOOD, "\"latency_s\":0,\"bytes_s\":\"1e9\""), "node.bytes_s: is \"1e9\"", "a number");
    refused(LINK(GOOD, "\"latency_s\":0,\"bytes_s\":null"), "node.bytes_s: is null", "a number");
    refused(LINK(GOOD, "\"latency_s\":0,\"bytes_s\":NaN"), "a.json:1", "no JSON");
    refused(LINK(GOOD, "\"latency_s\":0,\"bytes_s\":1e999"), "a.json:1", "no JSON");
    refused(LINK(GOOD, GOOD ",\"core_s_per_byte\":2"), "node.core_s_per_byte", "from 0 to 1");
    refused(LINK(GOOD, GOOD ",\"byte_s\":2"), "node.byte_s", "did you mean \"bytes_s\"?");
    refused(HEAD "\"inside\":3,\"node\":{" GOOD "}" FLAT "}", "inside: is 3", "must be an object");
}

#define TOPOLOGY(text) HEAD LINKS ",\"topology\":{" text "}}"
#define FLY(more)                                                                                            \
    TOPOLOGY("\"kind\":\"dragonfly\",\"nodes_per_router\":2,\"routers_per_group\":4,\"local_bytes_s\":1e9,"  \
             "\"global_bytes_s\":2e9," more)

static void topologies_are_checked(void)
{
    refused(TOPOLOGY("\"kind\":\"fattree\""), "topology.kind", "did you mean \"fat-tree\"?");
    refused(TOPOLOGY("\"kind\":\"flat\",\"levels\":[]"), "topology.levels", "unknown field");
    refused(TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[]"), "topology.levels",
            "has 0 entries, must have 1 to 8");
    refused(TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[3]"), "topology.levels[0]: is 3", "an object");
    refused(TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":0}]"),
            "topology.levels[0].children: is 0", "a whole number from 1");
    refused(TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":2,\"taper\":0.5},{\"children\":2}]"),
            "topology.levels[0].taper: is 0.5", "a number from 1 to");
    refused(TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":2,\"taper\":2}]"),
            "topology.levels[0].taper: is 2", "nothing above");
    refused(TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":99999},{\"children\":99999}]"),
            "topology.levels[1].children", "at most");
    refused(FLY("\"groups\":0"), "topology.groups: is 0", "from 1 to 4096");
    refused(FLY("\"groups\":4,\"global_link\":2"), "topology.global_link", "did you mean \"global_links\"?");
    refused(FLY("\"groups\":4,\"router_s\":-1"), "topology.router_s", "from 0 to 1000");
    refused(TREE("", "{\"switch\":\"root\",\"count\":1}"), "topology.switches", "has 0 entries");
    refused(TREE(ROOT "," LEAF "," LEAF, "{\"switch\":\"leaf\",\"count\":1}"), "topology.switches",
            "\"leaf\" is there twice");
    refused(TREE(ROOT ",{\"name\":\"b\"}", "{\"switch\":\"root\",\"count\":1}"), "topology.switches",
            "\"root\" and \"b\" have no parent");
    refused(
        TREE(ROOT ",{\"name\":\"b\",\"parent\":\"c\",\"up_bytes_s\":1e9}", "{\"switch\":\"b\",\"count\":1}"),
        "topology.switches[1].parent: is \"c\"", "no switch has that name");
    refused(TREE(ROOT ",{\"name\":\"b\",\"parent\":\"root\"}", "{\"switch\":\"b\",\"count\":1}"),
            "topology.switches[1].up_bytes_s", "missing");
    refused(
        TREE(ROOT ",{\"name\":\"b\",\"parent\":\"root\",\"up_bytes_s\":0}", "{\"switch\":\"b\",\"count\":1}"),
        "topology.switches[1].up_bytes_s: is 0", "a number from 1");
    refused(TREE("{\"name\":\"root\",\"up_bytes_s\":1e9}", "{\"switch\":\"root\",\"count\":1}"),
            "topology.switches[0].up_bytes_s", "no \"parent\"");
    refused(TREE(ROOT
                 ",{\"name\":\"b\",\"parent\":\"c\",\"up_bytes_s\":1e9},{\"name\":\"c\",\"parent\":\"b\","
                 "\"up_bytes_s\":1e9}",
                 "{\"switch\":\"b\",\"count\":1}"),
            "topology.switches", "go in a cycle");
    refused(TREE(ROOT "," LEAF, "{\"switch\":\"lea\",\"count\":1}"),
            "topology.machines[0].switch: is \"lea\"", "no switch has that name");
    refused(TREE(ROOT "," LEAF, ""), "topology.machines", "has 0 entries");
    refused(TREE(ROOT "," LEAF, "{\"switch\":\"leaf\",\"count\":99999999}"), "topology.machines[0].count",
            "from 1 to");
    refused(TREE("{\"name\":\"\"}", "{\"switch\":\"\",\"count\":1}"), "topology.switches[0].name",
            "is empty");
}

static void words_are_presets_or_paths(void)
{
    ls_network n;
    ls_err err = {0};

    CHECK_STATUS(ls_network_open(&n, "infiniband-erd", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "did you mean \"infiniband-edr\"?");
    err = (ls_err){0};
    CHECK_STATUS(ls_network_open(&n, "token", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "there are ethernet-10g, ");
    err = (ls_err){0};
    CHECK_STATUS(ls_network_open(&n, "/nowhere/at.json", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "/nowhere/at.json");
    ls_network_release(&n);
}

/* -- presets ----------------------------------------------------------------------------------------------
 */

static void has_source(const ls_network *n, const char *figure)
{
    for (int32_t i = 0; i < n->n_sources; i++)
        if (strcmp(n->sources[i].figure, figure) == 0) {
            CHECK(strlen(n->sources[i].text) > 10);
            return;
        }
    printf("%s: %s has no source\n", n->name, figure);
    CHECK(false);
}

static void have_sources(const ls_network *n)
{
    static const char *const links[] = {"inside.latency_s",       "inside.bytes_s",      "inside.message_s",
                                        "inside.core_s_per_byte", "node.latency_s",      "node.bytes_s",
                                        "node.message_s",         "node.core_s_per_byte"};
    static const char *const fly[] = {"topology.nodes_per_router", "topology.routers_per_group",
                                      "topology.groups",           "topology.local_bytes_s",
                                      "topology.global_bytes_s",   "topology.global_links",
                                      "topology.router_s"};

    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) has_source(n, links[i]);
    if (n->ranks_per_node > 0) has_source(n, "ranks_per_node");
    if (n->kind == LS_NETWORK_FAT_TREE) has_source(n, "topology.levels");
    for (size_t i = 0; n->kind == LS_NETWORK_DRAGONFLY && i < sizeof fly / sizeof fly[0]; i++)
        has_source(n, fly[i]);
}

static void check_route(const ls_network *n, int32_t nodes, int32_t a, int32_t b)
{
    const int64_t all = ls_network_links(n, nodes);
    int64_t links[LS_ROUTE_MAX], back[LS_ROUTE_MAX];
    double latency, latency_back;
    const int n_links = ls_network_route(n, nodes, a, b, links, &latency);

    CHECK_EQ_INT(ls_network_route(n, nodes, b, a, back, &latency_back), n_links);
    CHECK_NEAR(latency, latency_back, 1e-15);
    CHECK(n_links >= 2 && n_links <= LS_ROUTE_MAX && latency >= n->node.latency_s);
    CHECK_EQ_INT(links[0], a);
    for (int i = 0; i < n_links; i++) {
        CHECK(links[i] >= 0 && links[i] < all);
        if (!CHECK(ls_network_link_rate(n, nodes, links[i]) >= 1)) return;
        for (int k = 0; k < i; k++) CHECK(links[k] != links[i]);
        for (int k = 0; k < n_links; k++) CHECK(back[k] != links[i]); /* directions are links of their own */
    }
    CHECK_EQ_INT(ls_network_route(n, nodes, a, a, links, &latency), 0);
}

static void check_routes(const ls_network *n)
{
    const int32_t nodes = ls_network_size(n) > 0 ? ls_network_size(n) : 100;
    const ls_rng_key key = {.seed_lo = 7};

    for (uint32_t i = 0; i < 300; i++) {
        const int32_t a = (int32_t)(ls_rng_word(&key, 1, i, 0) % (uint32_t)nodes);
        const int32_t b = (int32_t)(ls_rng_word(&key, 1, i, 1) % (uint32_t)nodes);
        if (a != b) check_route(n, nodes, a, b);
    }
    check_route(n, nodes, 0, 1);
    check_route(n, nodes, 0, nodes - 1);
}

static void is_written_as_itself(const ls_network *n)
{
    ls_text text = {0}, again = {0};
    ls_network back;
    ls_err err = {0};

    ls_network_write(n, &text);
    REQUIRE(!text.failed);
    REQUIRE_OK(ls_network_parse(&back, text.data, text.length, "again", &err), &err);
    ls_network_write(&back, &again);
    CHECK_EQ_STR(text.data, again.data);
    CHECK_EQ_INT(back.kind, n->kind);
    CHECK_EQ_INT(ls_network_size(&back), ls_network_size(n));
    CHECK_NEAR(back.node.bytes_s, n->node.bytes_s, 0);
    ls_network_release(&back);
    ls_text_release(&text);
    ls_text_release(&again);
}

static void presets_are_whole(void)
{
    const char *about;
    int count = 0;

    for (; ls_network_preset(count, &about) != NULL; count++) {
        const char *name = ls_network_preset(count, NULL);
        ls_network n;
        ls_err err = {0};
        REQUIRE_OK(ls_network_open(&n, name, &err), &err);
        CHECK_EQ_STR(n.name, name);
        CHECK_EQ_STR(n.about, about);
        CHECK(n.source[0] != '\0');
        have_sources(&n);
        check_routes(&n);
        is_written_as_itself(&n);
        ls_network_release(&n);
    }
    CHECK_EQ_INT(count, 16);
}

/* -- ways -------------------------------------------------------------------------------------------------
 */

static double latency_of(const ls_network *n, int32_t a, int32_t b, int *n_links)
{
    int64_t links[LS_ROUTE_MAX];
    double latency;

    *n_links = ls_network_route(n, 16, a, b, links, &latency);
    return latency;
}

static void ways_of_fat_trees(void)
{
    ls_network n = read_text(
        TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":4,\"taper\":2,\"latency_s\":1e-7},"
                 "{\"children\":2,\"taper\":4,\"latency_s\":3e-7},{\"children\":3,\"latency_s\":5e-7}]"));
    int64_t links[LS_ROUTE_MAX];
    double latency;
    int n_links;

    CHECK_EQ_INT(ls_network_size(&n), 24);
    CHECK_EQ_INT(ls_network_links(&n, 0), 2 * 24 + 2 * 6 + 2 * 3);
    CHECK_NEAR(latency_of(&n, 0, 3, &n_links), 2e-6 + 1e-7, 1e-15);
    CHECK_EQ_INT(n_links, 2);
    CHECK_NEAR(latency_of(&n, 0, 4, &n_links), 2e-6 + 2e-7 + 3e-7, 1e-15);
    CHECK_EQ_INT(n_links, 4);
    CHECK_NEAR(latency_of(&n, 0, 23, &n_links), 2e-6 + 2e-7 + 6e-7 + 5e-7, 1e-15);
    CHECK_EQ_INT(n_links, 6);
    ls_network_route(&n, 0, 1, 22, links, &latency);
    CHECK_EQ_INT(links[1], 24 + 22);
    CHECK_EQ_INT(links[2], 48);         /* leaf 0, up */
    CHECK_EQ_INT(links[3], 48 + 6 + 5); /* leaf 5, down */
    CHECK_EQ_INT(links[4], 60);         /* switch 0 of the middle, up */
    CHECK_EQ_INT(links[5], 60 + 3 + 2);
    CHECK_NEAR(ls_network_link_rate(&n, 0, 48), 2e9, 1); /* 4 x 1e9 / 2 */
    CHECK_NEAR(ls_network_link_rate(&n, 0, 60), 1e9, 1); /* 2 x 2e9 / 4 */
    ls_network_release(&n);
}

static void ways_of_dragonflies(void)
{
    ls_network one = read_text(FLY("\"groups\":3,\"router_s\":1e-7"));
    ls_network four = read_text(FLY("\"groups\":3,\"router_s\":1e-7,\"global_links\":4"));
    int64_t links[LS_ROUTE_MAX];
    double latency;
    int n_links;

    CHECK_EQ_INT(ls_network_size(&one), 24);
    CHECK_NEAR(latency_of(&one, 0, 1, &n_links), 2e-6 + 1e-7, 1e-15); /* one router */
    CHECK_EQ_INT(n_links, 2);
    CHECK_NEAR(latency_of(&one, 0, 2, &n_links), 2e-6 + 2e-7, 1e-15); /* two of a group */
    CHECK_EQ_INT(n_links, 3);
    /* From group 0 to 1 there is one cable, at router 0 of both; machine 6 is at router 3, 14 at router 3. */
    CHECK_NEAR(latency_of(&one, 0, 8, &n_links), 2e-6 + 2e-7, 1e-15);
    CHECK_EQ_INT(n_links, 3);
    CHECK_NEAR(latency_of(&one, 6, 14, &n_links), 2e-6 + 4e-7, 1e-15);
    CHECK_EQ_INT(n_links, 5);
    /* With four, each router has its own. */
    CHECK_NEAR(latency_of(&four, 6, 14, &n_links), 2e-6 + 2e-7, 1e-15);
    CHECK_EQ_INT(n_links, 3);
    ls_network_route(&four, 0, 6, 14, links, &latency);
    CHECK_NEAR(ls_network_link_rate(&four, 0, links[2]), 5e8, 1);
    for (int32_t a = 0; a < 24; a++)
        for (int32_t b = 0; b < 24; b++)
            if (a != b) {
                check_route(&one, 0, a, b);
                check_route(&four, 0, a, b);
            }
    ls_network_release(&one);
    ls_network_release(&four);
}

static void ways_of_trees(void)
{
    ls_network n =
        read_text(TREE("{\"name\":\"b\",\"parent\":\"a\",\"up_bytes_s\":3e9,\"latency_s\":1e-7}," LEAF
                       ",{\"name\":\"a\",\"parent\":\"root\",\"up_bytes_s\":2e9}," ROOT,
                       "{\"switch\":\"b\",\"count\":2},{\"switch\":\"leaf\",\"count\":1},"
                       "{\"switch\":\"root\",\"count\":1},{\"switch\":\"b\",\"count\":1}"));
    int64_t links[LS_ROUTE_MAX];
    double latency;
    int n_links;

    CHECK_EQ_INT(ls_network_size(&n), 5);
    CHECK_EQ_INT(ls_network_leaf(&n, 4), 0);
    CHECK_NEAR(latency_of(&n, 0, 4, &n_links), 2e-6 + 1e-7, 1e-15);
    CHECK_EQ_INT(n_links, 2);
    n_links = ls_network_route(&n, 0, 0, 2, links, &latency); /* b, a, root, leaf */
    CHECK_EQ_INT(n_links, 5);
    CHECK_NEAR(latency, 2e-6 + 2e-7, 1e-15);
    CHECK_NEAR(ls_network_link_rate(&n, 0, links[2]), 3e9, 1);
    CHECK_NEAR(ls_network_link_rate(&n, 0, links[3]), 2e9, 1);
    CHECK_NEAR(ls_network_link_rate(&n, 0, links[4]), 4e9, 1);
    for (int32_t a = 0; a < 5; a++)
        for (int32_t b = 0; b < 5; b++)
            if (a != b) check_route(&n, 0, a, b);
    is_written_as_itself(&n);
    ls_network_release(&n);
}

/* -- placements -------------------------------------------------------------------------------------------
 */

static void machines_are_placed(void)
{
    ls_network n =
        read_text(TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":4},{\"children\":4}]"));
    int32_t node[17], again[17];
    ls_job_placement p = {.kind = LS_PLACE_RANDOM, .seed = 5, .nodes = 16, .node = node};
    int seen[16] = {0}, moved = 0;
    ls_err err = {0};

    REQUIRE_OK(ls_job_placement_fill(&p, &n, &err), &err);
    for (int i = 0; i < 16; i++) seen[node[i]]++;
    for (int i = 0; i < 16; i++) {
        CHECK_EQ_INT(seen[i], 1);
        moved += node[i] != i;
    }
    CHECK(moved > 8);
    p.node = again;
    REQUIRE_OK(ls_job_placement_fill(&p, &n, &err), &err);
    CHECK_EQ_MEM(node, again, 16 * sizeof *node);
    p.kind = LS_PLACE_CONTIGUOUS;
    REQUIRE_OK(ls_job_placement_fill(&p, &n, &err), &err);
    CHECK_EQ_INT(again[15], 15);
    p.kind = LS_PLACE_LIST;
    again[3] = 9;
    CHECK_STATUS(ls_job_placement_fill(&p, &n, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "names machine 9 twice");
    again[3] = 16;
    err = (ls_err){0};
    CHECK_STATUS(ls_job_placement_fill(&p, &n, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "names machine 16, the network has 0 to 15");
    p = (ls_job_placement){.nodes = 17, .node = node};
    err = (ls_err){0};
    CHECK_STATUS(ls_job_placement_fill(&p, &n, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "17 machines are asked for, and the network x has 16");
    ls_network_release(&n);
}

static bool blocks(const char *text, int32_t nodes, const int32_t *at)
{
    ls_network n = read_text(text);
    int32_t copy[64];
    const ls_job_placement p = {.nodes = nodes, .node = at != NULL ? copy : NULL};
    bool out;

    for (int32_t i = 0; at != NULL && i < nodes; i++) copy[i] = at[i];
    out = ls_network_blocks(&n, &p);
    ls_network_release(&n);
    return out;
}

#define FAT(taper)                                                                                           \
    TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":4,\"taper\":" taper "},{\"children\":4}]")

static void who_is_in_the_way(void)
{
    static const int32_t spread[] = {0, 4, 8, 12}, pairs[] = {0, 1, 4, 5}, crowd[] = {0, 1, 2, 4, 5, 6};

    CHECK(!blocks(HEAD LINKS FLAT "}", 64, NULL));
    CHECK(!blocks(FAT("1"), 16, NULL));
    CHECK(!blocks(FAT("2"), 4, NULL)); /* one switch */
    CHECK(blocks(FAT("2"), 16, NULL));
    CHECK(!blocks(FAT("2"), 6, NULL)); /* only two of them cross at a time: what the switch has upwards */
    CHECK(blocks(FAT("2"), 7, NULL));
    CHECK(!blocks(FAT("2"), 4, spread));
    CHECK(!blocks(FAT("2"), 4, pairs));
    CHECK(blocks(FAT("2"), 6, crowd));
    CHECK(!blocks(FLY("\"groups\":3"), 2, NULL)); /* one router */
    CHECK(!blocks(FLY("\"groups\":3"), 3, NULL));
    CHECK(blocks(FLY("\"groups\":3"), 4, NULL)); /* two machines of 1e9 over a link of 1e9 */
    CHECK(blocks(FLY("\"groups\":3"), 9, NULL));
    CHECK(blocks(TREE(ROOT "," LEAF, "{\"switch\":\"leaf\",\"count\":5},{\"switch\":\"root\",\"count\":5}"),
                 10, NULL));
    CHECK(!blocks(TREE(ROOT "," LEAF, "{\"switch\":\"leaf\",\"count\":4},{\"switch\":\"root\",\"count\":5}"),
                  9, NULL));
}

int main(void)
{
    CHECK_RUN(fields_are_read);
    CHECK_RUN(broken_files_are_refused);
    CHECK_RUN(figures_have_ranges);
    CHECK_RUN(topologies_are_checked);
    CHECK_RUN(words_are_presets_or_paths);
    CHECK_RUN(presets_are_whole);
    CHECK_RUN(ways_of_fat_trees);
    CHECK_RUN(ways_of_dragonflies);
    CHECK_RUN(ways_of_trees);
    CHECK_RUN(machines_are_placed);
    CHECK_RUN(who_is_in_the_way);
    return CHECK_DONE();
}
