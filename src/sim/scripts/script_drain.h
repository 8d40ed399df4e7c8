/* script_drain.h - what the scripts of draining domains share (script.h). Only tests include it. */
#ifndef CADENZA_SIM_SCRIPTS_SCRIPT_DRAIN_H
#define CADENZA_SIM_SCRIPTS_SCRIPT_DRAIN_H

#include "sim/scripts/script.h"

#define SCRIPT_PATIENCE (120 * NS_PER_S)

/* The domain as a cluster shows it, which may have to start first. */
API(Domain) *script_describe_domain(struct script *script, unsigned cluster);
/* The domain drains to the cluster. Asks until it has begun: crashes do not count. */
void script_begin_drain(struct script *script, unsigned to, int64_t seconds);

/* Signals of a name. No history has none. */
unsigned script_count_signals(const API(History) *history, const char *name);

#endif
