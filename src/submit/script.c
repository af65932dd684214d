/* script.c: batch scripts: the parts that all have, and Slurm's.
 *
 * How a job ends is decided in one place, the script's shell.  It is told why the run has to stop (by Slurm
 * before the time limit, by us on --cancel, by scancel) and tells the ranks once: a second signal would end
 * them without a checkpoint.  scancel reaches the ranks itself, so that one is only noted. */
#include <string.h>

#include "submit/submit_internal.h"

int lsi_warning_s(const ls_submit_request *q)
{
    if (q->run_dir == NULL) return 0;
    return q->want.time_s == 0 || q->want.time_s / 4 > LS_SUBMIT_WARNING_S ? LS_SUBMIT_WARNING_S
           : q->want.time_s >= 4                                           ? (int)(q->want.time_s / 4)
                                                                           : 1;
}

void lsi_add_command(ls_text *out, const ls_submit_request *q)
{
    ls_text_add_quoted(out, q->program);
    for (int i = 0; i < q->n_words; i++) {
        ls_text_add(out, " ");
        ls_text_add_quoted(out, q->words[i]);
    }
    ls_text_add(out, " --threads %d", q->threads > 0 ? q->threads : 1);
    if (q->run_dir != NULL) ls_text_add(out, " \"$@\"");
    if (q->result != NULL) {
        ls_text_add(out, " >");
        ls_text_add_quoted(out, q->result);
    }
}

void lsi_add_resume(ls_text *out, const ls_submit_request *q)
{
    if (q->run_dir == NULL) return;
    ls_text_add(out, "run=");
    ls_text_add_quoted(out, q->run_dir);
    ls_text_add(out, "\nset -- --run-dir \"$run\"\n"
                     "# A later start goes on from the last checkpoint.\n"
                     "[ ! -e \"$run/config.yaml\" ] || set -- \"--resume=$run\"\n\n");
}

void lsi_add_setup(ls_text *out, const ls_submit_request *q)
{
    if (q->want.n_setup == 0) return;
    ls_text_add(out, "# Set-up, as given with --setup.\n");
    for (int i = 0; i < q->want.n_setup; i++) {
        ls_text_add(out, "{ %s\n} || { echo \"lockstep: this line of the set-up failed:\" ",
                    q->want.setup[i]);
        ls_text_add_quoted(out, q->want.setup[i]);
        ls_text_add(out, " >&2; exit 1; }\n");
    }
    ls_text_add(out, "\n");
}

void lsi_add_wait(ls_text *out)
{
    ls_text_add(
        out,
        "step=$!\n"
        "[ -z \"$why\" ] || tell\n\n"
        "# A signal interrupts the wait, not the ranks.\n"
        "while wait \"$step\"; kill -0 \"$step\" 2>/dev/null; do :; done\n"
        "wait \"$step\"\n"
        "code=$?\n"
        "# Ranks that were told before they listened had nothing to lose; other signals mean a lost rank.\n"
        "[ \"$code\" -ne 138 ] || [ -z \"$told\" ] || code=75\n"
        "[ \"$code\" -le 128 ] || code=4   # a rank was lost\n");
}

/* Its value in quotes, which Slurm reads as a shell does. */
static void add_option(ls_text *out, const char *option)
{
    const size_t n = strcspn(option, "=");

    ls_text_add(out, "#SBATCH %.*s", (int)n, option);
    if (option[n] == '=') ls_text_add(out, "='%s'", option + n + 1);
    ls_text_add(out, "\n");
}

static void add_head(ls_text *out, const ls_submit_request *q)
{
    char time[32];

    ls_text_add(out, "#SBATCH --job-name=%s\n", q->name);
    ls_text_add(out, "#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n#SBATCH --cpus-per-task=%d\n",
                q->nodes, q->ranks_per_node, q->threads > 0 ? q->threads : 1);
    if (q->want.time_s > 0)
        ls_text_add(out, "#SBATCH --time=%s\n", ls_submit_time_text(q->want.time_s, time));
    if (q->want.partition != NULL) ls_text_add(out, "#SBATCH --partition=%s\n", q->want.partition);
    if (q->want.account != NULL) ls_text_add(out, "#SBATCH --account=%s\n", q->want.account);
    if (q->want.qos != NULL) ls_text_add(out, "#SBATCH --qos=%s\n", q->want.qos);
    if (q->want.constraint != NULL) ls_text_add(out, "#SBATCH --constraint='%s'\n", q->want.constraint);
    if (q->want.mem != NULL) ls_text_add(out, "#SBATCH --mem=%s\n", q->want.mem);
    for (int i = 0; i < q->want.n_options; i++) add_option(out, q->want.options[i]);
    ls_text_add(out, "#SBATCH --chdir=");
    ls_text_add_quoted(out, q->folder);
    ls_text_add(out, "\n#SBATCH --output=");
    ls_text_add_quoted(out, q->log);
    ls_text_add(out, "\n#SBATCH --open-mode=append\n");
    if (lsi_warning_s(q) > 0) ls_text_add(out, "#SBATCH --signal=B:USR1@%d\n", lsi_warning_s(q));
    if (q->in_turn) ls_text_add(out, "#SBATCH --dependency=singleton\n");
    ls_text_add(out, "#SBATCH --%s\n\n", q->run_dir != NULL ? "requeue" : "no-requeue");
}

void lsi_add_stop(ls_text *out)
{
    ls_text_add(out,
                "why= step= told=\n"
                "# The ranks are told once: a second signal would end them without a checkpoint.\n"
                "tell() { [ -z \"$step\" ] || [ -n \"$told\" ] || { told=yes; kill -USR1 \"$step\"; }; }\n"
                "stop() { why=$1; tell; }\n");
}

void lsi_script_slurm(ls_text *out, const ls_submit_request *q)
{
    add_head(out, q);
    lsi_add_stop(out);
    ls_text_add(out, "trap 'stop limit' USR1    # from Slurm, before the time limit\n"
                     "trap 'stop cancel' USR2   # from `lockstep submit --cancel`\n"
                     "trap 'why=cancel' TERM    # from scancel, which tells the ranks itself\n\n");
    lsi_add_resume(out, q);
    lsi_add_setup(out, q);
    ls_text_add(
        out,
        "# Ranks meet by PMIx where Slurm has it, else by themselves, and then prove by a secret that they "
        "belong together.\n"
        "mpi=\n"
        "case $(srun --mpi=list 2>&1) in *pmix*) mpi=--mpi=pmix ;; esac\n"
        "# Barriers that end on each node by itself (seen in Slurm 22.05: `mixed`, its own choice) let a "
        "rank send to one that "
        "has not begun to listen.\n"
        "export SLURM_PMIX_FENCE=${SLURM_PMIX_FENCE:-ring}\n"
        "export LOCKSTEP_SECRET=${LOCKSTEP_SECRET:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')}\n"
        "srun $mpi --cpus-per-task=%d --kill-on-bad-exit=0 --wait=30 ",
        q->threads > 0 ? q->threads : 1);
    lsi_add_command(out, q);
    ls_text_add(out, " &\n");
    lsi_add_wait(out);
    if (q->run_dir != NULL)
        ls_text_add(out,
                    "\n# Stopped for time, with a checkpoint: once more into the queue, to resume.\n"
                    "[ \"$code\" -ne 75 ] || [ \"$why\" != limit ] || scontrol requeue \"$SLURM_JOB_ID\"\n");
    ls_text_add(out, "exit \"$code\"\n");
}

ls_status ls_submit_script(ls_text *out, const ls_submit_request *q, ls_submit_scheduler s, ls_err *err)
{
    ls_text_add(out, "#!/bin/bash\n# Written by `lockstep submit`: %d %s x %d %s.\n", q->nodes,
                q->nodes == 1 ? "node" : "nodes", q->ranks_per_node,
                q->ranks_per_node == 1 ? "rank" : "ranks");
    if (s == LS_SUBMIT_PBS)
        lsi_script_pbs(out, q);
    else
        lsi_script_slurm(out, q);
    return out->failed ? ls_fail(err, LS_NOMEM, "no memory") : LS_OK;
}
