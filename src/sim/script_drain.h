/* script_drain.h - what the scripts of draining domains share (script.h). Only tests include it. */
#ifndef CADENZA_SIM_SCRIPT_DRAIN_H
#define CADENZA_SIM_SCRIPT_DRAIN_H

#include "sim/script.h"

#define SCRIPT_PATIENCE (120 * NS_PER_S)

/* The domain as a cluster shows it, which may have to start first. */
API(Domain) *script_describe_domain(struct script *script, unsigned cluster);
/* The domain drains to the cluster. Asks until it has begun: crashes are none of its business. */
void script_begin_drain(struct script *script, unsigned to, int64_t seconds);

/* Events of a kind; signals of a name. No history has none. */
unsigned script_count_events(const API(History) *history, int kind);
unsigned script_count_signals(const API(History) *history, const char *name);

/* Decisions: a signal for another workflow; a child. */
API(Decision) *script_ask_other(struct script *script, const char *id, const char *signal_name);
API(Decision) *script_start_child(struct script *script, const char *id);

#endif
