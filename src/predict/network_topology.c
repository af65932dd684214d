/* network_topology.c: how switches are connected, as a file says it. */
#include <stdlib.h>
#include <string.h>

#include "predict/network_internal.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

enum { SWITCHES_MOST = 1 << 20, PER_ROUTER_MOST = 4096, GROUPS_MOST = 4096, ROUTERS_MOST = 4096 };

static const char *const kind_names[] = {"flat", "fat-tree", "dragonfly", "tree"};

const char *ls_network_kind_name(ls_network_kind kind)
{
    return kind_names[kind];
}

/* -- fat trees and dragonflies ----------------------------------------------------------------------------
 */

static void read_level(lsi_part *p, ls_network_level *l, bool is_top)
{
    static const char *const known[] = {"children", "taper", "latency_s"};

    lsi_part_known(p, known, COUNT(known));
    *l = (ls_network_level){.children = lsi_part_whole(p, "children", true, 1, LSI_MACHINES_MOST),
                            .taper = lsi_part_number(p, "taper", false, 1, 1e6),
                            .latency_s = lsi_part_number(p, "latency_s", false, 0, LSI_SECONDS_MOST)};
    if (is_top && l->taper > 1)
        lsi_part_refuse(p, "taper", "is %g at the top level, which has nothing above it: leave it out",
                        l->taper);
    if (l->taper == 0) l->taper = 1;
}

static void read_levels(lsi_part *t)
{
    static const char *const known[] = {"kind", "levels"};
    const json_t *list;
    int64_t machines = 1;

    lsi_part_known(t, known, COUNT(known));
    list = lsi_part_list(t, "levels", 1, LS_NETWORK_LEVELS);
    for (size_t i = 0; i < json_array_size(list) && *t->st == LS_OK; i++) {
        lsi_part p = lsi_part_item(t, "levels", list, i);
        read_level(&p, &t->n->level[i], i + 1 == json_array_size(list));
        machines *= t->n->level[i].children;
        t->n->n_levels++;
        if (machines > LSI_MACHINES_MOST)
            lsi_part_refuse(&p, "children", "makes %lld machines of all levels, must make %d at most",
                            (long long)machines, LSI_MACHINES_MOST);
    }
}

static void read_dragonfly(lsi_part *t)
{
    static const char *const known[] = {"kind",          "nodes_per_router", "routers_per_group", "groups",
                                        "local_bytes_s", "global_bytes_s",   "global_links",      "router_s"};
    ls_dragonfly *d = &t->n->dragonfly;

    lsi_part_known(t, known, COUNT(known));
    *d = (ls_dragonfly){
        .nodes_per_router = lsi_part_whole(t, "nodes_per_router", true, 1, PER_ROUTER_MOST),
        .routers_per_group = lsi_part_whole(t, "routers_per_group", true, 1, ROUTERS_MOST),
        .groups = lsi_part_whole(t, "groups", true, 1, GROUPS_MOST),
        .local_bytes_s = lsi_part_number(t, "local_bytes_s", true, LSI_RATE_LEAST, LSI_RATE_MOST),
        .global_bytes_s = lsi_part_number(t, "global_bytes_s", true, LSI_RATE_LEAST, LSI_RATE_MOST),
        .global_links = lsi_part_whole(t, "global_links", false, 1, ROUTERS_MOST),
        .router_s = lsi_part_number(t, "router_s", false, 0, LSI_SECONDS_MOST)};
    if (d->global_links == 0) d->global_links = 1;
    if ((int64_t)d->nodes_per_router * d->routers_per_group * d->groups > LSI_MACHINES_MOST)
        lsi_part_refuse(t, "groups", "makes more than %d machines of all groups", LSI_MACHINES_MOST);
}

/* -- trees of switches ------------------------------------------------------------------------------------
 */

/* Switches by name, to look them up. */
typedef struct named {
    const char *name;
    int32_t at;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static int32_t find(const named *names, int32_t n, const char *name)
{
    const named *s = bsearch(&(named){name, 0}, names, (size_t)n, sizeof *names, by_name);

    return s != NULL ? s->at : -1;
}

static void read_switches(lsi_part *t, const json_t *list, named *names)
{
    static const char *const known[] = {"name", "parent", "up_bytes_s", "latency_s"};
    ls_network *n = t->n;

    for (int32_t i = 0; i < n->n_switches && *t->st == LS_OK; i++) {
        lsi_part p = lsi_part_item(t, "switches", list, (size_t)i);
        lsi_part_known(&p, known, COUNT(known));
        n->switches[i] =
            (ls_switch){.name = lsi_part_text(&p, "name", true),
                        .parent = -1,
                        .latency_s = lsi_part_number(&p, "latency_s", false, 0, LSI_SECONDS_MOST)};
        if (*t->st == LS_OK && n->switches[i].name[0] == '\0')
            lsi_part_refuse(&p, "name", "is empty: others refer to a switch by its name");
        names[i] = (named){n->switches[i].name, i};
    }
    if (*t->st != LS_OK) return;
    qsort(names, (size_t)n->n_switches, sizeof *names, by_name);
    for (int32_t i = 1; i < n->n_switches; i++)
        if (strcmp(names[i].name, names[i - 1].name) == 0) {
            lsi_part_refuse(t, "switches", "\"%.80s\" is there twice: every switch has a name of its own",
                            names[i].name);
            return;
        }
}

static void read_parent(lsi_part *t, const json_t *list, const named *names, int32_t i)
{
    ls_network *n = t->n;
    lsi_part p = lsi_part_item(t, "switches", list, (size_t)i);
    const char *parent = lsi_part_text(&p, "parent", false);

    if (json_object_get(p.o, "parent") == NULL) {
        if (json_object_get(p.o, "up_bytes_s") != NULL)
            lsi_part_refuse(&p, "up_bytes_s", "is given for \"%.80s\", which has no \"parent\"",
                            n->switches[i].name);
        return;
    }
    n->switches[i].parent = find(names, n->n_switches, parent);
    if (n->switches[i].parent < 0)
        lsi_part_refuse(&p, "parent", "is \"%.80s\", and no switch has that name", parent);
    n->switches[i].up_bytes_s = lsi_part_number(&p, "up_bytes_s", true, LSI_RATE_LEAST, LSI_RATE_MOST);
}

/* One root, and a way to it from everywhere. */
static void check_tree(lsi_part *t)
{
    const ls_network *n = t->n;
    int32_t root = -1;

    for (int32_t i = 0; i < n->n_switches; i++) {
        if (n->switches[i].parent >= 0) continue;
        if (root >= 0) {
            lsi_part_refuse(t, "switches", "\"%.80s\" and \"%.80s\" have no parent: one switch is the root",
                            n->switches[root].name, n->switches[i].name);
            return;
        }
        root = i;
    }
    for (int32_t i = 0; i < n->n_switches; i++) {
        int depth = 0;
        for (int32_t s = i; s >= 0 && depth <= LS_NETWORK_DEPTH; s = n->switches[s].parent) depth++;
        if (depth <= LS_NETWORK_DEPTH) continue;
        lsi_part_refuse(t, "switches",
                        "\"%.80s\" does not reach a root in %d switches: its parents go in a cycle, or are "
                        "too many",
                        n->switches[i].name, LS_NETWORK_DEPTH);
        return;
    }
}

/* What an entry of "machines" says: so many at a switch. */
static int32_t machines_of(lsi_part *p, const named *names, int32_t *at)
{
    static const char *const known[] = {"switch", "count"};
    const char *name = lsi_part_text(p, "switch", true);
    const int32_t count = lsi_part_whole(p, "count", true, 1, LSI_MACHINES_MOST);

    lsi_part_known(p, known, COUNT(known));
    *at = find(names, p->n->n_switches, name);
    if (*at < 0 && *p->st == LS_OK)
        lsi_part_refuse(p, "switch", "is \"%.80s\", and no switch has that name", name);
    return *p->st == LS_OK ? count : 0;
}

static void read_machines(lsi_part *t, const named *names)
{
    const json_t *list = lsi_part_list(t, "machines", 1, LSI_MACHINES_MOST);
    ls_network *n = t->n;
    int64_t total = 0;
    int32_t at;

    for (size_t i = 0; i < json_array_size(list) && *t->st == LS_OK; i++) {
        lsi_part p = lsi_part_item(t, "machines", list, i);
        total += machines_of(&p, names, &at);
        if (total > LSI_MACHINES_MOST)
            lsi_part_refuse(&p, "count", "makes %lld machines, must make %d at most", (long long)total,
                            LSI_MACHINES_MOST);
    }
    n->node_switch = lsi_part_room(t, (size_t)total, sizeof *n->node_switch);
    if (n->node_switch == NULL) return;
    for (size_t i = 0; i < json_array_size(list); i++) {
        lsi_part p = lsi_part_item(t, "machines", list, i);
        for (int32_t k = machines_of(&p, names, &at); k > 0; k--) n->node_switch[n->n_nodes++] = at;
    }
}

static void read_tree(lsi_part *t)
{
    static const char *const known[] = {"kind", "switches", "machines"};
    const json_t *list;
    named *names;

    lsi_part_known(t, known, COUNT(known));
    list = lsi_part_list(t, "switches", 1, SWITCHES_MOST);
    t->n->switches = lsi_part_room(t, json_array_size(list), sizeof *t->n->switches);
    names = lsi_part_room(t, json_array_size(list), sizeof *names);
    if (t->n->switches == NULL || names == NULL) return;
    t->n->n_switches = (int32_t)json_array_size(list);
    read_switches(t, list, names);
    for (int32_t i = 0; i < t->n->n_switches && *t->st == LS_OK; i++) read_parent(t, list, names, i);
    if (*t->st == LS_OK) check_tree(t);
    if (*t->st == LS_OK) read_machines(t, names);
}

/* -- all --------------------------------------------------------------------------------------------------
 */

void lsi_read_topology(lsi_part *file)
{
    static const char *const of_flat[] = {"kind"};
    lsi_part t = lsi_part_object(file, "topology");
    const char *kind = lsi_part_text(&t, "kind", true), *nearest;

    if (*t.st != LS_OK) return;
    for (size_t i = 0; i < COUNT(kind_names); i++) {
        if (strcmp(kind, kind_names[i]) != 0) continue;
        file->n->kind = (ls_network_kind)i;
        switch (file->n->kind) {
        case LS_NETWORK_FLAT: lsi_part_known(&t, of_flat, COUNT(of_flat)); return;
        case LS_NETWORK_FAT_TREE: read_levels(&t); return;
        case LS_NETWORK_DRAGONFLY: read_dragonfly(&t); return;
        case LS_NETWORK_TREE: read_tree(&t); return;
        }
    }
    nearest = ls_text_nearest(kind, kind_names, COUNT(kind_names));
    lsi_part_refuse(&t, "kind", "is \"%.80s\", must be flat, fat-tree, dragonfly or tree%s%s%s", kind,
                    nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                    nearest != NULL ? "\"?" : "");
}
