/* hints.c: names that people know from elsewhere, and how a name that is no setting is answered. */
#include "config/hints.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define WORD_MAX 128

/* -- names of others --------------------------------------------------------------------------------------
 * Those of PyTorch, Lightning, Hydra's examples, Keras, Horovod, Hugging Face and Determined; in small
 * letters, with '_' for '-'. */

#define MACHINES                                                                                             \
    "machines are joined by options: the same command on each with --nodes N --node-rank I --master "        \
    "HOST:PORT"
#define GPUS                                                                                                 \
    "the option --device cuda computes on NVIDIA's GPUs, one a rank: ranks=N (or -n N) starts N ranks on "   \
    "this machine"
#define HALF                                                                                                 \
    "precision=bf16 and precision=fp16 compute in 16 bits, and tf32 rounds products on a GPU; other types "  \
    "are not in this version"
#define FOLDER "the option --run-dir DIR says where a run's files go"
#define RESUME "`lockstep train --resume` goes on with the newest run, --resume=RUN with another"
#define ORDER  "training samples are always in a new random order; seed=N gives another one"

static const struct {
    const char *names, *key, *text; /* key or text */
} known[] = {
    {"lr learning_rate base_lr initial_lr init_lr lr0", "optimizer.lr", NULL},
    {"optimizer optimiser optim opt optimizer_name", "optimizer.name", NULL},
    {"weight_decay wd l2 decay", "optimizer.weight_decay", NULL},
    {"epsilon adam_epsilon", "optimizer.eps", NULL},
    {"adam_beta1 betas", "optimizer.beta1", NULL},
    {"adam_beta2 betas", "optimizer.beta2", NULL},
    {"batch_size batchsize batch bs train_batch_size per_device_train_batch_size per_gpu_batch_size "
     "micro_batch_size local_batch_size",
     "batch.per_rank", NULL},
    {"global_batch_size total_batch_size effective_batch_size", "batch.global", NULL},
    {"epoch epochs max_epochs num_epochs n_epochs nb_epoch nb_epochs num_train_epochs", "train.epochs", NULL},
    {"steps max_steps num_steps n_steps iterations iters max_iters max_iter total_steps num_iterations",
     "train.steps", NULL},
    {"num_workers workers n_workers dataloader_num_workers num_data_workers threads_per_loader",
     "data.workers", NULL},
    {"prefetch_factor prefetch_batches", "data.prefetch", NULL},
    {"data_dir data_path datadir dataset_path dataset_dir root data_root train_dir", "data.path", NULL},
    {"dataset dataset_name dataset_kind", "data.kind", NULL},
    {"horizontal_flip random_flip hflip fliplr", "data.flip", NULL},
    {"image_size img_size input_size resolution", "data.resize", NULL},
    {"crop_size random_crop", "data.crop", NULL},
    {"normalize normalization", "data.normalise", NULL},
    {"val_split validation_split val_ratio", "data.val_fraction", NULL},
    {"train_split", "data.split", NULL},
    {"accumulate_grad_batches gradient_accumulation_steps grad_accum accumulation_steps accum_steps "
     "backward_passes_per_step aggregation_frequency",
     "parallel.accumulate", NULL},
    {"gradient_clip_val gradient_clip_norm max_grad_norm grad_clip clip_grad clip_grad_norm clipnorm "
     "max_norm",
     "parallel.clip_norm", NULL},
    {"sync_bn syncbn sync_batch_norm", "parallel.sync_batchnorm", NULL},
    {"strategy distributed_strategy distribute", "parallel.strategy", NULL},
    {"compression fp16_allreduce compress_gradients grad_compression", "parallel.wire", NULL},
    {"bucket_cap_mb fusion_threshold bucket_size", "parallel.bucket_mb", NULL},
    {"lr_scheduler scheduler lr_schedule lr_policy lr_scheduler_type", "lr.schedule", NULL},
    {"warmup warmup_steps warmup_epochs num_warmup_steps lr_warmup", "lr.warmup", NULL},
    {"step_size milestones lr_step", "lr.step_every", NULL},
    {"gamma lr_gamma lr_decay factor", "lr.step_factor", NULL},
    {"min_lr eta_min end_lr", "lr.final", NULL},
    {"early_stopping early_stopping_patience patience", "train.early_stop", NULL},
    {"monitor metric_for_best_model best_metric_name", "train.best_metric", NULL},
    {"mode greater_is_better", "train.best_mode", NULL},
    {"eval_every val_every val_check_interval check_val_every_n_epoch validation_freq eval_steps "
     "validate_interval",
     "train.validate_every", NULL},
    {"save_every save_steps save_freq save_interval checkpoint_freq checkpoint_interval",
     "train.checkpoint_every", NULL},
    {"log_every log_every_n_steps log_interval logging_steps print_freq log_freq", "train.report_every",
     NULL},
    {"save_top_k", "train.keep_best", NULL},
    {"save_total_limit keep_last max_to_keep", "train.keep", NULL},
    {"max_time time_limit max_minutes", "train.pause_after", NULL},
    {"pretrained init_from weights load_from load_weights finetune init_checkpoint", "train.init", NULL},
    {"freeze_layers frozen", "train.freeze", NULL},
    {"model arch net network model_name backbone architecture trial", "model.trial", NULL},
    {"num_classes n_classes nb_classes num_labels classes", "model.classes", NULL},
    {"random_seed random_state manual_seed seed_everything global_seed rng_seed", "seed", NULL},
    {"deterministic cudnn_deterministic reproducibility bitwise", "reproducible", NULL},
    {"dtype", "precision", NULL},
    {"devices num_devices nproc nproc_per_node np num_proc num_procs num_processes world_size n_ranks "
     "num_ranks slots_per_trial slots",
     "ranks", NULL},
    {"run_name experiment_name exp_name job_name", "name", NULL},
    {"gpus gpu ngpus num_gpus cuda use_cuda accelerator no_cuda", NULL, GPUS},
    {"amp use_amp fp16 bf16 half mixed_precision autocast tf32 native_amp", NULL, HALF},
    {"loss_scale", "fp16.loss_scale", NULL},
    {"init_scale initial_scale_power", "fp16.initial_scale", NULL},
    {"growth_interval loss_scale_window scale_window", "fp16.growth_interval", NULL},
    {"detect_anomaly check_nan skip_nonfinite terminate_on_nan", "train.on_nonfinite", NULL},
    {"nodes num_nodes nnodes n_nodes master_addr master_port rdzv_endpoint rdzv_backend hosts hostfile", NULL,
     MACHINES},
    {"output_dir out_dir save_dir log_dir logdir default_root_dir run_dir work_dir output checkpoint_dir",
     NULL, FOLDER},
    {"resume resume_from_checkpoint resume_from ckpt_path from_checkpoint", NULL, RESUME},
    {"shuffle", NULL, ORDER},
};

#define N_KNOWN (sizeof known / sizeof known[0])

/* -- finding ----------------------------------------------------------------------------------------------
 */

/* In small letters, with '_' for '-'; false: too long for any name. */
static bool normalise(const char *word, char buf[WORD_MAX])
{
    size_t n = strlen(word);

    if (n >= WORD_MAX) return false;
    for (size_t i = 0; i <= n; i++) buf[i] = word[i] == '-' ? '_' : (char)tolower((unsigned char)word[i]);
    return true;
}

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot != NULL ? dot + 1 : key;
}

/* Whether `word` is the `n` bytes at `name`, but for underscores: batchsize is batch_size. */
static bool is_alike(const char *name, size_t n, const char *word)
{
    size_t i = 0;

    for (;; i++, word++) {
        while (i < n && name[i] == '_') i++;
        while (*word == '_') word++;
        if (i >= n || *word == '\0' || name[i] != *word) return i >= n && *word == '\0';
    }
}

/* Whether `word` is one of the words of `list`. */
static bool is_listed(const char *list, const char *word)
{
    for (const char *at = list; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        if (is_alike(at, strcspn(at, " "), word)) return true;
    return false;
}

static void add_key(ls_hint *h, const char *key)
{
    for (int i = 0; i < h->n; i++)
        if (strcmp(h->keys[i], key) == 0) return;
    if (h->n < LS_HINT_KEYS) h->keys[h->n++] = key;
}

/* What the table knows of `word`, as far as the settings are there. */
static void look_up(ls_hint *h, const char *word, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < N_KNOWN; i++) {
        if (!is_listed(known[i].names, word)) continue;
        if (known[i].key == NULL) h->text = known[i].text;
        for (size_t k = 0; known[i].key != NULL && k < n; k++)
            if (strcmp(keys[k], known[i].key) == 0) add_key(h, keys[k]);
    }
}

/* Settings that end so: "epochs" is train.epochs. */
static void match_ends(ls_hint *h, const char *part, const char *const *keys, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(last_part(keys[k]), part) == 0) add_key(h, keys[k]);
}

#define KEYS_MAX 512

/* The setting whose last part is spelt most like that of `word`; with `group` > 0 only those of its group,
 * whose name has so many bytes. */
static const char *nearest_end(const char *word, size_t group, const char *const *keys, size_t n)
{
    const char *ends[KEYS_MAX] = {NULL}, *of[KEYS_MAX] = {NULL}, *near;
    size_t m = 0;

    for (size_t k = 0; k < n && m < KEYS_MAX; k++) {
        if (group > 0 && strncmp(keys[k], word, group + 1) != 0) continue;
        of[m] = keys[k];
        ends[m++] = last_part(keys[k]);
    }
    near = ls_text_nearest(last_part(word), ends, m);
    for (size_t i = 0; near != NULL && i < m; i++)
        if (ends[i] == near) return of[i];
    return NULL;
}

/* The setting that is spelt most like it: in its group, in a group of another spelling, or in its last part.
 */
static const char *nearest_key(const char *word, const char *const *keys, size_t n)
{
    const char *others[KEYS_MAX] = {NULL}, *near = NULL;
    size_t group = strcspn(word, "."), m = 0;

    if (word[group] == '\0') group = 0;
    if (group > 0) near = nearest_end(word, group, keys, n);
    if (near != NULL) return near;
    for (size_t k = 0; k < n && m < KEYS_MAX; k++)
        if (group == 0 || strncmp(keys[k], word, group + 1) != 0) others[m++] = keys[k];
    near = ls_text_nearest(word, others, m);
    return near != NULL || strlen(last_part(word)) < 5 ? near : nearest_end(word, 0, keys, n);
}

ls_hint ls_hint_find(const char *given, const char *const *keys, size_t n)
{
    ls_hint h = {0};
    char word[WORD_MAX];

    if (!normalise(given, word)) return h;
    for (size_t k = 0; k < n; k++)
        if (strcmp(keys[k], word) == 0) add_key(&h, keys[k]);
    if (h.n == 0) look_up(&h, word, keys, n);
    if (h.n == 0 && h.text == NULL) look_up(&h, last_part(word), keys, n);
    if (h.text == NULL) match_ends(&h, last_part(word), keys, n);
    h.sure = h.n > 0 || h.text != NULL;
    const char *near = h.sure ? NULL : nearest_key(word, keys, n);
    if (near != NULL) add_key(&h, near);
    return h;
}

void ls_hint_write(const ls_hint *h, char *buf, size_t size)
{
    size_t at;

    buf[0] = '\0';
    if (h->text != NULL) snprintf(buf, size, "%s", h->text);
    if (h->text != NULL || h->n == 0) return;
    at = (size_t)snprintf(buf, size, "did you mean ");
    for (int i = 0; i < h->n && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s\"%s\"",
                               i == 0          ? ""
                               : i == h->n - 1 ? " or "
                                               : ", ",
                               h->keys[i]);
    if (at < size) snprintf(buf + at, size - at, "?");
}

/* -- values -----------------------------------------------------------------------------------------------
 */

static const struct {
    const char *key, *values, *text;
} known_values[] = {
    {"precision", "bfloat16 mixed bf16_mixed bf16_true", "write bf16"},
    {"precision", "float16 half 16 16_mixed fp16_mixed f16", "write fp16"},
    {"precision", "fp8 int8", HALF},
    {"precision", "32 float32 float 32_true single full", "write fp32"},
    {"precision", "64 float64 double fp64",
     "numbers of 64 bits are not in this version (--device ref computes in double)"},
    {"parallel.strategy", "zero zero_redundancy", "write zero1"},
    {"parallel.strategy", "zero2 zero3 fsdp2 fully_sharded full_shard deepspeed sharded", "write fsdp"},
    {"parallel.strategy", "hsdp hybrid_shard", "write hybrid, and parallel.shard_group"},
    {"parallel.strategy", "tensor pipeline tp pp",
     "it is not in this version; fsdp keeps a piece of the weights on each rank"},
    {"parallel.strategy", "dp data_parallel data horovod auto", "write ddp"},
    {"data.kind", "imagefolder image_folder folder folders image jpeg jpg png", "write images"},
    {"data.kind", "mnist fashion fashion_mnist emnist kmnist ubyte", "write idx"},
    {"data.kind", "cifar10 cifar100 cifar_10", "write cifar"},
    {"data.kind", "numpy npz np", "write npy"},
    {"data.kind", "h5 hdf", "write hdf5"},
    {"data.kind", "fake random dummy", "write synthetic"},
    {"data.kind", "csv tfrecord tfrecords webdataset lmdb parquet",
     "it is not in this version; convert it to npy, hdf5 or folders of images"},
    {"optimizer.name", "momentum", "write sgd, and optimizer.momentum=0.9"},
    {"optimizer.name", "nesterov", "write sgd, with optimizer.momentum=0.9 and optimizer.nesterov=true"},
    {"optimizer.name", "adagrad adadelta adamax nadam radam lion adafactor sophia shampoo lbfgs",
     "it is not in this version"},
    {"lr.schedule", "none fixed", "write constant"},
    {"lr.schedule", "steplr multistep multisteplr", "write step, and lr.step_every"},
    {"lr.schedule", "cosineannealing cosineannealinglr", "write cosine"},
    {"lr.schedule", "reducelronplateau reduce_on_plateau", "write plateau"},
    {"lr.schedule", "onecycle onecyclelr exponential polynomial poly", "it is not in this version"},
};

const char *ls_hint_value(const char *key, const char *value)
{
    char word[WORD_MAX];

    if (!normalise(value, word)) return NULL;
    for (size_t i = 0; i < sizeof known_values / sizeof known_values[0]; i++)
        if (strcmp(known_values[i].key, key) == 0 && is_listed(known_values[i].values, word))
            return known_values[i].text;
    return NULL;
}
