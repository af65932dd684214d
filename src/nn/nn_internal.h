/* nn_internal.h: the inside of a step, shared by the files of nn.
 *
 * What must outlive the graph (names, counts, learning rates) is kept in the step's own arena, because the
 * graph is handed to the plan. */
#ifndef LS_NN_NN_INTERNAL_H
#define LS_NN_NN_INTERNAL_H

#define LS_PLAIN_OPS
#include "lockstep/nn.h"
#include "ops/ops.h"

typedef struct lsi_param_info {
    const char *name;
    int64_t count;
} lsi_param_info;

typedef struct lsi_input_info {
    const char *name;
    bool ranged;
    double lo, hi;
} lsi_input_info;

typedef struct lsi_lr {
    const char *input;
    double value;
} lsi_lr;

/* How often a random stream's name was used. */
typedef struct lsi_stream {
    const char *name;
    int uses;
} lsi_stream;

#define LSI_MAX_SCOPES 16

struct ls_step {
    ls_graph *g; /* NULL once taken */
    ls_arena *arena;
    int64_t batch;
    ls_mode mode;
    ls_build how;
    ls_err taken_err; /* the graph's error at the time it was taken */

    const char *scopes[LSI_MAX_SCOPES]; /* full dotted paths */
    int n_scopes;
    const char *saved_scope; /* while a layer is being built */
    int n_units;             /* calls of ls_unit_begin that are open */

    lsi_param_info *params;
    lsi_input_info *inputs;
    lsi_lr *lrs;
    lsi_stream *streams;
    ls_distance_info *distances;
    int n_params, n_inputs, n_lrs, n_streams, n_distances;
    int cap_params, cap_inputs, cap_lrs, cap_streams, cap_distances;
    bool trains, spared;      /* a call of ls_minimise trains something; one leaves out what is frozen */
    ls_value rng, loss_scale; /* invalid until first used */
};

/* True when more can be built: the graph is there and sound. */
bool lsi_step_open(const ls_step *s);
/* What builders return when nothing can be built. */
ls_value lsi_step_none(const ls_step *s);
/* Keeps the first error with place and layer; returns an invalid value. */
ls_value lsi_step_fail(ls_step *s, const char *fmt, ...) LS_PRINTF(2, 3);
/* "scope.name" in the step's arena; NULL (with the error recorded) when memory runs out or name is empty. */
const char *lsi_step_name(ls_step *s, const char *name);
/* Room for one more element of `size` bytes in an array of the step's arena; false with the error recorded.
 */
bool lsi_step_grow(ls_step *s, void **array, int n, int *cap, size_t size);

/* What comes next is at this line of the trial. */
void lsi_step_at(ls_step *s, ls_at at);
/* Nodes made between enter and leave belong to the layer `name`.  lsi_layer_enter returns the full name, or
 * NULL when nothing can be built (leave must not be called then). */
const char *lsi_layer_enter(ls_step *s, ls_at at, const char *name);
void lsi_layer_leave(ls_step *s);

/* The current version of variable "<layer>.<what>" ("<layer>" when what is NULL), made on first use. */
ls_value lsi_variable(ls_step *s, const char *layer, const char *what, ls_var_role role, ls_dtype dtype,
                      ls_shape shape, ls_init init);
/* The rule for weights and biases of a layer with these fans. */
ls_init lsi_init_weight(ls_init_rule rule, double fan_in, double fan_out);
ls_init lsi_init_bias(ls_init_rule rule, double fan_in);
/* Adds the bias parameter of `layer` along `axis`, unless `skip`. */
ls_value lsi_add_bias(ls_step *s, ls_value y, const char *layer, int axis, bool skip, ls_init_rule rule,
                      double fan_in);

/* The next space-separated word of *at into `word` (LSI_WORD bytes, cut if longer); false at the end. */
#define LSI_WORD 256
bool lsi_next_word(const char **at, char *word);
/* Whether one of the space-separated globs matches. */
bool lsi_match_any(const char *patterns, const char *name);
/* Whether how.freeze names the parameter. */
bool lsi_is_frozen(const ls_step *s, const char *param);

/* The host reads `v` under `name`. */
void lsi_fetch(ls_step *s, ls_value v, const char *name);
/* Whether it reads something under this name already. */
bool lsi_is_fetched(const ls_step *s, const char *name);
/* Replaces dimensions of -1 by the batch. */
ls_shape lsi_with_batch(const ls_step *s, ls_shape shape);

#endif
