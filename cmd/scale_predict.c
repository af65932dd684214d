/* scale_predict.c: what the points of a study will take, by the calibration that --predict names.
 *
 * Every count has the plan that its points will run, compiled for exactly its ranks, batch and settings. */
#include "scale_predict.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/whole.h"
#include "predict_table.h"

enum { FILE_BYTES_MAX = 256 << 20 };

struct scale_predict {
    const char *calibration;
    predict_table table; /* of one way and one row at a time */
    ls_predicted said;
};

/* -- the calibration --------------------------------------------------------------------------------------
 */

/* Of a file what is in it, whatever it is called; of a preset its name, which stands for what this version
 * has. */
static ls_status hash_word(XXH64_hash_t *hash, const char *word, ls_err *err)
{
    char *text = NULL;
    size_t n = 0;
    ls_status st = LS_OK;

    if (strpbrk(word, "/.") != NULL) LS_TRY(ls_whole_file(&text, &n, word, FILE_BYTES_MAX, err));
    *hash = XXH3_64bits_withSeed(text != NULL ? text : word, text != NULL ? n : strlen(word), *hash);
out:
    ls_free(text);
    return st;
}

/* "cuda" of cuda:1. */
static bool same_device(const char *a, const char *b)
{
    const size_t n = strcspn(a, ":");

    return n == strcspn(b, ":") && strncmp(a, b, n) == 0;
}

static ls_status check_fits(const ls_machine *m, const ls_study *s, const char *calibration, ls_err *err)
{
    if (!same_device(m->device, s->device))
        return ls_fail(err, LS_INVALID,
                       "--predict %s describes ranks on device %s, and the study's are on %s: calibrate with "
                       "--device %s, or measure with --device %s",
                       calibration, m->device, s->device, s->device, m->device);
    if (m->threads != s->threads)
        return ls_fail(
            err, LS_INVALID,
            "--predict %s describes ranks of %d thread%s, and the study's have %d: say --threads %d, or "
            "calibrate with --threads %d",
            calibration, (int)m->threads, m->threads == 1 ? "" : "s", s->threads, (int)m->threads,
            s->threads);
    return LS_OK;
}

ls_status scale_predict_open(scale_predict **out, const cli_args *args, ls_study *s, ls_err *err)
{
    const char *network = args->network != NULL ? args->network : args->predict;
    scale_predict *p = NULL;
    XXH64_hash_t hash = 0;
    ls_status st = LS_OK;

    *out = NULL;
    if (args->predict == NULL) return LS_OK;
    p = ls_alloc(LS_MEM_CLI, sizeof *p);
    if (p == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    memset(p, 0, sizeof *p);
    p->calibration = args->predict;
    LS_TRY(ls_machine_open(&p->table.machine, args->predict, err));
    LS_TRY(ls_network_open(&p->table.network, network, err));
    LS_TRY(check_fits(&p->table.machine, s, args->predict, err));
    LS_TRY(hash_word(&hash, args->predict, err));
    if (args->network != NULL) LS_TRY(hash_word(&hash, network, err));
    snprintf(s->predicted_by, sizeof s->predicted_by, "%016llx", (unsigned long long)hash);
    p->table.algorithm = LS_ALGORITHM_OURS;
    p->table.engine = -1;
    p->table.n_ways = 1;
    *out = p;
    p = NULL;
out:
    scale_predict_close(p);
    return st;
}

void scale_predict_close(scale_predict *p)
{
    if (p == NULL) return;
    ls_machine_release(&p->table.machine);
    ls_network_release(&p->table.network);
    ls_free(p);
}

/* -- one count --------------------------------------------------------------------------------------------
 */

static void keep(ls_predicted_point *to, const ls_prediction *p)
{
    const double samples = p->samples_per_s * p->mid;

    to->step_s = (ls_interval){p->lo, p->mid, p->hi};
    to->rate = (ls_interval){samples / p->hi, p->samples_per_s, samples / p->lo};
    to->fit = p->error_fit;
    to->together = p->error_together;
    to->spread = p->error_spread;
    to->extrapolated = p->error_extrapolated;
    to->waited = (p->parts.exposed_s + p->parts.core_s) / p->mid;
}

static ls_status predict(scale_predict *p, const ls_study *s, int here, ls_predicted_point *to, ls_err *err)
{
    predict_table *t = &p->table;
    predict_row row = {.ranks = to->ranks};
    ls_experiment x = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_study_experiment(s, to->count, &x, err));
    t->way[0] = (predict_way){0};
    t->placement = (ls_job_placement){.kind = LS_PLACE_CONTIGUOUS, .ranks_per_node = here};
    snprintf(t->way[0].strategy, sizeof t->way[0].strategy, "%s",
             ls_config_choice(x.cfg, "parallel.strategy"));
    LS_TRY(predict_way_open(&t->way[0],
                            &(predict_step){.trial = x.trial,
                                            .cfg = x.cfg,
                                            .machine = &t->machine,
                                            .ranks_per_node = here,
                                            .threads = s->threads,
                                            .ranks = to->ranks},
                            err));
    LS_TRY(predict_answer_row(t, &row, err));
    if (row.why[0] != '\0')
        ls_text_fit(to->why, sizeof to->why, "%s", row.why);
    else
        keep(to, &row.p);
out:
    predict_way_release(&t->way[0]);
    ls_experiment_release(&x);
    return st;
}

/* Whether a result of that count is there. */
static bool is_measured(const ls_study *s, int count)
{
    char path[LS_STUDY_PATH_MAX];

    for (int k = 1; k <= s->repeats; k++)
        if (ls_study_point_path(s, count, k, path, NULL) == LS_OK && access(path, F_OK) == 0) return true;
    return false;
}

static ls_status predict_count(scale_predict *p, const ls_study *s, int count, ls_err *err)
{
    ls_predicted_point to = {
        .count = count, .ranks = ls_study_ranks(s, count), .after = is_measured(s, count)};
    const int here = s->ranks_per_node > 0 ? s->ranks_per_node : to.ranks;
    ls_status st = LS_OK;

    /* What cores shared by several ranks cost, nobody has calibrated. */
    if ((int64_t)here * s->threads > s->cores)
        ls_text_fit(to.why, sizeof to.why,
                    "oversubscribed, %d thread%s on %d core%s, of which a calibration says nothing",
                    here * s->threads, here * s->threads == 1 ? "" : "s", s->cores, s->cores == 1 ? "" : "s");
    else
        LS_TRY(predict(p, s, here, &to, err));
    if (!ls_predicted_add(&p->said, &to))
        st = ls_fail(err, LS_INVALID, "%s: more than %d predictions in one study", s->dir,
                     LS_STUDY_COUNTS_MAX);
out:
    return st;
}

ls_status scale_predict_write(scale_predict *p, const ls_study *s, ls_err *err)
{
    bool there;
    int n;
    ls_status st = LS_OK;

    LS_TRY(ls_predicted_load(&p->said, s, &there, err));
    n = p->said.n;
    for (int i = 0; i < s->n_counts; i++)
        if (ls_predicted_of(&p->said, s->counts[i]) == NULL) LS_TRY(predict_count(p, s, s->counts[i], err));
    if (there && p->said.n == n) goto out;
    if (!there) {
        ls_text_fit(p->said.calibration, sizeof p->said.calibration, "%s", p->calibration);
        ls_text_fit(p->said.machine, sizeof p->said.machine, "%s", p->table.machine.name);
        ls_text_fit(p->said.network, sizeof p->said.network, "%s", p->table.network.name);
        ls_text_fit(p->said.version, sizeof p->said.version, "%s", LS_VERSION);
        memcpy(p->said.hash, s->predicted_by, sizeof p->said.hash);
    }
    p->said.time = time(NULL);
    LS_TRY(ls_predicted_write(&p->said, s, err));
out:
    return st;
}
