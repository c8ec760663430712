#include "telemetry/agent/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"

static struct telemetry_memory_agent *as_memory(struct telemetry_agent_store *store)
{
    return (struct telemetry_memory_agent *)store; /* base is its first member */
}

static pawl_status put_bytes(struct telemetry_memory_rows *rows,
                             uint64_t seq_id,
                             pawl_view bytes,
                             pawl_error *reterr)
{
    struct telemetry_memory_row *at = pawl__grow(rows->at, rows->count, &rows->room, sizeof(*at));

    TRY(pawl__check_memory(at, "a row", reterr));
    rows->at = at;
    char *copy = pawl__view_dup(bytes);
    TRY(pawl__check_memory(copy, "a row", reterr));
    at[rows->count++] = (struct telemetry_memory_row){ seq_id, copy, bytes.len };
    return PAWL_OK;
}

static void cut_rows(struct telemetry_memory_rows *rows, size_t count)
{
    while (rows->count > count) {
        free(rows->at[--rows->count].bytes);
    }
}

static pawl_status put_row(struct telemetry_memory_agent *agent,
                           enum telemetry_type type,
                           uint64_t seq_id,
                           const struct telemetry_values *row,
                           pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(TELEMETRY_ROW_BYTES_MAX * 2);

    TRY(pawl__telemetry_row_encode(type, seq_id, row, &buf, reterr));
    return put_bytes(&agent->rows[type], seq_id, pawl__buf_view(&buf), reterr);
}

static pawl_status put_rows(struct telemetry_memory_agent *agent,
                            enum telemetry_type type,
                            const struct telemetry_values *rows,
                            const struct telemetry_admitted *admitted,
                            pawl_error *reterr)
{
    uint64_t seq_id = agent->state.counters[type];
    size_t before = agent->rows[type].count;

    for (size_t i = 0; i < admitted->count; i++) {
        pawl_status status = put_row(agent, type, ++seq_id, &rows[admitted->places[i]], reterr);
        if (status != PAWL_OK) {
            cut_rows(&agent->rows[type], before);
            return status;
        }
    }
    return PAWL_OK;
}

static void free_places(size_t **places)
{
    free(*places);
}

static pawl_status append(struct telemetry_agent_store *base,
                          enum telemetry_type type,
                          const struct telemetry_values *rows,
                          size_t count,
                          struct telemetry_appended *ret_appended,
                          pawl_error *reterr)
{
    struct telemetry_memory_agent *agent = as_memory(base);
    AUTO(free_places) size_t *places = calloc(count + 1, sizeof(*places));
    struct telemetry_admitted admitted = { .places = places };

    TRY(pawl__check_memory(places, "a batch", reterr));
    TRY(pawl__telemetry_state_admit(&agent->state, type, rows, count, &admitted, reterr));
    pawl_status status = put_rows(agent, type, rows, &admitted, reterr);
    if (status != PAWL_OK) {
        pawl__telemetry_state_undo(&agent->state, type, &admitted);
        return status;
    }
    *ret_appended = pawl__telemetry_state_stored(
        &agent->state, type, &admitted, count, pawl__boot_ns(agent->clock));
    return PAWL_OK;
}

/* --- queries --- */

static pawl_status is_wanted(const struct telemetry_query *query,
                             const struct telemetry_memory_row *row,
                             struct pawl__arena *scratch,
                             bool *ret_wanted,
                             pawl_error *reterr)
{
    struct telemetry_values values;
    uint64_t seq_id;

    *ret_wanted = true;
    if (query->service_count == 0 && query->until_us == 0) {
        return PAWL_OK;
    }
    TRY(pawl__telemetry_row_decode(
        query->type, (pawl_view){ row->bytes, row->len }, scratch, &seq_id, &values, reterr));
    *ret_wanted = pawl__telemetry_query_wants(query, &values);
    return PAWL_OK;
}

static pawl_status scan(struct telemetry_memory_agent *agent,
                        const struct telemetry_query *query,
                        struct telemetry_page *page,
                        pawl_error *reterr)
{
    const struct telemetry_memory_rows *rows = &agent->rows[query->type];
    AUTO(pawl__arena_done) struct pawl__arena scratch = ARENA_INIT;
    uint64_t bound = query->end == 0 ? page->high_water : MIN(query->end, page->high_water);
    bool fits = true;

    for (size_t i = 0; i < rows->count && rows->at[i].seq_id <= bound; i++) {
        const struct telemetry_memory_row *row = &rows->at[i];
        bool wanted = false;
        if (row->seq_id <= query->start) {
            continue;
        }
        if (page->count == query->rows_max) {
            return PAWL_OK;
        }
        TRY(is_wanted(query, row, &scratch, &wanted, reterr));
        if (wanted) {
            TRY(pawl__telemetry_page_add(
                page, row->seq_id, (pawl_view){ row->bytes, row->len }, &fits, reterr));
        }
        if (!fits) {
            return PAWL_OK;
        }
        page->scanned_to = row->seq_id;
    }
    page->scanned_to = MAX(page->scanned_to, bound);
    return PAWL_OK;
}

static pawl_status query_rows(struct telemetry_agent_store *base,
                              const struct telemetry_query *query,
                              struct telemetry_page *page,
                              pawl_error *reterr)
{
    struct telemetry_memory_agent *agent = as_memory(base);

    TRY(pawl__telemetry_query_check(query, reterr));
    pawl__telemetry_page_clear(page);
    TRY(pawl__telemetry_state_answer(&agent->state, query, page, reterr));
    page->min_available = agent->state.removed[query->type] + 1;
    page->high_water = agent->state.counters[query->type];
    page->scanned_to = query->start;
    return scan(agent, query, page, reterr);
}

/* --- retention --- */

static uint64_t used_bytes(const struct telemetry_memory_agent *agent)
{
    uint64_t used = 0;

    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        for (size_t i = 0; i < agent->rows[t].count; i++) {
            used += agent->rows[t].at[i].len;
        }
    }
    return used;
}

static uint64_t remove_up_to(struct telemetry_memory_agent *agent,
                             enum telemetry_type type,
                             uint64_t up_to)
{
    struct telemetry_memory_rows *rows = &agent->rows[type];
    size_t gone = 0;

    while (gone < rows->count && rows->at[gone].seq_id <= up_to) {
        free(rows->at[gone++].bytes);
    }
    rows->count -= gone;
    if (gone > 0) {
        memmove(rows->at, &rows->at[gone], rows->count * sizeof(*rows->at));
    }
    pawl__telemetry_state_removed(&agent->state, type, up_to);
    return gone;
}

static pawl_status maintain(struct telemetry_agent_store *base,
                            uint64_t *ret_removed,
                            pawl_error *reterr)
{
    struct telemetry_memory_agent *agent = as_memory(base);
    int64_t now_ns = pawl__boot_ns(agent->clock);
    enum telemetry_type type;
    uint64_t up_to = 0;
    uint64_t removed = 0;

    (void)reterr;
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        type = (enum telemetry_type)t;
        removed +=
            remove_up_to(agent, type, pawl__telemetry_state_aged(&agent->state, type, now_ns));
    }
    while (pawl__telemetry_state_oversized(&agent->state, used_bytes(agent), &type, &up_to)) {
        removed += remove_up_to(agent, type, up_to);
    }
    if (ret_removed != NULL) {
        *ret_removed = removed;
    }
    return PAWL_OK;
}

static pawl_status status_of(struct telemetry_agent_store *base,
                             struct telemetry_agent_status *ret_status,
                             pawl_error *reterr)
{
    (void)reterr;
    pawl__telemetry_state_status(&as_memory(base)->state, ret_status);
    ret_status->used_bytes = used_bytes(as_memory(base));
    return PAWL_OK;
}

static void close_store(struct telemetry_agent_store *base)
{
    as_memory(base)->is_open = false;
}

/* --- life --- */

/* What a process knows and a file does not is made anew. */
static pawl_status forget_process(struct telemetry_memory_agent *agent,
                                  const struct telemetry_memory_agent_options *options,
                                  pawl_error *reterr)
{
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        pawl__telemetry_window_free(STEAL(agent->state.windows[t]));
        agent->state.arrivals[t].count = 0;
        agent->state.acked[t] = 0;
    }
    return pawl__telemetry_state_init(&agent->state,
                                      &options->retention,
                                      options->window_names == 0 ? TELEMETRY_WINDOW_NAMES
                                                                 : options->window_names,
                                      reterr);
}

static pawl_status fill_windows(struct telemetry_memory_agent *agent, pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;

    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        for (size_t i = 0; i < agent->rows[t].count; i++) {
            const struct telemetry_memory_row *row = &agent->rows[t].at[i];
            struct telemetry_values values;
            uint64_t seq_id;
            TRY(pawl__telemetry_row_decode((enum telemetry_type)t,
                                           (pawl_view){ row->bytes, row->len },
                                           &arena,
                                           &seq_id,
                                           &values,
                                           reterr));
            TRY(pawl__telemetry_state_remember(
                &agent->state, (enum telemetry_type)t, &values, reterr));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__telemetry_memory_agent_open(struct telemetry_memory_agent *agent,
                                              const struct telemetry_memory_agent_options *options,
                                              pawl_error *reterr)
{
    static const struct telemetry_agent_ops ops = {
        .append = append,
        .query = query_rows,
        .maintain = maintain,
        .status = status_of,
        .close = close_store,
    };
    uint8_t random[2][16];

    agent->base.ops = &ops;
    agent->clock = options->clock;
    TRY(pawl__random_bytes(options->random, random, sizeof(random), reterr));
    TRY(forget_process(agent, options, reterr));
    TRY(fill_windows(agent, reterr));
    if (pawl__telemetry_id_is_none(&agent->state.session)) {
        agent->state.session = pawl__telemetry_id_of(random[0]);
    }
    TRY(pawl__telemetry_state_open(&agent->state, random[1], pawl__boot_ns(agent->clock), reterr));
    agent->is_open = true;
    return PAWL_OK;
}

void pawl__telemetry_memory_agent_done(struct telemetry_memory_agent *agent)
{
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        cut_rows(&agent->rows[t], 0);
        free(agent->rows[t].at);
    }
    pawl__telemetry_state_done(&agent->state);
    *agent = (struct telemetry_memory_agent){ .clock = NULL };
}

static pawl_status copy_state(struct telemetry_agent_state *state,
                              const struct telemetry_agent_state *from,
                              pawl_error *reterr)
{
    state->session = from->session;
    memcpy(state->counters, from->counters, sizeof(state->counters));
    memcpy(state->removed, from->removed, sizeof(state->removed));
    for (size_t i = 0; i < from->epochs.count; i++) {
        TRY(pawl__telemetry_epochs_add(&state->epochs, &from->epochs.at[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status copy_rows(struct telemetry_memory_rows *rows,
                             const struct telemetry_memory_rows *from,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < from->count; i++) {
        TRY(put_bytes(
            rows, from->at[i].seq_id, (pawl_view){ from->at[i].bytes, from->at[i].len }, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__telemetry_memory_agent_copy(struct telemetry_memory_agent *agent,
                                              const struct telemetry_memory_agent *from,
                                              pawl_error *reterr)
{
    AUTO(pawl__telemetry_memory_agent_done)
    struct telemetry_memory_agent copy = { .clock = from->clock };

    TRY(copy_state(&copy.state, &from->state, reterr));
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        TRY(copy_rows(&copy.rows[t], &from->rows[t], reterr));
    }
    copy.base = from->base;
    pawl__telemetry_memory_agent_done(agent);
    *agent = copy;
    copy = (struct telemetry_memory_agent){ .clock = NULL };
    return PAWL_OK;
}

bool pawl__telemetry_memory_agent_lose(struct telemetry_memory_agent *agent,
                                       enum telemetry_type type,
                                       uint64_t seq_id)
{
    struct telemetry_memory_rows *rows = &agent->rows[type];

    for (size_t i = 0; i < rows->count; i++) {
        if (rows->at[i].seq_id == seq_id) {
            free(rows->at[i].bytes);
            rows->count--;
            memmove(&rows->at[i], &rows->at[i + 1], (rows->count - i) * sizeof(*rows->at));
            return true;
        }
    }
    return false;
}
