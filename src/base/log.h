/* log.h - one JSON object per line, in the field names that Cadence's users know:
 * level, ts, msg, service, logging-call-at, error, and tags such as wf-domain-name, shard-id.
 *
 * A log is a value that somebody owns and hands down; there is no global one. A line is built in a
 * buffer on the stack and given whole to the sink, so lines of several threads never mix. */
#ifndef CADENZA_BASE_LOG_H
#define CADENZA_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_FATAL };

struct log {
    enum log_level level;          /* lines below it are dropped */
    const char *service;           /* "cadenza", "cadence-frontend", ... */
    bool is_console;               /* readable text instead of JSON */
    const char *level_key;         /* the name of a line's level in JSON; NULL: "level" */
    int64_t (*now)(void *context); /* wall clock, ns since 1970 */
    void (*sink)(void *context, const char *line, size_t length); /* one line with its newline */
    void *context;
};

struct log_field {
    const char *name; /* NULL ends a list */
    enum { LOG_TEXT, LOG_NUMBER, LOG_BOOL } type;
    const char *text;
    int64_t number;
};

#define log_text(name_, text_)                                                                     \
    ((struct log_field){.name = (name_), .type = LOG_TEXT, .text = (text_)})
#define log_number(name_, number_)                                                                 \
    ((struct log_field){.name = (name_), .type = LOG_NUMBER, .number = (number_)})
#define log_bool(name_, value_)                                                                    \
    ((struct log_field){.name = (name_), .type = LOG_BOOL, .number = (value_)})
#define log_error(err_) log_text("error", (err_)->message)

/* log_info(log, "shard taken", log_number("shard-id", 7)); fields are optional. NULL log drops the
 * line. */
#define log_at(log, level, message, ...)                                                           \
    log_write((log), (level), __FILE__, __LINE__, (message),                                       \
              (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.name = NULL}})
#define log_debug(log, ...) log_at(log, LOG_DEBUG, __VA_ARGS__)
#define log_info(log, ...)  log_at(log, LOG_INFO, __VA_ARGS__)
#define log_warn(log, ...)  log_at(log, LOG_WARN, __VA_ARGS__)
#define log_fail(log, ...)  log_at(log, LOG_ERROR, __VA_ARGS__)

/* Writes one line, escaped, cut with "..." when it would pass 16 KiB. */
void log_write(const struct log *log, enum log_level level, const char *file, int line,
               const char *message, const struct log_field *fields);
/* "debug", "info", "warn", "error", "fatal" → level; false if the word is none of them. */
must_use bool log_level_parse(const char *word, enum log_level *level);
/* A sink that writes to the file descriptor in *(int *)context; retries short writes. It blocks the
 * thread while a pipe is full: the process that starts a server must drain its log. */
void log_sink_fd(void *context, const char *line, size_t length);
/* Opens a file for appending lines, and creates it if it is missing; -1: it cannot be opened, errno
 * says why. The caller closes it. */
must_use int log_open_file(const char *path);

#endif
