/* domain_load.h - clients that register, update and describe domains, and remember what they were
 * told.
 *
 * Each worker owns its domains, so it knows what must be true of them: an acknowledged registration
 * exists for ever, an acknowledged description is there or a later one of the same worker, and who
 * asks the host that acknowledged a change sees that change. A call that failed may have been done
 * or not. The ledger is the test's, outside of every host. */
#ifndef CADENZA_SIM_GROUP_DOMAIN_LOAD_H
#define CADENZA_SIM_GROUP_DOMAIN_LOAD_H

#include "sim/world/client_pool.h"

#define LOAD_WORKERS_MAX 16
#define LOAD_DOMAINS_MAX 4096 /* of one worker */

struct load_domain {
    bool is_acknowledged;    /* the registration was */
    uint32_t sequence_tried; /* newest description that was asked for; 0: none */
    uint32_t sequence_acknowledged;
    uint8_t acknowledged_by_host; /* who acknowledged last, + 1 */
};

struct load_worker {
    struct domain_load *load;
    unsigned number;
    unsigned domain_count; /* tried */
    struct load_domain domains[LOAD_DOMAINS_MAX];
};

struct domain_load {
    struct sim *sim;
    struct client_pool client_pool;
    uint64_t calls, acknowledged, failed, stale_reads_checked;
    struct verdict verdict;
    struct load_worker *workers;
};

/* `workers` workers on the client host, which starts now. Free with domain_load_free. */
struct domain_load *domain_load_start(struct sim *sim, unsigned workers, int64_t think_max);
void domain_load_free(struct domain_load *load);
/* Lets the workers end, then asks every host for all domains and compares with the ledger. Runs the
 * world. The violation, or NULL. */
const char *domain_load_verify(struct domain_load *load);

#endif
