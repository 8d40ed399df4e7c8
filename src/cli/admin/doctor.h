/* doctor.h - what the parts of `admin doctor` share. Inside cli/ only. */
#ifndef CADENZA_CLI_ADMIN_DOCTOR_H
#define CADENZA_CLI_ADMIN_DOCTOR_H

#include <jansson.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/base/inside.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "wire/names.h"

struct doctor {
    struct cli_call *call;
    json_t *findings;
    const STORE_API(DescribePeersResponse) *peers; /* NULL: the server did not say */
    int64_t offset; /* of the server's clock to ours, ns, and how far that may be wrong */
    int64_t doubt;
};

/* Says what is wrong and what to do about it. */
void doctor_find(struct doctor *doctor, const char *what, const char *advice);
/* The server did not say `about`. */
void doctor_find_unanswered(struct doctor *doctor, const char *about, const struct error *err);

/* Asks the server's health; NULL: it does not answer. Yields. */
const API(HealthResponse) *doctor_ask_health(struct doctor *doctor, struct error **err);
/* Look for it (doctor_group.c). Yield. */
void doctor_check_peers(struct doctor *doctor);
void doctor_check_domains(struct doctor *doctor);
/* (entity.c) */
void doctor_check_entities(struct doctor *doctor);

#endif
