/* stop.c: requests to stop, as signals, and the one word of state they are kept in.
 *
 * A rank must not count a request twice: a scheduler may signal the launcher, which passes it on, and the
 * ranks as well.  So the launcher says with each signal what it means (sigqueue carries a number), and a
 * signal from anybody else asks once for a checkpoint and an end, however often it comes. */
#include <unistd.h>

#include "launch/launch_internal.h"

/* Signal handlers reach nothing else: one of the stated exceptions from "no mutable globals". */
static volatile sig_atomic_t stop_requests;
static volatile sig_atomic_t is_rank;
static volatile sig_atomic_t launcher_pid;
static void (*last_call)(void);

const volatile sig_atomic_t *ls_launch_stop_requests(void)
{
    return &stop_requests;
}

static void end_now(int number)
{
    if (last_call != NULL) last_call();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    static const char first[] = "\nlockstep: stopping after a checkpoint; once more stops now\n";

    (void)context;
    if (is_rank) {
        const bool ours = info->si_code == SI_QUEUE && info->si_pid == (pid_t)launcher_pid;
        stop_requests = 1;
        if (ours && info->si_value.sival_int == LSI_STOP_NOW) end_now(number);
        return;
    }
    if (stop_requests == 1) {
        end_now(number);
        return;
    }
    stop_requests = 1;
    if (number == SIGINT && write(STDERR_FILENO, first, sizeof first - 1) < 0) return;
}

void ls_launch_watch_signals(void (*last)(void))
{
    struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};

    last_call = last;
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGUSR1, &a, NULL);
}

void lsi_signals_of_rank(pid_t launcher)
{
    is_rank = 1;
    launcher_pid = (sig_atomic_t)launcher;
}
