/* sample.h - makes a run to be archived. For tests of archive/. */
#ifndef CADENZA_ARCHIVE_TEST_SAMPLE_H
#define CADENZA_ARCHIVE_TEST_SAMPLE_H

#include "archive/inside.h"
#include "base/test.h"

#define SAMPLE_DOMAIN "0a0a0a0a-0000-4000-8000-000000000001"
#define SAMPLE_RUN    "0b0b0b0b-0000-4000-8000-000000000002"
#define SAMPLE_CLOSED INT64_C(1700000000123456789)

/* Closed, with so many batches of two events, each with a payload of so many bytes. */
struct archive_run *sample_run(struct arena *arena, size_t batches, size_t payload);
/* All of its History.events records. */
struct slice sample_events(const struct archive_run *run, struct arena *arena);
/* An archive that is on, of this owner. */
struct archive *sample_archive(const struct dynamic *dynamic, const char *owner);
/* The whole archived history of the run. Errors: as archive_read_history. */
must_use struct error *sample_read(struct archive *archive, const struct archive_run *run,
                                   size_t events_max, struct arena *arena, struct slice *events);

#endif
