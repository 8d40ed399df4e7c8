/* archival.h - how the cluster archives one kind of thing: a setting that domains follow. */
#ifndef CADENZA_DOMAIN_ARCHIVAL_H
#define CADENZA_DOMAIN_ARCHIVAL_H

#include <stdbool.h>

struct archival_rule {
    bool is_enabled;         /* else what requests say of it is ignored */
    int default_status;      /* of a new domain that says nothing; ARCHIVAL_STATUS_* */
    const char *default_uri; /* of a domain that is enabled without one */
};

#endif
