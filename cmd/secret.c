/* secret.c: `lockstep secret new`: what machines prove to one another that they belong to a run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "cli.h"

enum { BYTES = 32, TEXT = 2 * BYTES + 2 };

ls_status cli_secret_check(const cli_args *args, ls_err *err)
{
    if (args->model == NULL || strcmp(args->model, "new") != 0)
        return ls_fail(err, LS_INVALID, "what about it?  `lockstep secret new [FILE]` makes one");
    if (args->n_settings > 1)
        return ls_fail(err, LS_INVALID, "\"%s\" is one word too many", args->settings[1]);
    return LS_OK;
}

/* Random bytes of the kernel as hexadecimal digits, with a line end. */
static ls_status make(char text[TEXT], ls_err *err)
{
    unsigned char bytes[BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return ls_fail(err, LS_IO, "the kernel gives no random bytes: %s", strerror(errno));
    for (int i = 0; i < BYTES; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * BYTES] = '\n';
    text[2 * BYTES + 1] = '\0';
    return LS_OK;
}

/* A new file that nobody else may read from its first moment on. */
static ls_status write_new(const char *path, const char *text, ls_err *err)
{
    const size_t n = strlen(text);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST)
        return ls_fail(err, LS_INVALID, "%s is there already; name another file, or remove it", path);
    if (fd < 0)
        return ls_fail(err, ls_folders_status(errno),
                       "%s: cannot be written: %s; name a file where you may write", path, strerror(errno));
    /* The mode of open() is less the umask, which may take even the owner's. */
    const bool ok = fchmod(fd, 0600) == 0 && write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
    const int number = errno;
    close(fd);
    if (ok) return LS_OK;
    /* Half a secret would be taken for one. */
    unlink(path);
    return ls_fail(err, LS_IO, "%s: cannot be written: %s", path, strerror(number));
}

int cli_secret(const cli_args *args)
{
    const char *path = args->n_settings > 0 ? args->settings[0] : NULL;
    char text[TEXT];
    ls_err err = {0};

    if (make(text, &err) != LS_OK || (path != NULL && write_new(path, text, &err) != LS_OK))
        return cli_fail("secret", &err);
    if (path == NULL && args->json)
        cli_print_json_take(json_pack("{s:s, s:s%}", "event", "secret", "secret", text, (size_t)(2 * BYTES)));
    else if (path == NULL)
        fputs(text, stdout);
    else if (args->json)
        cli_print_json_take(json_pack("{s:s, s:s}", "event", "secret", "path", path));
    else
        printf("%s: a new secret; copy it to all machines of a run (mode 600) and set LOCKSTEP_SECRET_FILE "
               "to its path "
               "there\n",
               path);
    return CLI_DONE;
}
