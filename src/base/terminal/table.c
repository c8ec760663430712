#include "base/terminal/table.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/terminal/display.h"

enum {
    HELD_BYTES_MAX = 1 << 20, /* with more than that, what is there decides the widths */
    COLUMN_WIDTH_MIN = 8,     /* a text is not cut below it */
    GAP = 2,
};

struct pawl__cell pawl__cell_none(void)
{
    return (struct pawl__cell){ .kind = PAWL__CELL_NONE };
}

struct pawl__cell pawl__cell_text(pawl_view text)
{
    return (struct pawl__cell){ .kind = PAWL__CELL_TEXT, .text = text };
}

struct pawl__cell pawl__cell_json(pawl_view json)
{
    return (struct pawl__cell){ .kind = PAWL__CELL_JSON, .text = json };
}

struct pawl__cell pawl__cell_integer(int64_t value)
{
    return (struct pawl__cell){ .kind = PAWL__CELL_INTEGER, .integer = value };
}

struct pawl__cell pawl__cell_real(double value)
{
    return (struct pawl__cell){ .kind = isfinite(value) ? PAWL__CELL_REAL : PAWL__CELL_NONE,
                                .real = value };
}

struct pawl__cell pawl__cell_bool(bool value)
{
    return (struct pawl__cell){ .kind = PAWL__CELL_BOOL, .integer = value };
}

void pawl__table_init(struct pawl__table *table,
                      const struct pawl__column *columns,
                      size_t count,
                      const struct pawl__table_options *options)
{
    REQUIRE(count > 0 && count <= PAWL__TABLE_COLUMNS_MAX);
    *table = (struct pawl__table){
        .columns = columns,
        .count = count,
        .options = *options,
        .held = BUF_INIT((size_t)PAWL__TABLE_ROW_BYTES_MAX + HELD_BYTES_MAX),
        .line = BUF_INIT(PAWL__TABLE_ROW_BYTES_MAX),
    };
    for (size_t i = 0; i < count; i++) {
        table->numeric[i] = true;
    }
}

void pawl__table_done(struct pawl__table *table)
{
    pawl__buf_done(&table->held);
    pawl__buf_done(&table->line);
}

static pawl_status write_line(struct pawl__table *table, pawl_error *reterr)
{
    pawl_status status;

    pawl__buf_add_char(&table->line, '\n');
    status = pawl__buf_check(&table->line, "row", reterr);
    if (status == PAWL_OK) {
        status = pawl__sink_write(&table->options.sink, pawl__buf_view(&table->line), reterr);
    }
    pawl__buf_clear(&table->line);
    return status;
}

/* What is the same in every form: numbers, truth and JSON. */
static void add_value(const struct pawl__cell *cell, struct pawl__buf *buf)
{
    switch (cell->kind) {
    case PAWL__CELL_INTEGER:
        pawl__buf_add_format(buf, "%lld", (long long)cell->integer);
        break;
    case PAWL__CELL_REAL:
        pawl__buf_add_real(buf, cell->real);
        break;
    case PAWL__CELL_BOOL:
        pawl__buf_add_text(buf, cell->integer != 0 ? "true" : "false");
        break;
    case PAWL__CELL_JSON:
        pawl__display_add_json_value(buf, cell->text);
        break;
    case PAWL__CELL_NONE:
    case PAWL__CELL_TEXT:
        break;
    }
}

static void add_shown(const struct pawl__cell *cell, struct pawl__buf *buf)
{
    if (cell->kind == PAWL__CELL_TEXT) {
        pawl__display_add(buf, cell->text);
    } else {
        add_value(cell, buf);
    }
}

static pawl_status write_plain(struct pawl__table *table,
                               const struct pawl__cell *cells,
                               pawl_error *reterr)
{
    for (size_t i = 0; i < table->count; i++) {
        pawl__buf_add_text(&table->line, i == 0 ? "" : "\t");
        add_shown(&cells[i], &table->line);
    }
    return write_line(table, reterr);
}

static pawl_status write_json(struct pawl__table *table,
                              const struct pawl__cell *cells,
                              pawl_error *reterr)
{
    struct pawl__buf *line = &table->line;

    for (size_t i = 0; i < table->count; i++) {
        pawl__buf_add_char(line, i == 0 ? '{' : ',');
        pawl__display_add_json(line, pawl_view_of(table->columns[i].name));
        pawl__buf_add_char(line, ':');
        if (cells[i].kind == PAWL__CELL_TEXT) {
            pawl__display_add_json(line, cells[i].text);
        } else if (cells[i].kind == PAWL__CELL_NONE) {
            pawl__buf_add_text(line, "null");
        } else {
            add_value(&cells[i], line);
        }
    }
    pawl__buf_add_char(line, '}');
    return write_line(table, reterr);
}

/* "event_type" is EVENT TYPE. */
static void add_heading(const char *name, struct pawl__buf *buf)
{
    static const char from[] = "abcdefghijklmnopqrstuvwxyz_";
    static const char to[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ ";

    for (const char *c = name; *c != '\0'; c++) {
        const char *at = strchr(from, *c);
        pawl__buf_add_char(buf, at == NULL ? *c : to[at - from]);
    }
}

static size_t total_width(const struct pawl__table *table)
{
    size_t total = (table->count - 1) * GAP;

    for (size_t i = 0; i < table->count; i++) {
        total += table->widths[i];
    }
    return total;
}

static bool may_shrink(const struct pawl__table *table, size_t i)
{
    return !table->numeric[i] && !table->columns[i].whole && table->widths[i] > COLUMN_WIDTH_MIN;
}

/* Takes columns away from the widest text until the line fits or nothing is left to take. */
static void shrink(struct pawl__table *table)
{
    for (size_t total = total_width(table); total > table->options.width; total--) {
        size_t widest = table->count;

        for (size_t i = 0; i < table->count; i++) {
            bool wider = widest == table->count || table->widths[i] > table->widths[widest];
            if (may_shrink(table, i) && wider) {
                widest = i;
            }
        }
        if (widest == table->count) {
            return;
        }
        table->widths[widest]--;
    }
}

static void widen(struct pawl__table *table, size_t i, pawl_view text)
{
    table->widths[i] = MAX(table->widths[i], pawl__display_width(text));
}

static void measure(struct pawl__table *table)
{
    pawl_view rest = pawl__buf_view(&table->held);
    pawl_view cell;

    for (size_t i = 0; i < table->count; i++) {
        widen(table, i, pawl_view_of(table->columns[i].name));
    }
    for (size_t i = 0; pawl__view_split(&rest, '\n', &cell); i = (i + 1) % table->count) {
        widen(table, i, cell);
    }
    shrink(table);
    table->measured = true;
}

/* One cell in its column. A number, or a text that must be whole, may push the rest aside. */
static void add_aligned(struct pawl__table *table, size_t i, pawl_view text)
{
    struct pawl__buf *line = &table->line;
    size_t width = pawl__display_width(text);
    size_t padding = table->widths[i] - MIN(width, table->widths[i]);

    if (table->numeric[i]) {
        pawl__display_add_spaces(line, padding);
        pawl__buf_add(line, text);
    } else {
        if (table->columns[i].whole) {
            pawl__buf_add(line, text);
        } else {
            pawl__display_add_cut(line, text, table->widths[i]);
        }
        if (i + 1 < table->count) {
            pawl__display_add_spaces(line, padding);
        }
    }
    if (i + 1 < table->count) {
        pawl__display_add_spaces(line, GAP);
    }
}

static pawl_status write_heading(struct pawl__table *table, pawl_error *reterr)
{
    char heading_text[256];

    pawl__buf_add_text(&table->line, table->options.colour ? "\x1b[1m" : "");
    for (size_t i = 0; i < table->count; i++) {
        struct pawl__buf heading = BUF_OVER(heading_text);

        add_heading(table->columns[i].name, &heading);
        add_aligned(table, i, pawl__buf_view(&heading));
    }
    pawl__buf_add_text(&table->line, table->options.colour ? "\x1b[0m" : "");
    return write_line(table, reterr);
}

/* The held cells, a row after the other. */
static pawl_status write_held(struct pawl__table *table, pawl_error *reterr)
{
    pawl_view rest = pawl__buf_view(&table->held);
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && rest.len > 0) {
        for (size_t i = 0; i < table->count; i++) {
            pawl_view cell;

            REQUIRE(pawl__view_split(&rest, '\n', &cell));
            add_aligned(table, i, cell);
        }
        status = write_line(table, reterr);
    }
    pawl__buf_clear(&table->held);
    table->held_rows = 0;
    return status;
}

static pawl_status flush(struct pawl__table *table, pawl_error *reterr)
{
    if (!table->measured) {
        measure(table);
        TRY(write_heading(table, reterr));
    }
    return write_held(table, reterr);
}

/* Once a column is measured, it stays what it is. */
static void note_kinds(struct pawl__table *table, const struct pawl__cell *cells)
{
    for (size_t i = 0; !table->measured && i < table->count; i++) {
        bool is_text = cells[i].kind == PAWL__CELL_TEXT || cells[i].kind == PAWL__CELL_BOOL
                       || cells[i].kind == PAWL__CELL_JSON;

        table->numeric[i] = table->numeric[i] && !is_text;
    }
}

static pawl_status hold(struct pawl__table *table,
                        const struct pawl__cell *cells,
                        pawl_error *reterr)
{
    size_t before = table->held.len;

    for (size_t i = 0; i < table->count; i++) {
        if (cells[i].kind == PAWL__CELL_NONE) {
            pawl__buf_add_char(&table->held, '-');
        } else {
            add_shown(&cells[i], &table->held);
        }
        pawl__buf_add_char(&table->held, '\n');
    }
    if (table->held.broken) { /* a row is held whole or not at all */
        pawl_status status = pawl__buf_check(&table->held, "row", reterr);
        pawl__buf_cut(&table->held, before);
        return status;
    }
    table->held_rows++;
    note_kinds(table, cells);
    bool full = table->held_rows >= PAWL__TABLE_MEASURED_MAX || table->held.len >= HELD_BYTES_MAX;
    return table->measured || full ? flush(table, reterr) : PAWL_OK;
}

pawl_status pawl__table_add(struct pawl__table *table,
                            const struct pawl__cell *cells,
                            pawl_error *reterr)
{
    switch (table->options.form) {
    case PAWL__TABLE_JSON:
        return write_json(table, cells, reterr);
    case PAWL__TABLE_PLAIN:
        return write_plain(table, cells, reterr);
    case PAWL__TABLE_TERMINAL:
        break;
    }
    return hold(table, cells, reterr);
}

pawl_status pawl__table_end(struct pawl__table *table, pawl_error *reterr)
{
    return table->held_rows > 0 ? flush(table, reterr) : PAWL_OK;
}
