#include "server/openapi.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "net/http/events.h"
#include "server/dispatch.h"
#include "server/idempotency.h"

enum { SCHEMAS_MAX = 256, CODES_MAX = 32 };

/* --- which records are described --- */

struct schema {
    const struct pawl__record *record;
    enum pawl__record_use use;
};

struct document {
    struct pawl__buf *buf;
    const struct pawl__serve_part *const *parts;
    size_t part_count;
    struct schema schemas[SCHEMAS_MAX];
    size_t schema_count;
};

static void need(struct document *document,
                 const struct pawl__record *record,
                 enum pawl__record_use use)
{
    if (record == NULL) {
        return;
    }
    for (size_t i = 0; i < document->schema_count; i++) {
        if (document->schemas[i].record == record && document->schemas[i].use == use) {
            return;
        }
    }
    REQUIRE(document->schema_count < SCHEMAS_MAX);
    document->schemas[document->schema_count++] = (struct schema){ record, use };
    for (const struct pawl__record *of = record; of != NULL; of = of->extends) {
        for (size_t i = 0; i < of->count; i++) {
            need(document, of->fields[i].record, use);
        }
    }
}

/* --- small pieces --- */

static void add_text(struct pawl__object *object, const char *key, const char *text)
{
    if (text != NULL) {
        pawl__object_text(object, key, pawl_view_of(text));
    }
}

static struct pawl__object start_in(struct pawl__object *object, const char *key)
{
    pawl__object_key(object, key);
    return pawl__object_start(object->buf);
}

static void add_reference(struct pawl__object *object, const char *key, const char *to)
{
    pawl__object_key(object, key);
    pawl__buf_add_format(object->buf, "{\"$ref\":\"#/components/%s\"}", to);
}

static void add_string_array(struct pawl__object *object, const char *key, const char *only)
{
    pawl__object_key(object, key);
    pawl__buf_add_format(object->buf, "[\"%s\"]", only);
}

/* --- parameters --- */

static void add_parameter(const struct pawl__serve_route *route,
                          const struct pawl__field *field,
                          struct pawl__buf *buf)
{
    bool in_path = pawl__serve_is_in_path(route->pattern, field->name);
    bool required = in_path || (field->flags & FIELD_REQUIRED) != 0;
    struct pawl__field shown = *field;
    struct pawl__object parameter = pawl__object_start(buf);

    shown.about = NULL;            /* it stands beside the schema */
    shown.flags |= FIELD_REQUIRED; /* null cannot be said in an address */
    add_text(&parameter, "name", field->name);
    add_text(&parameter, "in", in_path ? "path" : "query");
    add_text(&parameter, "description", field->about);
    pawl__object_bool(&parameter, "required", required);
    pawl__object_key(&parameter, "schema");
    pawl__field_schema(&shown, RECORD_READ, NULL, buf);
    pawl__object_end(&parameter);
}

static bool is_stream(const struct pawl__serve_route *route)
{
    const char *type = route->answers[0].type;

    return type != NULL && strcmp(type, HTTP_EVENTS) == 0;
}

static void add_parameters(const struct pawl__serve_route *route, struct pawl__object *operation)
{
    const struct pawl__record *record = route->parameters;
    struct pawl__buf *buf = operation->buf;
    const char *comma = "";

    pawl__object_key(operation, "parameters");
    pawl__buf_add_char(buf, '[');
    for (size_t i = 0; record != NULL && i < record->count; i++) {
        pawl__buf_add_text(buf, comma);
        add_parameter(route, &record->fields[i], buf);
        comma = ",";
    }
    if (route->takes_key) {
        pawl__buf_add_format(buf, "%s{\"$ref\":\"#/components/parameters/IdempotencyKey\"}", comma);
        comma = ",";
    }
    if (is_stream(route)) {
        pawl__buf_add_format(buf, "%s{\"$ref\":\"#/components/parameters/LastEventId\"}", comma);
    }
    pawl__buf_add_char(buf, ']');
}

/* --- answers --- */

/* "text/plain; version=0.0.4" is text/plain. */
static void add_media_type(struct pawl__object *content, const char *type)
{
    char bytes[64] = "";
    struct pawl__buf plain = BUF_OVER(bytes);

    pawl__buf_add(&plain, (pawl_view){ type, strcspn(type, ";") });
    pawl__object_key(content, bytes);
}

static void add_content(struct document *document,
                        const struct pawl__serve_answer *answer,
                        struct pawl__object *response)
{
    struct pawl__object content = start_in(response, "content");

    add_media_type(&content, answer->type == NULL ? HTTP_JSON : answer->type);
    struct pawl__object media = pawl__object_start(content.buf);
    pawl__object_key(&media, "schema");
    if (answer->type == NULL && answer->record != NULL) {
        pawl__record_reference(answer->record, RECORD_WRITTEN, content.buf);
    } else {
        pawl__buf_add_text(content.buf, answer->type == NULL ? "{}" : "{\"type\":\"string\"}");
    }
    if (answer->type != NULL && answer->record != NULL) { /* the data of each event */
        pawl__object_key(&media, "x-event-data");
        pawl__record_reference(answer->record, RECORD_WRITTEN, content.buf);
    }
    pawl__object_end(&media);
    pawl__object_end(&content);
    need(document, answer->record, RECORD_WRITTEN);
}

static void add_answer(struct document *document,
                       const struct pawl__serve_route *route,
                       const struct pawl__serve_answer *answer,
                       struct pawl__object *responses)
{
    char code[8];
    struct pawl__buf text = BUF_OVER(code);

    pawl__buf_add_format(&text, "%u", answer->code);
    struct pawl__object response = start_in(responses, code);
    add_text(&response, "description", answer->about == NULL ? "Done." : answer->about);
    if (route->takes_key) {
        struct pawl__object headers = start_in(&response, "headers");
        add_reference(&headers, "Idempotent-Replayed", "headers/IdempotentReplayed");
        pawl__object_end(&headers);
    }
    add_content(document, answer, &response);
    pawl__object_end(&response);
}

/* --- problems --- */

#define PROBLEM_CONTENT \
    "{\"application/problem+json\":{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}"

static bool has_word(const char *words, const char *word)
{
    pawl_view rest = pawl_view_of(words == NULL ? "" : words);
    pawl_view next;

    while (pawl__view_split(&rest, ' ', &next)) {
        if (pawl__view_is(next, word)) {
            return true;
        }
    }
    return false;
}

/* Problems that follow from what else the route declares. */
static bool is_implied(const struct pawl__serve_route *route,
                       const struct pawl__http_problem *problem)
{
    bool reads = route->method == PAWL__HTTP_GET;
    const struct {
        const char *code;
        bool implied;
    } rules[] = {
        { "INVALID", true },
        { "NO_TOKEN", route->scope != PAWL__SCOPE_PUBLIC },
        { "WRONG_SCOPE", route->scope != PAWL__SCOPE_PUBLIC },
        { "WRONG_ORIGIN", !reads },
        { "LENGTH_REQUIRED", route->body != NULL },
        { "TOO_LARGE", route->body != NULL },
        { "UNSUPPORTED_MEDIA_TYPE", route->body != NULL },
        { "BUSY", true },
        { "STOPPING", true },
    };

    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        if (strcmp(rules[i].code, problem->code) == 0) {
            return rules[i].implied;
        }
    }
    return false;
}

static bool may_answer(const struct pawl__serve_route *route,
                       const struct pawl__http_problem *problem)
{
    return is_implied(route, problem) || has_word(route->problems, problem->code);
}

static bool is_answer(const struct pawl__serve_route *route, unsigned code)
{
    for (size_t i = 0; route->answers[i].code != 0; i++) {
        if (route->answers[i].code == code) {
            return true;
        }
    }
    return false;
}

/* One response per status code: several problems may share it. */
static void add_problems_of(const struct pawl__serve_route *route,
                            unsigned http,
                            struct pawl__object *responses)
{
    char code[8];
    struct pawl__buf text = BUF_OVER(code);
    char bytes[1024] = "";
    struct pawl__buf about = BUF_OVER(bytes);
    const struct pawl__http_problem *problem = NULL;

    for (size_t i = 0; (problem = pawl__http_problem_at(i)) != NULL; i++) {
        if (problem->http == http && may_answer(route, problem)) {
            pawl__buf_add_format(&about,
                                 "%s`%s`: %s",
                                 about.len == 0 ? "" : "; ",
                                 problem->code,
                                 pawl__http_problem_title(problem));
        }
    }
    pawl__buf_add_format(&text, "%u", http);
    struct pawl__object response = start_in(responses, code);
    add_text(&response, "description", bytes);
    pawl__object_key(&response, "content");
    pawl__buf_add_text(response.buf, PROBLEM_CONTENT);
    pawl__object_end(&response);
}

static void add_problems(const struct pawl__serve_route *route, struct pawl__object *responses)
{
    const struct pawl__http_problem *problem = NULL;
    unsigned done[CODES_MAX];
    size_t count = 0;

    for (size_t i = 0; (problem = pawl__http_problem_at(i)) != NULL; i++) {
        bool known = !may_answer(route, problem) || is_answer(route, problem->http);

        for (size_t k = 0; k < count; k++) {
            known = known || done[k] == problem->http;
        }
        if (!known) {
            REQUIRE(count < CODES_MAX);
            done[count++] = problem->http;
            add_problems_of(route, problem->http, responses);
        }
    }
    add_reference(responses, "default", "responses/Problem");
}

/* --- operations --- */

static void add_security(const struct pawl__serve_route *route, struct pawl__object *operation)
{
    pawl__object_key(operation, "security");
    if (route->scope == PAWL__SCOPE_PUBLIC) {
        pawl__buf_add_text(operation->buf, "[]");
    } else { /* the empty one: a node without tokens asks for none */
        pawl__buf_add_format(
            operation->buf, "[{\"token\":[\"%s\"]},{}]", pawl__serve_scope_names[route->scope]);
    }
}

static void add_body(struct document *document,
                     const struct pawl__serve_route *route,
                     struct pawl__object *operation)
{
    if (route->body == NULL) {
        return;
    }
    struct pawl__object body = start_in(operation, "requestBody");
    pawl__object_bool(&body, "required", true);
    struct pawl__object content = start_in(&body, "content");
    struct pawl__object media = start_in(&content, HTTP_JSON);
    pawl__object_key(&media, "schema");
    pawl__record_reference(route->body, RECORD_READ, document->buf);
    need(document, route->body, RECORD_READ);
    pawl__object_end(&media);
    pawl__object_end(&content);
    pawl__object_end(&body);
}

static void add_operation(struct document *document,
                          const struct pawl__serve_part *part,
                          const struct pawl__serve_route *route,
                          struct pawl__object *path)
{
    static const char *const methods[] = {
        [PAWL__HTTP_GET] = "get",     [PAWL__HTTP_POST] = "post",     [PAWL__HTTP_PUT] = "put",
        [PAWL__HTTP_PATCH] = "patch", [PAWL__HTTP_DELETE] = "delete",
    };
    struct pawl__object operation = start_in(path, methods[route->method]);

    add_text(&operation, "operationId", route->id);
    add_text(&operation, "summary", route->summary);
    add_text(&operation, "description", route->about);
    add_string_array(&operation, "tags", part->name);
    add_security(route, &operation);
    add_parameters(route, &operation);
    add_body(document, route, &operation);
    struct pawl__object responses = start_in(&operation, "responses");
    for (size_t i = 0; route->answers[i].code != 0; i++) {
        add_answer(document, route, &route->answers[i], &responses);
    }
    add_problems(route, &responses);
    pawl__object_end(&responses);
    pawl__object_end(&operation);
}

/* Whether a route before it has the same path. */
static bool has_path(const struct document *document, const struct pawl__serve_route *route)
{
    for (size_t i = 0; i < document->part_count; i++) {
        const struct pawl__serve_part *part = document->parts[i];

        for (size_t r = 0; r < part->route_count; r++) {
            if (strcmp(part->routes[r].pattern, route->pattern) == 0) {
                return &part->routes[r] != route;
            }
        }
    }
    return false;
}

/* All methods of a path, of whatever part. */
static void add_path(struct document *document, const char *pattern, struct pawl__object *paths)
{
    struct pawl__object path = start_in(paths, pattern);

    for (size_t i = 0; i < document->part_count; i++) {
        const struct pawl__serve_part *part = document->parts[i];

        for (size_t r = 0; r < part->route_count; r++) {
            if (strcmp(part->routes[r].pattern, pattern) == 0) {
                add_operation(document, part, &part->routes[r], &path);
            }
        }
    }
    pawl__object_end(&path);
}

static void add_paths(struct document *document, struct pawl__object *root)
{
    struct pawl__object paths = start_in(root, "paths");

    for (size_t i = 0; i < document->part_count; i++) {
        const struct pawl__serve_part *part = document->parts[i];

        for (size_t r = 0; r < part->route_count; r++) {
            if (!has_path(document, &part->routes[r])) {
                add_path(document, part->routes[r].pattern, &paths);
            }
        }
    }
    pawl__object_end(&paths);
}

/* --- components --- */

static void add_fixed_components(struct pawl__object *components)
{
    pawl__object_key(components, "securitySchemes");
    pawl__buf_add_text(components->buf,
                       "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":"
                       "\"A token of 'pawl token create'. Its scope is read, write or admin, each "
                       "of which includes those before it.\"}}");
    pawl__object_key(components, "parameters");
    pawl__buf_add_format(
        components->buf,
        "{\"IdempotencyKey\":{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"required\":false,"
        "\"description\":\"Sent again with the same key, the request is executed once and returns "
        "the same answer.\",\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":%d}},"
        "\"LastEventId\":{\"name\":\"Last-Event-ID\",\"in\":\"header\",\"required\":false,"
        "\"description\":\"The id of the last event that was seen: the stream resumes after it.\","
        "\"schema\":{\"type\":\"string\"}}}",
        IDEMPOTENCY_KEY_MAX);
    pawl__object_key(components, "headers");
    pawl__buf_add_text(components->buf,
                       "{\"IdempotentReplayed\":{\"description\":\"The answer is that of an "
                       "earlier request with the same key.\",\"schema\":{\"type\":\"string\","
                       "\"enum\":[\"true\"]}}}");
    pawl__object_key(components, "responses");
    pawl__buf_add_text(components->buf,
                       "{\"Problem\":{\"description\":\"Any other problem: of the connection "
                       "(405, 414, 421, 431) or of the node (5xx).\",\"content\":" PROBLEM_CONTENT
                       "}}");
}

static void add_problem_schema(struct pawl__object *schemas)
{
    const struct pawl__http_problem *problem = NULL;

    pawl__object_key(schemas, "Problem");
    pawl__buf_add_text(
        schemas->buf,
        "{\"type\":\"object\",\"description\":\"RFC 9457.\",\"properties\":{\"type\":{\"type\":"
        "\"string\",\"format\":\"uri\"},\"title\":{\"type\":\"string\"},\"status\":{\"type\":"
        "\"integer\"},\"detail\":{\"type\":\"string\"},\"reason\":{\"type\":\"string\","
        "\"description\":\"A narrower word, where there is "
        "one.\"},\"index\":{\"type\":\"integer\",\"description\":\"Of the item that is meant, "
        "among several.\"},\"code\":{\"type\":\"string\",\"examples\":"
        "[");
    for (size_t i = 0; (problem = pawl__http_problem_at(i)) != NULL; i++) {
        pawl__buf_add_format(schemas->buf, "%s\"%s\"", i == 0 ? "" : ",", problem->code);
    }
    pawl__buf_add_text(schemas->buf,
                       "],\"description\":\"A stable word for programs.\"}},\"required\":[\"type\","
                       "\"title\",\"status\",\"detail\",\"code\"]}");
}

/* What parts add to the health of the node. */
static void add_health(struct document *document, struct pawl__object *schemas)
{
    struct pawl__buf *buf = document->buf;

    pawl__object_key(schemas, pawl__serve_health_record.name);
    pawl__buf_add_text(buf, "{\"allOf\":[");
    pawl__record_schema(&pawl__serve_health_record, RECORD_WRITTEN, buf);
    for (size_t i = 0; i < document->part_count; i++) {
        const struct pawl__record *record = document->parts[i]->health_record;

        if (record != NULL) {
            need(document, record, RECORD_WRITTEN);
            pawl__buf_add_char(buf, ',');
            pawl__record_reference(record, RECORD_WRITTEN, buf);
        }
    }
    pawl__buf_add_text(buf, "]}");
}

static void add_schemas(struct document *document, struct pawl__object *components)
{
    struct pawl__object schemas = start_in(components, "schemas");

    add_problem_schema(&schemas);
    for (size_t i = 0; i < document->schema_count; i++) { /* it may grow meanwhile */
        const struct schema *schema = &document->schemas[i];
        char bytes[128] = "";
        struct pawl__buf name = BUF_OVER(bytes);

        if (schema->record == &pawl__serve_health_record) {
            add_health(document, &schemas);
            continue;
        }
        pawl__buf_add_format(&name, "%s%s", schema->record->name, pawl__record_suffix(schema->use));
        pawl__object_key(&schemas, bytes);
        pawl__record_schema(schema->record, schema->use, document->buf);
    }
    pawl__object_end(&schemas);
}

/* --- the document --- */

static void add_info(struct pawl__object *root)
{
    struct pawl__object info = start_in(root, "info");

    add_text(&info, "title", "pawl");
    add_text(&info, "version", pawl_version());
    add_text(&info,
             "description",
             "Applications and work of a pawl node. Errors are application/problem+json with a "
             "stable `code`; lists are pages with `next`.");
    pawl__object_end(&info);
    pawl__object_key(root, "servers");
    pawl__buf_add_text(root->buf, "[{\"url\":\"/\"}]");
}

pawl_status pawl__serve_openapi_write(const struct pawl__serve_part *const *parts,
                                      size_t count,
                                      struct pawl__buf *buf,
                                      pawl_error *reterr)
{
    struct document document = { .buf = buf, .parts = parts, .part_count = count };
    struct pawl__object root = pawl__object_start(buf);

    add_text(&root, "openapi", "3.1.0");
    add_info(&root);
    add_paths(&document, &root);
    struct pawl__object components = start_in(&root, "components");
    add_schemas(&document, &components);
    add_fixed_components(&components);
    pawl__object_end(&components);
    pawl__object_end(&root);
    pawl__buf_add_char(buf, '\n');
    return pawl__buf_check(buf, "the description", reterr);
}
