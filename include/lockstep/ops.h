#include "ops/ops.h"
