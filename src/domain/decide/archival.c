/* archival.c - the state machine of archival settings, as a table. See decide.h.
 *
 *   state \ request        enable             disable            says nothing
 *   off, no URI            needs a URI → on   off (keeps URI)    off (keeps URI)
 *   off, has URI           on                 off                off
 *   on, has URI            on                 off                on
 *
 * In every cell a URI that differs from the one there is refused; so the cells need only the
 * status. */
#include "base/check.h"
#include "domain/decide/decide.h"

enum {
    DISABLED = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED),
    ENABLED = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED)
};

static const int status_next[2][3] = {
    /* request:     none      disable   enable  */
    /* disabled */ {DISABLED, DISABLED, ENABLED},
    /* enabled  */ {ENABLED, DISABLED, ENABLED},
};

struct error *
archival_next(struct archival now, struct archival request, struct arena *arena,
              struct archival *next)
{
    bool has_uri = now.uri[0] != '\0', asks_uri = request.uri[0] != '\0';
    int from = now.status == ENABLED;
    check(!from || has_uri);
    if (has_uri && asks_uri && strcmp(now.uri, request.uri) != 0)
        return error_new(arena, ERR_BAD_REQUEST, "Cannot update existing archival URI");
    if (request.status < 0 || request.status > ENABLED)
        return error_new(arena, ERR_BAD_REQUEST, "Archival status %d is not known.",
                         request.status);

    int requested = request.status == 0 ? 0 : request.status == DISABLED ? 1 : 2;
    *next = (struct archival){.status = status_next[from][requested],
                              .uri = has_uri ? now.uri : request.uri};
    if (next->status == ENABLED && next->uri[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "Invalid to enable archival without specifying a uri.");
    return NULL;
}
