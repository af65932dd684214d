/* Every way of starting is told from the environment, and what cannot be true together is refused with the
 * values. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "launch/launch.h"

/* An environment as "NAME=value" words. */
static const char *get(void *ctx, const char *name)
{
    const char *const *words = ctx;
    const size_t n = strlen(name);

    for (; *words != NULL; words++)
        if (strncmp(*words, name, n) == 0 && (*words)[n] == '=') return *words + n + 1;
    return NULL;
}

#define ENV(...) ((const char *[]){__VA_ARGS__, NULL})
#define NOTHING  ((const char *[]){NULL})

static ls_start start;

static ls_status detect(const char **env, ls_launch_options o, ls_err *err)
{
    return ls_launch_detect(&start, &o, get, env, err);
}

static void finds(const char **env, ls_launch_options o, ls_start_kind kind, const char *how)
{
    ls_err err = {0};

    CHECK_OK(detect(env, o, &err), &err);
    CHECK_EQ_INT(start.kind, kind);
    CHECK_EQ_STR(start.place.how, how);
}

static void is_place(int rank, int size, int local_rank, int local_size, int node, int nodes)
{
    CHECK_EQ_INT(start.place.rank, rank);
    CHECK_EQ_INT(start.place.size, size);
    CHECK_EQ_INT(start.place.local_rank, local_rank);
    CHECK_EQ_INT(start.place.local_size, local_size);
    CHECK_EQ_INT(start.place.node, node);
    CHECK_EQ_INT(start.place.nodes, nodes);
}

static void refuses(const char **env, ls_launch_options o, const char *first, const char *second)
{
    ls_err err = {0};

    CHECK_STATUS(detect(env, o, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, first);
    CHECK_CONTAINS(err.text, second);
}

#define O(...) ((ls_launch_options){__VA_ARGS__})
#define NO     ((ls_launch_options){0})

static void alone_and_local(void)
{
    finds(NOTHING, NO, LS_START_ALONE, "alone");
    is_place(0, 1, 0, 1, 0, 1);
    finds(NOTHING, O(.ranks = 1), LS_START_ALONE, "alone");
    finds(NOTHING, O(.ranks = 4), LS_START_LOCAL, "-n");
    is_place(0, 4, 0, 4, 0, 1);
    /* The setting counts where the command line says nothing. */
    finds(NOTHING, O(.total = 4), LS_START_LOCAL, "-n");
    is_place(0, 4, 0, 4, 0, 1);
    finds(NOTHING, O(.ranks = 2, .total = 4), LS_START_LOCAL, "-n");
    is_place(0, 2, 0, 2, 0, 1);
    finds(NOTHING, O(.ranks = 1, .total = 4), LS_START_ALONE, "alone");
    /* Left over from other programs. */
    finds(ENV("MASTER_ADDR=h", "MASTER_PORT=1234"), O(.ranks = 2), LS_START_LOCAL, "-n");
    finds(ENV("WORLD_SIZE=8", "RANK=3"), O(.ranks = 2), LS_START_LOCAL, "-n");
    finds(ENV("WORLD_SIZE=1", "RANK=0", "LOCAL_RANK=0"), NO, LS_START_ALONE, "alone");
    finds(ENV("RANK=0"), NO, LS_START_ALONE, "alone");
    finds(ENV("MASTER_ADDR=h", "WORLD_SIZE=1", "NODE_RANK=0"), O(.ranks = 2), LS_START_LOCAL, "-n");
    finds(ENV("MASTER_ADDR=", "NODE_RANK="), O(.ranks = 2), LS_START_LOCAL, "-n");
    finds(NOTHING, O(.ranks = 2, .nodes = 1), LS_START_LOCAL, "-n");
}

/* Half of what torchrun says: one process of several that would train alone, in silence. */
static void half_an_environment_is_refused(void)
{
    refuses(ENV("WORLD_SIZE=2", "RANK=0"), O(.total = 1), "WORLD_SIZE=2 and RANK=0", "set MASTER_ADDR");
    refuses(ENV("WORLD_SIZE=2", "LOCAL_RANK=1"), O(.total = 1), "WORLD_SIZE=2 and LOCAL_RANK=1",
            "set MASTER_ADDR");
    refuses(ENV("NNODES=2", "NODE_RANK=0"), O(.total = 1), "NNODES=2 and NODE_RANK=0", "set MASTER_ADDR");
    refuses(ENV("WORLD_SIZE=1", "GROUP_WORLD_SIZE=3"), O(.total = 1), "GROUP_WORLD_SIZE=3", "not which");
    refuses(ENV("WORLD_SIZE=4"), O(.total = 1), "WORLD_SIZE=4", "set RANK");
    finds(ENV("WORLD_SIZE=4"), O(.total = 4), LS_START_LOCAL, "-n");
    refuses(ENV("MASTER_ADDR=h", "RANK=1"), O(.total = 1), "RANK=1", "set WORLD_SIZE");
}

static void under_mpirun(void)
{
    const char **open_mpi = ENV("OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=8",
                                "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=4");

    finds(open_mpi, NO, LS_START_RANK, "mpirun");
    is_place(5, 8, 1, 4, 0, 1);
    finds(open_mpi, O(.ranks = 8), LS_START_RANK, "mpirun");
    refuses(open_mpi, O(.ranks = 2), "-n 2", "8 ranks");
    refuses(open_mpi, O(.nodes = 2), "--nodes", "mpirun");
    finds(ENV("PMI_RANK=1", "PMI_SIZE=2"), NO, LS_START_RANK, "mpirun");
    is_place(1, 2, 0, 1, 0, 1);
    refuses(ENV("PMI_RANK=2", "PMI_SIZE=2"), NO, "PMI_RANK=2", "PMI_SIZE=2");
    refuses(ENV("PMI_RANK=x", "PMI_SIZE=2"), NO, "PMI_RANK=x", "whole number");
    /* A shell under `mpirun -n 1` may start ranks. */
    finds(ENV("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1"), O(.ranks = 2), LS_START_LOCAL, "-n");
    /* Scripts set these for other programs. */
    finds(ENV("PMI_RANK=1", "PMI_SIZE=2", "MASTER_ADDR=h", "WORLD_SIZE=2", "NODE_RANK=0"), NO, LS_START_RANK,
          "mpirun");
}

static void under_slurm(void)
{
    const char **task = ENV("SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=3", "SLURM_NTASKS=4",
                            "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_STEP_NUM_NODES=2");

    finds(task, NO, LS_START_RANK, "srun");
    is_place(3, 4, 1, 2, 1, 2);
    refuses(task, O(.ranks = 2), "-n 2", "srun started 4");
    /* The shells of salloc and sbatch are no ranks. */
    finds(ENV("SLURM_JOB_ID=7", "SLURM_NTASKS=4"), O(.ranks = 2), LS_START_LOCAL, "-n");
    finds(ENV("SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_PROCID=0", "SLURM_LOCALID=0"), NO, LS_START_ALONE,
          "alone");
    finds(ENV("SLURM_STEP_ID=4294967291", "SLURM_NTASKS=4", "SLURM_PROCID=0"), NO, LS_START_ALONE, "alone");
    finds(ENV("SLURM_STEP_ID=4294967290", "SLURM_NTASKS=4", "SLURM_PROCID=0"), NO, LS_START_ALONE, "alone");
    /* Nor is the shell of `srun --pty bash`, whatever the job's size. */
    finds(ENV("SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=4", "SLURM_PROCID=0"), O(.ranks = 4),
          LS_START_LOCAL, "-n");
    /* A step of its own size inside a larger job. */
    finds(ENV("SLURM_STEP_ID=2", "SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=8", "SLURM_PROCID=1"), NO,
          LS_START_RANK, "srun");
    CHECK_EQ_INT(start.place.size, 2);
    /* Without PMIx tasks meet on the first machine of the step. */
    finds(ENV("SLURM_JOB_ID=7", "SLURM_STEP_ID=1", "SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_LOCALID=1",
              "SLURM_NODEID=1", "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=n[007-008],x"),
          NO, LS_START_MACHINE, "srun");
    CHECK_EQ_STR(start.master, "n007");
    CHECK_EQ_INT(start.port, 20000 + 7 * 64 + 1);
    CHECK_EQ_INT(start.place.rank, 3);
    CHECK_EQ_INT(start.place.node, 3);
    CHECK_EQ_INT(start.place.nodes, 4);
    CHECK_EQ_INT(start.place.local_size, 1);
    finds(ENV("SLURM_JOB_ID=41234567", "SLURM_STEP_ID=1", "SLURM_PROCID=1", "SLURM_NTASKS=2",
              "SLURM_STEP_NODELIST=a,b"),
          NO, LS_START_MACHINE, "srun");
    CHECK(start.port >= 20000 && start.port < 40000);
    finds(
        ENV("SLURM_STEP_ID=1", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=a,b", "PMIX_RANK=1"),
        NO, LS_START_RANK, "srun");
}

static void machines_by_hand(void)
{
    finds(NOTHING, O(.ranks = 2, .nodes = 3, .node_rank = "1", .master = "h:99"), LS_START_MACHINE,
          "by hand");
    is_place(2, 6, 0, 2, 1, 3);
    CHECK_EQ_STR(start.master, "h");
    CHECK_EQ_INT(start.port, 99);
    finds(ENV("MASTER_ADDR=10.0.0.1", "NODE_RANK=0", "WORLD_SIZE=2"), NO, LS_START_MACHINE, "by hand");
    is_place(0, 2, 0, 1, 0, 2);
    CHECK_EQ_INT(start.port, LS_MASTER_PORT);
    finds(ENV("MASTER_ADDR=h", "MASTER_PORT=7", "NODE_RANK=1", "NNODES=2"), O(.ranks = 4), LS_START_MACHINE,
          "by hand");
    is_place(4, 8, 0, 4, 1, 2);
    CHECK_EQ_INT(start.port, 7);
    finds(ENV("MASTER_ADDR=h", "NODE_RANK=1", "NNODES=2"), O(.total = 4), LS_START_MACHINE, "by hand");
    is_place(2, 4, 0, 2, 1, 2);
    /* Options prevail over variables. */
    finds(ENV("MASTER_ADDR=h", "NODE_RANK=1", "NNODES=2"),
          O(.nodes = 4, .node_rank = "3", .master = "[::1]:5"), LS_START_MACHINE, "by hand");
    is_place(3, 4, 0, 1, 3, 4);
    CHECK_EQ_STR(start.master, "::1");
    CHECK_EQ_INT(start.port, 5);
    finds(NOTHING, O(.nodes = 2, .node_rank = "0", .master = "fe80::1"), LS_START_MACHINE, "by hand");
    CHECK_EQ_STR(start.master, "fe80::1");
    /* torchrun's own variables: every process is a rank. */
    finds(ENV("MASTER_ADDR=h", "RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=1",
              "GROUP_WORLD_SIZE=2"),
          NO, LS_START_MACHINE, "by hand");
    is_place(3, 4, 1, 1, 3, 4);
    CHECK_EQ_INT(start.n_beside, 1);
    finds(ENV("MASTER_ADDR=h", "RANK=1", "WORLD_SIZE=2"), NO, LS_START_MACHINE, "by hand");
    is_place(1, 2, 0, 1, 1, 2);
}

static void two_meanings_of_world_size(void)
{
    const char **two = ENV("MASTER_ADDR=h", "NODE_RANK=1", "WORLD_SIZE=2");
    const char **four = ENV("MASTER_ADDR=h", "NODE_RANK=1", "WORLD_SIZE=4");

    /* As machines, since one machine alone needs no master. */
    finds(two, O(.ranks = 2), LS_START_MACHINE, "by hand");
    is_place(2, 4, 0, 2, 1, 2);
    CHECK_CONTAINS(start.note, "read as machines");
    /* As ranks, torchrun's meaning, and it says so. */
    finds(four, O(.ranks = 2), LS_START_MACHINE, "by hand");
    is_place(2, 4, 0, 2, 1, 2);
    CHECK_CONTAINS(start.note, "--nodes 4");
    /* Either, when --nodes decides. */
    finds(four, O(.ranks = 2, .nodes = 4), LS_START_MACHINE, "by hand");
    is_place(2, 8, 0, 2, 1, 4);
    CHECK_EQ_STR(start.note, "");
    finds(four, O(.nodes = 2), LS_START_MACHINE, "by hand");
    is_place(2, 4, 0, 2, 1, 2);
    finds(ENV("MASTER_ADDR=h", "NODE_RANK=1", "WORLD_SIZE=3"), O(.ranks = 2), LS_START_MACHINE, "by hand");
    is_place(2, 6, 0, 2, 1, 3);
    refuses(ENV("MASTER_ADDR=h", "NODE_RANK=1", "WORLD_SIZE=3"), O(.ranks = 2, .nodes = 2), "WORLD_SIZE=3",
            "2 x -n 2 = 4");
    refuses(ENV("MASTER_ADDR=h", "NODE_RANK=1", "WORLD_SIZE=3", "NNODES=2"), NO, "WORLD_SIZE=3", "NNODES 2");
    refuses(ENV("MASTER_ADDR=h", "NODE_RANK=3", "WORLD_SIZE=4"), O(.ranks = 2), "NODE_RANK 3", "--nodes 4");
}

static void what_is_missing_or_wrong(void)
{
    refuses(ENV("MASTER_ADDR=h", "NODE_RANK=1", "NNODES=2"), O(.total = 3), "ranks: 3", "NNODES 2");
    refuses(ENV("MASTER_ADDR=h", "WORLD_SIZE=2"), NO, "WORLD_SIZE says 2", "NODE_RANK");
    refuses(NOTHING, O(.nodes = 2), "--nodes says 2", "--node-rank");
    refuses(NOTHING, O(.nodes = 2, .node_rank = "one", .master = "h"), "--node-rank=one", "whole number");
    refuses(NOTHING, O(.nodes = 2, .node_rank = "0"), "--nodes says 2", "MASTER_ADDR");
    refuses(NOTHING, O(.nodes = 2, .node_rank = "2", .master = "h"), "--node-rank 2", "2 machines");
    refuses(ENV("MASTER_ADDR=h", "MASTER_PORT=70000", "NODE_RANK=0", "WORLD_SIZE=2"), NO, "MASTER_PORT",
            "65535");
    refuses(ENV("MASTER_ADDR=h", "MASTER_PORT=http", "NODE_RANK=0", "WORLD_SIZE=2"), NO, "MASTER_PORT=http",
            "whole number");
    refuses(NOTHING, O(.nodes = 2, .node_rank = "0", .master = "h:x"), "--master h:x", "port");
    refuses(NOTHING, O(.nodes = 2, .node_rank = "0", .master = ":1"), "--master :1", "HOST:PORT");
    refuses(ENV("MASTER_ADDR=h", "RANK=1", "LOCAL_RANK=0", "WORLD_SIZE=2"), O(.ranks = 4), "RANK=1", "-n 4");
    refuses(ENV("MASTER_ADDR=h", "NODE_RANK=-1", "WORLD_SIZE=2"), NO, "NODE_RANK=-1", "from 0");
    refuses(ENV("MASTER_ADDR=h", "NODE_RANK=0", "WORLD_SIZE=99999999999"), NO, "WORLD_SIZE=", "whole number");
}

int main(void)
{
    CHECK_RUN(alone_and_local);
    CHECK_RUN(half_an_environment_is_refused);
    CHECK_RUN(under_mpirun);
    CHECK_RUN(under_slurm);
    CHECK_RUN(machines_by_hand);
    CHECK_RUN(two_meanings_of_world_size);
    CHECK_RUN(what_is_missing_or_wrong);
    return CHECK_DONE();
}
