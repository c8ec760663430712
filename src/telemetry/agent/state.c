#include "telemetry/agent/state.h"

#include "base/core/buf.h"
#include "base/core/error.h"

pawl_status pawl__telemetry_state_init(struct telemetry_agent_state *state,
                                       const struct telemetry_retention *retention,
                                       size_t window_names,
                                       pawl_error *reterr)
{
    state->retention = *retention;
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        TRY(pawl__telemetry_window_new(window_names, &state->windows[t], reterr));
    }
    return PAWL_OK;
}

void pawl__telemetry_state_done(struct telemetry_agent_state *state)
{
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        pawl__telemetry_window_free(STEAL(state->windows[t]));
    }
    pawl__telemetry_epochs_done(&state->epochs);
}

pawl_status pawl__telemetry_state_open(struct telemetry_agent_state *state,
                                       const uint8_t random[16],
                                       int64_t boot_ns,
                                       pawl_error *reterr)
{
    struct telemetry_id id = pawl__telemetry_id_of(random);

    TRY(pawl__telemetry_epochs_open(&state->epochs, &id, state->counters, reterr));
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        if (state->counters[t] > state->removed[t]) {
            pawl__telemetry_arrived(&state->arrivals[t], state->counters[t], boot_ns);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__telemetry_state_remember(struct telemetry_agent_state *state,
                                           enum telemetry_type type,
                                           const struct telemetry_values *row,
                                           pawl_error *reterr)
{
    struct telemetry_row_key key;
    bool has_key = false;

    TRY(pawl__telemetry_row_key(type, row, &key, &has_key, reterr));
    if (has_key && !pawl__telemetry_window_has(state->windows[type], &key)) {
        pawl__telemetry_window_add(state->windows[type], &key);
    }
    return PAWL_OK;
}

static pawl_status admit_one(struct telemetry_agent_state *state,
                             enum telemetry_type type,
                             const struct telemetry_values *row,
                             bool *ret_new,
                             bool *ret_named,
                             pawl_error *reterr)
{
    struct telemetry_row_key key;

    TRY(pawl__telemetry_row_key(type, row, &key, ret_named, reterr));
    *ret_new = !*ret_named || !pawl__telemetry_window_has(state->windows[type], &key);
    if (*ret_named && *ret_new) {
        pawl__telemetry_window_add(state->windows[type], &key);
    }
    return PAWL_OK;
}

pawl_status pawl__telemetry_state_admit(struct telemetry_agent_state *state,
                                        enum telemetry_type type,
                                        const struct telemetry_values *rows,
                                        size_t count,
                                        struct telemetry_admitted *admitted,
                                        pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        bool is_new = false;
        bool is_named = false;
        pawl_status status = admit_one(state, type, &rows[i], &is_new, &is_named, reterr);
        if (status != PAWL_OK) {
            pawl__telemetry_state_undo(state, type, admitted);
            return status;
        }
        if (is_new) {
            admitted->places[admitted->count++] = i;
            admitted->named += is_named;
        }
    }
    return PAWL_OK;
}

void pawl__telemetry_state_undo(struct telemetry_agent_state *state,
                                enum telemetry_type type,
                                const struct telemetry_admitted *admitted)
{
    pawl__telemetry_window_undo(state->windows[type], admitted->named);
}

struct telemetry_appended pawl__telemetry_state_stored(struct telemetry_agent_state *state,
                                                       enum telemetry_type type,
                                                       const struct telemetry_admitted *admitted,
                                                       size_t count,
                                                       int64_t boot_ns)
{
    struct telemetry_appended appended = {
        .first = state->counters[type] + 1,
        .last = state->counters[type] + admitted->count,
        .stored = admitted->count,
        .duplicates = count - admitted->count,
    };

    state->counters[type] = appended.last;
    if (admitted->count > 0) {
        pawl__telemetry_arrived(&state->arrivals[type], appended.last, boot_ns);
    }
    return appended;
}

pawl_status pawl__telemetry_state_answer(struct telemetry_agent_state *state,
                                         const struct telemetry_query *query,
                                         struct telemetry_page *page,
                                         pawl_error *reterr)
{
    if (query->may_ack) {
        uint64_t ack = pawl__telemetry_accept_ack(&state->epochs,
                                                  query->type,
                                                  &query->known_epoch,
                                                  query->ack,
                                                  state->counters[query->type]);
        state->acked[query->type] = MAX(state->acked[query->type], ack);
    }
    page->session = state->session;
    return pawl__telemetry_epochs_answer(
        &state->epochs, query->type, &query->known_epoch, page, reterr);
}

/* --- retention --- */

static struct telemetry_kept kept_of(const struct telemetry_agent_state *state, size_t t)
{
    return (struct telemetry_kept){
        .removed = state->removed[t],
        .counter = state->counters[t],
        .acked = state->acked[t],
    };
}

uint64_t pawl__telemetry_state_aged(const struct telemetry_agent_state *state,
                                    enum telemetry_type type,
                                    int64_t boot_ns)
{
    struct telemetry_kept kept = kept_of(state, type);

    kept.aged =
        pawl__telemetry_arrived_by(&state->arrivals[type], boot_ns - state->retention.age_ns);
    return pawl__telemetry_remove_by_age(&state->retention, &kept);
}

bool pawl__telemetry_state_oversized(const struct telemetry_agent_state *state,
                                     uint64_t used,
                                     enum telemetry_type *ret_type,
                                     uint64_t *ret_up_to)
{
    struct telemetry_kept kept[TELEMETRY_TYPE_COUNT];

    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        kept[t] = kept_of(state, t);
    }
    return pawl__telemetry_remove_by_size(&state->retention, kept, used, ret_type, ret_up_to);
}

void pawl__telemetry_state_removed(struct telemetry_agent_state *state,
                                   enum telemetry_type type,
                                   uint64_t up_to)
{
    state->removed[type] = MAX(state->removed[type], up_to);
    pawl__telemetry_arrivals_forget(&state->arrivals[type], up_to);
}

void pawl__telemetry_state_status(const struct telemetry_agent_state *state,
                                  struct telemetry_agent_status *ret_status)
{
    *ret_status = (struct telemetry_agent_status){
        .session = state->session,
        .epoch = state->epochs.at[state->epochs.count - 1].id,
        .epoch_count = state->epochs.count,
    };
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        ret_status->kept[t] = kept_of(state, t);
    }
}

/* --- what a query asks for --- */

bool pawl__telemetry_query_wants(const struct telemetry_query *query,
                                 const struct telemetry_values *row)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(query->type);
    int64_t at_us = row->at[info->time_column].as.i64;
    bool is_wanted = query->service_count == 0 || info->service_column < 0;

    if (query->until_us != 0 && (at_us < query->from_us || at_us >= query->until_us)) {
        return false;
    }
    for (size_t i = 0; i < query->service_count && !is_wanted; i++) {
        is_wanted = pawl__view_equal(query->services[i], row->at[info->service_column].as.text);
    }
    return is_wanted;
}

static pawl_status ask_store(struct telemetry_source *source,
                             const struct telemetry_query *query,
                             struct telemetry_page *page,
                             pawl_error *reterr)
{
    struct telemetry_agent_store *store = ((struct telemetry_local_source *)source)->store;

    return store->ops->query(store, query, page, reterr);
}

struct telemetry_local_source pawl__telemetry_local_source(struct telemetry_agent_store *store)
{
    return (struct telemetry_local_source){ { ask_store }, store };
}
