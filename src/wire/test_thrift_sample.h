/* test_thrift_sample.h - random events for the tests of thrift.
 *
 * They are made from the descriptors of protobuf alone: the table under test has no say in which
 * fields are filled, so a row that is missing is found. */
#ifndef CADENZA_WIRE_TEST_THRIFT_SAMPLE_H
#define CADENZA_WIRE_TEST_THRIFT_SAMPLE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/random.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

#define SAMPLE_ARM_FIRST 5 /* the numbers of the arms of HistoryEvent.attributes */
#define SAMPLE_ARM_LAST  46

struct sample {
    struct arena *arena;  /* for what is made */
    struct random random; /* decides */
    unsigned fill;        /* percent of the fields that are set */
    bool is_wild;         /* also what canonical events do not have */
};

/* A random event with attributes of this arm. */
must_use API(HistoryEvent) *sample_event(struct sample *sample, unsigned arm);

#endif
