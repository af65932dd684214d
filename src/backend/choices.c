/* choices.c: see choices.h. */
#include "backend/choices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/folders.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/text.h"
#include "base/whole.h"

#define FILE_MAX_BYTES (8u << 20) /* a larger file is not ours */
#define PATIENCE_S     5.0        /* who has the lock writes a few lines */
#define LOOK_AGAIN_NS  5000000

/* -- the list ---------------------------------------------------------------------------------------------
 */

static lsi_choice *find(const lsi_choices *l, const char *problem, size_t n)
{
    const uint64_t hash = XXH3_64bits(problem, n);

    for (size_t i = 0; i < l->n; i++)
        if (l->of[i].hash == hash && strlen(l->of[i].problem) == n &&
            memcmp(l->of[i].problem, problem, n) == 0)
            return &l->of[i];
    return NULL;
}

lsi_choice *lsi_choices_find(const lsi_choices *l, const char *problem)
{
    return find(l, problem, strlen(problem));
}

static char *copy_bytes(const char *text, size_t n)
{
    char *p = ls_alloc(LS_MEM_PLAN, n + 1);

    if (p != NULL) memcpy(p, text, n);
    return p;
}

/* The problem's place with that name, which nobody uses yet; NULL without memory. */
static lsi_choice *set(lsi_choices *l, const char *problem, size_t problem_n, const char *name, size_t name_n)
{
    lsi_choice *e = find(l, problem, problem_n);
    char *copy = copy_bytes(name, name_n);

    if (copy == NULL) return NULL;
    if (e == NULL && LS_GROW(LS_MEM_PLAN, l->of, l->n + 1, l->cap)) {
        e = &l->of[l->n];
        *e = (lsi_choice){.problem = copy_bytes(problem, problem_n), .hash = XXH3_64bits(problem, problem_n)};
        if (e->problem != NULL)
            l->n++;
        else
            e = NULL;
    }
    if (e == NULL) {
        ls_free(copy);
        return NULL;
    }
    ls_free(e->name);
    e->name = copy;
    e->used = e->passing = e->filed = false;
    return e;
}

void lsi_choices_put(lsi_choices *l, const char *problem, const char *name, bool passing)
{
    lsi_choice *e = set(l, problem, strlen(problem), name, strlen(name));

    if (e == NULL) return;
    e->used = true;
    e->passing = passing;
}

static void take_line(lsi_choices *l, const char *problem, size_t problem_n, const char *name, size_t name_n)
{
    lsi_choice *e = find(l, problem, problem_n);

    if (e == NULL || !e->used) e = set(l, problem, problem_n, name, name_n);
    if (e != NULL) e->filed = true;
}

void lsi_choices_parse(lsi_choices *l, const char *text, size_t n)
{
    const char *end = text + n;

    while (text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        const char *stop = eol != NULL ? eol : end;
        const char *tab = memchr(text, '\t', (size_t)(stop - text));
        bool whole = eol != NULL; /* a torn last line is not trusted */
        if (whole && tab != NULL && tab > text && tab + 1 < stop &&
            memchr(text, '\0', (size_t)(stop - text)) == NULL)
            take_line(l, text, (size_t)(tab - text), tab + 1, (size_t)(stop - tab - 1));
        text = stop + 1;
    }
}

/* -- the file's name --------------------------------------------------------------------------------------
 */

/* First line of the processor's name in /proc/cpuinfo, or "unknown". */
static void processor_name(char *buf, size_t n)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512];

    snprintf(buf, n, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        snprintf(buf, n, "%s", colon + 2);
        break;
    }
    if (f != NULL) fclose(f);
}

static char *make_path(const char *device, const char *fingerprint)
{
    const char *own = getenv("LOCKSTEP_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[4000], cpu[256], id[1024], path[4100];

    if (own != NULL && own[0] != '\0')
        snprintf(folder, sizeof folder, "%s", own);
    else if (xdg != NULL && xdg[0] != '\0')
        snprintf(folder, sizeof folder, "%s/lockstep", xdg);
    else if (home != NULL && home[0] != '\0')
        snprintf(folder, sizeof folder, "%s/.cache/lockstep", home);
    else
        return NULL;
    (void)!ls_folders_make(folder, NULL); /* whoever writes there hears of it */
    processor_name(cpu, sizeof cpu);
    snprintf(id, sizeof id, "%s|%s|%s", cpu, fingerprint, LS_VERSION);
    snprintf(path, sizeof path, "%s/%s-%016llx.txt", folder, device,
             (unsigned long long)XXH3_64bits(id, strlen(id)));
    return ls_strdup(LS_MEM_PLAN, path);
}

void lsi_choices_open(lsi_choices *l, const char *device, const char *fingerprint)
{
    l->path = make_path(device, fingerprint);
    lsi_choices_look(l);
}

void lsi_choices_close(lsi_choices *l)
{
    for (size_t i = 0; i < l->n; i++) {
        ls_free(l->of[i].problem);
        ls_free(l->of[i].name);
    }
    ls_free(l->of);
    ls_free(l->path);
    *l = (lsi_choices){0};
}

/* -- the file ---------------------------------------------------------------------------------------------
 */

static void remember_look(lsi_choices *l, const struct stat *about)
{
    l->device = about->st_dev;
    l->inode = about->st_ino;
    l->size = about->st_size;
}

/* It is only added to, so one of the same length has not changed; one that is shorter, or another, has lost
 * what this process knows, and gets it again. */
void lsi_choices_look(lsi_choices *l)
{
    struct stat about;
    ls_err why = {0};
    char *text = NULL;
    size_t n;

    if (l->path == NULL || stat(l->path, &about) != 0) return;
    if (about.st_dev != l->device || about.st_ino != l->inode || about.st_size < l->size)
        for (size_t i = 0; i < l->n; i++) l->of[i].filed = false;
    else if (about.st_size == l->size)
        return;
    remember_look(l, &about);
    if (ls_whole_plain(&text, &n, l->path, FILE_MAX_BYTES, &why) == LS_OK)
        lsi_choices_parse(l, text, n);
    else
        ls_log(LS_LOG_WARN, "kernel choices are measured again: %s", why.text);
    ls_free(text);
}

static void warn(lsi_choices *l, const char *why)
{
    if (!l->warned)
        ls_log(
            LS_LOG_WARN,
            "kernel choices are not remembered, so that another run may choose others and differ in the last "
            "digits: %s: %s; LOCKSTEP_CACHE names a folder for them",
            l->path, why);
    l->warned = true;
}

/* A file system that has no locks is used without: what two processes add at the same moment may then be
 * lost, and is measured again. */
static bool wait_for_lock(int fd, double patience_s)
{
    const double end = ls_clock_seconds() + patience_s;

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return true;
        if (ls_clock_seconds() > end) return false;
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
    }
    return true;
}

int lsi_choices_lock(lsi_choices *l)
{
    struct stat about;
    int fd;

    if (l->path == NULL) return -1;
    fd = open(l->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
        warn(l, strerror(errno));
        return -1;
    }
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > (off_t)FILE_MAX_BYTES)
        warn(l, "it is no file of choices");
    else if (!wait_for_lock(fd, l->warned ? 0 : PATIENCE_S)) /* who holds it for so long is waited for once */
        warn(l, "another process keeps it locked");
    else {
        lsi_choices_look(l);
        return fd;
    }
    close(fd);
    return -1;
}

/* Behind the last whole line: what a process that ended while it wrote has left of another must not become
 * one with what is added. */
static off_t end_of_lines(int fd)
{
    off_t end = lseek(fd, 0, SEEK_END);
    char last;

    while (end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n') end--;
    return end;
}

/* 0 or the errno; all of it is on the disk, or nothing is in the file. */
static int append(int fd, const char *text, size_t n)
{
    const off_t size = lseek(fd, 0, SEEK_END), end = end_of_lines(fd);
    ssize_t wrote = -1;

    /* Cut off is what is torn alone: where there are no locks, another may have added whole lines by now. */
    if (end >= 0 && (end == size || ftruncate(fd, end) == 0)) wrote = write(fd, text, n);
    if (wrote == (ssize_t)n && fdatasync(fd) == 0) return 0;
    const int number = wrote >= 0 && wrote < (ssize_t)n ? ENOSPC : errno;
    if (wrote > 0) (void)!ftruncate(fd, end);
    return number;
}

static bool is_due(const lsi_choice *e)
{
    return e->used && !e->filed && !e->passing;
}

void lsi_choices_unlock(lsi_choices *l, int fd)
{
    ls_text text = {0};
    struct stat about;
    int number;

    if (fd < 0) return;
    for (size_t i = 0; i < l->n; i++)
        if (is_due(&l->of[i])) ls_text_add(&text, "%s\t%s\n", l->of[i].problem, l->of[i].name);
    number = text.failed ? ENOMEM : text.length > 0 ? append(fd, text.data, text.length) : 0;
    if (number != 0)
        warn(l, strerror(number));
    else
        for (size_t i = 0; i < l->n; i++) l->of[i].filed = l->of[i].filed || is_due(&l->of[i]);
    if (fstat(fd, &about) == 0) remember_look(l, &about);
    ls_text_release(&text);
    close(fd);
}
