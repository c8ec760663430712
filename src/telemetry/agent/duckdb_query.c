/* One page: a bounded range of ids in one snapshot. */
#include <inttypes.h>

#include "base/core/error.h"
#include "telemetry/agent/internal.h"

static const size_t next_statements[TELEMETRY_TYPE_COUNT] = {
    [TELEMETRY_SPANS] = TELEMETRY_AGENT_NEXT_TELEMETRY,
    [TELEMETRY_BEYLA_HTTP] = TELEMETRY_AGENT_NEXT_BEYLA_HTTP,
    [TELEMETRY_BEYLA_GRPC] = TELEMETRY_AGENT_NEXT_BEYLA_GRPC,
    [TELEMETRY_BEYLA_SQL] = TELEMETRY_AGENT_NEXT_BEYLA_SQL,
    [TELEMETRY_BEYLA_TRACES] = TELEMETRY_AGENT_NEXT_BEYLA_TRACES,
    [TELEMETRY_SYSTEM_METRICS] = TELEMETRY_AGENT_NEXT_SYSTEM_METRICS,
    [TELEMETRY_CPU_PROFILE] = TELEMETRY_AGENT_NEXT_CPU_PROFILE,
    [TELEMETRY_MEMORY_PROFILE] = TELEMETRY_AGENT_NEXT_MEMORY_PROFILE,
};

size_t pawl__telemetry_agent_page_statement(enum telemetry_type type)
{
    static const size_t statements[TELEMETRY_TYPE_COUNT] = {
        [TELEMETRY_SPANS] = TELEMETRY_AGENT_PAGE_TELEMETRY,
        [TELEMETRY_BEYLA_HTTP] = TELEMETRY_AGENT_PAGE_BEYLA_HTTP,
        [TELEMETRY_BEYLA_GRPC] = TELEMETRY_AGENT_PAGE_BEYLA_GRPC,
        [TELEMETRY_BEYLA_SQL] = TELEMETRY_AGENT_PAGE_BEYLA_SQL,
        [TELEMETRY_BEYLA_TRACES] = TELEMETRY_AGENT_PAGE_BEYLA_TRACES,
        [TELEMETRY_SYSTEM_METRICS] = TELEMETRY_AGENT_PAGE_SYSTEM_METRICS,
        [TELEMETRY_CPU_PROFILE] = TELEMETRY_AGENT_PAGE_CPU_PROFILE,
        [TELEMETRY_MEMORY_PROFILE] = TELEMETRY_AGENT_PAGE_MEMORY_PROFILE,
    };

    return statements[type];
}

void pawl__telemetry_agent_read_row(enum telemetry_type type,
                                    const struct pawl__duck_rows *rows,
                                    size_t first,
                                    struct telemetry_values *ret_row)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);

    for (size_t i = 0; i < info->column_count; i++) {
        struct telemetry_value *value = &ret_row->at[i];
        switch (info->columns[i].kind) {
        case 'z':
            value->as.i64 = pawl__duck_get_time(rows, first + i);
            break;
        case 'i':
            value->as.i64 = pawl__duck_get_i64(rows, first + i);
            break;
        case 'd':
            value->as.real = pawl__duck_get_double(rows, first + i);
            break;
        case 'b':
            value->as.flag = pawl__duck_get_bool(rows, first + i);
            break;
        default:
            value->as.text = pawl__duck_get_text(rows, first + i);
        }
    }
}

static bool find_counter(pawl_view name, size_t *ret_type)
{
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        if (pawl__view_is(name, pawl__telemetry_type((enum telemetry_type)t)->counter)) {
            *ret_type = t;
            return true;
        }
    }
    return false;
}

pawl_status pawl__telemetry_agent_read_counters(struct pawl__duck_conn *conn,
                                                uint64_t ret_counters[TELEMETRY_TYPE_COUNT],
                                                uint64_t ret_removed[TELEMETRY_TYPE_COUNT],
                                                pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    size_t found = 0;
    size_t t = 0;

    TRY(pawl__duck_query(conn, TELEMETRY_AGENT_COUNTERS_READ, DUCK_NO_ARGS, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        if (find_counter(pawl__duck_get_text(rows, 0), &t)) {
            ret_counters[t] = pawl__duck_get_u64(rows, 1);
            ret_removed[t] = pawl__duck_get_u64(rows, 2);
            found++;
        }
        TRY(pawl__duck_next(rows, reterr));
    }
    return found == TELEMETRY_TYPE_COUNT
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CORRUPT, "%zu of 8 sequence counters are there", found);
}

/* --- a page --- */

struct scan {
    struct telemetry_duckdb_agent *agent;
    const struct telemetry_query *query;
    struct telemetry_page *page;
    struct pawl__buf buf; /* of one row */
    uint64_t bound;       /* the last id that is asked for */
    bool is_full;
};

static pawl_status take_row(struct scan *scan,
                            uint64_t seq_id,
                            const struct telemetry_values *row,
                            pawl_error *reterr)
{
    bool fits = true;

    if (seq_id <= scan->page->scanned_to) {
        return pawl__fail(reterr, PAWL_CORRUPT, "row %" PRIu64 " is stored out of order", seq_id);
    }
    if (scan->page->count == scan->query->rows_max) {
        scan->is_full = true;
        return PAWL_OK;
    }
    if (pawl__telemetry_query_wants(scan->query, row)) {
        pawl__buf_clear(&scan->buf);
        TRY(pawl__telemetry_row_encode(scan->query->type, seq_id, row, &scan->buf, reterr));
        TRY(pawl__telemetry_page_add(
            scan->page, seq_id, pawl__buf_view(&scan->buf), &fits, reterr));
    }
    scan->is_full = !fits;
    scan->page->scanned_to = fits ? seq_id : scan->page->scanned_to;
    return PAWL_OK;
}

/* Ids after scanned_to up to `end`. */
static pawl_status scan_range(struct scan *scan, uint64_t end, pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    struct telemetry_values row;

    TRY(pawl__duck_query(scan->agent->read.conn,
                         pawl__telemetry_agent_page_statement(scan->query->type),
                         DUCK_ARGS(pawl__duck_u64(scan->page->scanned_to), pawl__duck_u64(end)),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows) && !scan->is_full) {
        pawl__telemetry_agent_read_row(scan->query->type, rows, 1, &row);
        TRY(take_row(scan, pawl__duck_get_u64(rows, 0), &row, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    if (!scan->is_full) {
        scan->page->scanned_to = end;
    }
    return PAWL_OK;
}

/* The id of the next row that is stored, past a hole; the bound when there is none. */
static pawl_status skip_hole(struct scan *scan, pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(scan->agent->read.conn,
                         next_statements[scan->query->type],
                         DUCK_ARGS(pawl__duck_u64(scan->page->scanned_to)),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    uint64_t next = pawl__duck_has_row(rows) && !pawl__duck_is_null(rows, 0)
                        ? pawl__duck_get_u64(rows, 0)
                        : scan->bound + 1;
    scan->page->scanned_to = MIN(next - 1, scan->bound);
    return PAWL_OK;
}

static pawl_status scan_all(struct scan *scan, pawl_error *reterr)
{
    while (!scan->is_full && scan->page->scanned_to < scan->bound) {
        size_t before = scan->page->count;
        uint64_t room = scan->query->rows_max - before;
        if (room == 0) {
            return PAWL_OK;
        }
        TRY(scan_range(scan, MIN(scan->page->scanned_to + room, scan->bound), reterr));
        bool is_filtered = scan->query->service_count > 0 || scan->query->until_us != 0;
        if (scan->page->count == before && !scan->is_full && !is_filtered
            && scan->page->scanned_to < scan->bound) {
            TRY(skip_hole(scan, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status fill(struct telemetry_duckdb_agent *agent,
                        const struct telemetry_query *query,
                        struct telemetry_page *page,
                        pawl_error *reterr)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = agent->read.conn;
    uint64_t counters[TELEMETRY_TYPE_COUNT];
    uint64_t removed[TELEMETRY_TYPE_COUNT];
    struct scan scan = {
        .agent = agent, .query = query, .page = page, .buf = BUF_INIT(TELEMETRY_ROW_BYTES_MAX * 2)
    };

    TRY(pawl__duck_begin(guard, PAWL__DUCK_READ_ONLY, reterr));
    TRY(pawl__telemetry_agent_read_counters(guard, counters, removed, reterr));
    page->high_water = counters[query->type];
    page->min_available = removed[query->type] + 1;
    scan.bound = query->end == 0 ? page->high_water : MIN(query->end, page->high_water);
    page->scanned_to = MAX(query->start, MIN(removed[query->type], scan.bound));
    pawl_status status = scan_all(&scan, reterr);
    pawl__buf_done(&scan.buf);
    return status;
}

pawl_status pawl__telemetry_agent_query(struct telemetry_agent_store *base,
                                        const struct telemetry_query *query,
                                        struct telemetry_page *page,
                                        pawl_error *reterr)
{
    struct telemetry_duckdb_agent *agent = as_duckdb(base);

    TRY(pawl__telemetry_query_check(query, reterr));
    pawl__telemetry_page_clear(page);
    pawl__lock(&agent->state_lock);
    pawl_status status = pawl__telemetry_state_answer(&agent->state, query, page, reterr);
    pawl__unlock(&agent->state_lock);
    TRY(status);
    pawl__lock(&agent->read.lock);
    status = fill(agent, query, page, reterr);
    pawl__unlock(&agent->read.lock);
    return status;
}
