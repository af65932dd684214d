/* texts.h: the files of source/, which are compiled at run time with what is generated. */
#ifndef LS_BACKEND_CUDA_TEXTS_H
#define LS_BACKEND_CUDA_TEXTS_H

extern const char *const lsi_cuda_text_wait; /* before all others: every kernel begins with it */
extern const char *const lsi_cuda_text_functions, *const lsi_cuda_text_chain;
extern const char *const lsi_cuda_text_few, *const lsi_cuda_text_few_to_many;
extern const char *const lsi_cuda_text_few_from_many, *const lsi_cuda_text_few_weights;
extern const char *const lsi_cuda_text_region, *const lsi_cuda_text_region_products;
extern const char *const lsi_cuda_text_region_nodes, *const lsi_cuda_text_region_finish;
extern const char *const lsi_cuda_text_update;

#endif
