/* settings.c: the trainer's settings: key, kind, default, range, help. */
#include "config/settings.h"

#define MANY 1e15 /* integers stay exact in a double */

/* clang-format off */
#define INT    ls_int_setting
#define REAL   ls_real_setting
#define BOOL   ls_bool_setting
#define CHOICE ls_choice_setting
#define TEXT   ls_text_setting
#define PERIOD ls_period_setting

const ls_setting ls_train_settings[] = {
    TEXT("name", "", "of the run and its folder; unless set, the model's"),
    TEXT("model.trial", "", "the model: a name that `lockstep info` lists, or the .so file of a plug-in"),
    TEXT("model.plugin_xxh3", "", "of a plug-in: the hash of its file, written into a run; a file of another hash is refused unless it is named by hand"),
    INT("ranks", 1, 1, 1e6, "processes that train together, as -n"),
    TEXT("device", "cpu", "what computes, as --device: cpu, cuda (a GPU for each rank), cuda:I (GPU number I), or ref (slow, the oracle of the tests)"),
    INT("max_restarts", 0, 0, 1e6, "how often a run that lost a rank starts again from its last checkpoint; where -n starts the ranks"),

    CHOICE("data.kind", "synthetic idx cifar npy hdf5 images", "what the samples are read from; synthetic: made up"),
    TEXT("data.path", "", "folder that the names of files below are relative to"),
    TEXT("data.train_images", "", "file of training samples; unless set, the usual name for the kind"),
    TEXT("data.train_labels", "", "file of training labels"),
    TEXT("data.test_images", "", "file of test samples, which are for validation as well where no others are"),
    TEXT("data.test_labels", "", "file of test labels"),
    TEXT("data.val_images", "", "file of validation samples, as data.train_images; unless set, the test samples, or what data.val_fraction or data.val_range say"),
    TEXT("data.val_labels", "", "file of validation labels"),
    TEXT("data.train_range", "", "training samples first:end (end not included); unless set, all"),
    TEXT("data.test_range", "", "test samples first:end (end not included); unless set, all"),
    TEXT("data.val_range", "", "validation samples first:end of data.val_images, or without that of the training samples' file"),
    REAL("data.val_fraction", 0, 0, 0.99, "share of the training samples that is held out for validation, chosen by a permutation of data.split_seed; 0: none"),
    REAL("data.split", 0, 0, 1, "share of the samples that train, chosen by a permutation; the others are for the test; 0: no split"),
    INT("data.split_seed", 1, 0, MANY, "of the permutation that splits"),
    TEXT("data.field", "", "hdf5: the model's input that the samples are for; unless set, image"),
    INT("data.points", 0, 0, 4294967295.0, "hdf5: so many points of each cloud, chosen anew in every epoch; 0: all"),
    TEXT("data.box", "", "hdf5: brings clouds to 0..1 by their least and greatest coordinate: LO:HI, or auto to look for them"),
    INT("data.workers", 1, 0, 1024, "threads that read and decode; 0: the training thread does"),
    INT("data.prefetch", 4, 1, 1024, "batches made ready ahead of the step"),
    CHOICE("data.on_error", "stop skip", "what a damaged sample does: it stops the run, or is named and left out"),
    INT("data.max_skipped", 100, 0, MANY, "with skip: more damaged samples than this in one epoch, of all ranks, stop the run"),
    CHOICE("data.normalise", "none mnist unit imagenet cifar", "of pixels; none: 0 to 1, mnist: less 0.1307, then divided by "
           "0.3081, unit: -1 to 1, imagenet and cifar: by each channel's mean and deviation"),
    CHOICE("data.layout", "classes unpaired", "images: a folder for each class, or trainA and trainB without labels"),
    INT("data.channels", 3, 1, 3, "images: 3, or 1 for grey"),
    INT("data.resize", 0, 0, 65536, "pixels of an image's shorter side, bicubic; 0: as it is"),
    INT("data.pad", 0, 0, 65536, "black pixels around an image before it is cropped"),
    INT("data.crop", 0, 0, 65536, "side of the square that is taken: in training at random, else from the middle; 0: all"),
    BOOL("data.flip", 0, "in training, left and right swapped in every second image, at random"),

    REAL("train.epochs", 1, 0, 1e9, "passes over the training samples; may be a part of one"),
    INT("train.steps", 0, 0, MANY, "steps; 0: as train.epochs says"),
    TEXT("train.init", "", "weights to start from: a run (its best checkpoint), a checkpoint, or a safetensors file with PyTorch's names"),
    TEXT("train.init_skip", "", "patterns of variables that keep their initial values, separated by commas: fc.* for a new head"),
    BOOL("train.init_strict", 1, "refuse weights that do not fit the model everywhere; false: what is missing keeps its initial values, with a warning"),
    TEXT("train.freeze", "", "patterns of parameters that are not trained, separated by commas: conv1.*,layer?.*"),
    PERIOD("train.validate_every", "1ep", "how often all validation samples are evaluated"),
    PERIOD("train.output_every", "10ep", "how often a validation writes the model's outputs (embeddings); at the end they are written unless this is none"),
    INT("train.output_stride", 1, 1, 1e9, "of every so many validation samples, the first one's outputs are written"),
    PERIOD("train.checkpoint_every", "1ep", "how often a checkpoint is written"),
    PERIOD("train.pause_after", "none", "stop after a checkpoint (exit code 75) when this process has trained so long"),
    PERIOD("train.report_every", "50st", "how often metrics are reported"),
    PERIOD("train.sample_every", "1ep", "how often the images of a trial are written, as PNG files in samples/ of the run directory and for TensorBoard"),
    INT("train.samples", 8, 1, 64, "test samples that such pictures show"),
    INT("train.early_stop", 0, 0, 1e9, "stop after so many validations without a better metric; 0: never"),
    TEXT("train.best_metric", "val/acc", "metric of the validation that says what is better: for the best checkpoint, train.early_stop and lr.schedule=plateau"),
    CHOICE("train.best_mode", "auto max min", "whether the best is the largest or the smallest; auto: by its name, the largest of acc, auc, f1, ..., the smallest of everything else"),
    INT("train.trace", 0, 0, 1e6, "of so many steps every rank writes a timeline, trace-RANK.json in the run directory"),
    CHOICE("train.recompute", "none unit auto", "activations that are dropped and computed again in the backward pass; unit: those of every unit of the model (blocks, layers), auto: of as few units as let the step fit memory.limit, the cheapest first; weights have the same bits"),
    CHOICE("train.on_nonfinite", "stop skip warn", "what a loss or a gradient that is infinite or not a number does; skip: the update is left out on all ranks, and counted; "
           "with fp16 and fp16.loss_scale=auto, updates are left out in any case until the scale is 1"),
    BOOL("train.check_gradients", 0, "looks at all gradients also with stop and warn, so that the first parameter, and the ranks, can be named; skip and fp16 always do"),
    INT("train.keep", 2, 1, 1e6, "newest checkpoints that are kept"),
    CHOICE("train.test_weights", "best last", "weights of the test at the end: those of the best checkpoint, where validations have chosen one, or the last"),
    INT("train.keep_best", 1, 0, 1e6, "best checkpoints that are kept beside them"),

    CHOICE("lr.scale", "none linear sqrt", "how the learning rate grows with the global batch over reference_batch"),
    INT("lr.reference_batch", 64, 1, 1e9, "global batch that optimizer.lr is meant for"),
    PERIOD("lr.warmup", "none", "time from the unscaled learning rate to the scaled one"),
    CHOICE("lr.warmup_kind", "linear constant", "linear: from the unscaled rate to the scaled one; constant: unscaled, then a jump"),
    CHOICE("lr.schedule", "constant step cosine linear plateau", "course of the learning rate after the warm-up"),
    PERIOD("lr.hold", "none", "cosine, linear: time from the start before the rate begins to fall"),
    PERIOD("lr.stair", "none", "cosine, linear: the rate falls in stairs of this length; none: a little with every step"),
    PERIOD("lr.step_every", "none", "step: time between two steps down"),
    REAL("lr.step_factor", 0.1, 0, 1, "step, plateau: factor of one step down"),
    REAL("lr.final", 0, 0, 1e6, "cosine, linear: learning rate at the end; plateau: smallest one"),
    INT("lr.patience", 10, 0, 1e9, "plateau: validations without a better metric before a step down"),

    TEXT("memory.limit", "", "most memory that a rank may take, such as 16GiB, of the device or the host: more is refused before anything is allocated, with what would fit; unless set, any"),
    INT("batch.global", 0, 0, 1e9, "samples of all ranks in one update, instead of batch.per_rank; 0: not set"),
    INT("parallel.accumulate", 1, 1, 1e6, "batches of every rank whose gradients are added up for one update"),
    REAL("parallel.bucket_mb", 8, 0.001, 4096, "gradients are exchanged in buckets of about so many MiB"),
    BOOL("parallel.overlap", 1, "exchange gradients while others are still being computed"),
    CHOICE("parallel.carry", "auto always never", "a step does not wait for sums that are on their way when its gradients are made: the next one makes the update, layer by layer "
           "as it needs the weights; the same bits; auto: where every rank has a machine of its own; always: also where ranks share one, each then with weights of its own; never: every step makes its update"),
    CHOICE("parallel.share", "auto always never", "ranks of a machine keep weights and optimiser state once, and each updates a piece (sgd, "
           "adam, rmsprop); never: every rank has its own, auto: from 1 MB of weights on"),
    CHOICE("parallel.wire", "fp32 bf16 fp16", "number format between machines; sums are made in fp32"),
    REAL("parallel.stall_s", 10, 0.1, 1e6, "seconds until a wait for a rank is reported, with what that rank did last"),
    REAL("parallel.stall_limit", 6, 0, 1e6, "a run in which no rank gets on for so many times parallel.stall_s ends itself, as if a rank were "
         "lost; 0: never"),
    PERIOD("parallel.verify_every", "500st", "how often ranks compare their weights"),
    REAL("parallel.clip_norm", 0, 0, 1e30, "largest norm of all gradients of an optimiser together; larger ones are "
         "scaled down; 0: any"),
    BOOL("parallel.sync_batchnorm", 0, "batch norms take their statistics over all ranks; not with reproducible, whose shards have their own"),
    INT("parallel.shards", 8, 1, 65536, "with reproducible: parts of an update that are computed each by itself; "
        "at least as many as ranks"),
    CHOICE("parallel.strategy", "ddp zero1 fsdp hybrid", "what ranks keep of a model; ddp: each has all of it; zero1: weights, and a piece of what optimisers "
           "remember; fsdp: a piece of everything, weights are gathered where they are used; hybrid: fsdp in groups of parallel.shard_group"),
    CHOICE("parallel.reshard", "auto always never", "fsdp, hybrid: gathered weights are freed after the forward pass and gathered again for the gradients; "
           "auto: all but those that are needed first, or none where that fits memory.limit; never: they are kept"),
    TEXT("parallel.prefetch", "auto", "fsdp, hybrid: units of weights that are gathered ahead of the one in use; auto: as many as hide most of it, by the plan, the wire and the processor, within memory.limit"),
    INT("parallel.shard_group", 0, 0, 1e6, "hybrid: ranks that have one model between them, neighbours on one machine; 0: those of a machine"),
    CHOICE("precision", "fp32 tf32 bf16 fp16", "of arithmetic; tf32: products round their operands to 19 bits, on devices that can (cuda); bf16, fp16: products and what lies between them in 16 bits, weights, statistics, losses and sums in fp32"),
    TEXT("fp16.loss_scale", "auto", "with precision=fp16: losses are multiplied by it before gradients are made; auto: halved after an overflow, whose update is left out, and doubled after fp16.growth_interval good steps in a row"),
    REAL("fp16.initial_scale", 65536, 1, 16777216, "auto: the loss scale at the beginning"),
    INT("fp16.growth_interval", 2000, 1, 1e9, "auto: good steps in a row before the loss scale is doubled"),
    BOOL("reproducible", 0, "the same bits for any number of ranks and threads"),
    ls_settings_end,
};
/* clang-format on */
