/* test_answers.h - for tests that ask owners where answers may be lost (CADENZA_MESSAGES=fail). In
 * a simulation the answer alone is lost: what was asked for has happened. */
#ifndef CADENZA_ROUTE_TEST_ANSWERS_H
#define CADENZA_ROUTE_TEST_ANSWERS_H

#include <string.h>

#include "base/error.h"
#include "base/test.h"

static inline bool
test_is_answer_lost(const struct error *err)
{
    return err != NULL && err->kind == ERR_UNAVAILABLE &&
           strstr(err->message, "no answer came") != NULL;
}

/* A question that reads, or says the same again: it is asked until there is an answer. */
#define EXPECT_ANSWER(call)                                                                        \
    do {                                                                                           \
        struct error *answer_err = (call);                                                         \
        while (test_is_answer_lost(answer_err))                                                    \
            answer_err = (call);                                                                   \
        test_expect_ok(__FILE__, __LINE__, #call, answer_err);                                     \
    } while (0)
/* A change: it is made, whether we hear of it or not. */
#define EXPECT_MADE(call)                                                                          \
    do {                                                                                           \
        struct error *answer_err = (call);                                                         \
        if (!test_is_answer_lost(answer_err))                                                      \
            test_expect_ok(__FILE__, __LINE__, #call, answer_err);                                 \
    } while (0)

#endif
