/* submit.h: runs as jobs of a batch system: the script, what the cluster can take, the job's way to its end.
 *
 * A request says what is to run and on how much of the cluster; from it come the text of a script (Slurm or
 * PBS) and, with what Slurm says of its partitions, a refusal before anything is submitted.  Nothing that a
 * user can write (names, paths, settings) reaches a script unquoted: names are checked against the few
 * characters they may have, words are quoted for the shell.
 *
 * Slurm is asked through its own commands (sinfo, sbatch, scontrol, sacct, scancel), and what they print is
 * read as bytes from outside.  All functions are for one thread. */
#ifndef LS_SUBMIT_SUBMIT_H
#define LS_SUBMIT_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "lockstep/status.h"

/* -- the request and its script --------------------------------------------------------------------------
 */

/* So long before its time limit a run is told to write its checkpoint; of short jobs it is a quarter of their
 * time, since Slurm is up to half a minute early. */
#define LS_SUBMIT_WARNING_S 60

/* What a job asks of the cluster beside its size; the same for all jobs of a study.  Texts are the caller's;
 * zero or NULL: not given. */
typedef struct ls_submit_resources {
    const char *partition; /* NULL: Slurm's default */
    const char *account, *qos, *constraint;
    const char *mem;            /* of a node: "16G" */
    int64_t time_s;             /* 0: the partition's own */
    const char *const *options; /* of sbatch as they are, such as "--gres=gpu:1" */
    int n_options;
    const char *const *setup; /* lines of shell that run before the ranks start: "module load openmpi" */
    int n_setup;
} ls_submit_resources;

/* One job.  A job that trains has a run directory, and all that follows from it: it is warned before its time
 * is over, writes a checkpoint, is put into the queue again and resumes. */
typedef struct ls_submit_request {
    const char *name; /* of the job */
    int nodes, ranks_per_node;
    int threads; /* per rank; 0: a node's CPUs shared out, where they are known, else 1 */
    ls_submit_resources want;
    const char *folder;       /* where the job works; whole path */
    const char *program;      /* of Lockstep; whole path */
    const char *const *words; /* what follows it: "train", "mnist", "optimizer.lr=0.1" */
    int n_words;
    const char *run_dir; /* of training, whole path: the first start makes it, each later one resumes */
    const char *result;  /* where standard output of the ranks goes; NULL: into the log */
    const char *log;     /* whole path of the job's output; its folder must be there before Slurm starts it */
    bool in_turn; /* jobs of this name run one after another, in the order in which they were submitted */
} ls_submit_request;

typedef enum ls_submit_scheduler { LS_SUBMIT_SLURM, LS_SUBMIT_PBS } ls_submit_scheduler;

/* "slurm" or "pbs". */
ls_status ls_submit_scheduler_of(const char *name, ls_submit_scheduler *out, ls_err *err) LS_MUST_CHECK;

/* A time as Slurm writes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
 * days-hours:minutes or days-hours:minutes:seconds. */
ls_status ls_submit_time(const char *text, int64_t *seconds, ls_err *err) LS_MUST_CHECK;
/* "1-02:30:00" or "02:30:00" into `buf` (at least 32 bytes); returns buf. */
const char *ls_submit_time_text(int64_t seconds, char *buf);

/* What is wrong with the request itself, whatever the cluster is like. */
ls_status ls_submit_check(const ls_submit_request *q, ls_err *err) LS_MUST_CHECK;
/* A name from `from` that is fit for a job: characters that are not become '-'. */
void ls_submit_job_name(const char *from, char *name, size_t size);
/* Adds the whole script.  `q` has passed ls_submit_check. */
ls_status ls_submit_script(ls_text *out, const ls_submit_request *q, ls_submit_scheduler s,
                           ls_err *err) LS_MUST_CHECK;

/* -- what the cluster can take ---------------------------------------------------------------------------
 */

enum { LS_SUBMIT_NAME_MAX = 64, LS_SUBMIT_PARTITIONS_MAX = 256, LS_SUBMIT_SIZES_MAX = 16 };

/* So many nodes of a partition have so many CPUs. */
typedef struct ls_submit_size {
    int64_t nodes, cpus;
} ls_submit_size;

typedef struct ls_submit_partition {
    char name[LS_SUBMIT_NAME_MAX];
    bool is_default, is_up;
    int64_t nodes;     /* in all */
    int64_t nodes_max; /* of one job; INT64_MAX: no limit */
    int64_t time_s;    /* limit; INT64_MAX: none */
    int n_sizes;       /* of more kinds of nodes than fit, the smallest CPU count of the rest is kept */
    ls_submit_size sizes[LS_SUBMIT_SIZES_MAX];
} ls_submit_partition;

typedef struct ls_submit_cluster {
    int n;
    ls_submit_partition partitions[LS_SUBMIT_PARTITIONS_MAX];
} ls_submit_cluster;

/* What `sinfo` is told to print, one line per partition and kind of node, and the reading of it: LS_FORMAT
 * where it is something else.  */
#define LS_SUBMIT_SINFO_FORMAT "%P|%a|%D|%c|%l|%s"
ls_status ls_submit_parse_cluster(ls_submit_cluster *out, const char *text, ls_err *err) LS_MUST_CHECK;

/* The partition of that name, the default one for NULL; LS_INVALID with those there are when there is none.
 */
ls_status ls_submit_partition_of(const ls_submit_partition **out, const char *name,
                                 const ls_submit_cluster *c, ls_err *err) LS_MUST_CHECK;
/* The CPUs that each of `nodes` nodes has at least, where the largest are taken; 0: there are not so many. */
int64_t ls_submit_cpus(const ls_submit_partition *p, int64_t nodes);

/* LS_INVALID with the reason and a remedy when the cluster cannot ever run it; fills q->threads where it is
 * 0. */
ls_status ls_submit_fit(ls_submit_request *q, const ls_submit_cluster *c, ls_err *err) LS_MUST_CHECK;

/* -- jobs ------------------------------------------------------------------------------------------------
 */

typedef enum ls_submit_phase { LS_JOB_WAITS, LS_JOB_RUNS, LS_JOB_ENDED } ls_submit_phase;

typedef struct ls_submit_job {
    ls_submit_phase phase;
    char state[32];   /* Slurm's word: PENDING, RUNNING, COMPLETED, ... */
    char reason[128]; /* why it waits */
    char nodes[256];  /* where it runs, such as node[1-2] */
    char log[4096];   /* its output; "" where Slurm does not say */
    int restarts;
    int code, signal; /* of the script, once it has ended */
} ls_submit_job;

/* One line of `scontrol show job --oneliner`. */
ls_status ls_submit_parse_job(ls_submit_job *out, const char *line, ls_err *err) LS_MUST_CHECK;
/* The first line of `sacct --format=State,ExitCode --parsable2`, which has less to say. */
ls_status ls_submit_parse_account(ls_submit_job *out, const char *line, ls_err *err) LS_MUST_CHECK;
/* The exit code of ours (docs/cli.md) that the end of a job means. */
int ls_submit_exit_code(const ls_submit_job *job);

enum { LS_SUBMIT_ID_MAX = 32 };
/* LS_INVALID unless `id` is a number, or number_number for one task of an array. */
ls_status ls_submit_check_id(const char *id, ls_err *err) LS_MUST_CHECK;

/* The running Slurm.  LS_INVALID: it is not on this machine; LS_IO: it answers with an error, which the
 * text holds; LS_TIMEOUT: it does not answer. */
ls_status ls_slurm_cluster(ls_submit_cluster *out, ls_err *err) LS_MUST_CHECK;
ls_status ls_slurm_submit(const char *script, char id[LS_SUBMIT_ID_MAX], ls_err *err) LS_MUST_CHECK;
ls_status ls_slurm_job(ls_submit_job *out, const char *id, ls_err *err) LS_MUST_CHECK;
/* Asks a running job for a checkpoint and its end (exit code 75); one that waits is taken out of the queue at
 * once, as is a running one with `now`.  *job is what it was before. */
ls_status ls_slurm_cancel(const char *id, bool now, ls_submit_job *job, ls_err *err) LS_MUST_CHECK;

/* Who is told of a job's way. */
typedef struct ls_submit_watcher {
    void (*state)(void *ctx, const ls_submit_job *job);     /* it is new or has changed; may be NULL */
    void (*output)(void *ctx, const char *bytes, size_t n); /* the log has grown by this; NULL: not read */
    void *ctx;
    int stop_fd; /* readable: leave the job alone and return */
} ls_submit_watcher;

/* Watches a job until it has ended (*job is its end) or the watcher wants to stop (*job is the last that was
 * seen).  `log` NULL: what Slurm says. */
ls_status ls_slurm_follow(const char *id, const char *log, const ls_submit_watcher *w, ls_submit_job *job,
                          ls_err *err) LS_MUST_CHECK;

#endif
