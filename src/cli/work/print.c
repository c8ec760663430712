#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "cli/work/work.h"
#include "records/work.h"

/* --- names --- */

/* The flags' choices allow no other. */
pawl_item_status pawl__cli_item_status_named(const char *name)
{
    pawl_item_status status = PAWL_ITEM_PENDING;

    REQUIRE(pawl_item_status_parse(pawl_view_of(name), &status, NULL) == PAWL_OK);
    return status;
}

pawl_task_status pawl__cli_task_status_named(const char *name)
{
    pawl_task_status status = PAWL_TASK_PENDING;

    REQUIRE(pawl_task_status_parse(pawl_view_of(name), &status, NULL) == PAWL_OK);
    return status;
}

pawl_checkpoint_type pawl__cli_checkpoint_type_named(const char *name)
{
    pawl_checkpoint_type type = PAWL_CHECKPOINT_MANUAL_CHECKPOINT;

    REQUIRE(pawl_checkpoint_type_parse(pawl_view_of(name), &type, NULL) == PAWL_OK);
    return type;
}

/* --- rows --- */

struct pawl__cell pawl__cli_cell_of(pawl_view text)
{
    return text.len == 0 ? pawl__cell_none() : pawl__cell_text(text);
}

struct pawl__cell pawl__cli_cell_value(pawl_view json)
{
    return json.len > 0 && pawl__json_check(json, SIZE_MAX / 2, NULL) == PAWL_OK
               ? pawl__cell_json(json)
               : pawl__cli_cell_of(json);
}

struct pawl__cell pawl__cli_cell_time(int64_t us, char ret_text[WORK_TIME_SIZE])
{
    if (us == 0) {
        return pawl__cell_none();
    }
    pawl__time_rfc3339(us, ret_text);
    return pawl__cell_text(pawl_view_of(ret_text));
}

pawl_status pawl__cli_work_print_line(const struct pawl__cli_run *run,
                                      const struct pawl__buf *line,
                                      pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf shown = BUF_INIT(SIZE_MAX / 2);

    pawl__cli_out_add_value(run, &shown, pawl__buf_view(line));
    pawl__buf_add_char(&shown, '\n');
    shown.broken = shown.broken || line->broken;
    return pawl__cli_out_add(&shown, reterr);
}

void pawl__cli_rows_start(struct pawl__cli_rows *rows,
                          const struct pawl__cli_run *run,
                          const struct pawl__column *columns,
                          size_t count,
                          pawl_error *reterr)
{
    struct pawl__table_options options = pawl__cli_out_table(run);

    *rows = (struct pawl__cli_rows){
        .run = run,
        .line = BUF_INIT(SIZE_MAX / 2),
        .reterr = reterr,
    };
    pawl__table_init(&rows->table, columns, count, &options);
}

void pawl__cli_rows_done(struct pawl__cli_rows *rows)
{
    pawl__table_done(&rows->table);
    pawl__buf_done(&rows->line);
}

bool pawl__cli_rows_add(struct pawl__cli_rows *rows, const struct pawl__cell *cells)
{
    rows->status = pawl__table_add(&rows->table, cells, rows->reterr);
    return rows->status == PAWL_OK;
}

bool pawl__cli_rows_add_line(struct pawl__cli_rows *rows)
{
    rows->status = pawl__cli_work_print_line(rows->run, &rows->line, rows->reterr);
    pawl__buf_clear(&rows->line);
    return rows->status == PAWL_OK;
}

bool pawl__cli_rows_add_json(struct pawl__cli_rows *rows, pawl_status status)
{
    rows->status = status;
    if (status != PAWL_OK) {
        return false;
    }
    pawl__buf_add(&rows->line, (pawl_view){ rows->json, rows->json_len });
    free(STEAL(rows->json));
    return pawl__cli_rows_add_line(rows);
}

pawl_status pawl__cli_rows_end(struct pawl__cli_rows *rows, pawl_status status)
{
    if (rows->status != PAWL_OK) {
        return rows->status;
    }
    return status == PAWL_OK ? pawl__table_end(&rows->table, rows->reterr) : status;
}

void pawl__cli_rows_start_records(struct pawl__cli_rows *rows,
                                  const struct pawl__cli_run *run,
                                  const struct pawl__record *record,
                                  const struct pawl__column *columns,
                                  size_t count,
                                  pawl_error *reterr)
{
    pawl__cli_rows_start(rows, run, columns, count, reterr);
    rows->record = record;
}

bool pawl__cli_rows_add_record(struct pawl__cli_rows *rows, const void *value)
{
    char times[PAWL__TABLE_COLUMNS_MAX][PAWL__TIME_SIZE];
    struct pawl__cell cells[PAWL__TABLE_COLUMNS_MAX];

    if (rows->run->json) {
        pawl__record_write(rows->record, value, &rows->line);
        return pawl__cli_rows_add_line(rows);
    }
    for (size_t i = 0; i < rows->table.count; i++) {
        const struct pawl__field *field =
            pawl__record_field(rows->record, rows->table.columns[i].name);
        REQUIRE(field != NULL);
        cells[i] = pawl__record_cell(field, value, times[i]);
    }
    return pawl__cli_rows_add(rows, cells);
}

bool pawl__cli_item_row(void *context, const pawl_item *item)
{
    return pawl__cli_rows_add_record(context, item);
}

bool pawl__cli_checkpoint_row(void *context, const pawl_checkpoint *checkpoint)
{
    return pawl__cli_rows_add_record(context, checkpoint);
}

pawl_status pawl__cli_work_answer(const struct pawl__cli_run *run,
                                  const struct pawl__cli_field *fields,
                                  pawl_error *reterr)
{
    AUTO(pawl__table_done) struct pawl__table table = { 0 };
    struct pawl__table_options options = pawl__cli_out_table(run);
    struct pawl__column columns[PAWL__TABLE_COLUMNS_MAX];
    struct pawl__cell cells[PAWL__TABLE_COLUMNS_MAX];
    size_t count = 0;

    for (; fields[count].name != NULL; count++) {
        REQUIRE(count < PAWL__TABLE_COLUMNS_MAX);
        columns[count] = (struct pawl__column){ fields[count].name, fields[count].whole };
        cells[count] = fields[count].cell;
    }
    pawl__table_init(&table, columns, count, &options);
    TRY(pawl__table_add(&table, cells, reterr));
    return pawl__table_end(&table, reterr);
}
