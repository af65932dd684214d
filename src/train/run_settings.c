/* run_settings.c: the settings of runs in a document: those in which they differ, for all to see, and those
 * that all share, for whoever asks. */
#include "base/alloc.h"
#include "runs/settings.h"
#include "train/run_pages.h"

/* Settings by rows, runs by columns. */
static ls_status add_differing(ls_report *page, const ls_page_runs *p, const ls_run_settings *settings,
                               const ls_run_keys *keys, ls_err *err)
{
    ls_sheet_column columns[LS_RUN_PAGES_MOST + 1] = {{"setting", 'l'}};
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    for (int k = 0; k < p->n; k++) columns[k + 1] = (ls_sheet_column){p->label[k], 'l'};
    LS_TRY(ls_sheet_create(&s, "settings-that-differ", NULL, columns, p->n + 1, err));
    for (int k = 0; k < p->n; k++) ls_sheet_mark_column(s, k + 1, k + 1);
    for (int i = 0; i < keys->n; i++) {
        if (!keys->differs[i]) continue;
        ls_sheet_cell(s, "%s", keys->keys[i]);
        for (int k = 0; k < p->n; k++) {
            const char *value = ls_run_setting_value(&settings[k], keys->keys[i], i);
            ls_sheet_cell(s, "%s", value != NULL ? value : "");
        }
    }
    ls_report_sheet(page, s);
out:
    ls_sheet_destroy(s);
    return st;
}

static ls_status add_shared(ls_report *page, const ls_run_settings *settings, const ls_run_keys *keys,
                            const char *title, ls_err *err)
{
    static const ls_sheet_column columns[] = {{"setting", 'l'}, {"value", 'l'}};
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_sheet_create(&s, "settings", NULL, columns, 2, err));
    for (int i = 0; i < keys->n; i++) {
        if (keys->differs[i]) continue;
        ls_sheet_cell(s, "%s", keys->keys[i]);
        ls_sheet_cell(s, "%s", ls_run_setting_value(&settings[0], keys->keys[i], i));
    }
    ls_report_fold(page, title);
    ls_report_sheet(page, s);
    ls_report_unfold(page);
out:
    ls_sheet_destroy(s);
    return st;
}

ls_status ls_run_pages_settings(ls_report *page, const ls_page_runs *p, ls_err *err)
{
    ls_run_settings settings[LS_RUN_PAGES_MOST] = {{0}};
    ls_run_keys keys = {0};
    char title[80];
    ls_status st = LS_OK;

    for (int k = 0; k < p->n; k++) LS_TRY(ls_run_settings_read(&settings[k], p->runs[k].path, err));
    LS_TRY(ls_run_keys_of(&keys, settings, p->n, err));
    if (keys.n == 0) goto out;
    ls_report_heading(page, "Settings");
    if (keys.n_differing > 0)
        LS_TRY(add_differing(page, p, settings, &keys, err));
    else if (p->n > 1)
        ls_report_paragraph(page, "The runs have the same settings.");
    snprintf(title, sizeof title, p->n > 1 ? "%d settings that all runs share" : "all %d settings",
             keys.n - keys.n_differing);
    if (keys.n > keys.n_differing) LS_TRY(add_shared(page, settings, &keys, title, err));
out:
    ls_run_keys_release(&keys);
    for (int k = 0; k < p->n; k++) ls_run_settings_release(&settings[k]);
    return st;
}
