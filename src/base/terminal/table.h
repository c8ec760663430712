/* Rows for people and programs from one description.
 *
 *   TERMINAL  aligned columns under a heading, numbers to the right, texts cut with "…" to fit the
 *             width; no value is "-". The first PAWL__TABLE_MEASURED_MAX rows decide the widths, so
 *             that any number of rows needs little memory.
 *   PLAIN     what goes into a pipe: every value whole, tabs between them, no heading, one row a
 *             line: made for cut, sort, awk and wc. No value is nothing.
 *   JSON      one object a line, the columns' names as keys; no value is null.
 *
 * What was stored by strangers is harmless in all three: control characters are escaped (in PLAIN,
 * too, so that a tab or line break is always ours).
 *
 *     static const struct pawl__column columns[] = { { "seq", false }, { "event_type", false } };
 *     AUTO(pawl__table_done) struct pawl__table table = { 0 };
 *
 *     pawl__table_init(&table, columns, COUNT_OF(columns), &options);
 *     const struct pawl__cell cells[] = { pawl__cell_integer(7), pawl__cell_text(type) };
 *     status = pawl__table_add(&table, cells, reterr);
 *     ...
 *     status = pawl__table_end(&table, reterr);
 *
 * Threads: a table belongs to one thread at a time. */
#ifndef PAWL_BASE_TERMINAL_TABLE_H
#define PAWL_BASE_TERMINAL_TABLE_H

#include <pawl/pawl.h>

#include "base/core/sink.h"

enum {
    PAWL__TABLE_COLUMNS_MAX = 32,
    PAWL__TABLE_MEASURED_MAX = 500,
    PAWL__TABLE_ROW_BYTES_MAX = 64 << 20, /* of one row, written */
};

enum pawl__cell_kind {
    PAWL__CELL_NONE, /* no value */
    PAWL__CELL_TEXT,
    PAWL__CELL_INTEGER,
    PAWL__CELL_REAL,
    PAWL__CELL_BOOL,
    PAWL__CELL_JSON, /* a value as it is */
};

struct pawl__cell {
    enum pawl__cell_kind kind;
    pawl_view text; /* borrowed for the call */
    int64_t integer;
    double real;
};

struct pawl__cell pawl__cell_none(void);
struct pawl__cell pawl__cell_text(pawl_view text);
struct pawl__cell pawl__cell_integer(int64_t value);
struct pawl__cell pawl__cell_real(double value); /* one that is not finite is no value */
struct pawl__cell pawl__cell_bool(bool value);
struct pawl__cell pawl__cell_json(pawl_view json); /* must be JSON */

struct pawl__column {
    const char *name; /* "event_type": the key in JSON; the heading is EVENT TYPE */
    bool whole;       /* never cut, like an id that people copy */
};

enum pawl__table_form {
    PAWL__TABLE_TERMINAL,
    PAWL__TABLE_PLAIN,
    PAWL__TABLE_JSON,
};

struct pawl__table_options {
    enum pawl__table_form form;
    size_t width; /* of the terminal */
    bool colour;  /* of the terminal: a bold heading */
    struct pawl__sink sink;
};

struct pawl__table {
    const struct pawl__column *columns;
    size_t count;
    struct pawl__table_options options;
    struct pawl__buf held; /* the cells that are measured, each ended by a line feed */
    struct pawl__buf line;
    size_t held_rows;
    bool measured;
    bool numeric[PAWL__TABLE_COLUMNS_MAX]; /* nothing but numbers so far */
    size_t widths[PAWL__TABLE_COLUMNS_MAX];
};

/* Borrows the columns. */
void pawl__table_init(struct pawl__table *table,
                      const struct pawl__column *columns,
                      size_t count,
                      const struct pawl__table_options *options);
void pawl__table_done(struct pawl__table *table);

/* One cell a column. Fails as the sink does, with NOMEM, or with INVALID for a row that is too
 * large. */
PAWL_MUST_USE pawl_status pawl__table_add(struct pawl__table *table,
                                          const struct pawl__cell *cells,
                                          pawl_error *reterr);

/* Writes what is still held. A table without rows writes nothing, no heading either. */
PAWL_MUST_USE pawl_status pawl__table_end(struct pawl__table *table, pawl_error *reterr);

#endif
