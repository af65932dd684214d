/* network_presets.h: networks that come with the program. */
#ifndef LS_PREDICT_NETWORK_PRESETS_H
#define LS_PREDICT_NETWORK_PRESETS_H

enum { LSI_NETWORK_PRESETS_MOST = 64 };

/* The last has no name. */
typedef struct lsi_network_preset {
    const char *name, *about, *text;
} lsi_network_preset;
extern const lsi_network_preset lsi_network_presets[];

#endif
