/* Requests, what Slurm's commands print, and the texts of scripts: all without a Slurm. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "faults.h"
#include "submit/submit.h"

/* -- times and names --------------------------------------------------------------------------------------
 */

static void times(void)
{
    static const struct {
        const char *text;
        int64_t seconds; /* 0: refused */
        const char *again;
    } cases[] = {
        {"90", 5400, "01:30:00"},
        {"2:30", 150, "00:02:30"},
        {"1:00:00", 3600, "01:00:00"},
        {"2-0", 172800, "2-00:00:00"},
        {"1-12:30", 131400, "1-12:30:00"},
        {"1-02:03:04", 93784, "1-02:03:04"},
        {"", 0, NULL},
        {"0", 0, NULL},
        {"-5", 0, NULL},
        {"1-", 0, NULL},
        {"1:2:3:4", 0, NULL},
        {"1-2-3", 0, NULL},
        {"1:2-3", 0, NULL},
        {"10 ", 0, NULL},
        {"1h", 0, NULL},
        {"99999999999999999999", 0, NULL},
        {"999999-00:00:00", 0, NULL},
        {"1-1:1:1:1", 0, NULL},
    };
    char again[32];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t seconds = 0;
        ls_err err = {0};
        const ls_status st = ls_submit_time(cases[i].text, &seconds, &err);
        if (!CHECK_EQ_INT(st, cases[i].seconds > 0 ? LS_OK : LS_INVALID)) printf("  \"%s\"\n", cases[i].text);
        CHECK_EQ_INT(seconds, cases[i].seconds);
        if (st == LS_OK) CHECK_EQ_STR(ls_submit_time_text(seconds, again), cases[i].again);
    }
}

static const char *const words[] = {"train", "mnist", "a=b c'd$(x)`y`\"z\\"};

static ls_submit_request request(void)
{
    return (ls_submit_request){.name = "job",
                               .nodes = 2,
                               .ranks_per_node = 2,
                               .folder = "/home/a b",
                               .program = "/opt/lockstep",
                               .words = words,
                               .n_words = 3,
                               .run_dir = "/home/a b/run",
                               .log = "/home/a b/run/job.log"};
}

static void names_cannot_break_out(void)
{
    static const char *const bad[] = {"",    "a b",  "a\nb", "-x",  "a;b", "a$(b)", "#a",
                                      "a'b", "a\"b", "a/b",  "a=b", "a,b", "a\\b"};
    char long_name[100];
    ls_submit_request q = request();
    ls_err err = {0};

    CHECK_OK(ls_submit_check(&q, &err), &err);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        q = request(), q.name = bad[i];
        CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL);
        q = request(), q.want.partition = bad[i];
        CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL);
        q = request(), q.want.account = bad[i];
        CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL);
    }
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    q = request(), q.name = long_name;
    CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL);
    q = request(), q.run_dir = "/a/%j";
    CHECK_STATUS(ls_submit_check(&q, &err), LS_INVALID, NULL);
    CHECK_CONTAINS(err.text, "--run-dir");
    q = request(), q.folder = "/a\n#SBATCH --nodes=9";
    CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL);
    q = request(), q.log = "relative";
    CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL);
    q = request(), q.words = (const char *const[]){"a\nb"}, q.n_words = 1;
    CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL);
    q = request(), q.nodes = 1000000;
    CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL);
}

static void job_names(void)
{
    char name[LS_SUBMIT_NAME_MAX];

    ls_submit_job_name("my net/2", name, sizeof name);
    CHECK_EQ_STR(name, "my-net-2");
    ls_submit_job_name("", name, sizeof name);
    CHECK_EQ_STR(name, "lockstep");
    ls_submit_job_name("-x", name, sizeof name);
    CHECK_EQ_STR(name, "lockstep");
}

static void schedulers(void)
{
    ls_submit_scheduler s;
    ls_err err = {0};

    CHECK_OK(ls_submit_scheduler_of("pbs", &s, &err), &err);
    CHECK_EQ_INT(s, LS_SUBMIT_PBS);
    CHECK_STATUS(ls_submit_scheduler_of("lsf", &s, &err), LS_INVALID, NULL);
    CHECK_CONTAINS(err.text, "slurm or pbs");
}

/* -- scripts ----------------------------------------------------------------------------------------------
 */

static void slurm_script(void)
{
    ls_submit_request q = request();
    ls_text text = {0};
    const char *at;
    ls_err err = {0};

    q.want.time_s = 5400, q.want.partition = "long", q.want.account = "me", q.threads = 3;
    REQUIRE_OK(ls_submit_script(&text, &q, LS_SUBMIT_SLURM, &err), &err);
    CHECK_CONTAINS(text.data, "#!/bin/bash\n");
    CHECK_CONTAINS(text.data, "\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --cpus-per-task=3\n"
                              "#SBATCH --time=01:30:00\n#SBATCH --partition=long\n#SBATCH --account=me\n");
    CHECK_CONTAINS(text.data, "\n#SBATCH --chdir='/home/a b'\n#SBATCH --output='/home/a b/run/job.log'\n");
    CHECK_CONTAINS(text.data, "\n#SBATCH --signal=B:USR1@60\n#SBATCH --requeue\n");
    CHECK_CONTAINS(text.data, "/opt/lockstep train mnist 'a=b c'\"'\"'d$(x)`y`\"z\\' --threads 3 \"$@\" &\n");
    CHECK_CONTAINS(text.data, "scontrol requeue \"$SLURM_JOB_ID\"");
    /* Else MPI_Init of one rank may end before that of another has set up what it receives by. */
    at = strstr(text.data, "\nexport SLURM_PMIX_FENCE=${SLURM_PMIX_FENCE:-ring}\n");
    CHECK(at != NULL && strstr(at, "\nsrun ") != NULL);
    ls_text_release(&text);
}

/* What is passed on to Slurm, and the lines that run before the ranks. */
static void resources(void)
{
    static const char *const options[] = {"--gres=gpu:2", "--exclusive"}, *const setup[] = {
                                                                              "module load openmpi",
                                                                              "export A='b c'; ulimit -c 0"};
    ls_submit_request q = request();
    ls_text text = {0};
    const char *at;
    ls_err err = {0};

    q.want = (ls_submit_resources){.qos = "high",
                                   .constraint = "a100&[rack1|rack2]",
                                   .mem = "16G",
                                   .options = options,
                                   .n_options = 2,
                                   .setup = setup,
                                   .n_setup = 2};
    REQUIRE_OK(ls_submit_check(&q, &err), &err);
    REQUIRE_OK(ls_submit_script(&text, &q, LS_SUBMIT_SLURM, &err), &err);
    CHECK_CONTAINS(text.data,
                   "\n#SBATCH --qos=high\n#SBATCH --constraint='a100&[rack1|rack2]'\n#SBATCH --mem=16G\n"
                   "#SBATCH --gres='gpu:2'\n#SBATCH --exclusive\n");
    CHECK_CONTAINS(text.data,
                   "\n{ module load openmpi\n} || { echo \"lockstep: this line of the set-up failed:\" "
                   "'module load openmpi' >&2; exit 1; }\n{ export A='b c'; ulimit -c 0\n} || ");
    at = strstr(text.data, "module load");
    CHECK(at != NULL && strstr(at, "\nsrun ") != NULL); /* before the ranks */
    ls_text_release(&text);
}

static void resources_cannot_break_out(void)
{
    static const char *const bad_mem[] = {"", "G", "16GB", "1.5G", "-1", "16 G", "9999999999", "1G\n"},
                             *const bad_constraint[] = {"", "a b", "a'b", "a\nb", "-x", "$(x)", "a#b"},
                             *const bad_option[] = {"",
                                                    "gres=gpu:1",
                                                    "-G1",
                                                    "--",
                                                    "--Nodes=2",
                                                    "--gres='a",
                                                    "--comment=a\nb",
                                                    "--a b=1",
                                                    "--nodes=9",
                                                    "--signal=KILL@9",
                                                    "--out=x",
                                                    "--requeue",
                                                    "--comment=$(id)"},
                             *const bad_setup[] = {"", "a\nb", "module load x \\"};
    ls_submit_request q;

    for (size_t i = 0; i < sizeof bad_mem / sizeof bad_mem[0]; i++) {
        q = request(), q.want.mem = bad_mem[i];
        if (!CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL)) printf("  --mem %s\n", bad_mem[i]);
    }
    for (size_t i = 0; i < sizeof bad_constraint / sizeof bad_constraint[0]; i++) {
        q = request(), q.want.constraint = bad_constraint[i];
        if (!CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL)) printf("  %s\n", bad_constraint[i]);
    }
    for (size_t i = 0; i < sizeof bad_option / sizeof bad_option[0]; i++) {
        q = request(), q.want.options = &bad_option[i], q.want.n_options = 1;
        if (!CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL)) printf("  %s\n", bad_option[i]);
    }
    for (size_t i = 0; i < sizeof bad_setup / sizeof bad_setup[0]; i++) {
        q = request(), q.want.setup = &bad_setup[i], q.want.n_setup = 1;
        if (!CHECK_STATUS(ls_submit_check(&q, NULL), LS_INVALID, NULL)) printf("  %s\n", bad_setup[i]);
    }
}

/* The whole text: nobody here can run it. */
static void golden_pbs_script(void)
{
    static const char *const plain[] = {"train", "mnist"}, *const setup[] = {"module load openmpi"};
    static const char want[] =
        "#!/bin/bash\n"
        "# Written by `lockstep submit`: 2 nodes x 2 ranks.\n"
        "# After exit code 75 (time, qdel or a request): submit it again, and it goes on from its last "
        "checkpoint.\n"
        "#PBS -N job\n"
        "#PBS -l select=2:ncpus=4:mpiprocs=2:ompthreads=2:mem=16gb\n"
        "#PBS -l walltime=01:00:00\n"
        "#PBS -q long\n"
        "#PBS -j oe\n"
        "#PBS -r y\n"
        "\n"
        "cd -- /home/ada || exit 1\n"
        "# The log's folder: nobody has made it when the script is submitted by hand.\n"
        "log=/home/ada/runs/a/job.log\n"
        "mkdir -p -- \"${log%/*}\" || exit 1\n"
        "exec >>\"$log\" 2>&1\n"
        "\n"
        "why= step= told=\n"
        "# The ranks are told once: a second signal would end them without a checkpoint.\n"
        "tell() { [ -z \"$step\" ] || [ -n \"$told\" ] || { told=yes; kill -USR1 \"$step\"; }; }\n"
        "stop() { why=$1; tell; }\n"
        "trap 'stop limit' USR1\n"
        "trap 'stop cancel' TERM   # from qdel\n"
        "(sleep 3540 && kill -USR1 $$) & clock=$!\n"
        "trap 'kill \"$clock\" 2>/dev/null' EXIT\n"
        "\n"
        "run=/home/ada/runs/a\n"
        "set -- --run-dir \"$run\"\n"
        "# A later start goes on from the last checkpoint.\n"
        "[ ! -e \"$run/config.yaml\" ] || set -- \"--resume=$run\"\n"
        "\n"
        "# Set-up, as given with --setup.\n"
        "{ module load openmpi\n"
        "} || { echo \"lockstep: this line of the set-up failed:\" 'module load openmpi' >&2; exit 1; }\n"
        "\n"
        "# Open MPI 4 may see a rank end before it hears that the rank is done, and call that a failure.\n"
        "export OMPI_MCA_orte_allowed_exit_without_sync=1\n"
        "mpirun -n 4 --hostfile \"$PBS_NODEFILE\" --map-by ppr:2:node:pe=2 /opt/lockstep train mnist "
        "--threads 2 \"$@\" &\n"
        "step=$!\n"
        "[ -z \"$why\" ] || tell\n"
        "\n"
        "# A signal interrupts the wait, not the ranks.\n"
        "while wait \"$step\"; kill -0 \"$step\" 2>/dev/null; do :; done\n"
        "wait \"$step\"\n"
        "code=$?\n"
        "# Ranks that were told before they listened had nothing to lose; other signals mean a lost rank.\n"
        "[ \"$code\" -ne 138 ] || [ -z \"$told\" ] || code=75\n"
        "[ \"$code\" -le 128 ] || code=4   # a rank was lost\n"
        "exit \"$code\"\n";
    const ls_submit_request q = {
        .name = "job",
        .nodes = 2,
        .ranks_per_node = 2,
        .threads = 2,
        .want = {.partition = "long", .time_s = 3600, .mem = "16G", .setup = setup, .n_setup = 1},
        .folder = "/home/ada",
        .program = "/opt/lockstep",
        .words = plain,
        .n_words = 2,
        .run_dir = "/home/ada/runs/a",
        .log = "/home/ada/runs/a/job.log"};
    ls_text text = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_submit_script(&text, &q, LS_SUBMIT_PBS, &err), &err);
    CHECK_EQ_STR(text.data, want);
    ls_text_release(&text);
}

/* A warning as long as the job would come before its first step. */
static void warnings_of_short_jobs(void)
{
    static const struct {
        int64_t time_s;
        const char *line;
    } cases[] = {
        {0, "USR1@60\n"}, {3600, "USR1@60\n"}, {60, "USR1@15\n"}, {180, "USR1@45\n"}, {1, "USR1@1\n"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_submit_request q = request();
        ls_text text = {0};
        ls_err err = {0};
        q.want.time_s = cases[i].time_s;
        REQUIRE_OK(ls_submit_script(&text, &q, LS_SUBMIT_SLURM, &err), &err);
        CHECK_CONTAINS(text.data, cases[i].line);
        ls_text_release(&text);
    }
}

static void script_of_a_measurement(void)
{
    ls_submit_request q = request();
    ls_text text = {0};
    ls_err err = {0};

    q.run_dir = NULL, q.result = "/home/a b/point.json", q.in_turn = true;
    REQUIRE_OK(ls_submit_script(&text, &q, LS_SUBMIT_SLURM, &err), &err);
    CHECK_CONTAINS(text.data, "\n#SBATCH --dependency=singleton\n#SBATCH --no-requeue\n");
    CHECK_CONTAINS(text.data, " --threads 1 >'/home/a b/point.json' &\n");
    CHECK(strstr(text.data, "scontrol") == NULL && strstr(text.data, "--time") == NULL);
    CHECK(strstr(text.data, "--signal") == NULL); /* it has no checkpoint to write */
    ls_text_release(&text);
}

static void pbs_script(void)
{
    ls_submit_request q = request();
    ls_text text = {0};
    ls_err err = {0};

    q.want.time_s = 93784, q.want.partition = "long", q.threads = 4;
    REQUIRE_OK(ls_submit_script(&text, &q, LS_SUBMIT_PBS, &err), &err);
    CHECK_CONTAINS(text.data, "\n#PBS -N job\n#PBS -l select=2:ncpus=8:mpiprocs=2:ompthreads=4\n"
                              "#PBS -l walltime=26:03:04\n#PBS -q long\n");
    CHECK_CONTAINS(text.data, "\ncd -- '/home/a b' || exit 1\n");
    CHECK_CONTAINS(text.data, "sleep 93724 ");
    CHECK_CONTAINS(text.data, "mpirun -n 4 ");
    CHECK(strstr(text.data, "SBATCH") == NULL && strstr(text.data, "srun") == NULL);
    ls_text_release(&text);
}

/* -- the cluster ------------------------------------------------------------------------------------------
 */

static const char sinfo[] = "main*|up|4|2|1-00:00:00|1-infinite\n"
                            "big|up|6|16|infinite|1-infinite\n"
                            "big|up|2|64|infinite|1-infinite\n"
                            "small|up|8|4+|30:00|1-2\n"
                            "off|inact|8|4|30:00|1-2\n";

static ls_submit_cluster cluster;

static void partitions(void)
{
    ls_err err = {0};

    REQUIRE_OK(ls_submit_parse_cluster(&cluster, sinfo, &err), &err);
    CHECK_EQ_INT(cluster.n, 4);
    CHECK_EQ_STR(cluster.partitions[0].name, "main");
    CHECK(cluster.partitions[0].is_default && !cluster.partitions[1].is_default);
    CHECK_EQ_INT(cluster.partitions[0].time_s, 86400);
    CHECK_EQ_INT(cluster.partitions[1].nodes, 8);
    CHECK_EQ_INT(cluster.partitions[1].n_sizes, 2);
    CHECK(cluster.partitions[1].time_s == INT64_MAX && cluster.partitions[1].nodes_max == INT64_MAX);
    CHECK_EQ_INT(cluster.partitions[2].nodes_max, 2);
    CHECK_EQ_INT(cluster.partitions[2].sizes[0].cpus, 4);
    CHECK(!cluster.partitions[3].is_up);
}

static void partitions_that_are_none(void)
{
    static const char *const bad[] = {"",
                                      "\n\n",
                                      "main",
                                      "main*|up|4|2|infinite",
                                      "main*|up|4|2|infinite|1-infinite|more",
                                      "main*|up|-4|2|infinite|1-infinite",
                                      "main*|up|4|x|infinite|1-infinite",
                                      "main*|up|4|2|soon|1-infinite",
                                      "*|up|4|2|infinite|1-infinite",
                                      "main*|up|99999999999|2|infinite|1-infinite",
                                      "ma\tin|up|4|2|infinite|1-infinite"};
    ls_submit_cluster *c = &cluster;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ls_err err = {0};
        if (!CHECK_STATUS(ls_submit_parse_cluster(c, bad[i], &err), LS_FORMAT, NULL))
            printf("  %s\n", bad[i]);
        CHECK(err.text[0] != '\0');
    }
}

static void many_kinds_of_nodes(void)
{
    ls_text text = {0};
    ls_err err = {0};
    ls_submit_partition *p = &cluster.partitions[0];
    int64_t nodes = 0;

    for (int i = 0; i < 40; i++) ls_text_add(&text, "main*|up|1|%d|infinite|1-infinite\n", 100 - i);
    REQUIRE_OK(ls_submit_parse_cluster(&cluster, text.data, &err), &err);
    CHECK_EQ_INT(p->n_sizes, LS_SUBMIT_SIZES_MAX);
    for (int i = 0; i < p->n_sizes; i++) nodes += p->sizes[i].nodes;
    CHECK_EQ_INT(nodes, 40);
    CHECK_EQ_INT(p->sizes[LS_SUBMIT_SIZES_MAX - 1].cpus, 61); /* never more than there is */
    ls_text_release(&text);
}

/* The request with these numbers is refused with all three texts, or taken (`text` NULL). */
static void fits(const char *partition, int nodes, int ranks, int threads, int64_t time_s, const char *a,
                 const char *b)
{
    ls_submit_request q = request();
    ls_err err = {0};
    ls_status st;

    q.want.partition = partition, q.nodes = nodes, q.ranks_per_node = ranks, q.threads = threads,
    q.want.time_s = time_s;
    st = ls_submit_fit(&q, &cluster, &err);
    CHECK_STATUS(st, a == NULL ? LS_OK : LS_INVALID, &err);
    if (a != NULL) CHECK_CONTAINS(err.text, a);
    if (b != NULL) CHECK_CONTAINS(err.text, b);
}

static void what_fits(void)
{
    ls_submit_request q = request();
    ls_err err = {0};

    REQUIRE_OK(ls_submit_parse_cluster(&cluster, sinfo, &err), &err);
    fits(NULL, 4, 2, 1, 86400, NULL, NULL);
    fits(NULL, 64, 2, 1, 0, "partition \"main\" has 4 nodes", "big (8 nodes of 16 to 64 CPUs)");
    fits("small", 3, 1, 1, 0, "may have at most 2", NULL);
    fits(NULL, 1, 2, 2, 0, "2 ranks x 2 threads need 4 CPUs", "--threads");
    fits("big", 2, 4, 16, 0, NULL, NULL);
    fits("big", 3, 4, 16, 0, "need 64 CPUs", "with more than 16");
    fits(NULL, 1, 1, 1, 86401, "1-00:00:01 is above the limit of partition \"main\", 1-00:00:00", NULL);
    fits("gpu", 1, 1, 1, 0, "--partition gpu: there is none", "main (4 nodes of 2 CPUs), big (");
    fits("off", 1, 1, 1, 0, "takes no jobs", NULL);
    /* Without a number of threads a rank gets its share of the node. */
    q.want.partition = "big", q.nodes = 8;
    CHECK_OK(ls_submit_fit(&q, &cluster, &err), &err);
    CHECK_EQ_INT(q.threads, 8);
    REQUIRE_OK(ls_submit_parse_cluster(&cluster, "a|up|4|2|infinite|1-infinite\n", &err), &err);
    fits(NULL, 1, 1, 1, 0, "no default partition", "a (4 nodes of 2 CPUs)");
}

/* -- jobs -------------------------------------------------------------------------------------------------
 */

static void jobs(void)
{
    ls_submit_job job;
    ls_err err = {0};

    CHECK_OK(ls_submit_parse_job(
                 &job,
                 "JobId=17 JobName=mnist UserId=root(0) JobState=PENDING Reason=Resources Dependency=(null) "
                 "Requeue=1 Restarts=2 ExitCode=0:0 NodeList=(null) StdOut=/a b/job.log Power=\n",
                 &err),
             &err);
    CHECK_EQ_INT(job.phase, LS_JOB_WAITS);
    CHECK_EQ_STR(job.reason, "Resources");
    CHECK_EQ_STR(job.nodes, "");
    CHECK_EQ_STR(job.log, "/a b/job.log");
    CHECK_EQ_INT(job.restarts, 2);
    CHECK_OK(ls_submit_parse_job(&job,
                                 "JobId=17 JobState=RUNNING Reason=None ReqNodeList=(null) "
                                 "NodeList=node[1-2] ExitCode=0:0 StdOut=/x",
                                 &err),
             &err);
    CHECK_EQ_INT(job.phase, LS_JOB_RUNS);
    CHECK_EQ_STR(job.nodes, "node[1-2]");
    CHECK_EQ_STR(job.reason, "");
    CHECK_STATUS(ls_submit_parse_job(&job, "JobId=17 JobState=DANCING ExitCode=0:0", NULL), LS_FORMAT, NULL);
    CHECK_STATUS(ls_submit_parse_job(&job, "nothing", NULL), LS_FORMAT, NULL);
    CHECK_STATUS(ls_submit_parse_job(&job, "", NULL), LS_FORMAT, NULL);
    CHECK_STATUS(ls_submit_parse_job(&job, "JobState=FAILED ExitCode=x", NULL), LS_FORMAT, NULL);
}

static void ends(void)
{
    static const struct {
        const char *line;
        int code;
    } cases[] = {
        {"JobState=COMPLETED ExitCode=0:0", 0},   {"JobState=FAILED ExitCode=75:0", 75},
        {"JobState=CANCELLED ExitCode=75:0", 75}, {"JobState=CANCELLED ExitCode=0:15", 1},
        {"JobState=CANCELLED ExitCode=0:0", 1},   {"JobState=TIMEOUT ExitCode=0:0", 1},
        {"JobState=NODE_FAIL ExitCode=0:0", 4},   {"JobState=FAILED ExitCode=3:0", 3},
        {"JobState=FAILED ExitCode=137:0", 4},    {"JobState=OUT_OF_MEMORY ExitCode=0:125", 1},
        {"JobState=COMPLETED ExitCode=0:9", 1},
    };
    ls_submit_job job;
    ls_err err = {0};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_OK(ls_submit_parse_job(&job, cases[i].line, &err), &err);
        CHECK_EQ_INT(job.phase, LS_JOB_ENDED);
        if (!CHECK_EQ_INT(ls_submit_exit_code(&job), cases[i].code)) printf("  %s\n", cases[i].line);
    }
    CHECK_OK(ls_submit_parse_account(&job, "CANCELLED by 1000|75:0\n", &err), &err);
    CHECK_EQ_STR(job.state, "CANCELLED");
    CHECK_EQ_INT(ls_submit_exit_code(&job), 75);
    CHECK_STATUS(ls_submit_parse_account(&job, "COMPLETED", NULL), LS_FORMAT, NULL);
}

static void job_numbers(void)
{
    static const char *const bad[] = {"",   "x",  "1;2", "1 2",           "-1",
                                      "1_", "_1", "1_x", "1234567890123", "--all"};

    CHECK_OK(ls_submit_check_id("17", NULL), NULL);
    CHECK_OK(ls_submit_check_id("17_3", NULL), NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (!CHECK_STATUS(ls_submit_check_id(bad[i], NULL), LS_INVALID, NULL)) printf("  %s\n", bad[i]);
}

static ls_status write_script(void *arg, ls_err *err)
{
    const ls_submit_request q = request();
    ls_text text = {0};
    const ls_status st = ls_submit_script(&text, &q, *(ls_submit_scheduler *)arg, err);

    ls_text_release(&text);
    return st;
}

static void memory_ends(void)
{
    ls_submit_scheduler s = LS_SUBMIT_SLURM;

    check_faults("script for Slurm", write_script, &s);
    s = LS_SUBMIT_PBS;
    check_faults("script for PBS", write_script, &s);
}

int main(void)
{
    CHECK_RUN(times);
    CHECK_RUN(names_cannot_break_out);
    CHECK_RUN(job_names);
    CHECK_RUN(schedulers);
    CHECK_RUN(slurm_script);
    CHECK_RUN(resources);
    CHECK_RUN(resources_cannot_break_out);
    CHECK_RUN(golden_pbs_script);
    CHECK_RUN(warnings_of_short_jobs);
    CHECK_RUN(script_of_a_measurement);
    CHECK_RUN(pbs_script);
    CHECK_RUN(memory_ends);
    CHECK_RUN(partitions);
    CHECK_RUN(partitions_that_are_none);
    CHECK_RUN(many_kinds_of_nodes);
    CHECK_RUN(what_fits);
    CHECK_RUN(jobs);
    CHECK_RUN(ends);
    CHECK_RUN(job_numbers);
    return CHECK_DONE();
}
