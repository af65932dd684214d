/* last_words.c: prepared in peace, written in a hurry. */
#include "runs/last_words.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "runs/run_internal.h"

void ls_last_words_prepare(ls_last_words *w, const ls_run *run, const json_t *summary)
{
    char path[LS_LAST_WORDS_PATH];
    json_t *copy;
    int next;

    if (w == NULL) return;
    if (summary == NULL) {
        atomic_store(&w->ready, 0);
        return;
    }
    next = atomic_load(&w->ready) == 1 ? 2 : 1;
    copy = json_copy((json_t *)summary);
    json_object_set_new(copy, "state", json_string("killed"));
    w->text[next - 1].n = json_dumpb(copy, w->text[next - 1].data, LS_LAST_WORDS_BYTES, LS_JSON_FILE_FLAGS);
    json_decref(copy);
    if (w->text[next - 1].n == 0 || w->text[next - 1].n > LS_LAST_WORDS_BYTES)
        return; /* the text before stays */
    if (w->names.path[0] == '\0') {
        snprintf(path, sizeof path, "%s/" LSI_SUMMARY_FILE, run->paths.path);
        if (ls_replace_name(&w->names, path, NULL) != LS_OK) return;
        /* Not the name of one that is being written while the signal comes. */
        snprintf(w->names.aside, sizeof w->names.aside, "%s/.summary-killed.json", run->paths.path);
    }
    memcpy(w->owner_file, run->file, sizeof w->owner_file);
    w->owner = run->owner;
    atomic_store(&w->ready, next);
}

static bool still_ours(const void *arg)
{
    const ls_last_words *w = arg;

    return lsi_owner_holds(w->owner_file, &w->owner);
}

void ls_last_words_write(ls_last_words *w)
{
    const int which = atomic_load(&w->ready);
    const ls_replace_gate ours = {still_ours, w};

    if (which != 0) (void)ls_replace_named(&w->names, w->text[which - 1].data, w->text[which - 1].n, &ours);
}
