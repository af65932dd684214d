/* output.c: standard output, flushed and closed with a look at whether it took everything. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Why something was lost, of the first time; "": nothing was, as far as is known.  There is one standard
 * output in a process, and so one of these. */
static char lost[96];

void ls_output_lost(const char *why)
{
    if (lost[0] == '\0') snprintf(lost, sizeof lost, "%s", why);
}

void ls_output_begin(void)
{
    /* Descriptors are given out from the lowest: each open fills the first gap.  Opened for reading, so that
     * who writes there is told. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)!open("/dev/null", O_RDONLY);
}

void ls_output_forget(void)
{
    clearerr(stdout);
    lost[0] = '\0';
}

void ls_output_flush(void)
{
    if (fflush(stdout) != 0) ls_output_lost(strerror(errno));
}

/* Something was lost in the midst of printing, and nobody has kept why: another line, which makes what is not
 * complete no worse, is likely to end the same way. */
static void ask_why(void)
{
    ls_output_lost(write(STDOUT_FILENO, "\n", 1) < 0 ? strerror(errno) : "it could not be written");
}

ls_status ls_output_end(ls_err *err)
{
    ls_output_flush();
    if (ferror(stdout) && lost[0] == '\0') ask_why();
    if (fclose(stdout) != 0) ls_output_lost(strerror(errno));
    if (lost[0] == '\0') return LS_OK;
    return ls_fail(err, LS_IO, "standard output: %s; what was to be printed is not complete there", lost);
}
