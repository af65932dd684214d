/* Bad experiments: every message, and that hostile files cost nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"
#include "config_test.h"

#define M "model: {trial: mnist}\n"

static void unknown_keys_name_the_nearest(void)
{
    config_test_refuses(M "optimizer:\n  name: sgd\n  lrr: 0.1\n", NULL,
                        "4:3: unknown key \"optimizer.lrr\"; did you mean \"optimizer.lr\"?");
    config_test_refuses(M "optimiser: {lr: 0.1}\n", NULL,
                        "2:13: unknown key \"optimiser.lr\"; did you mean \"optimizer.lr\"?");
    config_test_refuses(
        M "resources: {cake: 1}\n", NULL,
        "2:13: unknown key \"resources.cake\"; `lockstep plan EXPERIMENT --settings` lists them");
    config_test_refuses(M "searcher: {max_length: {batch: 1}}\n", NULL,
                        "2:25: unknown key \"searcher.max_length.batch\"; did you mean "
                        "\"searcher.max_length.batches\"?");
    config_test_refuses(M, "optimizer.lrr=1",
                        "optimizer.lrr=1: unknown key \"optimizer.lrr\"; did you mean \"optimizer.lr\"?");
    config_test_refuses("model: {trial: mnits}\n", NULL, "1:16: no model \"mnits\"; did you mean \"mnist\"?");
    config_test_refuses("name: x\n", NULL, " no model.trial; `lockstep info` lists the models");
    config_test_refuses("", NULL, " no model.trial; `lockstep info` lists the models");
}

/* What people know from other programs leads to what does it here. */
static void names_of_others_lead_on(void)
{
    static const struct {
        const char *override, *meant;
    } cases[] = {
        {"epochs=3", "did you mean \"train.epochs\"?"},
        {"max_epochs=3", "did you mean \"train.epochs\"?"},
        {"trainer.max_epochs=3", "did you mean \"train.epochs\"?"},
        {"batch_size=128", "did you mean \"batch.per_rank\"?"},
        {"batchSize=128", "did you mean \"batch.per_rank\"?"},
        {"data.batch-size=128", "did you mean \"batch.per_rank\"?"},
        {"lr=0.1", "did you mean \"optimizer.lr\"?"},
        {"learning_rate=0.1", "did you mean \"optimizer.lr\"?"},
        {"train.lr=0.1", "did you mean \"optimizer.lr\"?"},
        {"optimizer=adam", "did you mean \"optimizer.name\"?"},
        {"weight_decay=1", "did you mean \"optimizer.weight_decay\"?"},
        {"momentum=0.9", "did you mean \"optimizer.momentum\"?"},
        {"workers=2", "did you mean \"data.workers\"?"},
        {"num_workers=2", "did you mean \"data.workers\"?"},
        {"devices=2", "did you mean \"ranks\"?"},
        {"gpus=2", "the option --device cuda"},
        {"nodes=2", "--nodes N --node-rank I --master HOST:PORT"},
        {"amp=true", "precision=bf16 and precision=fp16 compute in 16 bits"},
        {"precision=bf16_mixed", "write bf16"},
        {"precision=half", "write fp16"},
        {"precision=fp8", "are not in this version"},
        {"loss_scale=1024", "did you mean \"fp16.loss_scale\"?"},
        {"fp16.loss_scale=often", "\"often\" is neither auto nor a number from 1 to 16777216"},
        {"fp16.loss_scale=0.5", "\"0.5\" is neither auto nor a number from 1 to 16777216"},
        {"fp16.loss_scale=nan", "\"nan\" is neither auto nor a number from 1 to 16777216"},
        {"fp16.growth_interval=0", "fp16.growth_interval"},
        {"fp16.initial_scale=0", "fp16.initial_scale"},
        {"fp16.loss_scale=256", "fp16.loss_scale is for precision=fp16, not for fp32; leave it out"},
        {"fp16.initial_scale=256", "fp16.initial_scale is for precision=fp16, not for fp32"},
        {"fp16.growth_interval=3", "fp16.growth_interval is for precision=fp16, not for fp32"},
        {"parallel.prefetch=2", "parallel.prefetch is for parallel.strategy=fsdp and hybrid, not for ddp"},
        {"parallel.reshard=never", "parallel.reshard is for parallel.strategy=fsdp and hybrid, not for ddp"},
        {"parallel.shard_group=2", "parallel.shard_group is for parallel.strategy=hybrid, not for ddp"},
        {"train.on_nonfinite=ignore", "is none of: stop skip warn"},
        {"precision=tf32", "precision=tf32 rounds products on a GPU, and device=cpu computes them in fp32"},
        {"parallel.strategy=zero3", "write fsdp"},
        {"patience=3", "did you mean \"train.early_stop\" or \"lr.patience\"?"},
        {"seeds=3", "did you mean \"seed\"?"},
        {"model.width=3", "this model has no settings of its own"},
        {"optimizer.name=Adam", "is none of: sgd adam rmsprop lars lamb; did you mean \"adam\"?"},
        {"optimizer.name=lion", "is none of: sgd adam rmsprop lars lamb; it is not in this version"},
        {"data.kind=mnist", "write idx"},
    };
    ls_experiment x;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const overrides[] = {cases[i].override, NULL};
        ls_err err = {0};
        CHECK_STATUS(config_test_load(&x, M, overrides, &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, cases[i].meant);
        ls_experiment_release(&x);
    }
}

/* What another setting leaves without a meaning is refused, unless that one came later. */
static void settings_must_mean_something(void)
{
    static const char *const fixed[] = {"precision=fp16", "fp16.loss_scale=8", "fp16.growth_interval=9",
                                        NULL};
    static const char *const scattered[] = {"parallel.prefetch=2", "parallel.strategy=zero1", NULL};
    static const char *const meant[] = {"precision=fp16", "fp16.growth_interval=9", "parallel.prefetch=2",
                                        "parallel.strategy=hybrid", NULL};
    static const char *const usual[] = {"fp16.loss_scale=auto", "parallel.prefetch=auto",
                                        "fp16.initial_scale=65536", NULL};
    static const char *const later[] = {"precision=bf16", "parallel.strategy=ddp", NULL};
    ls_experiment x;
    ls_err err = {0};

    CHECK_STATUS(config_test_load(&x, M, fixed, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "fp16.growth_interval is for fp16.loss_scale=auto, not for 8");
    ls_experiment_release(&x);
    err = (ls_err){0};
    CHECK_STATUS(config_test_load(&x, M, scattered, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "not for zero1; leave it out, or set parallel.strategy=fsdp");
    ls_experiment_release(&x);
    config_test_refuses(M "fp16: {initial_scale: 8}\n", NULL,
                        "2:23: fp16.initial_scale is for precision=fp16, not for fp32; leave it out, or set "
                        "precision=fp16");
    CHECK_STATUS(config_test_load(&x, M, meant, &err), LS_OK, &err);
    ls_experiment_release(&x);
    CHECK_STATUS(config_test_load(&x, M, usual, &err), LS_OK, &err);
    ls_experiment_release(&x);
    CHECK_STATUS(config_test_load(&x,
                                  M "precision: fp16\nfp16: {initial_scale: 8}\n"
                                    "parallel: {strategy: fsdp, prefetch: 2}\n",
                                  later, &err),
                 LS_OK, &err);
    ls_experiment_release(&x);
    CHECK_STATUS(config_test_load(&x, M "parallel: {strategy: hybrid, shard_group: 2}\n", later, &err), LS_OK,
                 &err);
    ls_experiment_release(&x);
}

/* `key=` of a script whose variable is not set would otherwise be the default, without a word. */
static void values_are_not_forgotten(void)
{
    static const char *const texts[] = {"data.path=", "data.test_images=", "memory.limit=", "name=", NULL};
    static const char *const said[] = {"optimizer.lr=null", "parallel.strategy=~", NULL};
    ls_experiment x;
    ls_err err = {0};

    config_test_refuses(M, "parallel.strategy=",
                        "parallel.strategy=: the value is missing; it takes one of: ddp zero1 fsdp hybrid "
                        "(null: the default)");
    config_test_refuses(M, "optimizer.lr=  # none",
                        "optimizer.lr=  # none: the value is missing; it takes a number from 0 to 1e+06 "
                        "(null: the default)");
    config_test_refuses(M, "reproducible=",
                        "reproducible=: the value is missing; it takes true or false (null: the default)");
    config_test_refuses(M, "train.validate_every=",
                        "train.validate_every=: the value is missing; it takes 1ep, 500st, 10000sa, 10min or "
                        "none (null: the default)");
    config_test_refuses(
        M, "device=", "device=: the value is missing; it takes a text, such as \"cpu\" (null: the default)");
    config_test_refuses(
        M, "model.trial=", "model.trial=: the value is missing; `lockstep info` lists the models");
    config_test_refuses(
        M, "parallel=", "parallel=: \"parallel\" is a group of settings, such as \"parallel.accumulate\"");
    CHECK_STATUS(config_test_load(&x, M "data: {path: a, test_images: b}\n", texts, &err), LS_OK, &err);
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.path"), "");
    CHECK_EQ_STR(ls_config_text(x.cfg, "data.test_images"), "");
    CHECK_EQ_STR(ls_config_text(x.cfg, "name"), "mnist");
    ls_experiment_release(&x);
    CHECK_STATUS(config_test_load(&x, M "parallel: {strategy: fsdp}\n", said, &err), LS_OK, &err);
    CHECK_EQ_STR(ls_config_choice(x.cfg, "parallel.strategy"), "ddp");
    ls_experiment_release(&x);
}

static void values_must_fit_their_kind(void)
{
    config_test_refuses(M "optimizer: {lr: fast}\n", NULL, "2:17: optimizer.lr: \"fast\" is no number");
    config_test_refuses(M "batch: {per_rank: 1.5}\n", NULL,
                        "2:19: batch.per_rank: \"1.5\" is no whole number");
    config_test_refuses(M "batch: {per_rank: 0}\n", NULL, "2:19: batch.per_rank: 0 is outside 1 to 1e+06");
    config_test_refuses(M "reproducible: yes\n", NULL,
                        "2:15: reproducible: \"yes\" is neither true nor false; write true");
    config_test_refuses(M "lr: {scale: cubic}\n", NULL,
                        "2:13: lr.scale: \"cubic\" is none of: none linear sqrt");
    config_test_refuses(
        M "train: {validate_every: 5}\n", NULL,
        "2:25: train.validate_every: \"5\" is no period; write 1ep, 500st, 10000sa, 10min (epochs, "
        "steps, samples, minutes) or none");
    config_test_refuses(M "train: {validate_every: 0ep}\n", NULL,
                        "2:25: train.validate_every: 0ep is no positive length");
    config_test_refuses(M "train: {validate_every: 1.5st}\n", NULL,
                        "2:25: train.validate_every: 1.5st is no whole number");
    config_test_refuses(M "data: {train_range: '5:5'}\n", NULL,
                        "2:21: data.train_range: \"5:5\" is no range; write first:end, such as 0:50000");
    config_test_refuses(M "name: ../up\n", NULL, "2:7: name: \"../up\" cannot be the name of a folder");
    config_test_refuses(M "min_validation_period: {batches: few}\n", NULL,
                        "2:34: min_validation_period.batches: \"few\" is no number");
    config_test_refuses(M "searcher: {name: asha}\n", NULL,
                        "2:18: searcher.name: \"asha\": one experiment is one run; only \"single\" is known");
    config_test_refuses(
        M "optimizer: {name: adamw, form: tf}\n", NULL,
        "2:19: optimizer.name: adamw is adam with optimizer.form=adamw, but optimizer.form is "
        "tf; leave one of the two out");
    config_test_refuses(M, "seed=many", "seed=many: seed: \"many\" is no number");
    config_test_refuses(M, "seed", "\"seed\": settings are written key=value");
}

static void shape_must_fit(void)
{
    config_test_refuses(M "optimizer: sgd\n", NULL,
                        "2:1: \"optimizer\" is a group of settings; did you mean \"optimizer.name\"?");
    config_test_refuses(M "parallel: 2\n", NULL,
                        "2:1: \"parallel\" is a group of settings, such as \"parallel.accumulate\"");
    config_test_refuses(M "seed: {a: 1}\n", NULL, "2:8: \"seed\" takes one value, not a group");
    config_test_refuses(M "seed: {}\n", NULL, "2:1: \"seed\" takes one value, not a group");
    config_test_refuses(M "seed: [1]\n", NULL, "2:7: \"seed\": a list where one value is expected");
    config_test_refuses("- a\n", NULL, "1:1: an experiment is a list of \"key: value\"");
    config_test_refuses(M "[a]: 1\n", NULL, "2:1: a key must be a name");
    config_test_refuses(M "---\n" M, NULL, "2:1: a second document; one is read");
    config_test_refuses(M "defaults: {a: b}\n", NULL, "2:11: \"defaults\" is a list of names of files");
    config_test_refuses(M "seed: 1\noptimizer: {lr: 1}\nseed: 2\n", NULL,
                        "4:1: key \"seed\" is there twice, first in line 2");
    config_test_refuses(M "train.steps: 1\nsearcher: {max_length: {batches: 2}}\n", NULL,
                        "3:25: key \"searcher.max_length.batches\" is there twice, first in line 2");
}

static void batch_is_said_once(void)
{
    config_test_refuses(M "batch: {per_rank: 8, global: 64}\n", NULL,
                        "2:22: \"batch.global\" and \"batch.per_rank\" exclude each other; set one");
    config_test_refuses(M "batch: {global: 100}\nparallel: {accumulate: 3}\n", NULL,
                        "2:17: batch.global: 100 samples cannot be shared by accumulate 3 x ranks 1");
    config_test_refuses(M "batch: {global: 100}\nranks: 101\n", NULL,
                        "2:17: batch.global: 100 samples cannot be shared by accumulate 1 x ranks 101");
}

static void yaml_must_be_plain(void)
{
    config_test_refuses(M "name: &a x\ndata: {path: *a}\n", NULL,
                        "3:14: \"*a\": aliases are not read; refer to a key with ${a.b}");
    config_test_refuses(
        M "seed: !!int 1\n", NULL,
        "2:7: \"tag:yaml.org,2002:int\": tags are not read; the key says what kind of value it has");
    config_test_refuses(M "name: \"a\\n\"\n", NULL, "2:7: a value with a control character or line end");
    config_test_refuses(M "name: \"a\\0b\"\n", NULL, "2:7: a value with a control character or line end");
    config_test_refuses(M "name: \"a\n", NULL,
                        "3:1: not YAML: found unexpected end of stream while scanning a quoted scalar");
    config_test_refuses(M "a: b: c\n", NULL, "2:5: not YAML: mapping values are not allowed in this context");
    config_test_refuses(M "name: \xff\n", NULL, " byte 28: invalid leading UTF-8 octet");
}

static void references_must_lead_somewhere(void)
{
    unsetenv("LS_TEST_UNSET");
    config_test_refuses(M "data: {path: '${env:LS_TEST_UNSET}/x'}\n", NULL,
                        "2:14: data.path: the environment variable LS_TEST_UNSET is not set");
    config_test_refuses(M "name: ${nam}\n", NULL, "2:7: name: refers to \"nam\", which is not set");
    config_test_refuses(M "name: ${data.path}\ndata: {path: '${name}'}\n", NULL,
                        "2:7: name refers to itself");
    config_test_refuses(M "name: ${seed\n", NULL, "2:7: name: \"${\" without \"}\"");
    setenv("LS_TEST_ODD", "a\033[1m", 1);
    config_test_refuses(M "name: ${env:LS_TEST_ODD}\n", NULL,
                        "2:7: name: the environment variable LS_TEST_ODD does not hold plain UTF-8 text");
}

static void bases_must_exist_and_end(void)
{
    ls_experiment x;
    ls_err err = {0};

    config_test_file("x.yaml", M);
    CHECK_STATUS(config_test_load(&x, "defaults: [none.yaml]\n", NULL, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "/x.yaml:1:12: defaults: /");
    CHECK_CONTAINS(err.text, "/none.yaml: No such file or directory");
    err = (ls_err){0};
    config_test_file("y.yaml", "defaults: [x.yaml]\n");
    CHECK_STATUS(config_test_load(&x, "defaults: [y.yaml]\n", NULL, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "/y.yaml:1:12: defaults: ");
    CHECK_CONTAINS(err.text, "/x.yaml: the file is based on itself");
    err = (ls_err){0};
    /* Every file reads the next one eight times: more than all the files there may be. */
    for (int i = 0; i < 8; i++) {
        char name[16], text[128];
        snprintf(name, sizeof name, "f%d.yaml", i);
        snprintf(text, sizeof text, "defaults: [f%d.yaml, f%d.yaml, f%d.yaml, f%d.yaml]\n", i + 1, i + 1,
                 i + 1, i + 1);
        config_test_file(name, i < 7 ? text : M);
    }
    CHECK_STATUS(config_test_load(&x, "defaults: [f0.yaml]\n", NULL, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "too many files based on files");
}

static void names_must_exist(void)
{
    static const struct {
        const char *name, *message;
    } cases[] = {
        {"fashon", "no experiment or model \"fashon\"; did you mean \"fashion\"?"},
        {"resnet17", "no experiment or model \"resnet17\"; did you mean \"resnet18\"?"},
        {"zzzzzzzzzzzz", "no experiment or model \"zzzzzzzzzzzz\"; `lockstep info` lists them"},
        {"", "no experiment or model \"\"; `lockstep info` lists them"},
        {"none.yaml", "none.yaml: no such file, here or among the experiments"},
        {"./none", "./none: No such file or directory"},
        {"/dev/zero", "/dev/zero: not a file"},
        {"/tmp/", "/tmp/: not a file"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_experiment x;
        ls_err err = {0};
        CHECK_STATUS(ls_experiment_load(&x, cases[i].name, NULL, 0, &err), LS_INVALID, &err);
        CHECK_EQ_STR(err.text, cases[i].message);
    }
}

/* `times` times `unit`, behind a first line that is fine. */
static char *repeated(const char *unit, size_t times)
{
    size_t n = strlen(unit);
    char *text = malloc(sizeof M + n * times);

    REQUIRE(text != NULL);
    memcpy(text, M, sizeof M);
    for (size_t i = 0; i < times; i++) memcpy(text + sizeof M - 1 + i * n, unit, n);
    text[sizeof M - 1 + n * times] = '\0';
    return text;
}

static void hostile_files_cost_little(void)
{
    static const struct {
        const char *unit;
        size_t times;
        const char *message;
    } cases[] = {
        {"x", 10 << 20, " larger than 1 MiB; no experiment is"},
        {"x", 1 << 19, "not YAML: could not find expected ':' while scanning a simple key"},
        {"a: {", 5000, "nested more than 32 deep"},
        {"name: ${", 100000, ""},
        {"name: ${a}", 100000, ""},
        {"{", 100000, ""},
        {"[", 100000, ""},
        {"? ", 100000, ""},
        {"- ", 100000, ""},
        {"a: [", 100000, "2:4: \"a\": a list where one value is expected"},
        {"&a ", 100000, ""},
        {"k: 1\n", 100000, "1001:1: more than 1000 keys"},
        {"\"", 100000, ""},
        {"#", 1000000, ""},
        {"a: '\n", 100000, ""},
    };
    size_t before = ls_mem_stats_now().live_bytes[LS_MEM_CLI];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = repeated(cases[i].unit, cases[i].times);
        ls_experiment x;
        ls_err err = {0};
        if (cases[i].unit[0] == '#')
            CHECK_OK(config_test_load(&x, text, NULL, &err), &err);
        else
            CHECK_STATUS(config_test_load(&x, text, NULL, &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, cases[i].message);
        ls_experiment_release(&x);
        CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_CLI], before);
        free(text);
    }
    CHECK(ls_mem_stats_now().peak_bytes < (size_t)16 << 20);
}

int main(void)
{
    config_test_begin();
    CHECK_RUN(unknown_keys_name_the_nearest);
    CHECK_RUN(names_of_others_lead_on);
    CHECK_RUN(settings_must_mean_something);
    CHECK_RUN(values_are_not_forgotten);
    CHECK_RUN(values_must_fit_their_kind);
    CHECK_RUN(shape_must_fit);
    CHECK_RUN(batch_is_said_once);
    CHECK_RUN(yaml_must_be_plain);
    CHECK_RUN(references_must_lead_somewhere);
    CHECK_RUN(bases_must_exist_and_end);
    CHECK_RUN(names_must_exist);
    CHECK_RUN(hostile_files_cost_little);
    config_test_end();
    return CHECK_DONE();
}
