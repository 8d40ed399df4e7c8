/* inside.h - settings as JSON and back: what the files of settings/ share. */
#ifndef CADENZA_SETTINGS_INSIDE_H
#define CADENZA_SETTINGS_INSIDE_H

#include <jansson.h>

#include "config/value.h"
#include "settings/settings.h"

const char *settings_json_text(const json_t *json, struct arena *arena);
/* NULL: it is not JSON. */
json_t *settings_json_read(const char *text);
/* An object of constraints; an array of the entries of a setting. The caller drops the reference.
 * Errors: ERR_BAD_REQUEST, something in it is not JSON. */
must_use struct error *settings_json_of_constraints(const struct setting_constraint *constraints,
                                                    size_t count, struct arena *arena,
                                                    json_t **json);
must_use struct error *settings_json_of(const struct setting *setting, struct arena *arena,
                                        json_t **json);
/* The other way round: the setting of that array. */
void settings_json_fill(struct setting *setting, const char *name, const json_t *array,
                        struct arena *arena);
/* A value in force, as the file would have it; the caller drops the reference. */
json_t *settings_json_of_value(const struct value *value, struct arena *arena);

#endif
