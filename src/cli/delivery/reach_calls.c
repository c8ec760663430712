/* The calls of <pawl/delivery.h>, made here or asked of the process that has the pipelines. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/terminal/display.h"
#include "cli/delivery/decode.h"
#include "cli/delivery/reach.h"
#include "records/delivery.h"

enum {
    TARGET_SIZE = 4096,
    PAGE_ITEMS = 500,
    DRAIN_SLICE_MS =
        3000, /* between two looks of a watch; longer than an idle round of a pipeline */
};
#define ANSWER_BYTES_MAX ((size_t)256 << 20)
#define NOTHING pawl_view_of("{}")

static const char *const action_names[] = { "retry", "resolve", "abandon" };

/* --- texts of requests --- */

/* Names are checked by the library; here they must only not change the request. */
static void add_escaped(struct pawl__buf *target, pawl_view text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                        || c == '-' || c == '_' || c == '.';
        pawl__buf_add_format(target, is_plain ? "%c" : "%%%02X", c);
    }
}

static void start_target(struct pawl__buf *target, const char *name, const char *rest)
{
    pawl__buf_add_text(target, "/v1/pipelines/");
    add_escaped(target, pawl_view_of(name));
    pawl__buf_add_text(target, rest);
}

static void add_query(struct pawl__buf *target, const char *key, pawl_view value)
{
    if (value.len > 0) {
        pawl__buf_add_format(target, "%s%s=", strchr(target->data, '?') == NULL ? "?" : "&", key);
        add_escaped(target, value);
    }
}

static void add_number(struct pawl__buf *target, const char *key, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    add_query(target, key, pawl_view_of(text));
}

static pawl_status ask(struct pawl__cli_delivery *delivery,
                       const char *method,
                       struct pawl__buf *target,
                       pawl_view body,
                       struct pawl__buf *answer,
                       pawl_error *reterr)
{
    TRY(pawl__buf_check(target, "the request", reterr));
    return pawl__cli_delivery_ask(delivery, method, target->data, body, answer, reterr);
}

#define GET(target_, answer_) \
    ask(delivery, "GET", (target_), (pawl_view){ NULL, 0 }, (answer_), reterr)
#define BUFFERS                                                           \
    AUTO(pawl__buf_done) struct pawl__buf target = BUF_INIT(TARGET_SIZE); \
    AUTO(pawl__buf_done) struct pawl__buf answer = BUF_INIT(ANSWER_BYTES_MAX)

/* A call that is answered with something nobody needs. */
static pawl_status act(struct pawl__cli_delivery *delivery,
                       const char *method,
                       const char *name,
                       const char *rest,
                       pawl_view body,
                       pawl_error *reterr)
{
    BUFFERS;

    start_target(&target, name, rest);
    return ask(delivery, method, &target, body, &answer, reterr);
}

/* --- pipelines --- */

pawl_status pawl__cli_pipeline_add(struct pawl__cli_delivery *delivery,
                                   pawl_view declaration,
                                   pawl_error *reterr)
{
    BUFFERS;

    if (delivery->here != NULL) {
        return pawl_pipeline_add(delivery->here, declaration, reterr);
    }
    pawl__buf_add_text(&target, "/v1/pipelines");
    return ask(delivery, "POST", &target, declaration, &answer, reterr);
}

pawl_status pawl__cli_pipeline_remove(struct pawl__cli_delivery *delivery,
                                      const char *name,
                                      bool unsafe_drop_pending,
                                      pawl_error *reterr)
{
    return delivery->here != NULL
               ? pawl_pipeline_remove(delivery->here, name, unsafe_drop_pending, reterr)
               : act(delivery,
                     "DELETE",
                     name,
                     unsafe_drop_pending ? "?unsafe_drop_pending=true" : "",
                     (pawl_view){ NULL, 0 },
                     reterr);
}

pawl_status pawl__cli_pipeline_start(struct pawl__cli_delivery *delivery,
                                     const char *name,
                                     pawl_error *reterr)
{
    return delivery->here != NULL ? pawl_pipeline_start(delivery->here, name, reterr)
                                  : act(delivery, "POST", name, "/start", NOTHING, reterr);
}

pawl_status pawl__cli_pipeline_pause(struct pawl__cli_delivery *delivery,
                                     const char *name,
                                     pawl_error *reterr)
{
    return delivery->here != NULL ? pawl_pipeline_pause(delivery->here, name, reterr)
                                  : act(delivery, "POST", name, "/pause", NOTHING, reterr);
}

pawl_status pawl__cli_pipeline_resume(struct pawl__cli_delivery *delivery,
                                      const char *name,
                                      pawl_error *reterr)
{
    return delivery->here != NULL ? pawl_pipeline_resume(delivery->here, name, reterr)
                                  : act(delivery, "POST", name, "/resume", NOTHING, reterr);
}

static pawl_status visit_status(
    pawl_view json, pawl_pipeline_visit visit, void *context, bool *goes_on, pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_pipeline_status status = { .size = sizeof(status) };

    TRY(pawl__cli_decode(&pawl__pipeline_status_record, json, 0, &arena, &status, reterr));
    *goes_on = visit(context, &status);
    return PAWL_OK;
}

pawl_status pawl__cli_pipeline_visit(struct pawl__cli_delivery *delivery,
                                     const char *name,
                                     pawl_pipeline_visit visit,
                                     void *context,
                                     pawl_error *reterr)
{
    BUFFERS;
    bool goes_on = true;
    pawl_view item;

    if (delivery->here != NULL) {
        return name == NULL ? pawl_pipeline_list(delivery->here, NULL, visit, context, reterr)
                            : pawl_pipeline_get(delivery->here, name, visit, context, reterr);
    }
    if (name != NULL) {
        start_target(&target, name, "");
        TRY(GET(&target, &answer));
        return visit_status(pawl__buf_view(&answer), visit, context, &goes_on, reterr);
    }
    pawl__buf_add_text(&target, "/v1/pipelines");
    TRY(GET(&target, &answer));
    pawl_view items =
        pawl__cli_json_inside(pawl__cli_json_member(pawl__buf_view(&answer), "items"));
    while (goes_on && pawl__cli_json_next_item(&items, &item)) {
        TRY(visit_status(item, visit, context, &goes_on, reterr));
    }
    return PAWL_OK;
}

static bool show_progress(void *context, const pawl_pipeline_status *status)
{
    const pawl_watch *watch = context;

    return watch->progress(
        watch->context, status->delivered + status->filtered + status->failed, status->accepted);
}

/* In slices, so that Ctrl-C and a progress bar have their turn. */
pawl_status pawl__cli_pipeline_drain(struct pawl__cli_delivery *delivery,
                                     const char *name,
                                     uint32_t timeout_ms,
                                     const pawl_watch *watch,
                                     pawl_error *reterr)
{
    struct pawl__clock *clock = delivery->run->clock;
    int64_t deadline_ns =
        timeout_ms == 0 ? INT64_MAX : pawl__monotonic_ns(clock) + timeout_ms * NS_PER_MS;
    pawl_status status = PAWL_TIMEOUT;
    pawl_error error = PAWL_ERROR_INIT;
    bool goes_on = true;

    if (delivery->here != NULL) {
        return pawl_pipeline_drain(delivery->here, name, timeout_ms, watch, reterr);
    }
    while (status == PAWL_TIMEOUT && goes_on && pawl__monotonic_ns(clock) < deadline_ns) {
        char body[48];
        BUFFERS;

        (void)snprintf(body, sizeof(body), "{\"timeout\":\"%dms\"}", DRAIN_SLICE_MS);
        error = (pawl_error)PAWL_ERROR_INIT;
        status = act(delivery, "POST", name, "/drain", pawl_view_of(body), &error);
        if (watch != NULL) {
            start_target(&target, name, "");
            TRY(GET(&target, &answer));
            pawl_watch watched = *watch;
            TRY(visit_status(pawl__buf_view(&answer), show_progress, &watched, &goes_on, reterr));
        }
    }
    if (status == PAWL_TIMEOUT && !goes_on) {
        return pawl__fail(reterr, PAWL_CANCELLED, "interrupted");
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

/* --- write-ahead logs --- */

pawl_status pawl__cli_wal_get_status(struct pawl__cli_delivery *delivery,
                                     const char *name,
                                     pawl_wal_status *ret_status,
                                     pawl_error *reterr)
{
    BUFFERS;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;

    if (delivery->here != NULL) {
        return pawl_wal_get_status(delivery->here, name, ret_status, reterr);
    }
    start_target(&target, name, "/wal");
    TRY(GET(&target, &answer));
    return pawl__cli_decode(&pawl__wal_status_record,
                            pawl__buf_view(&answer),
                            sizeof(ret_status->lease_holder),
                            &arena,
                            ret_status,
                            reterr);
}

/* Items of pages, each decoded and visited until somebody has enough. */
struct pages {
    struct pawl__cli_delivery *delivery;
    void (*add_target)(const struct pages *pages, uint64_t limit, struct pawl__buf *target);
    pawl_status (*visit)(const struct pages *pages,
                         pawl_view item,
                         bool *goes_on,
                         pawl_error *reterr);
    const char *name;
    const void *filter;
    uint64_t from;
    uint64_t limit; /* 0: all */
    pawl_wal_visit visit_entry;
    pawl_failed_visit visit_failed;
    void *context;
};

static pawl_status visit_page(
    struct pages *pages, pawl_view page, uint64_t *left, bool *goes_on, pawl_error *reterr)
{
    pawl_view items = pawl__cli_json_inside(pawl__cli_json_member(page, "items"));
    pawl_view next = pawl__cli_json_member(page, "next");
    pawl_view item;

    while (*goes_on && *left > 0 && pawl__cli_json_next_item(&items, &item)) {
        TRY(pages->visit(pages, item, goes_on, reterr));
        (*left)--;
    }
    *goes_on = *goes_on && next.len > 2 && next.data[0] == '"';
    if (*goes_on) {
        pages->from = strtoull(next.data + 1, NULL, 10);
    }
    return PAWL_OK;
}

static pawl_status visit_pages(struct pages *pages, pawl_error *reterr)
{
    struct pawl__cli_delivery *delivery = pages->delivery;
    uint64_t left = pages->limit == 0 ? UINT64_MAX : pages->limit;
    bool goes_on = true;

    while (goes_on && left > 0) {
        BUFFERS;

        pages->add_target(pages, MIN(left, (uint64_t)PAGE_ITEMS), &target);
        TRY(GET(&target, &answer));
        TRY(visit_page(pages, pawl__buf_view(&answer), &left, &goes_on, reterr));
    }
    return PAWL_OK;
}

static void add_wal_target(const struct pages *pages, uint64_t limit, struct pawl__buf *target)
{
    const pawl_wal_filter *filter = pages->filter;

    start_target(target, pages->name, "/wal/entries");
    add_number(target, "from", pages->from);
    add_number(target, "limit", limit);
    add_query(target, "pending", pawl_view_of(filter->pending ? "true" : "false"));
}

static pawl_status visit_entry(const struct pages *pages,
                               pawl_view item,
                               bool *goes_on,
                               pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    const pawl_wal_filter *filter = pages->filter;
    pawl_wal_entry entry = { .size = sizeof(entry) };

    TRY(pawl__cli_decode(&pawl__wal_entry_record, item, 0, &arena, &entry, reterr));
    *goes_on =
        (filter->to == 0 || entry.lsn <= filter->to) && pages->visit_entry(pages->context, &entry);
    return PAWL_OK;
}

pawl_status pawl__cli_wal_read(struct pawl__cli_delivery *delivery,
                               const char *name,
                               const pawl_wal_filter *filter,
                               pawl_page *page,
                               pawl_wal_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    struct pages pages = {
        .delivery = delivery,
        .add_target = add_wal_target,
        .visit = visit_entry,
        .name = name,
        .filter = filter,
        .from = page == NULL ? 0 : page->from,
        .limit = page == NULL ? 0 : page->limit,
        .visit_entry = visit,
        .context = context,
    };

    return delivery->here != NULL
               ? pawl_wal_read(delivery->here, name, filter, page, visit, context, reterr)
               : visit_pages(&pages, reterr);
}

/* --- failed events --- */

static const char *time_of(int64_t us, char text[PAWL__TIME_SIZE])
{
    text[0] = '\0';
    if (us != 0) {
        pawl__time_rfc3339(us, text);
    }
    return text;
}

/* The names of the bits; HTTP takes one status, and is asked once for each. */
static pawl_view status_name(unsigned statuses)
{
    for (unsigned i = 0; pawl__failed_status_names[i] != NULL; i++) {
        if (statuses == 1U << i) {
            return pawl_view_of(pawl__failed_status_names[i]);
        }
    }
    return (pawl_view){ NULL, 0 };
}

static void add_filter(struct pawl__buf *target, const pawl_failed_filter *filter)
{
    char time[PAWL__TIME_SIZE];

    add_query(target, "status", status_name(filter->statuses));
    add_query(target, "reason", filter->reason);
    add_query(target, "source", filter->source);
    add_query(target, "transaction_id", filter->transaction_id);
    add_query(target, "since", pawl_view_of(time_of(filter->since_us, time)));
    add_query(target, "until", pawl_view_of(time_of(filter->until_us, time)));
}

static void add_failed_target(const struct pages *pages, uint64_t limit, struct pawl__buf *target)
{
    const pawl_failed_filter *filter = pages->filter;

    start_target(target, pages->name, "/failed");
    add_filter(target, filter);
    add_number(target, "from", pages->from);
    add_number(target, "limit", limit);
    add_query(target, "newest_first", pawl_view_of(filter->newest_first ? "true" : "false"));
}

static bool has_one_status(unsigned statuses)
{
    return (statuses & (statuses - 1)) == 0;
}

static pawl_status visit_failed(const struct pages *pages,
                                pawl_view item,
                                bool *goes_on,
                                pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    const pawl_failed_filter *filter = pages->filter;
    pawl_failed_event event = { .size = sizeof(event) };

    TRY(pawl__cli_decode(&pawl__failed_event_record, item, 0, &arena, &event, reterr));
    if (has_one_status(filter->statuses) || (filter->statuses & 1U << event.status) != 0) {
        *goes_on = pages->visit_failed(pages->context, &event);
    }
    return PAWL_OK;
}

/* One that is not there visits nothing, as in the library. */
static pawl_status show_failed(struct pages *pages, pawl_view id, pawl_error *reterr)
{
    struct pawl__cli_delivery *delivery = pages->delivery;
    pawl_error error = PAWL_ERROR_INIT;
    bool goes_on = true;
    BUFFERS;

    start_target(&target, pages->name, "/failed/");
    add_escaped(&target, id);
    pawl_status status = ask(delivery, "GET", &target, (pawl_view){ NULL, 0 }, &answer, &error);
    if (status != PAWL_OK) {
        return status == PAWL_NOT_FOUND ? PAWL_OK : pawl__fail_with(reterr, status, &error);
    }
    return visit_failed(pages, pawl__buf_view(&answer), &goes_on, reterr);
}

pawl_status pawl__cli_failed_list(struct pawl__cli_delivery *delivery,
                                  const char *pipeline,
                                  const pawl_failed_filter *filter,
                                  pawl_page *page,
                                  pawl_failed_visit visit,
                                  void *context,
                                  pawl_error *reterr)
{
    struct pages pages = {
        .delivery = delivery,
        .add_target = add_failed_target,
        .visit = visit_failed,
        .name = pipeline,
        .filter = filter,
        .from = page == NULL ? 0 : page->from,
        .limit = page == NULL ? 0 : page->limit,
        .visit_failed = visit,
        .context = context,
    };

    if (delivery->here != NULL) {
        return pawl_failed_list(delivery->here, pipeline, filter, page, visit, context, reterr);
    }
    return filter->id.len > 0 ? show_failed(&pages, filter->id, reterr)
                              : visit_pages(&pages, reterr);
}

static pawl_status check_statuses(const pawl_failed_filter *filter, pawl_error *reterr)
{
    return has_one_status(filter->statuses)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "name one --status while a node runs");
}

pawl_status pawl__cli_failed_count(struct pawl__cli_delivery *delivery,
                                   const char *pipeline,
                                   pawl_failed_action action,
                                   const pawl_failed_filter *filter,
                                   uint64_t *ret_count,
                                   pawl_error *reterr)
{
    BUFFERS;

    if (delivery->here != NULL) {
        return pawl_failed_count(delivery->here, pipeline, action, filter, ret_count, reterr);
    }
    TRY(check_statuses(filter, reterr));
    start_target(&target, pipeline, "/failed/count");
    add_query(&target, "action", pawl_view_of(action_names[action]));
    add_filter(&target, filter);
    TRY(GET(&target, &answer));
    pawl_view count = pawl__cli_json_member(pawl__buf_view(&answer), "count");
    *ret_count = count.len == 0 ? 0 : strtoull(count.data, NULL, 10);
    return PAWL_OK;
}

static void add_member(struct pawl__buf *body, const char *key, pawl_view text)
{
    if (text.len > 0) {
        pawl__buf_add_format(body, ",\"%s\":", key);
        pawl__display_add_json(body, text);
    }
}

static void write_decision(struct pawl__buf *body,
                           pawl_failed_action action,
                           const pawl_failed_filter *filter,
                           const pawl_failed_decision *decision)
{
    char time[PAWL__TIME_SIZE];

    pawl__buf_add_text(body, "{\"by\":");
    pawl__display_add_json(body, decision->by);
    add_member(body, "notes", decision->notes);
    if (decision->edited_payload.len > 0) {
        pawl__buf_add_text(body, ",\"payload\":");
        pawl__buf_add(body, decision->edited_payload);
    }
    if (filter->id.len == 0) {
        pawl__buf_add_format(body,
                             ",\"action\":\"%s\",\"expected\":%" PRIu64,
                             action_names[action],
                             decision->expected);
        add_member(body, "status", status_name(filter->statuses));
        add_member(body, "reason", filter->reason);
        add_member(body, "source", filter->source);
        add_member(body, "transaction_id", filter->transaction_id);
        add_member(body, "since", pawl_view_of(time_of(filter->since_us, time)));
        add_member(body, "until", pawl_view_of(time_of(filter->until_us, time)));
    }
    pawl__buf_add_char(body, '}');
}

pawl_status pawl__cli_failed_act(struct pawl__cli_delivery *delivery,
                                 const char *pipeline,
                                 pawl_failed_action action,
                                 const pawl_failed_filter *filter,
                                 const pawl_failed_decision *decision,
                                 pawl_failed_result *ret_result,
                                 pawl_error *reterr)
{
    BUFFERS;
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(ANSWER_BYTES_MAX);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;

    if (delivery->here != NULL) {
        return pawl_failed_act(
            delivery->here, pipeline, action, filter, decision, ret_result, reterr);
    }
    TRY(check_statuses(filter, reterr));
    start_target(&target, pipeline, "/failed/");
    if (filter->id.len > 0) {
        add_escaped(&target, filter->id);
        pawl__buf_add_format(&target, "/%s", action_names[action]);
    } else {
        pawl__buf_add_text(&target, "actions");
    }
    write_decision(&body, action, filter, decision);
    TRY(pawl__buf_check(&body, "the request", reterr));
    TRY(ask(delivery, "POST", &target, pawl__buf_view(&body), &answer, reterr));
    return pawl__cli_decode(&pawl__failed_result_record,
                            pawl__buf_view(&answer),
                            sizeof(ret_result->error),
                            &arena,
                            ret_result,
                            reterr);
}

/* --- SQL --- */

static pawl_status decode_cell(pawl_view json,
                               struct pawl__arena *arena,
                               pawl_query_cell *cell,
                               pawl_error *reterr)
{
    static const struct pawl__field text_field = { .name = "text", .kind = FIELD_TEXT };
    static const struct pawl__record text_record = {
        .name = "Cell", .size = sizeof(pawl_view), .fields = &text_field, .count = 1
    };
    AUTO(pawl__buf_done) struct pawl__buf object = BUF_INIT(ANSWER_BYTES_MAX);

    *cell = (pawl_query_cell){ .kind = PAWL_QUERY_NUMBER, .text = json };
    if (json.data[0] == 'n') {
        *cell = (pawl_query_cell){ .kind = PAWL_QUERY_NULL };
    } else if (json.data[0] == 't' || json.data[0] == 'f') {
        cell->kind = PAWL_QUERY_BOOLEAN;
    } else if (json.data[0] == '"') {
        cell->kind = PAWL_QUERY_TEXT;
        pawl__buf_add_text(&object, "{\"text\":");
        pawl__buf_add(&object, json);
        pawl__buf_add_char(&object, '}');
        TRY(pawl__buf_check(&object, "a cell", reterr));
        return pawl__cli_decode(
            &text_record, pawl__buf_view(&object), 0, arena, &cell->text, reterr);
    }
    return PAWL_OK;
}

struct rows {
    struct pawl__arena arena;
    const char **names;
    pawl_query_cell *cells;
    size_t count;
};

static void rows_done(struct rows *rows)
{
    pawl__arena_done(&rows->arena);
}

static pawl_status decode_columns(struct rows *rows, pawl_view columns, pawl_error *reterr)
{
    pawl_view rest = pawl__cli_json_inside(columns);
    pawl_view item;

    while (pawl__cli_json_next_item(&rest, &item)) {
        rows->count++;
    }
    rows->names = pawl__arena_take(&rows->arena, (rows->count + 1) * sizeof(*rows->names));
    rows->cells = pawl__arena_take(&rows->arena, (rows->count + 1) * sizeof(*rows->cells));
    TRY(pawl__check_memory(rows->names, "a result", reterr));
    TRY(pawl__check_memory(rows->cells, "a result", reterr));
    rest = pawl__cli_json_inside(columns);
    for (size_t i = 0; i < rows->count && pawl__cli_json_next_item(&rest, &item); i++) {
        pawl_query_cell cell;
        TRY(decode_cell(item, &rows->arena, &cell, reterr));
        rows->names[i] = cell.text.data == NULL ? "" : cell.text.data;
    }
    return PAWL_OK;
}

static pawl_status visit_rows(
    struct rows *rows, pawl_view json, pawl_query_visit visit, void *context, pawl_error *reterr)
{
    const pawl_query_row row = { sizeof(row), rows->count, rows->names, rows->cells };
    pawl_view lines = pawl__cli_json_inside(json);
    bool goes_on = true;
    pawl_view line;

    while (goes_on && pawl__cli_json_next_item(&lines, &line)) {
        AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
        pawl_view cells = pawl__cli_json_inside(line);
        pawl_view cell;

        for (size_t i = 0; i < rows->count && pawl__cli_json_next_item(&cells, &cell); i++) {
            TRY(decode_cell(cell, &arena, &rows->cells[i], reterr));
        }
        goes_on = visit(context, &row);
    }
    return PAWL_OK;
}

pawl_status pawl__cli_delivery_select(struct pawl__cli_delivery *delivery,
                                      const char *sql,
                                      const pawl_query_options *options,
                                      pawl_query_visit visit,
                                      void *context,
                                      pawl_error *reterr)
{
    BUFFERS;
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(ANSWER_BYTES_MAX);
    AUTO(rows_done) struct rows rows = { .arena = ARENA_INIT };

    pawl__buf_add_text(&target, "/v1/sql");
    pawl__buf_add_text(&body, "{\"sql\":");
    pawl__display_add_json(&body, pawl_view_of(sql));
    pawl__buf_add_format(&body,
                         ",\"timeout\":\"%ums\",\"limit\":100000}",
                         (unsigned)MIN(options->timeout_ms, 60000U));
    TRY(pawl__buf_check(&body, "the statement", reterr));
    TRY(ask(delivery, "POST", &target, pawl__buf_view(&body), &answer, reterr));
    pawl_view text = pawl__buf_view(&answer);
    TRY(decode_columns(&rows, pawl__cli_json_member(text, "columns"), reterr));
    TRY(visit_rows(&rows, pawl__cli_json_member(text, "rows"), visit, context, reterr));
    return pawl__view_is(pawl__cli_json_member(text, "truncated"), "true") ? pawl__fail(
               reterr,
               PAWL_INVALID,
               "the result has more than 100,000 rows or 32 MiB; what is printed is its "
               "beginning. Add a LIMIT")
                                                                           : PAWL_OK;
}
