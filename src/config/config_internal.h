/* config_internal.h: how an experiment is put together: entries from files, other names, references.
 *
 * An entry is one dotted key with the text of its value and the place it came from.  Everything here lives
 * in one arena and dies with it; the limits keep hostile files cheap. */
#ifndef LS_CONFIG_CONFIG_INTERNAL_H
#define LS_CONFIG_CONFIG_INTERNAL_H

#include <stdarg.h>

#include "base/alloc.h"
#include "config/experiment.h"

#define LSI_FILE_MAX    ((size_t)1 << 20) /* bytes of one file */
#define LSI_NESTING_MAX 32                /* of mappings */
#define LSI_KEY_MAX     128               /* bytes of a dotted key with its end */
#define LSI_VALUE_MAX   4096              /* bytes of a value with its end, before and after references */
#define LSI_ENTRIES_MAX 1000              /* of one file or override, and of all together */
#define LSI_FILES_MAX   32                /* that one experiment is made of */
#define LSI_BASES_MAX   8                 /* names in one `defaults` */
#define LSI_DEPTH_MAX   16                /* of files based on files, and of references to references */

/* Where a text stands.  Without a line, `source` is an override as given. */
typedef struct lsi_place {
    const char *source;
    int line, column; /* from 1; 0: none */
} lsi_place;

typedef enum lsi_entry_kind {
    LSI_VALUE,
    LSI_NULL,  /* the default */
    LSI_BLANK, /* `key=` on a command line: nothing was written, by intent or by an unset variable */
    LSI_EMPTY_GROUP
} lsi_entry_kind;

typedef struct lsi_entry {
    const char *key;     /* as the table of settings calls it */
    const char *written; /* as the file does */
    const char *value;
    lsi_entry_kind kind;
    lsi_place at; /* of the key */
    lsi_place value_at;
    int layer; /* which file or set of overrides; later ones replace earlier ones */
    enum { LSI_RAW, LSI_BUSY, LSI_DONE } resolved; /* references in `value` */
} lsi_entry;

typedef struct lsi_entries {
    ls_arena *arena;
    lsi_entry *items; /* from the arena, room for LSI_ENTRIES_MAX */
    int n;
} lsi_entries;

/* A parsed YAML text. */
typedef struct lsi_document {
    lsi_entries entries;
    const char *bases[LSI_BASES_MAX]; /* `defaults` */
    lsi_place bases_at[LSI_BASES_MAX];
    int n_bases;
} lsi_document;

ls_status lsi_entries_create(lsi_entries *out, ls_arena *arena, ls_err *err) LS_MUST_CHECK;
/* Parses `n` bytes.  Keys begin with `prefix` ("" or the key of an override, whose value the text is). */
ls_status lsi_yaml_parse(lsi_document *doc, const char *text, size_t n, const char *source,
                         const char *prefix, ls_err *err) LS_MUST_CHECK;

/* Valid UTF-8 without control characters and line ends, which would spoil messages and written files. */
bool lsi_is_printable(const char *text, size_t n);
/* ls_fail with LS_INVALID and the place in front. */
ls_status lsi_fail_at(ls_err *err, const lsi_place *at, const char *fmt, ...) LS_PRINTF(3, 4);
/* Puts the place in front of an error that a lower layer reported. */
ls_status lsi_fail_in_at(ls_err *err, ls_status st, const lsi_place *at);

/* Gives an entry with a Determined name the name it has here ... */
void lsi_rename(lsi_entry *e);
/* ... and, once references are replaced, the value; one that means nothing here becomes null. */
ls_status lsi_convert(lsi_entry *e, ls_arena *arena, ls_err *err) LS_MUST_CHECK;
/* Determined counts batches that one exchange of gradients follows several of; here what is counted is the
 * update.  To be called once all values are in the configuration. */
ls_status lsi_count_updates(ls_config *cfg, const lsi_entries *all, ls_err *err) LS_MUST_CHECK;
/* Determined name number i, or NULL after the last. */
const char *lsi_other_name(int i);
/* Fills in what model.trial, the entry `e`, says, and gives the entry the value it is written with: the name
 * of a trial of this build, or the whole path of a plug-in. */
ls_status lsi_choose_trial(ls_experiment *x, lsi_entry *e, const lsi_entries *all, ls_err *err) LS_MUST_CHECK;

/* The layer of the first override; each further one is its own. */
#define LSI_OVERRIDE_LAYER 1000
/* Adds what `from` has; replaces the same keys of earlier layers. */
ls_status lsi_merge(lsi_entries *to, const lsi_entries *from, int layer, ls_err *err) LS_MUST_CHECK;
lsi_entry *lsi_find(const lsi_entries *entries, const char *key);
/* Replaces the references in e->value; a key without an entry has its value in `cfg` (may be NULL). */
ls_status lsi_resolve(const lsi_entries *all, lsi_entry *e, const ls_config *cfg, ls_err *err) LS_MUST_CHECK;

/* Reads `path` with all its bases into `to`. */
ls_status lsi_read_file(lsi_entries *to, const char *path, ls_err *err) LS_MUST_CHECK;
/* Path of the file that `name` means, from `arena`; NULL: none, it may be a trial. */
ls_status lsi_find_file(const char **path, const char *name, ls_arena *arena, ls_err *err) LS_MUST_CHECK;
/* LS_INVALID with the nearest name of an experiment or trial. */
ls_status lsi_fail_name(const char *name, ls_err *err);

/* From entries to trial and settings.  `source` is what to blame when there is no model. */
ls_status lsi_configure(ls_experiment *out, const lsi_entries *all, const char *source,
                        ls_err *err) LS_MUST_CHECK;

#endif
