/* run_key.h - the names of a run as part of a message between owners, and back. Nothing is copied:
 * the texts are those that were there. */
#ifndef CADENZA_ENGINE_RUN_RUN_KEY_H
#define CADENZA_ENGINE_RUN_RUN_KEY_H

#include "base/check.h"
#include "cadenza/internal/v1/run_key.pb-c.h"
#include "engine/run/run.h"
#include "wire/names.h"
#include "wire/presence.h"

static inline INTERNAL(RunKey) run_key_to_message(const struct run_key *key)
{
    INTERNAL(RunKey) message = INTERNAL_VALUE(RUN_KEY__INIT);
    message.domain_id = presence_make_text(key->domain_id);
    message.workflow_id = presence_make_text(key->workflow_id);
    message.run_id = presence_make_text(key->run_id);
    return message;
}

static inline struct run_key
run_key_from_message(const INTERNAL(RunKey) * message)
{
    check(message != NULL); /* each question that has a key sets it */
    return (struct run_key){message->domain_id, message->workflow_id, message->run_id};
}

#endif
