/* call.h - words for what comes with a call, whatever carries it. */
#ifndef CADENZA_NET_CALL_H
#define CADENZA_NET_CALL_H

#include <stdint.h>

#include "base/slice.h"

struct call_header {
    struct slice name; /* lower case */
    struct slice value;
};

/* What handlers remember of the connection that a call came by, for its next calls; zero at first.
 */
struct call_memory {
    uint64_t bits;
    int64_t time;
};

#endif
