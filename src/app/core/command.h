/* A command, checked and made ready on its caller's thread: what is left to do is to put numbers into
 * the holes of its data. It owns all that it points to, so it may outlive its caller. Pure. */
#ifndef PAWL_APP_CORE_COMMAND_H
#define PAWL_APP_CORE_COMMAND_H

#include <pawl/app.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/core/sha256.h"

/* Where a number belongs in a text. */
struct app_hole {
    size_t at;         /* before this byte */
    bool next;         /* of a sequence; else the id of a record of the same command */
    uint16_t sequence; /* which ... */
    size_t create;     /* ... or whose */
};

struct app_text {
    pawl_view text;
    const struct app_hole *holes; /* by ascending place */
    size_t hole_count;
};

struct app_new {
    pawl_app_class record_class;
    uint64_t raw_id;
    uint64_t singleton;
    pawl_view table;
    struct app_text data;
};

struct app_change {
    uint64_t id;
    struct app_text data;
};

/* Start with zeroes. */
struct app_request {
    struct pawl__arena arena;
    uint64_t workspace;
    const pawl_app_kind *kind;
    pawl_view key; /* empty: none */
    struct pawl__sha256 hash;
    struct app_new *creates;
    size_t create_count;
    struct app_change *updates;
    size_t update_count;
    size_t raw_count;  /* creates with a raw id */
    size_t next_count; /* holes for numbers of a sequence */
    size_t bytes;      /* of texts */
};

void pawl__app_request_done(struct app_request *request);

/* INVALID, UNKNOWN_KIND and UNKNOWN_SEQUENCE name what is wrong. The caller empties `request`,
 * after a failure too. The descriptor must outlive it. */
PAWL_MUST_USE pawl_status pawl__app_request_make(const pawl_app_descriptor *descriptor,
                                                 const pawl_app_command *command,
                                                 struct app_request *request,
                                                 pawl_error *reterr);

/* Appends the text with its holes filled: `ids` by place of the create, `numbers` in the order of the
 * holes that want one; returns how many of those were used. */
size_t pawl__app_text_fill(const struct app_text *text,
                           const uint64_t *ids,
                           const pawl_app_number *numbers,
                           struct pawl__buf *buf);

#endif
