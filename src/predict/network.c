/* network.c: opens a network: a preset by its name, or a file. */
#include <string.h>

#include "base/json.h"
#include "base/whole.h"
#include "predict/network_internal.h"
#include "predict/network_presets.h"

static const char *preset_text(const char *name)
{
    for (int i = 0; lsi_network_presets[i].name != NULL; i++)
        if (strcmp(lsi_network_presets[i].name, name) == 0) return lsi_network_presets[i].text;
    return NULL;
}

const char *ls_network_preset(int i, const char **about)
{
    for (int k = 0; k <= i; k++)
        if (lsi_network_presets[k].name == NULL) return NULL;
    if (about != NULL) *about = lsi_network_presets[i].about;
    return lsi_network_presets[i].name;
}

static ls_status unknown(const char *word, ls_err *err)
{
    const char *names[LSI_NETWORK_PRESETS_MOST], *nearest;
    ls_text all = {0};
    size_t n = 0;

    for (; lsi_network_presets[n].name != NULL && n < LSI_NETWORK_PRESETS_MOST; n++) {
        names[n] = lsi_network_presets[n].name;
        ls_text_add(&all, "%s%s", n > 0 ? ", " : "", names[n]);
    }
    nearest = ls_text_nearest(word, names, n);
    if (nearest != NULL)
        ls_fail(err, LS_INVALID, "network \"%.80s\": no preset has that name; did you mean \"%s\"?", word,
                nearest);
    else
        ls_fail(err, LS_INVALID,
                "network \"%.80s\": no preset has that name (a file's has a '/' or '.'); there are %s", word,
                all.data != NULL ? all.data : "others");
    ls_text_release(&all);
    return LS_INVALID;
}

/* A file that is not there is the command line's fault, not damaged data. */
static ls_status read_file(char **text, size_t *length, const char *path, ls_err *err)
{
    ls_err why = {0};
    const ls_status st = ls_whole_plain(text, length, path, LS_JSON_FILE_MAX, &why);

    return st == LS_OK ? LS_OK : ls_fail(err, st == LS_NOMEM ? st : LS_INVALID, "%s", why.text);
}

ls_status ls_network_open(ls_network *n, const char *preset_or_path, ls_err *err)
{
    const char *preset = preset_text(preset_or_path);
    char *text = NULL;
    size_t length;
    ls_status st = LS_OK;

    *n = (ls_network){0};
    if (preset != NULL) return ls_network_parse(n, preset, strlen(preset), preset_or_path, err);
    if (strpbrk(preset_or_path, "/.") == NULL) return unknown(preset_or_path, err);
    LS_TRY(read_file(&text, &length, preset_or_path, err));
    st = ls_network_parse(n, text, length, preset_or_path, err);
out:
    ls_free(text);
    return st;
}
