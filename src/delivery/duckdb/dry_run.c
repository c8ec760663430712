#include "delivery/duckdb/dry_run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/json/json.h"
#include "delivery/duckdb/expressions.h"

enum { ROW_BYTES_MAX = 256 << 20 };

struct dry {
    const struct delivery_mapping *mapping;
    struct delivery_expressions *expressions; /* NULL: nothing is computed */
    struct pawl__arena arena;
    struct pawl__buf row;
};

static void dry_done(struct dry *dry)
{
    pawl__delivery_expressions_close(dry->expressions);
    pawl__arena_done(&dry->arena);
    pawl__buf_done(&dry->row);
}

static pawl_status add_text(struct pawl__buf *buf, pawl_view text, pawl_error *reterr)
{
    json_auto_t *json = json_stringn(text.data == NULL ? "" : text.data, text.len);

    TRY(pawl__check_memory(json, "a value", reterr));
    return pawl__json_dump(json, buf, reterr);
}

static pawl_status add_value(struct pawl__buf *buf,
                             const struct delivery_value *value,
                             pawl_error *reterr)
{
    char time[PAWL__TIME_SIZE];

    if (value->is_null) {
        pawl__buf_add_text(buf, "null");
        return PAWL_OK;
    }
    switch (value->type) {
    case DELIVERY_BIGINT:
    case DELIVERY_INTEGER:
        pawl__buf_add_format(buf, "%" PRId64, value->as.i64);
        return PAWL_OK;
    case DELIVERY_DOUBLE:
        pawl__buf_add_real(buf, value->as.real);
        return PAWL_OK;
    case DELIVERY_BOOLEAN:
        pawl__buf_add_text(buf, value->as.boolean ? "true" : "false");
        return PAWL_OK;
    case DELIVERY_TIMESTAMP:
        pawl__time_rfc3339(value->as.i64, time);
        pawl__buf_add_format(buf, "\"%s\"", time);
        return PAWL_OK;
    case DELIVERY_JSON:
        pawl__buf_add(buf, value->as.text);
        return PAWL_OK;
    default:
        return add_text(buf, value->as.text, reterr);
    }
}

static pawl_status make_row(struct dry *dry, const struct delivery_entry *entry, pawl_error *reterr)
{
    pawl__buf_clear(&dry->row);
    pawl__buf_add_char(&dry->row, '{');
    for (size_t i = 0; i < dry->mapping->count; i++) {
        const struct delivery_column *column = &dry->mapping->columns[i];
        struct delivery_value value;
        TRY(column->from == DELIVERY_FROM_EXPRESSION
                ? pawl__delivery_expressions_value(dry->expressions, column, entry, &value, reterr)
                : pawl__delivery_map_value(column, entry, &dry->arena, &value, reterr));
        pawl__buf_add_format(&dry->row, "%s\"%s\":", i == 0 ? "" : ",", column->name);
        TRY(add_value(&dry->row, &value, reterr));
        pawl__arena_clear(&dry->arena);
    }
    pawl__buf_add_char(&dry->row, '}');
    return pawl__buf_check(&dry->row, "a row", reterr);
}

static pawl_status judge(struct dry *dry,
                         const struct delivery_entry *entries,
                         size_t count,
                         struct delivery_verdict *verdicts,
                         pawl_error *reterr)
{
    if (dry->expressions != NULL) {
        return pawl__delivery_expressions_judge(dry->expressions, entries, count, verdicts, reterr);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(pawl__delivery_map_verdict(dry->mapping, &entries[i], &verdicts[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status show(struct dry *dry,
                        const struct delivery_entry *entries,
                        size_t count,
                        const struct delivery_verdict *verdicts,
                        delivery_dry_visitor *visit,
                        void *context,
                        pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        pawl_view row = { NULL, 0 };
        if (verdicts[i].kind == DELIVERY_ROW) {
            TRY(make_row(dry, &entries[i], reterr));
            row = pawl__buf_view(&dry->row);
        }
        TRY(visit(context, &entries[i], &verdicts[i], row, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_dry_run(const struct delivery_mapping *mapping,
                                   struct pawl__clock *clock,
                                   const struct delivery_entry *entries,
                                   size_t count,
                                   delivery_dry_visitor *visit,
                                   void *context,
                                   pawl_error *reterr)
{
    AUTO(dry_done)
    struct dry dry = { .mapping = mapping != NULL ? mapping : pawl__delivery_default_mapping(),
                       .row = BUF_INIT(ROW_BYTES_MAX) };

    TRY(pawl__delivery_mapping_check(dry.mapping, reterr));
    if (pawl__delivery_mapping_computes(dry.mapping)) {
        TRY(pawl__delivery_expressions_open(
            dry.mapping, pawl__clock_or_real(clock), &dry.expressions, reterr));
    }
    struct delivery_verdict *verdicts = malloc((count + 1) * sizeof(*verdicts));
    TRY(pawl__check_memory(verdicts, "a sample", reterr));
    pawl_status status = judge(&dry, entries, count, verdicts, reterr);
    if (status == PAWL_OK) {
        status = show(&dry, entries, count, verdicts, visit, context, reterr);
    }
    free(verdicts);
    return status;
}
