/* convert.c: plain safetensors files from checkpoints and checkpoints from them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "ckpt/ckpt_internal.h"

/* Memory for every item that stays in the table, one after the other in *all. */
static ls_status give_memory(lsi_table *t, char **all, ls_err *err)
{
    size_t total = 0;

    for (int i = 0; i < t->n; i++) total += t->items[i].bytes;
    *all = ls_alloc(LS_MEM_CKPT, total);
    if (*all == NULL) return ls_fail(err, LS_NOMEM, "no memory for %zu bytes of tensors", total);
    total = 0;
    for (int i = 0; i < t->n; i++) {
        t->items[i].host = *all + total;
        total += t->items[i].bytes;
    }
    return LS_OK;
}

/* -- export -----------------------------------------------------------------------------------------------
 */

static ls_status write_plain(const char *file, lsi_table *t, ls_err *err)
{
    char partial[LSI_PATH], parent[LSI_PATH];
    ls_text header = {0};
    ls_status st = LS_OK;

    if (strlen(file) + sizeof LSI_CKPT_PARTIAL > sizeof partial)
        return ls_fail(err, LS_INVALID, "%.60s...: the path is too long", file);
    snprintf(partial, sizeof partial, "%s%s", file, LSI_CKPT_PARTIAL);
    LS_TRY(lsi_st_arrange(t, err));
    LS_TRY(lsi_st_header(t, &header, err));
    LS_TRY(lsi_st_write(NULL, partial, t, &header, err));
    LS_TRY(lsi_io_replace(NULL, partial, file, err));
    LS_TRY(lsi_io_sync_dir(NULL, lsi_io_parent(file, parent, sizeof parent), err));
out:
    if (st != LS_OK) lsi_io_remove(partial);
    ls_text_release(&header);
    return st;
}

ls_status ls_ckpt_export(const char *dir, const char *file, ls_err *err)
{
    ls_ckpt *c = NULL;
    lsi_table t = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_ckpt_open(&c, dir, err));
    t.items = ls_alloc(LS_MEM_CKPT, sizeof *t.items * (size_t)ls_ckpt_count(c));
    if (t.items == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", dir);
        goto out;
    }
    for (int i = 0; i < ls_ckpt_count(c); i++) {
        ls_ckpt_tensor x = ls_ckpt_at(c, i);
        if (!lsi_is_model(x.role)) continue;
        t.items[t.n++] =
            (lsi_item){.name = x.name, .dtype = x.dtype, .shape = x.shape, .bytes = x.bytes, .from = c};
    }
    LS_TRY(write_plain(file, &t, err));
out:
    lsi_table_release(&t);
    ls_ckpt_close(c);
    return ls_ckpt_advise(dir, st, err);
}

/* -- import -----------------------------------------------------------------------------------------------
 */

ls_status lsi_st_read_header(int fd, const char *file, uint64_t bytes, lsi_table *t, size_t *data_at,
                             ls_err *err)
{
    unsigned char first[8];
    char *text = NULL;
    size_t length;
    ls_status st = LS_OK;

    LS_TRY(lsi_io_read(fd, "start", 0, first, sizeof first, err));
    LS_TRY(lsi_st_header_length(first, bytes, &length, err));
    text = ls_alloc(LS_MEM_CKPT, length);
    if (text == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for its header");
        goto out;
    }
    LS_TRY(lsi_io_read(fd, "header", sizeof first, text, length, err));
    *data_at = sizeof first + length;
    LS_TRY(lsi_st_parse(t, text, length, bytes - *data_at, err));
out:
    ls_free(text);
    return ls_fail_in(err, st, "%s", file);
}

/* Removes the tensors whose type Lockstep does not have. */
static int drop_foreign(lsi_table *t, const char *file)
{
    int n = 0, dropped;

    for (int i = 0; i < t->n; i++) {
        if (t->items[i].dtype == LS_DTYPE_N)
            ls_log(LS_LOG_WARN, "%s: tensor \"%s\" is left out: its type is none of ours", file,
                   t->items[i].name);
        else
            t->items[n++] = t->items[i];
    }
    dropped = t->n - n;
    t->n = n;
    return dropped;
}

ls_status ls_ckpt_import(const char *file, const char *dir, int *left_out, ls_err *err)
{
    lsi_table t = {0};
    uint64_t bytes = 0;
    size_t data_at = 0;
    char *data = NULL;
    int fd = -1, dropped;
    ls_status st = LS_OK;

    if (access(dir, F_OK) == 0)
        return ls_fail(err, LS_INVALID, "%s: is there already; name another directory, or remove it", dir);
    LS_TRY(lsi_io_open(file, &fd, &bytes, err));
    LS_TRY(lsi_st_read_header(fd, file, bytes, &t, &data_at, err));
    dropped = drop_foreign(&t, file);
    if (left_out != NULL) *left_out = dropped;
    LS_TRY(give_memory(&t, &data, err));
    for (int i = 0; i < t.n; i++)
        LS_TRY(lsi_io_read(fd, file, data_at + t.items[i].begin, t.items[i].host, t.items[i].bytes, err));
    LS_TRY(lsi_ckpt_write(NULL, dir, &t, 0, NULL, (double)NAN, err));
out:
    if (fd >= 0) close(fd);
    lsi_table_release(&t);
    ls_free(data);
    return lsi_advise(st, err, LSI_FETCH_AGAIN);
}
