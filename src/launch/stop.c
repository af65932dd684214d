/* stop.c: requests to stop, as signals, and the one word of state they are kept in.
 *
 * A rank must not count a request twice: a scheduler may signal the launcher, which passes it on, and the
 * ranks as well.  So the launcher says with each signal what it means (sigqueue carries a number), and a
 * signal from anybody else asks once for a checkpoint and an end, however often it comes. */
#include <errno.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/launch_internal.h"

/* Signal handlers reach nothing else: one of the stated exceptions from "no mutable globals". */
static volatile sig_atomic_t stop_requests;
static volatile sig_atomic_t stop_number; /* the signal that asked */
static volatile sig_atomic_t is_rank;
static volatile sig_atomic_t is_watched; /* requests are kept, not obeyed by the kernel */
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

bool lsi_signals_are_watched(void)
{
    return is_watched != 0;
}

int lsi_stop_number(void)
{
    return (int)stop_number;
}

void lsi_end_process(int code)
{
    const int number = code == 0 ? (int)stop_number : 0;

    if (last_call != NULL) last_call();
    if (number != 0) {
        signal(number, SIG_DFL);
        kill(getpid(), number);
    }
    _exit(code != 0 ? code : 128 + number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    static const char first[] = "\nlockstep: stopping after a checkpoint; once more stops now\n";

    (void)context;
    stop_number = number;
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

bool ls_launch_minds_hangup(void)
{
    struct sigaction now;

    return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN;
}

void ls_launch_watch_signals(void (*last)(void))
{
    struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};

    last_call = last;
    is_watched = 1;
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGUSR1, &a, NULL);
    if (ls_launch_minds_hangup()) sigaction(SIGHUP, &a, NULL);
}

void ls_launch_unwatch_signals(void)
{
    is_watched = 0;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    if (ls_launch_minds_hangup()) signal(SIGHUP, SIG_DFL);
}

int ls_launch_rest(double seconds)
{
    const double until = ls_clock_seconds() + seconds;
    sigset_t asking, before;
    int number = stop_requests > 0 ? (int)stop_number : -1; /* it came when nobody rested */

    sigemptyset(&asking);
    sigaddset(&asking, SIGINT);
    sigaddset(&asking, SIGTERM);
    sigaddset(&asking, SIGUSR1);
    if (ls_launch_minds_hangup()) sigaddset(&asking, SIGHUP);
    sigprocmask(SIG_BLOCK, &asking, &before);
    for (double left = seconds; number < 0 && left > 0; left = until - ls_clock_seconds()) {
        const struct timespec t = {(time_t)left, (long)((left - floor(left)) * 1e9)};
        number = sigtimedwait(&asking, NULL, &t);
        if (number < 0 && errno != EINTR) break;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return number > 0 ? number : 0;
}

void lsi_signals_of_rank(pid_t launcher)
{
    is_rank = 1;
    launcher_pid = (sig_atomic_t)launcher;
}
