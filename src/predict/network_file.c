/* network_file.c: a network from the text of its file, and back to one.
 *
 * What a file says is believed only after it was looked at: a rate of 0 or a switch without a way to the
 * others would come out as a prediction. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "predict/network_internal.h"

#define FORMAT_NAME "lockstep-network"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* -- reading ----------------------------------------------------------------------------------------------
 */

static void read_link(lsi_part *file, const char *key, ls_link *l)
{
    static const char *const known[] = {"latency_s", "bytes_s", "message_s", "core_s_per_byte"};
    lsi_part p = lsi_part_object(file, key);

    lsi_part_known(&p, known, COUNT(known));
    *l = (ls_link){.latency_s = lsi_part_number(&p, "latency_s", true, 0, LSI_SECONDS_MOST),
                   .bytes_s = lsi_part_number(&p, "bytes_s", true, LSI_RATE_LEAST, LSI_RATE_MOST),
                   .message_s = lsi_part_number(&p, "message_s", false, 0, LSI_SECONDS_MOST),
                   .core_s_per_byte = lsi_part_number(&p, "core_s_per_byte", false, 0, 1)};
}

/* Figures that may have a source: where they stand in the file. */
static const char *const figures[] = {"ranks_per_node",
                                      "inside.latency_s",
                                      "inside.bytes_s",
                                      "inside.message_s",
                                      "inside.core_s_per_byte",
                                      "node.latency_s",
                                      "node.bytes_s",
                                      "node.message_s",
                                      "node.core_s_per_byte",
                                      "topology.levels",
                                      "topology.nodes_per_router",
                                      "topology.routers_per_group",
                                      "topology.groups",
                                      "topology.local_bytes_s",
                                      "topology.global_bytes_s",
                                      "topology.global_links",
                                      "topology.router_s",
                                      "topology.switches",
                                      "topology.machines"};

static void read_sources(lsi_part *file)
{
    ls_network *n = file->n;
    lsi_part p;
    const char *key;
    json_t *value;

    if (json_object_get(file->o, "sources") == NULL) return;
    p = lsi_part_object(file, "sources");
    lsi_part_known(&p, figures, COUNT(figures));
    if (p.o == NULL) return;
    n->sources = lsi_part_room(&p, json_object_size(p.o), sizeof *n->sources);
    json_object_foreach((json_t *)p.o, key, value)
    {
        const char *name = NULL;
        for (size_t i = 0; i < COUNT(figures); i++)
            if (strcmp(figures[i], key) == 0) name = figures[i];
        if (*p.st != LS_OK || name == NULL) return;
        n->sources[n->n_sources++] = (ls_network_source){name, lsi_part_text(&p, key, true)};
    }
}

static void check_format(lsi_part *file)
{
    const char *format = lsi_part_text(file, "format", true);
    int32_t version;

    if (*file->st == LS_OK && strcmp(format, FORMAT_NAME) != 0)
        lsi_part_refuse(file, "format", "is \"%.80s\", must be \"%s\"", format, FORMAT_NAME);
    version = lsi_part_whole(file, "version", true, 1, INT32_MAX);
    if (*file->st == LS_OK && version != LS_NETWORK_FORMAT)
        lsi_part_refuse(file, "version",
                        "is %d, this program reads version %d: write it anew, or use a newer Lockstep",
                        (int)version, LS_NETWORK_FORMAT);
}

static void read_file(lsi_part *file)
{
    static const char *const known[] = {"format",         "version",        "name",
                                        "about",          "source",         "sources",
                                        "ranks_per_node", "inside",         "node",
                                        "topology",       "error",          "error_per_doubling",
                                        "measured_ranks", "measured_nodes", "measured_per_node"};
    ls_network *n = file->n;

    check_format(file);
    lsi_part_known(file, known, COUNT(known));
    n->name = lsi_part_text(file, "name", true);
    n->about = lsi_part_text(file, "about", false);
    n->source = lsi_part_text(file, "source", false);
    n->ranks_per_node = lsi_part_whole(file, "ranks_per_node", false, 1, 4096);
    read_link(file, "inside", &n->inside);
    read_link(file, "node", &n->node);
    lsi_read_topology(file);
    n->error = lsi_part_number(file, "error", false, 0, 10);
    n->error_per_doubling = lsi_part_number(file, "error_per_doubling", false, 0, 10);
    n->measured_ranks = lsi_part_whole(file, "measured_ranks", false, 0, LSI_MACHINES_MOST);
    n->measured_nodes = lsi_part_whole(file, "measured_nodes", false, 0, LSI_MACHINES_MOST);
    n->measured_per_node = lsi_part_whole(file, "measured_per_node", false, 0, LSI_MACHINES_MOST);
    read_sources(file);
}

ls_status ls_network_parse(ls_network *n, const char *text, size_t length, const char *path, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_part file = {.n = n, .path = path, .err = err, .st = &st};
    json_error_t why;
    json_t *whole;
    const json_t *inner;

    *n = (ls_network){0};
    st = ls_arena_create(&n->arena, LS_MEM_CLI, err);
    if (st != LS_OK) return st;
    whole = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (whole == NULL)
        return ls_fail(err, LS_INVALID, "%s:%d: no JSON: %s", path, why.line > 0 ? why.line : 1, why.text);
    file.o = json_is_object(whole) ? whole : NULL;
    inner = json_object_get(whole, "network");
    if (inner != NULL) {
        file.o = json_is_object(inner) ? inner : NULL;
        snprintf(file.place, sizeof file.place, "network.");
    }
    if (file.o == NULL)
        st = ls_fail(err, LS_INVALID, "%s: %s, must be an object with \"format\": \"%s\"", path,
                     inner != NULL ? "\"network\" is no object" : "no JSON object", FORMAT_NAME);
    else
        read_file(&file);
    json_decref(whole);
    return st;
}

void ls_network_release(ls_network *n)
{
    ls_arena_destroy(n->arena);
    *n = (ls_network){0};
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

static json_t *link_json(const ls_link *l)
{
    return json_pack("{s:f,s:f,s:f,s:f}", "latency_s", l->latency_s, "bytes_s", l->bytes_s, "message_s",
                     l->message_s, "core_s_per_byte", l->core_s_per_byte);
}

static json_t *levels_json(const ls_network *n)
{
    json_t *list = json_array();

    for (int32_t i = 0; i < n->n_levels; i++)
        json_array_append_new(list, json_pack("{s:i,s:f,s:f}", "children", (int)n->level[i].children, "taper",
                                              n->level[i].taper, "latency_s", n->level[i].latency_s));
    return json_pack("{s:s,s:o}", "kind", ls_network_kind_name(n->kind), "levels", list);
}

static json_t *dragonfly_json(const ls_network *n)
{
    const ls_dragonfly *d = &n->dragonfly;

    return json_pack("{s:s,s:i,s:i,s:i,s:f,s:f,s:i,s:f}", "kind", ls_network_kind_name(n->kind),
                     "nodes_per_router", (int)d->nodes_per_router, "routers_per_group",
                     (int)d->routers_per_group, "groups", (int)d->groups, "local_bytes_s", d->local_bytes_s,
                     "global_bytes_s", d->global_bytes_s, "global_links", (int)d->global_links, "router_s",
                     d->router_s);
}

static json_t *tree_json(const ls_network *n)
{
    json_t *switches = json_array(), *machines = json_array();

    for (int32_t i = 0; i < n->n_switches; i++) {
        const ls_switch *s = &n->switches[i];
        json_t *o = json_pack("{s:s,s:f}", "name", s->name, "latency_s", s->latency_s);
        if (s->parent >= 0) {
            json_object_set_new(o, "parent", json_string(n->switches[s->parent].name));
            json_object_set_new(o, "up_bytes_s", json_real(s->up_bytes_s));
        }
        json_array_append_new(switches, o);
    }
    for (int32_t i = 0, run; i < n->n_nodes; i += run) {
        for (run = 1; i + run < n->n_nodes && n->node_switch[i + run] == n->node_switch[i];) run++;
        json_array_append_new(machines, json_pack("{s:s,s:i}", "switch", n->switches[n->node_switch[i]].name,
                                                  "count", (int)run));
    }
    return json_pack("{s:s,s:o,s:o}", "kind", ls_network_kind_name(n->kind), "switches", switches, "machines",
                     machines);
}

static json_t *topology_json(const ls_network *n)
{
    switch (n->kind) {
    case LS_NETWORK_FLAT: break;
    case LS_NETWORK_FAT_TREE: return levels_json(n);
    case LS_NETWORK_DRAGONFLY: return dragonfly_json(n);
    case LS_NETWORK_TREE: return tree_json(n);
    }
    return json_pack("{s:s}", "kind", ls_network_kind_name(LS_NETWORK_FLAT));
}

void ls_network_write(const ls_network *n, ls_text *to)
{
    json_t *sources = json_object();
    json_t *o;

    for (int32_t i = 0; i < n->n_sources; i++)
        json_object_set_new(sources, n->sources[i].figure, json_string(n->sources[i].text));
    o = json_pack("{s:s,s:i,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:f,s:f,s:i,s:i}", "format", FORMAT_NAME, "version",
                  LS_NETWORK_FORMAT, "name", n->name, "about", n->about, "source", n->source, "inside",
                  link_json(&n->inside), "node", link_json(&n->node), "topology", topology_json(n), "sources",
                  sources, "error", n->error, "error_per_doubling", n->error_per_doubling, "measured_ranks",
                  (int)n->measured_ranks, "measured_nodes", (int)n->measured_nodes);
    if (o == NULL) {
        to->failed = true;
        return;
    }
    if (n->ranks_per_node > 0) json_object_set_new(o, "ranks_per_node", json_integer(n->ranks_per_node));
    if (n->measured_per_node > 0)
        json_object_set_new(o, "measured_per_node", json_integer(n->measured_per_node));
    ls_json_add(to, o, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    ls_text_add(to, "\n");
    json_decref(o);
}
