/* team.c: agreeing, sharing and adding up over the control plane of a communicator. */
#include "train/team.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ckpt/ckpt.h"
#include "exec/pieces.h"
#include "exec/tensor.h"

enum { COMPLAINT = 400 };

void ls_team_watch(ls_comm *c, ls_config *cfg)
{
    const double report = ls_config_real(cfg, "parallel.stall_s");

    if (c != NULL) ls_comm_set_stall(c, report, report * ls_config_real(cfg, "parallel.stall_limit"));
}

/* -- agreeing ---------------------------------------------------------------------------------------------
 */

/* What may differ between machines. */
static bool is_of_the_machine(const char *key)
{
    static const char *const keys[] = {"model.trial", "data.path", "data.workers", "data.prefetch"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* "key=value" lines. */
static void list_settings(const ls_experiment *x, ls_text *out)
{
    char shown[LS_SETTING_SHOW_MAX];

    /* A plug-in may lie elsewhere, but it must be the same. */
    ls_text_add(out, "model.trial=%s\n", x->trial->name);
    ls_text_add(out, "xxh3 of the plug-in=%016llx\n", (unsigned long long)x->plugin_xxh3);
    for (int i = 0; i < ls_config_count(x->cfg); i++) {
        const ls_setting s = ls_config_at(x->cfg, i);
        if (is_of_the_machine(s.key)) continue;
        const char *text = ls_setting_show(&s, shown),
                   *slash = strcmp(s.key, "train.init") == 0 ? strrchr(text, '/') : NULL;
        /* The file may lie elsewhere, too.  Which GPU of a machine's it is is nobody else's business, but
         * devices that round differently would part the replicas. */
        const char *shared = slash != NULL ? slash + 1 : text;
        const size_t length = strcmp(s.key, "device") == 0 ? strcspn(shared, ":") : strlen(shared);
        ls_text_add(out, "%s=%.*s\n", s.key, (int)length, shared);
    }
}

/* Lines of `mine` that `first` (rank 0's) does not have, each with what rank 0 has for the key. */
static void compare_settings(const char *mine, const char *first, char complaint[COMPLAINT])
{
    static const char none[] = "not set";
    size_t at = 0;

    for (const char *line = mine; *line != '\0' && at < COMPLAINT - 1; line = strchr(line, '\n') + 1) {
        const int length = (int)strcspn(line, "\n"), key = (int)strcspn(line, "=") + 1;
        const char *other = first;
        while (*other != '\0' && strncmp(other, line, (size_t)key) != 0) other = strchr(other, '\n') + 1;
        if (*other != '\0' && strncmp(other, line, (size_t)length + 1) == 0) continue;
        const int known = *other != '\0' ? (int)strcspn(other + key, "\n") : 0;
        at += (size_t)snprintf(complaint + at, COMPLAINT - at, "%s%.*s (rank 0: %.*s)", at > 0 ? ", " : "",
                               length, line, known > 0 ? known : (int)strlen(none),
                               known > 0 ? other + key : none);
    }
}

/* Every rank learns every rank's complaint; the first one is the error. */
static ls_status report_complaints(ls_comm *c, const char complaint[COMPLAINT], ls_err *err)
{
    const int size = ls_comm_size(c);
    char *all = ls_alloc(LS_MEM_CLI, (size_t)size * COMPLAINT);
    ls_status st;

    if (all == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    st = ls_comm_gather_all(c, complaint, COMPLAINT, all, "comparing experiments", err);
    for (int i = 0; st == LS_OK && i < size; i++)
        if (all[i * COMPLAINT] != '\0')
            st = ls_fail(err, LS_DISAGREE, "rank %d was started with another experiment than rank 0: %.*s", i,
                         COMPLAINT - 1, &all[i * COMPLAINT]);
    ls_free(all);
    return st;
}

ls_status ls_team_agree(ls_comm *c, const ls_experiment *x, ls_err *err)
{
    ls_text mine = {0};
    char complaint[COMPLAINT] = "", *first = NULL;
    uint64_t length;
    ls_status st = LS_OK;

    if (c == NULL || ls_comm_size(c) == 1) return LS_OK;
    list_settings(x, &mine);
    length = mine.length + 1;
    if (mine.failed) {
        st = ls_fail(err, LS_NOMEM, "ranks: no memory");
        goto out;
    }
    LS_TRY(ls_comm_broadcast(c, &length, sizeof length, 0, "comparing experiments", err));
    first = ls_alloc(LS_MEM_CLI, (size_t)length);
    if (first == NULL) {
        st = ls_fail(err, LS_NOMEM, "ranks: no memory");
        goto out;
    }
    if (ls_comm_rank(c) == 0) memcpy(first, mine.data, (size_t)length);
    LS_TRY(ls_comm_broadcast(c, first, (size_t)length, 0, "comparing experiments", err));
    compare_settings(mine.data, first, complaint);
    LS_TRY(report_complaints(c, complaint, err));
out:
    ls_free(first);
    ls_text_release(&mine);
    return st;
}

ls_status ls_team_fail_once(ls_comm *c, ls_status st, const char *what, ls_err *err)
{
    const int32_t mine = (int32_t)st;
    int32_t *all;
    ls_status first = LS_OK;
    int who = 0;

    if (c == NULL || ls_comm_size(c) == 1) return st;
    all = ls_alloc(LS_MEM_CLI, sizeof *all * (size_t)ls_comm_size(c));
    /* Others that wait for this rank learn that it has left. */
    if (all == NULL) return st != LS_OK ? st : ls_fail(err, LS_NOMEM, "ranks: no memory");
    if (ls_comm_gather_all(c, &mine, sizeof mine, all, what, st == LS_OK ? err : NULL) != LS_OK) {
        ls_free(all);
        return st != LS_OK ? st : err->status;
    }
    while (who + 1 < ls_comm_size(c) && all[who] == (int32_t)LS_OK) who++;
    first = (ls_status)all[who];
    ls_free(all);
    if (first == LS_OK || who == ls_comm_rank(c)) return st;
    (void)!ls_comm_barrier(c, what, NULL); /* ends when that rank does: its end is the first one seen */
    *err = (ls_err){.status = first};
    return first;
}

/* -- sharing ----------------------------------------------------------------------------------------------
 */

ls_status ls_team_share_text(ls_comm *c, char *text, size_t size, const char *what, ls_err *err)
{
    if (c == NULL || ls_comm_size(c) == 1) return LS_OK;
    return ls_comm_broadcast(c, text, size, 0, what, err);
}

/* Through their JSON form, which is exact. */
static ls_status share_counters(ls_comm *c, ls_counters *counters, ls_err *err)
{
    json_t *json = ls_counters_save(counters), *read = NULL;
    uint64_t bytes = json != NULL ? json_dumpb(json, NULL, 0, JSON_COMPACT) : 0;
    char *text = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_comm_broadcast(c, &bytes, sizeof bytes, 0, "sharing counters", err));
    text = bytes > 0 ? ls_alloc(LS_MEM_CLI, (size_t)bytes) : NULL;
    if (text == NULL) {
        st = ls_fail(err, LS_NOMEM, "ranks: no memory");
        goto out;
    }
    if (ls_comm_rank(c) == 0) (void)json_dumpb(json, text, (size_t)bytes, JSON_COMPACT);
    LS_TRY(ls_comm_broadcast(c, text, (size_t)bytes, 0, "sharing counters", err));
    read = json_loadb(text, (size_t)bytes, 0, NULL);
    st = read != NULL ? ls_counters_load(counters, read, err) : ls_fail(err, LS_NOMEM, "ranks: no memory");
out:
    json_decref(json);
    json_decref(read);
    ls_free(text);
    return st;
}

/* Rank 0 has them. */
static void forget_sums(ls_metric_sums *m)
{
    memset(m->sum, 0, sizeof m->sum);
    m->samples = 0;
}

/* Rank 0's values of one variable on their way to the others. */
typedef struct sharing {
    ls_comm *comm;
    const char *name;
} sharing;

/* In pieces that are the same on all ranks, however large the chunks are. */
static ls_status share_chunk(void *ctx, void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const sharing *s = ctx;
    ls_status st = LS_OK;

    (void)offset;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < LS_TENSOR_CHUNK ? bytes - at : LS_TENSOR_CHUNK;
        LS_TRY(ls_comm_broadcast(s->comm, chunk != NULL ? (char *)chunk + at : NULL, n, 0, s->name, err));
    }
out:
    return st;
}

static ls_status send_chunk(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    return share_chunk(ctx, (void *)(uintptr_t)chunk, offset, bytes, err); /* the root's is only read */
}

/* `keep`: this rank wants them. */
static ls_status share_variable(ls_comm *c, const ls_tensor *t, bool keep, ls_err *err)
{
    sharing s = {c, t->name};

    if (ls_comm_rank(c) == 0) return ls_tensor_visit(t, send_chunk, &s, err);
    return keep ? ls_tensor_fill(t, share_chunk, &s, err) : share_chunk(&s, NULL, 0, t->bytes, err);
}

ls_status ls_team_share(ls_comm *c, ls_session *s, ls_counters *counters, ls_err *err)
{
    uint8_t pending = ls_state_pending(s->state);
    ls_status st = LS_OK;

    if (c == NULL || ls_comm_size(c) == 1) return LS_OK;
    for (int i = 0; i < ls_state_count(s->state); i++) {
        const ls_tensor *t = ls_state_at(s->state, i);
        const bool shared = ls_state_shared(s->state, i), keep = !shared || ls_comm_local_rank(c) == 0;
        if ((shared && ls_comm_hosts(c) == 1) || ls_state_in_pieces(s->state, i)) continue;
        LS_TRY(share_variable(c, t, keep, err));
    }
    LS_TRY(ls_comm_broadcast(c, &pending, sizeof pending, 0, "sharing counters", err));
    /* A checkpoint of an older version may hold sums of gradients, and of metrics: they count once. */
    ls_state_set_pending(s->state, pending != 0 && ls_comm_rank(c) == 0);
    LS_TRY(share_counters(c, counters, err));
    if (ls_comm_rank(c) != 0) forget_sums(&counters->now);
    LS_TRY(ls_comm_barrier(c, "sharing variables", err)); /* what one rank has written all may read */
out:
    return st;
}

/* -- adding up --------------------------------------------------------------------------------------------
 */

ls_status ls_team_sum(ls_comm *c, ls_metric_sums *m, ls_control *control, ls_err *err)
{
    enum { METRICS = 1 + LS_CONTROL_SLOTS };
    double values[METRICS + LS_MAX_METRICS] = {(double)m->samples};
    ls_status st;

    if (c == NULL || ls_comm_size(c) == 1) return LS_OK;
    for (int i = 0; control != NULL && i < LS_CONTROL_SLOTS; i++) values[1 + i] = control->slot[i];
    for (int i = 0; i < m->n; i++) values[METRICS + i] = m->sum[i];
    st = ls_comm_sum(c, values, METRICS + LS_MAX_METRICS, "adding up metrics", err);
    if (st != LS_OK) return st;
    m->samples = (int64_t)values[0];
    for (int i = 0; control != NULL && i < LS_CONTROL_SLOTS; i++) control->slot[i] = values[1 + i];
    for (int i = 0; i < m->n; i++) m->sum[i] = values[METRICS + i];
    return LS_OK;
}

enum { ADD_AT_ONCE = 1024 };

ls_status ls_team_add(ls_comm *c, double *values, int64_t n, const char *what, ls_err *err)
{
    ls_status st = LS_OK;

    if (c == NULL || ls_comm_size(c) == 1) return LS_OK;
    for (int64_t at = 0; at < n; at += ADD_AT_ONCE)
        LS_TRY(ls_comm_sum(c, values + at, (int)(n - at < ADD_AT_ONCE ? n - at : ADD_AT_ONCE), what, err));
out:
    return st;
}
