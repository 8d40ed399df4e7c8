/* refusal.h - an error as part of a message between owners, and back. */
#ifndef CADENZA_ROUTE_REFUSAL_H
#define CADENZA_ROUTE_REFUSAL_H

#include "base/error.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "wire/names.h"

/* It points to the error's texts. What it wraps stays behind. */
INTERNAL(Error) refusal_to_message(const struct error *err);
/* All of it in the arena. A kind of a later version is ERR_INTERNAL. */
struct error *refusal_from_message(const INTERNAL(Error) * message, struct arena *arena);

#endif
