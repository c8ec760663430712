/* Parses requests by their declarations, and hands them to their handlers. */
#include "server/dispatch.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "server/idempotency.h"

enum {
    LARGE_BYTES = 256 << 10, /* a larger body would hold up the connections of its thread */
    NAME_IN_PATTERN_MAX = 64 /* with its braces */
};
#define ANSWER_BYTES_MAX ((size_t)64 << 20)

const struct pawl__record pawl__serve_nothing_record = { .name = "Nothing" };

/* --- answers --- */

static const struct pawl__serve_answer *declared(const struct pawl__serve_route *route,
                                                 unsigned code)
{
    const struct pawl__serve_answer *answer = route->answers;

    while (answer->code != 0 && answer->code != code) {
        answer++;
    }
    REQUIRE(answer->code == code); /* a route answers what it declares */
    return answer;
}

void pawl__serve_answer(struct pawl__serve_call *call, unsigned code, const void *value)
{
    struct pawl__buf body = BUF_INIT(ANSWER_BYTES_MAX);

    pawl__record_write(declared(call->route, code)->record, value, &body);
    pawl__buf_add_char(&body, '\n');
    pawl__http_answer_buf(call->request, code, HTTP_JSON, &body);
}

void pawl__serve_answer_json(struct pawl__serve_call *call, unsigned code, char *json, size_t len)
{
    REQUIRE(declared(call->route, code)->type == NULL);
    pawl__http_answer_json(call->request, code, json, len);
}

void pawl__serve_answer_buf(struct pawl__serve_call *call, unsigned code, struct pawl__buf *body)
{
    const char *type = declared(call->route, code)->type;

    pawl__http_answer_buf(call->request, code, type == NULL ? HTTP_JSON : type, body);
}

static void answer_failure(struct pawl__serve_call *call, const pawl_error *error)
{
    const struct pawl__serve_part *part = call->bound->part;
    const struct pawl__http_problem *problem =
        part->problem_of == NULL ? NULL : part->problem_of(error);

    if (call->problem != NULL) {
        pawl__http_refuse(call->request, call->problem, error->message);
    } else if (problem == NULL) {
        pawl__http_fail(call->request, error);
    } else {
        pawl__http_refuse(call->request, problem, error->message);
    }
}

pawl_status pawl__serve_refuse(struct pawl__serve_call *call,
                               const struct pawl__http_problem *problem,
                               pawl_error *reterr,
                               const char *format,
                               ...)
{
    char message[PAWL_ERROR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    call->problem = problem;
    return pawl__fail(reterr, PAWL_FAILED, "%s", message);
}

/* --- calls --- */

static void drop_parsed(struct pawl__serve_call *call)
{
    json_decref(call->json);
    call->json = NULL;
    pawl__arena_done(&call->arena);
}

void pawl__serve_drop(struct pawl__serve_call *call)
{
    drop_parsed(call);
    call->body = NULL;
    pawl__http_drop_body(call->request);
}

static void free_call(void *context)
{
    struct pawl__serve_call *call = context;

    if (call->release != NULL) {
        call->release(call->released);
    }
    drop_parsed(context);
    free(context);
}

static size_t aligned(size_t size)
{
    size_t unit = _Alignof(max_align_t);

    return (size + unit - 1) / unit * unit;
}

/* With the records that its request is parsed into. NULL: no memory. */
static struct pawl__serve_call *new_call(struct pawl__http_request *request,
                                         const struct pawl__serve_bound *bound)
{
    const struct pawl__serve_route *route = bound->route;
    size_t head = aligned(sizeof(struct pawl__serve_call));
    size_t parameters = route->parameters == NULL ? 0 : aligned(route->parameters->size);
    size_t body = route->body == NULL || route->raw_body ? 0 : aligned(route->body->size);
    struct pawl__serve_call *call =
        calloc(1, head + parameters + body + aligned(route->state_size));

    if (call == NULL) {
        return NULL;
    }
    call->request = request;
    call->route = route;
    call->bound = bound;
    call->part = *bound->state;
    call->parameters = (char *)call + head;
    call->body = (char *)call + head + parameters;
    call->state = (char *)call + head + parameters + body;
    pawl__http_attach(request, call, free_call);
    return call;
}

/* --- parsing --- */

bool pawl__serve_is_in_path(const char *pattern, const char *name)
{
    char braced[NAME_IN_PATTERN_MAX];

    (void)snprintf(braced, sizeof(braced), "{%s}", name);
    return strstr(pattern, braced) != NULL;
}

/* Before the request is kept: then its headers cannot be read any more. */
static pawl_status parse_key(struct pawl__serve_call *call, pawl_error *reterr)
{
    const char *header =
        call->route->takes_key ? pawl__http_header(call->request, "Idempotency-Key") : NULL;
    char bytes[IDEMPOTENCY_HEADER_SIZE];
    struct pawl__buf key = BUF_OVER(bytes);

    if (header == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__serve_idempotency_key(header, &key, reterr));
    return pawl__arena_copy(&call->arena, pawl__buf_view(&key), &call->key)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a key");
}

static pawl_status parse_parameters(struct pawl__serve_call *call, void *value, pawl_error *reterr)
{
    const struct pawl__record *record = call->route->parameters;

    pawl__record_start(record, value);
    for (size_t i = 0; i < record->count; i++) {
        const struct pawl__field *field = &record->fields[i];
        bool in_path = call->bound->in_path[i];
        pawl_view part =
            in_path ? pawl__http_part(call->request, field->name) : (pawl_view){ NULL, 0 };
        const pawl_view *given = in_path ? &part : pawl__http_query(call->request, field->name);

        if (given != NULL) {
            TRY(pawl__record_read_text(field, *given, value, reterr));
        } else if ((field->flags & FIELD_REQUIRED) != 0) {
            return pawl__fail(reterr, PAWL_INVALID, "the parameter '%s' is missing", field->name);
        }
    }
    return PAWL_OK;
}

static pawl_status parse(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pawl__serve_route *route = call->route;

    if (route->parameters != NULL) {
        TRY(parse_parameters(call, (void *)(uintptr_t)call->parameters, reterr));
    }
    if (route->body == NULL || route->raw_body) {
        return PAWL_OK;
    }
    void *body = (void *)(uintptr_t)call->body;
    pawl__record_start(route->body, body);
    TRY(pawl__json_parse(pawl__http_body(call->request), SIZE_MAX / 2, &call->json, reterr));
    return pawl__record_read(
        route->body, pawl__json_root(call->json, ""), &call->arena, body, reterr);
}

/* --- handling --- */

/* Runs a handler that may answer later, of a call that is kept. The call may be gone when this returns. */
static void begin(struct pawl__serve_call *call, pawl__serve_handler *handler)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (handler(call, &error) != PAWL_OK) {
        answer_failure(call, &error);
        pawl__http_resume(call->request, NULL, NULL);
    }
}

static void parse_and_begin(struct pawl__serve_call *call)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (parse(call, &error) == PAWL_OK) {
        begin(call, call->route->begin);
        return;
    }
    answer_failure(call, &error);
    pawl__http_resume(call->request, NULL, NULL);
}

static void parse_and_handle(struct pawl__serve_call *call)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (parse(call, &error) != PAWL_OK || call->route->handle(call, &error) != PAWL_OK) {
        answer_failure(call, &error);
    }
}

/* On a thread that may wait, with a request that is kept. */
static void run_large(struct pawl__http_request *request, void *context)
{
    struct pawl__serve_call *call = context;

    if (pawl__http_is_gone(request)) {
        pawl__http_resume(request, NULL, NULL);
    } else if (call->route->begin != NULL) {
        parse_and_begin(call);
    } else {
        parse_and_handle(call);
        pawl__http_resume(request, NULL, NULL);
    }
}

static void run_next(struct pawl__http_request *request, void *context)
{
    struct pawl__serve_call *call = context;

    if (pawl__http_is_gone(request)) {
        pawl__http_resume(request, NULL, NULL);
    } else {
        begin(call, call->next);
    }
}

static void hand_over(struct pawl__serve_call *call, pawl__http_handler *job)
{
    struct pawl__http_request *request = call->request;

    if (!pawl__http_hand_over(request, job, call)) {
        pawl__http_refuse(request, pawl__http_problem_of(PAWL_BUSY), "");
        pawl__http_resume(request, NULL, NULL);
    }
}

void pawl__serve_hand_over(struct pawl__serve_call *call, pawl__serve_handler *handler)
{
    call->next = handler;
    hand_over(call, run_next);
}

static void run_finish(struct pawl__http_request *request, void *context)
{
    struct pawl__serve_call *call = context;
    pawl_error error = PAWL_ERROR_INIT;

    (void)request;
    if (call->next(call, &error) != PAWL_OK) {
        answer_failure(call, &error);
    }
}

void pawl__serve_resume(struct pawl__serve_call *call, pawl__serve_handler *finish)
{
    call->next = finish;
    pawl__http_resume(call->request, finish == NULL ? NULL : run_finish, call);
}

static void dispatch(struct pawl__http_request *request, void *context)
{
    const struct pawl__serve_bound *bound = context;
    const struct pawl__serve_route *route = bound->route;
    bool is_inline = route->lane == LANE_INLINE || route->lane == LANE_INLINE_ISOLATED;
    bool needs_worker = is_inline && pawl__http_body(request).len > LARGE_BYTES;
    struct pawl__serve_call *call = new_call(request, bound);
    pawl_error error = PAWL_ERROR_INIT;

    if (call == NULL) {
        (void)pawl__fail(&error, PAWL_NOMEM, "no memory for a request");
        pawl__http_fail(request, &error);
        return;
    }
    if (parse_key(call, &error) != PAWL_OK) {
        answer_failure(call, &error);
        return;
    }
    /* Before: an answer may be quicker than this thread. */
    if ((needs_worker || route->begin != NULL) && !pawl__http_keep(request)) {
        return;
    }
    if (needs_worker) {
        hand_over(call, run_large);
    } else if (route->begin != NULL) {
        parse_and_begin(call);
    } else {
        parse_and_handle(call);
    }
}

/* --- the table --- */

static void bind_route(const struct pawl__serve_bound *bound, struct pawl__http_route *ret_route)
{
    const struct pawl__serve_route *route = bound->route;
    bool blocks = route->lane == LANE_BLOCKING || route->lane == LANE_ISOLATED;

    REQUIRE((route->handle == NULL) != (route->begin == NULL));
    REQUIRE(route->begin == NULL || !blocks); /* net/http answers for those that block */
    *ret_route = (struct pawl__http_route){
        .method = route->method,
        .pattern = route->pattern,
        .handle = dispatch,
        .context = (void *)(uintptr_t)bound,
        .parameters = bound->parameters,
        .takes_json = route->body != NULL,
        .blocks = blocks,
        .isolated = route->lane == LANE_ISOLATED || route->lane == LANE_INLINE_ISOLATED,
        .takes_key = route->takes_key,
        .no_key = route->no_key,
        .scope = route->scope,
    };
}

/* Which parameters are parts of the path; the names of the others, for net/http. */
static void name_parameters(struct pawl__serve_bound *bound)
{
    const struct pawl__record *record = bound->route->parameters;
    size_t count = 0;

    for (size_t i = 0; record != NULL && i < record->count; i++) {
        REQUIRE(i < COUNT_OF(bound->in_path));
        bound->in_path[i] = pawl__serve_is_in_path(bound->route->pattern, record->fields[i].name);
        if (!bound->in_path[i]) {
            REQUIRE(count < HTTP_QUERY_MAX);
            bound->parameters[count++] = record->fields[i].name;
        }
    }
}

pawl_status pawl__serve_table_new(const struct pawl__serve_part *const *parts,
                                  void *const *states,
                                  size_t count,
                                  struct pawl__serve_table *ret_table,
                                  pawl_error *reterr)
{
    struct pawl__serve_table table = { .count = 0 };
    size_t routes = 0;

    for (size_t i = 0; i < count; i++) {
        routes += parts[i]->route_count;
    }
    table.routes = calloc(routes + 1, sizeof(*table.routes));
    table.bound = calloc(routes + 1, sizeof(*table.bound));
    if (table.routes == NULL || table.bound == NULL) {
        pawl__serve_table_done(&table);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for routes");
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t r = 0; r < parts[i]->route_count; r++) {
            struct pawl__serve_bound *bound = &table.bound[table.count];

            bound->part = parts[i];
            bound->route = &parts[i]->routes[r];
            bound->state = &states[i];
            name_parameters(bound);
            bind_route(bound, &table.routes[table.count++]);
        }
    }
    *ret_table = table;
    return PAWL_OK;
}

void pawl__serve_table_done(struct pawl__serve_table *table)
{
    free(table->routes);
    free(table->bound);
    *table = (struct pawl__serve_table){ .count = 0 };
}
