/* What a colony asks an agent for, and the answer: a page of rows of one data type, with everything that tells which
 * database they come from. */
#ifndef PAWL_TELEMETRY_CORE_PAGE_H
#define PAWL_TELEMETRY_CORE_PAGE_H

#include "telemetry/core/row.h"

/* A session, an epoch or a generation: the text of a UUID, "" for none. */
#define TELEMETRY_ID_SIZE 37
struct telemetry_id {
    char text[TELEMETRY_ID_SIZE];
};

bool pawl__telemetry_id_equal(const struct telemetry_id *a, const struct telemetry_id *b);
bool pawl__telemetry_id_is_none(const struct telemetry_id *id);
/* INVALID: longer than a UUID, or not printable ASCII. */
PAWL_MUST_USE pawl_status pawl__telemetry_id_parse(pawl_view text,
                                                   struct telemetry_id *ret_id,
                                                   pawl_error *reterr);
struct telemetry_id pawl__telemetry_id_of(const uint8_t random[16]);

/* One open of the agent's database, as one data type sees it. */
struct telemetry_epoch {
    struct telemetry_id id;
    uint64_t first; /* the first sequence id given in it */
};
enum { TELEMETRY_EPOCHS_MAX = 1024 }; /* an agent keeps the newest */
#define TELEMETRY_SEQ_MAX ((uint64_t)INT64_MAX)

struct telemetry_query {
    enum telemetry_type type;
    uint64_t start;                  /* rows with a larger id */
    uint64_t end;                    /* and none larger than this; 0: no bound */
    uint64_t ack;                    /* committed by the colony up to here */
    bool may_ack;                    /* it is the registered colony that asks */
    uint32_t rows_max;               /* 1 ... batch_max of the type */
    struct telemetry_id known_epoch; /* the newest that the colony knows */
    const pawl_view *services;       /* only these; NULL: all. For people, not for pollers */
    size_t service_count;
    int64_t from_us;  /* timestamp at or after; with `until_us` 0: no bounds */
    int64_t until_us; /* and before */
};

/* INVALID: an id above 2^63 - 1, an end below the start, a wrong number of rows. */
PAWL_MUST_USE pawl_status pawl__telemetry_query_check(const struct telemetry_query *query,
                                                      pawl_error *reterr);

struct telemetry_row {
    uint64_t seq_id;
    pawl_view bytes;                       /* of its message, in the page's arena */
    const struct telemetry_values *values; /* NULL: not decoded, or it cannot be */
    const char *reason;                    /* why it was rejected; NULL: it was not */
};

/* Starts with zeroes. Used again after _clear without new memory. */
struct telemetry_page {
    struct telemetry_id session;
    struct telemetry_epoch
        *epochs; /* after the known one; all of them when the agent does not know that one */
    size_t epoch_count;
    size_t epoch_room;
    uint64_t min_available; /* the first id that is still there; high_water + 1 when none is */
    uint64_t high_water;    /* the last id that was given; 0: none yet */
    uint64_t scanned_to;    /* every row up to here that the query asked for is in the page */
    struct telemetry_row *rows;
    size_t count;
    size_t room;
    size_t bytes; /* of the rows, encoded */
    struct pawl__arena arena;
};

void pawl__telemetry_page_clear(struct telemetry_page *page);
void pawl__telemetry_page_done(struct telemetry_page *page);
PAWL_MUST_USE pawl_status pawl__telemetry_page_add_epoch(struct telemetry_page *page,
                                                         const struct telemetry_epoch *epoch,
                                                         pawl_error *reterr);
/* Copies the bytes. *ret_fits false: the page is full with what it has (TELEMETRY_PAGE_BYTES_MAX), nothing was added. */
PAWL_MUST_USE pawl_status pawl__telemetry_page_add(struct telemetry_page *page,
                                                   uint64_t seq_id,
                                                   pawl_view bytes,
                                                   bool *ret_fits,
                                                   pawl_error *reterr);
uint64_t pawl__telemetry_page_max(const struct telemetry_page *page); /* 0 when empty */

/* Whether an honest agent could have answered this query with this page: a session, epochs that begin ever later, rows
 * in order, within the bounds of the query and of what the agent says it has. INVALID names the lie. */
PAWL_MUST_USE pawl_status pawl__telemetry_page_check(const struct telemetry_query *query,
                                                     const struct telemetry_page *page,
                                                     pawl_error *reterr);

/* Decodes every row; one that cannot be decoded gets a reason instead of values. */
PAWL_MUST_USE pawl_status pawl__telemetry_page_decode(enum telemetry_type type,
                                                      struct telemetry_page *page,
                                                      pawl_error *reterr);

/* Where pages come from: an agent in this process, or one behind a connection. One thread at a time. */
struct telemetry_source {
    pawl_status (*query)(struct telemetry_source *source,
                         const struct telemetry_query *query,
                         struct telemetry_page *page,
                         pawl_error *reterr);
};

#endif
