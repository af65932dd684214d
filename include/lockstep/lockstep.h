/* lockstep.h: everything a program or a trial outside of Lockstep may use. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include "lockstep/graph.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "lockstep/plan.h"
#include "lockstep/status.h"
#include "lockstep/tensor.h"
#include "lockstep/trial.h"

#endif
