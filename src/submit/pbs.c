/* pbs.c: the script for PBS (PBS Professional, OpenPBS).
 *
 * PBS gives no early warning of the time limit and lets users put no job of their own into the queue again.
 * So the script keeps the time itself, and a job that has stopped goes on when its script is submitted
 * again. */
#include <string.h>

#include "submit/submit_internal.h"

/* PBS writes 16gb for Slurm's 16G. */
static void add_mem(ls_text *out, const char *mem)
{
    const size_t n = strspn(mem, "0123456789");

    ls_text_add(out, ":mem=%.*s%cb", (int)n, mem, mem[n] == '\0' ? 'm' : (char)(mem[n] - 'A' + 'a'));
}

static void add_head(ls_text *out, const ls_submit_request *q, int threads)
{
    char time[32];
    const int64_t s = q->want.time_s;

    ls_text_add(
        out, "# After exit code 75 (time, qdel or a request): submit it again, and it goes on from its last "
             "checkpoint.\n");
    ls_text_add(out, "#PBS -N %s\n", q->name);
    ls_text_add(out, "#PBS -l select=%d:ncpus=%lld:mpiprocs=%d:ompthreads=%d", q->nodes,
                (long long)q->ranks_per_node * threads, q->ranks_per_node, threads);
    if (q->want.mem != NULL) add_mem(out, q->want.mem);
    ls_text_add(out, "\n");
    /* PBS knows hours, minutes and seconds. */
    if (s > 0) {
        ls_submit_time_text(s % 3600, time);
        ls_text_add(out, "#PBS -l walltime=%02lld%s\n", (long long)(s / 3600), time + 2);
    }
    if (q->want.partition != NULL) ls_text_add(out, "#PBS -q %s\n", q->want.partition);
    if (q->want.account != NULL) ls_text_add(out, "#PBS -A %s\n", q->want.account);
    ls_text_add(out, "#PBS -j oe\n#PBS -r y\n\n");
}

void lsi_script_pbs(ls_text *out, const ls_submit_request *q)
{
    const int threads = q->threads > 0 ? q->threads : 1;

    add_head(out, q, threads);
    ls_text_add(out, "cd -- ");
    ls_text_add_quoted(out, q->folder);
    ls_text_add(out, " || exit 1\n");
    ls_text_add(out, "# The log's folder: nobody has made it when the script is submitted by hand.\n"
                     "log=");
    ls_text_add_quoted(out, q->log);
    ls_text_add(out, "\nmkdir -p -- \"${log%%/*}\" || exit 1\nexec >>\"$log\" 2>&1\n\n");
    lsi_add_stop(out);
    ls_text_add(out, "trap 'stop limit' USR1\ntrap 'stop cancel' TERM   # from qdel\n");
    if (q->want.time_s > 0 && lsi_warning_s(q) > 0)
        ls_text_add(out,
                    "(sleep %lld && kill -USR1 $$) & clock=$!\ntrap 'kill \"$clock\" 2>/dev/null' EXIT\n",
                    (long long)(q->want.time_s - lsi_warning_s(q)));
    ls_text_add(out, "\n");
    lsi_add_resume(out, q);
    lsi_add_setup(out, q);
    ls_text_add(
        out,
        "# Open MPI 4 may see a rank end before it hears that the rank is done, and call that a failure.\n"
        "export OMPI_MCA_orte_allowed_exit_without_sync=1\n");
    ls_text_add(out, "mpirun -n %lld --hostfile \"$PBS_NODEFILE\" --map-by ppr:%d:node:pe=%d ",
                (long long)q->nodes * q->ranks_per_node, q->ranks_per_node, threads);
    lsi_add_command(out, q);
    ls_text_add(out, " &\n");
    lsi_add_wait(out);
    ls_text_add(out, "exit \"$code\"\n");
}
