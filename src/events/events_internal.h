/* events_internal.h: the numbers of TensorBoard's messages and fields that its writer and reader here share.
 */
#ifndef LS_EVENTS_EVENTS_INTERNAL_H
#define LS_EVENTS_EVENTS_INTERNAL_H

/* A TFRecord: length (8 bytes), masked CRC of the length (4), the bytes, masked CRC of the bytes (4). */
enum { LSI_RECORD_HEAD = 12, LSI_RECORD_TAIL = 4 };

#define LSI_EVENT_VERSION "brain.Event:2"

enum { /* Event */
       LSI_EVENT_WALL_TIME = 1,
       LSI_EVENT_STEP = 2,
       LSI_EVENT_FILE_VERSION = 3,
       LSI_EVENT_SUMMARY = 5,
       LSI_EVENT_SESSION_LOG = 7
};
enum { LSI_SESSION_LOG_STATUS = 1, LSI_SESSION_LOG_START = 1 };
enum { LSI_SUMMARY_VALUE = 1 };
enum { /* Summary.Value */
       LSI_VALUE_TAG = 1,
       LSI_VALUE_SIMPLE = 2,
       LSI_VALUE_IMAGE = 4,
       LSI_VALUE_TENSOR = 8,
       LSI_VALUE_METADATA = 9
};
enum { LSI_IMAGE_HEIGHT = 1, LSI_IMAGE_WIDTH = 2, LSI_IMAGE_COLORSPACE = 3, LSI_IMAGE_ENCODED = 4 };
enum { LSI_METADATA_PLUGIN = 1, LSI_PLUGIN_NAME = 1, LSI_PLUGIN_CONTENT = 2 };
enum { LSI_TENSOR_DTYPE = 1, LSI_TENSOR_SHAPE = 2, LSI_TENSOR_STRING = 8, LSI_DT_STRING = 7 };
enum { LSI_SHAPE_DIM = 2, LSI_DIM_SIZE = 1 };

/* The hparams plugin. */
#define LSI_HPARAMS_EXPERIMENT_TAG "_hparams_/experiment"
#define LSI_HPARAMS_START_TAG      "_hparams_/session_start_info"
enum { LSI_HPARAMS_EXPERIMENT = 2, LSI_HPARAMS_START = 3 };
enum { LSI_EXPERIMENT_HPARAM = 4, LSI_EXPERIMENT_METRIC = 5 };
enum { LSI_HPARAM_NAME = 1, LSI_HPARAM_TYPE = 4, LSI_HPARAM_TYPE_STRING = 1, LSI_HPARAM_TYPE_NUMBER = 3 };
enum { LSI_METRIC_NAME = 1, LSI_METRIC_NAME_TAG = 2 };
enum { LSI_START_HPARAM = 1, LSI_START_TIME = 5 };
enum { LSI_MAP_KEY = 1, LSI_MAP_VALUE = 2, LSI_PB_NUMBER = 2, LSI_PB_STRING = 3 };

#endif
