/* domain_show.h - domains and failovers as text: tables for people, JSON for programs. Pure:
 * message in, text out. Inside cli/ only.
 *
 * The lines of a described domain and the keys of the JSON are those that users of cadence know. */
#ifndef CADENZA_CLI_DOMAIN_DOMAIN_SHOW_H
#define CADENZA_CLI_DOMAIN_DOMAIN_SHOW_H

#include "base/arena.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

struct domain_list {
    API(Domain) **items;
    size_t count, capacity;
};

struct failover_list {
    API(FailoverEvent) **items; /* newest first */
    size_t count, capacity;
};

const char *domain_show(const API(Domain) *domain, struct arena *arena);
/* With the notification versions, if the server sent them, and with its recovery, if it lost
 * memory. */
const char *domain_show_described(const API(DescribeDomainResponse) *described,
                                  struct arena *arena);
/* One line each; `is_full`: with more columns. */
const char *domain_show_list(const struct domain_list *domains, bool is_full, struct arena *arena);
/* What was asked to move by force, and where it is now. */
struct domain_moves {
    const API(Domain) *before; /* NULL: not known */
    const API(Domain) *after;
    const API(ActiveClusters) *attributes; /* that were named; NULL: none */
    bool moves_domain;                     /* the domain's own active cluster was named */
};
/* Is anything different in where it is active? True also if nobody knows. */
bool domain_has_moved(const struct domain_moves *moves);
/* One line for each thing that was named: where it moved, or that it was there already. */
const char *domain_show_moves(const struct domain_moves *moves, struct arena *arena);
/* One line for each thing that moved. */
const char *domain_show_failovers(const struct failover_list *failovers, struct arena *arena);

/* {"domainInfo": …, "configuration": …, "replicationConfiguration": …, …}; a list is an array. */
const char *domain_json(const API(Domain) *domain, struct arena *arena);
const char *domain_json_described(const API(DescribeDomainResponse) *described,
                                  struct arena *arena);
const char *domain_json_list(const struct domain_list *domains, struct arena *arena);
/* {"failoverEvents": […]}. */
const char *domain_json_failovers(const struct failover_list *failovers, struct arena *arena);

/* Retention in whole days. */
int64_t domain_retention_days(const API(Domain) *domain);

/* Words for values. */
const char *domain_status_text(const API(Domain) *domain, struct arena *arena);
const char *archival_status_text(API(ArchivalStatus) status, struct arena *arena);
const char *failover_type_text(API(FailoverType) type, struct arena *arena);

#endif
