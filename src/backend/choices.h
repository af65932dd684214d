/* choices.h: which implementation was chosen for which problem: a list, and the file that processes of all
 * runs share.
 *
 * The file has a line "problem <tab> implementation" for each, and is only ever added to, under a lock; of
 * two lines for one problem the later one counts.  A choice is there as soon as it was made: a process that
 * is killed leaves what it runs with to the one that goes on. */
#ifndef LS_BACKEND_CHOICES_H
#define LS_BACKEND_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct lsi_choice {
    char *problem, *name;
    uint64_t hash; /* of the problem */
    bool used;     /* this process runs with it: whatever comes to be in the file, it stays */
    bool passing;  /* for this process alone: it is not written */
    bool filed;    /* the file has a line for the problem */
} lsi_choice;

/* Start with {0}. */
typedef struct lsi_choices {
    char *path; /* NULL: nowhere to remember */
    lsi_choice *of;
    size_t n, cap;
    dev_t device; /* the file as it was when it was last read */
    ino_t inode;
    off_t size;
    bool warned;
} lsi_choices;

/* Names the file, makes its folder and reads what is there. */
void lsi_choices_open(lsi_choices *l, const char *device, const char *fingerprint);
void lsi_choices_close(lsi_choices *l);

/* NULL: none. */
lsi_choice *lsi_choices_find(const lsi_choices *l, const char *problem);

/* In place of what was known of the problem.  To lose one for want of memory only means that it is measured
 * again. */
void lsi_choices_put(lsi_choices *l, const char *problem, const char *name, bool passing);

/* Reads lines; those that do not have the form are skipped, and so are those for problems that this process
 * has a choice in use for. */
void lsi_choices_parse(lsi_choices *l, const char *text, size_t n);

/* Reads the file if it has changed. */
void lsi_choices_look(lsi_choices *l);

/* Between the two nobody else adds a line: the first reads the file if it has changed, the second writes what
 * it does not have.  -1, which the second accepts: it cannot be written, and the log says so once. */
int lsi_choices_lock(lsi_choices *l);
void lsi_choices_unlock(lsi_choices *l, int fd);

#endif
