/* Good experiments: what files, bases, overrides, references and other names come to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "config/settings.h"
#include "config_test.h"
#include "faults.h"

static ls_experiment loaded(const char *text, const char *const *overrides)
{
    ls_experiment x;
    ls_err err = {0};

    REQUIRE_OK(config_test_load(&x, text, overrides, &err), &err);
    return x;
}

static void a_file_sets_values(void)
{
    ls_experiment x =
        loaded("name: my run\n"
               "model: {trial: mnist_net_p}\n"
               "data:\n  kind: idx\n  path: 'a \"b\" \\c'\n  train_range: 0:50000\n"
               "optimizer.lr: 0.25\n"
               "train: {epochs: 2.5, validate_every: 500st, checkpoint_every: none, report_every: 10min}\n"
               "lr: {warmup: 3ep, schedule: cosine, patience: ~}\n"
               "reproducible: true\n",
               NULL);
    int64_t first, end;

    CHECK_EQ_STR(x.trial->name, "mnist");
    CHECK_EQ_STR(ls_config_text(x.cfg, "name"), "my run");
    CHECK_EQ_STR(ls_config_text(x.cfg, "model.trial"), "mnist");
    CHECK_EQ_STR(ls_config_choice(x.cfg, "data.kind"), "idx");
    CHECK_EQ_STR(ls_config_choice(x.cfg, "lr.schedule"), "cosine");
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.path"), "a \"b\" \\c");
    CHECK_NEAR(ls_config_real(x.cfg, "optimizer.lr"), 0.25, 0);
    CHECK_NEAR(ls_config_real(x.cfg, "optimizer.momentum"), 0.5, 0);
    CHECK_NEAR(ls_config_real(x.cfg, "train.epochs"), 2.5, 0);
    CHECK(ls_config_bool(x.cfg, "reproducible"));
    CHECK_EQ_INT(ls_config_int(x.cfg, "lr.patience"), 10);
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), 64);
    CHECK_EQ_INT(ls_config_period(x.cfg, "train.validate_every").unit, LS_PERIOD_STEPS);
    CHECK_NEAR(ls_config_period(x.cfg, "train.validate_every").value, 500, 0);
    CHECK_EQ_INT(ls_config_period(x.cfg, "train.checkpoint_every").unit, LS_PERIOD_NONE);
    CHECK_EQ_INT(ls_config_period(x.cfg, "train.report_every").unit, LS_PERIOD_MINUTES);
    CHECK_EQ_INT(ls_config_period(x.cfg, "lr.warmup").unit, LS_PERIOD_EPOCHS);
    CHECK(ls_experiment_range(&x, "data.train_range", &first, &end));
    CHECK_EQ_INT(first, 0);
    CHECK_EQ_INT(end, 50000);
    CHECK(!ls_experiment_range(&x, "data.test_range", &first, &end));
    ls_experiment_release(&x);
}

static void defaults_are_those_of_the_tables(void)
{
    ls_experiment x;
    ls_err err = {0};
    char a[LS_SETTING_SHOW_MAX], b[LS_SETTING_SHOW_MAX];

    REQUIRE_OK(ls_experiment_load(&x, "resnet18_cifar_stem", NULL, 0, &err), &err);
    CHECK_EQ_STR(x.trial->name, "resnet18-cifar-stem");
    CHECK_EQ_STR(ls_config_text(x.cfg, "name"), "resnet18-cifar-stem");
    for (int i = 2; ls_train_settings[i].key != NULL; i++) {
        ls_setting s = ls_config_at(x.cfg, ls_config_find(x.cfg, ls_train_settings[i].key));
        CHECK_EQ_STR(ls_setting_show(&s, a), ls_setting_show(&ls_train_settings[i], b));
        if (s.kind == LS_SETTING_PERIOD) ls_config_period(x.cfg, s.key); /* a bad default would abort */
        CHECK(s.help != NULL && s.help[0] != '\0');
    }
    CHECK_EQ_INT(ls_config_bool(x.cfg, "model.cifar_stem"), 1);
    ls_experiment_release(&x);
}

static void files_are_based_on_files(void)
{
    const char *const overrides[] = {"optimizer.lr=0.4", "seed=1", "seed=2", NULL};
    ls_experiment x;

    config_test_file("a.yaml",
                     "model: {trial: mnist}\noptimizer: {lr: 0.1, momentum: 0.9}\nbatch: {per_rank: 32}\n");
    config_test_file("b.yaml", "optimizer: {lr: 0.2}\nname: b\n");
    x = loaded("name: x\ndefaults: [a.yaml, b.yaml]\nbatch: {global: 128}\n", NULL);
    CHECK_NEAR(ls_config_real(x.cfg, "optimizer.lr"), 0.2, 0);
    CHECK_NEAR(ls_config_real(x.cfg, "optimizer.momentum"), 0.9, 0);
    CHECK_EQ_STR(ls_config_text(x.cfg, "name"), "x");
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), 128);
    ls_experiment_release(&x);
    x = loaded("defaults: a.yaml\noptimizer: {lr: 0.3}\n", overrides);
    CHECK_NEAR(ls_config_real(x.cfg, "optimizer.lr"), 0.4, 0);
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), 32);
    CHECK_EQ_INT(ls_config_int(x.cfg, "seed"), 2);
    ls_experiment_release(&x);
}

static void overrides_are_yaml(void)
{
    const char *const overrides[] = {
        "optimizer={lr: 0.5, momentum: 0}", "data.path=\"#1\"",        "seed=null",
        "model.trial=mnist-keras",          "train.epochs= 3 # three", NULL};
    ls_experiment x = loaded("model: {trial: mnist}\nseed: 7\nbatch: {per_rank: 16}\n", overrides);

    CHECK_NEAR(ls_config_real(x.cfg, "optimizer.lr"), 0.5, 0);
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.path"), "#1");
    CHECK_EQ_STR(x.trial->name, "mnist-keras");
    CHECK_EQ_INT(ls_config_int(x.cfg, "seed"), 1);
    CHECK_NEAR(ls_config_real(x.cfg, "train.epochs"), 3, 0);
    ls_experiment_release(&x);
}

static void references_are_replaced(void)
{
    ls_experiment x;

    setenv("LS_TEST_FOLDER", "/data/${x}", 1);
    unsetenv("LS_TEST_UNSET");
    x = loaded("name: ${model.trial}-${optimizer.lr}-${seed}\n"
               "model: {trial: mnist}\n"
               "data: {path: ${env:LS_TEST_FOLDER}/a, train_images: '${data.path}/b$c', test_images: $${d},\n"
               "       test_labels: '${env:LS_TEST_UNSET:-else}/e'}\n"
               "train: {steps: '${lr.reference_batch}'}\n"
               "lr: {reference_batch: 32}\n",
               NULL);
    CHECK_EQ_STR(ls_config_text(x.cfg, "name"), "mnist-0.01-1");
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.path"), "/data/${x}/a");
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.train_images"), "/data/${x}/a/b$c");
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.test_images"), "${d}");
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.test_labels"), "else/e");
    CHECK_EQ_INT(ls_config_int(x.cfg, "train.steps"), 32);
    ls_experiment_release(&x);
}

static void determined_names_are_mapped(void)
{
    ls_experiment x = loaded("model: {trial: mnist_net_t}\n"
                             "resources: {slots_per_trial: 4}\n"
                             "hyperparameters: {global_batch_size: 256}\n"
                             "optimizations: {aggregation_frequency: 2}\n"
                             "min_validation_period: {batches: 101}\n"
                             "min_checkpoint_period: {records: '${seed}000'}\n"
                             "searcher: {name: single, metric: val/loss, smaller_is_better: true,\n"
                             "           max_length: {epochs: 5}}\n"
                             "max_restarts: 3\n",
                             NULL);

    CHECK_EQ_STR(x.trial->name, "mnist-keras");
    CHECK_EQ_INT(ls_config_int(x.cfg, "ranks"), 4);
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.global"), 512); /* there, two batches of 256 make an update */
    CHECK_EQ_INT(ls_config_int(x.cfg, "parallel.accumulate"), 2);
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), 64);
    CHECK_EQ_STR(ls_config_text(x.cfg, "train.validate_every"), "51st");
    CHECK_EQ_STR(ls_config_text(x.cfg, "train.checkpoint_every"), "1000sa");
    CHECK_EQ_STR(ls_config_text(x.cfg, "train.best_metric"), "val/loss");
    CHECK_EQ_STR(ls_config_choice(x.cfg, "train.best_mode"), "min");
    CHECK_NEAR(ls_config_real(x.cfg, "train.epochs"), 5, 0);
    CHECK_EQ_INT(ls_config_int(x.cfg, "max_restarts"), 3);
    ls_experiment_release(&x);
    x = loaded(
        "model: {trial: mnist}\nsearcher: {max_length: {batches: 70}}\nmin_validation_period: {epochs: 0}\n",
        NULL);
    CHECK_EQ_INT(ls_config_int(x.cfg, "train.steps"), 70);
    CHECK_EQ_INT(ls_config_period(x.cfg, "train.validate_every").unit, LS_PERIOD_NONE);
    ls_experiment_release(&x);
    /* Batches are counted otherwise only where both names are Determined's. */
    x = loaded("model: {trial: mnist}\nbatch: {global: 96}\noptimizations: {aggregation_frequency: 3}\n"
               "searcher: {max_length: {batches: 70}}\n",
               NULL);
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.global"), 96);
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), 32);
    CHECK_EQ_INT(ls_config_int(x.cfg, "train.steps"), 24);
    ls_experiment_release(&x);
    x = loaded("model: {trial: mnist}\nhyperparameters: {global_batch_size: 96}\nparallel: {accumulate: 3}\n",
               NULL);
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.global"), 96);
    ls_experiment_release(&x);
}

/* The written file of `x`, which must load to the same values and be written the same again. */
static void check_rewrites(const ls_experiment *x)
{
    ls_experiment y;
    ls_err err = {0};
    char *text[2] = {NULL, NULL};
    size_t n[2];
    char a[LS_SETTING_SHOW_MAX], b[LS_SETTING_SHOW_MAX];

    for (int k = 0; k < 2; k++) {
        FILE *f = open_memstream(&text[k], &n[k]);
        REQUIRE(f != NULL);
        ls_experiment_write(k == 0 ? x : &y, f);
        CHECK_EQ_INT(fclose(f), 0);
        if (k == 0)
            REQUIRE_OK(ls_experiment_load(&y, config_test_file("written.yaml", text[0]), NULL, 0, &err),
                       &err);
    }
    CHECK_EQ_STR(text[1], text[0]);
    CHECK(x->trial == y.trial);
    for (int i = 0; i < ls_config_count(x->cfg); i++) {
        ls_setting s = ls_config_at(x->cfg, i), t = ls_config_at(y.cfg, i);
        CHECK_EQ_STR(ls_setting_show(&t, b), ls_setting_show(&s, a));
        CHECK(s.value == t.value);
    }
    ls_experiment_release(&y);
    free(text[0]);
    free(text[1]);
}

static void a_written_experiment_loads_to_the_same(void)
{
    ls_experiment x = loaded("model: {trial: vit-tiny, depth: 3}\n"
                             "name: \"a \\\" b \\\\ $${seed} $$ $$${x} \\u00e9 # no comment\"\n"
                             "optimizer: {lr: 0.1234567890123456789, eps: 1e-300}\n"
                             "seed: 999999999999999\nbatch: {global: 96}\nranks: 3\nlr: {warmup: 0.1ep}\n",
                             NULL);

    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), 32);
    check_rewrites(&x);
    ls_experiment_release(&x);
    for (int i = 0; ls_trials[i] != NULL; i++) {
        ls_err err = {0};
        REQUIRE_OK(ls_experiment_load(&x, ls_trials[i]->name, NULL, 0, &err), &err);
        check_rewrites(&x);
        ls_experiment_release(&x);
    }
}

static void names_find_shipped_files_first(void)
{
    ls_experiment x;
    ls_err err = {0};

    setenv("LOCKSTEP_DATA", "/somewhere", 1);
    REQUIRE_OK(ls_experiment_load(&x, "fashion", NULL, 0, &err), &err);
    CHECK_EQ_STR(x.trial->name, "mnist-keras");
    CHECK_EQ_STR(ls_config_choice(x.cfg, "data.kind"), "idx");
    ls_experiment_release(&x);
    REQUIRE_OK(ls_experiment_load(&x, "mnist.yaml", NULL, 0, &err), &err);
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.path"), "/somewhere/mnist");
    CHECK_NEAR(ls_config_real(x.cfg, "train.epochs"), 10, 0);
    ls_experiment_release(&x);
    unsetenv("LOCKSTEP_DATA");
    for (int i = 0; i < 2; i++) {
        const char *const names[] = {"mnist-keras", "resnet18-cifar"};
        REQUIRE_OK(ls_experiment_load(&x, names[i], NULL, 0, &err), &err);
        CHECK_EQ_STR(x.trial->name, names[i]);
        /* What is measured under a model's name is the model with its own optimiser and batch.  The learning
         * rate, which costs nothing, may be the published one. */
        CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), x.trial->batch);
        CHECK_EQ_INT(ls_config_optimiser(x.cfg).rule, x.trial->optimiser.rule);
        CHECK_NEAR(ls_config_optimiser(x.cfg).momentum, x.trial->optimiser.momentum, 0);
        CHECK_NEAR(ls_config_optimiser(x.cfg).eps, x.trial->optimiser.eps, 0);
        CHECK_EQ_INT(ls_config_optimiser(x.cfg).form, x.trial->optimiser.form);
        ls_experiment_release(&x);
    }
}

/* What PyTorch calls an optimiser of its own, and the spellings of YAML's core schema. */
static void adamw_and_capital_truths_are_read(void)
{
    static const struct {
        const char *text, *override;
        ls_adam_form form;
    } cases[] = {
        {"model: {trial: mnist}\n"
         "optimizer: {name: adamw}\n",
         NULL, LS_ADAM_W},
        {"model: {trial: mnist}\n"
         "optimizer: {name: AdamW, form: adamw}\n",
         NULL, LS_ADAM_W},
        {"model: {trial: mnist}\n"
         "optimizer: {form: tf}\n",
         "optimizer.name=adamw", LS_ADAM_W},
        {"model: {trial: mnist}\n"
         "optimizer: {name: adamw}\n",
         "optimizer.form=adamw", LS_ADAM_W},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const overrides[] = {cases[i].override, NULL};
        ls_experiment x = loaded(cases[i].text, overrides);
        CHECK_EQ_INT(ls_config_optimiser(x.cfg).rule, LS_ADAM);
        CHECK_EQ_INT(ls_config_optimiser(x.cfg).form, cases[i].form);
        ls_experiment_release(&x);
    }
    for (int yes = 0; yes < 2; yes++) {
        static const char *const words[2][3] = {{"false", "False", "FALSE"}, {"true", "True", "TRUE"}};
        for (int i = 0; i < 3; i++) {
            char word[64];
            const char *const overrides[] = {word, NULL};
            snprintf(word, sizeof word, "reproducible=%s", words[yes][i]);
            ls_experiment x = loaded("model: {trial: mnist}\n", overrides);
            CHECK_EQ_INT(ls_config_bool(x.cfg, "reproducible"), yes);
            ls_experiment_release(&x);
        }
    }
}

static ls_status load_under_faults(void *arg, ls_err *err)
{
    const char *const overrides[] = {"seed=3", "optimizer.name=adam"};
    ls_experiment x;
    ls_status st = ls_experiment_load(&x, arg, overrides, 2, err);

    ls_experiment_release(&x);
    return st;
}

static void memory_may_run_out_anywhere(void)
{
    char path[128];

    config_test_file("base.yaml", "model: {trial: mnist}\nname: ${data.path}x\ndata: {path: p}\n");
    snprintf(path, sizeof path, "%s",
             config_test_file("faults.yaml", "defaults: [base.yaml]\nmin_validation_period: {batches: 3}\n"));
    check_faults("load", load_under_faults, path);
}

int main(void)
{
    config_test_begin();
    CHECK_RUN(a_file_sets_values);
    CHECK_RUN(defaults_are_those_of_the_tables);
    CHECK_RUN(files_are_based_on_files);
    CHECK_RUN(overrides_are_yaml);
    CHECK_RUN(references_are_replaced);
    CHECK_RUN(determined_names_are_mapped);
    CHECK_RUN(a_written_experiment_loads_to_the_same);
    CHECK_RUN(names_find_shipped_files_first);
    CHECK_RUN(adamw_and_capital_truths_are_read);
    CHECK_RUN(memory_may_run_out_anywhere);
    config_test_end();
    return CHECK_DONE();
}
