/* report_parts.c: parts of reports that several commands print, as text and as JSON. */
#include "report_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "base/text.h"

/* One line each, and flushed: who reads them acts upon them while the command goes on.  What cannot be
 * written is not passed over: the exit code will tell. */
void cli_print_json_take(json_t *object)
{
    if (object == NULL) ls_output_lost("no memory for the result, or a text in it is no UTF-8");
    if (object != NULL && json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0 &&
        !ferror(stdout))
        ls_output_lost("the result could not be written as JSON");
    putchar('\n');
    ls_output_flush();
    json_decref(object);
}

/* JSON has no infinity. */
json_t *report_number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *report_spread_json(ls_spread s)
{
    return json_pack("{s:f, s:f, s:f}", "p16", s.p16, "p50", s.p50, "p84", s.p84);
}

/* -- parameters -------------------------------------------------------------------------------------------
 */

/* The next network of the trial and its parameters; false at the end. */
static bool next_network(const cli_experiment *x, const char **at, char *name, size_t size, int64_t *count)
{
    char pattern[80];
    size_t n;

    if (x->trial->networks == NULL) {
        bool first = *at == NULL;
        *at = "";
        snprintf(name, size, "model");
        *count = ls_step_count_params(x->outline.step, "*");
        return first;
    }
    if (*at == NULL) *at = x->trial->networks;
    *at += strspn(*at, " ");
    n = strcspn(*at, " ");
    if (n == 0) return false;
    snprintf(name, size, "%.*s", (int)n, *at);
    snprintf(pattern, sizeof pattern, "%.60s.*", name);
    *count = ls_step_count_params(x->outline.step, pattern);
    *at += n;
    return true;
}

json_t *report_params_json(const cli_experiment *x)
{
    json_t *o = json_object();
    const char *at = NULL;
    char name[64];
    int64_t count;

    while (next_network(x, &at, name, sizeof name, &count)) json_object_set_new(o, name, json_integer(count));
    json_object_set_new(o, "total", json_integer(ls_step_count_params(x->outline.step, "*")));
    return o;
}

void report_params_text(const cli_experiment *x)
{
    const char *at = NULL;
    char name[64], a[32];
    int64_t count;

    printf("parameters    %s in %d tensors", ls_text_count(ls_step_count_params(x->outline.step, "*"), a),
           ls_step_param_tensors(x->outline.step));
    if (x->trial->networks != NULL)
        while (next_network(x, &at, name, sizeof name, &count))
            printf(", %s %s", name, ls_text_count(count, a));
    printf("\n");
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

json_t *report_memory_json(ls_plan_memory m)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "weights", (json_int_t)m.weights, "gradients",
                     (json_int_t)m.gradients, "optimizer", (json_int_t)m.optimizer, "activations",
                     (json_int_t)m.activations, "scratch", (json_int_t)m.scratch, "comm", (json_int_t)m.comm,
                     "total", (json_int_t)m.total);
}

void report_memory_text(ls_plan_memory m)
{
    char a[7][32];

    printf("memory        %s planned: weights %s, gradients %s, optimizer %s, activations %s, scratch %s",
           ls_text_bytes((double)m.total, a[0]), ls_text_bytes((double)m.weights, a[1]),
           ls_text_bytes((double)m.gradients, a[2]), ls_text_bytes((double)m.optimizer, a[3]),
           ls_text_bytes((double)m.activations, a[4]), ls_text_bytes((double)m.scratch, a[5]));
    if (m.comm > 0) printf(", exchange %s", ls_text_bytes((double)m.comm, a[6]));
    printf("\n");
}

/* -- settings ---------------------------------------------------------------------------------------------
 */

void report_settings(const ls_experiment *x, bool json)
{
    json_t *o = json_object();

    for (int i = 0; i < ls_config_count(x->cfg); i++) {
        ls_setting s = ls_config_at(x->cfg, i);
        char buf[LS_SETTING_SHOW_MAX];
        const char *value = ls_setting_show(&s, buf);
        if (json)
            json_object_set_new(o, s.key, json_string(value));
        else
            printf("%-24s %-10s %s%s%s%s\n", s.key, value, s.help, s.choices != NULL ? " (" : "",
                   s.choices != NULL ? s.choices : "", s.choices != NULL ? ")" : "");
    }
    if (json)
        cli_print_json_take(json_pack("{s:s, s:s, s:o}", "event", "settings", "experiment",
                                      ls_config_text(x->cfg, "name"), "settings", o));
    else
        json_decref(o);
}
