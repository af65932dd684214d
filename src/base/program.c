/* program.c: asks /proc, which knows better than argv[0]. */
#include "base/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool ls_program_path(char *buf, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", buf, size);

    if (n <= 0 || (size_t)n >= size) n = 0; /* a path that was cut would be another's */
    buf[n] = '\0';
    return n > 0;
}

bool ls_program_beside(char *buf, size_t size, const char *below)
{
    size_t at;

    if (!ls_program_path(buf, size)) return false;
    at = (size_t)(strrchr(buf, '/') - buf);
    if (at + 1 + strlen(below) < size) {
        snprintf(buf + at, size - at, "%s%s", below[0] != '\0' ? "/" : "", below);
        return true;
    }
    buf[0] = '\0';
    return false;
}
