/* texts.c: the only one that has the texts. */
#include "backend/cuda/texts.h"

#include "cuda_source.h" /* made by the build of the files in source/ */

const char *const lsi_cuda_text_wait = source_wait_cuh;
const char *const lsi_cuda_text_functions = source_functions_cuh;
const char *const lsi_cuda_text_chain = source_chain_cuh;
const char *const lsi_cuda_text_few = source_few_cuh;
const char *const lsi_cuda_text_few_to_many = source_few_to_many_cuh;
const char *const lsi_cuda_text_few_from_many = source_few_from_many_cuh;
const char *const lsi_cuda_text_few_weights = source_few_weights_cuh;
const char *const lsi_cuda_text_region = source_region_cuh;
const char *const lsi_cuda_text_region_products = source_region_products_cuh;
const char *const lsi_cuda_text_region_nodes = source_region_nodes_cuh;
const char *const lsi_cuda_text_region_finish = source_region_finish_cuh;
const char *const lsi_cuda_text_update = source_update_cuh;
