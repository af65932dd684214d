/* loader_test.h: loaders that must open and go on. */
#ifndef TESTS_DATA_LOADER_TEST_H
#define TESTS_DATA_LOADER_TEST_H

#include "data/loader.h"

ls_loader *loader_open(const ls_dataset *d, ls_loader_options o);
ls_batch loader_next(ls_loader *l);

#endif
