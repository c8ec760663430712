#include "delivery/service/declaration.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/fs.h"
#include "base/record/record.h"
#include "net/nats/url.h"

enum {
    VERSION = 1,
    GENERATION_BYTES_MAX = 128,
    LOCATION_BYTES_MAX = 4096,
};

static const char *const type_names[] = { "BIGINT",  "INTEGER",   "DOUBLE", "BOOLEAN",
                                          "VARCHAR", "TIMESTAMP", "JSON",   NULL };

static const char *const from_names[] = { "path",    "transaction_id", "source",   "event_id",
                                          "subject", "headers",        "received", NULL };

static const struct pawl__field column_fields[] = {
    { FIELD(struct delivery_declared_column, name, FIELD_TEXT),
      .flags = FIELD_REQUIRED,
      .min = 1,
      .max = DELIVERY_NAME_BYTES_MAX },
    { FIELD(struct delivery_declared_column, type, FIELD_ENUM), .names = type_names },
    { FIELD(struct delivery_declared_column, from, FIELD_ENUM), .names = from_names },
    { FIELD(struct delivery_declared_column, path, FIELD_TEXT), .max = DELIVERY_PATH_BYTES_MAX },
    { FIELD(struct delivery_declared_column, expression, FIELD_TEXT),
      .max = DELIVERY_EXPRESSION_BYTES_MAX },
    { FIELD(struct delivery_declared_column, required, FIELD_BOOL) },
    { FIELD(struct delivery_declared_column, lenient, FIELD_BOOL) },
};
static const struct delivery_declared_column column_initial = { .type = DELIVERY_VARCHAR };
static const struct pawl__record column_record =
    RECORD_FROM("PipelineColumn", struct delivery_declared_column, column_fields, &column_initial);

#define DECLARED_TEXT(member, limit) \
    FIELD(struct delivery_declaration, member, FIELD_TEXT), .max = (limit)
static const struct pawl__field fields[] = {
    { DECLARED_TEXT(name, PAWL_PIPELINE_NAME_BYTES_MAX), .min = 1, .flags = FIELD_REQUIRED },
    { DECLARED_TEXT(from, LOCATION_BYTES_MAX), .min = 1, .flags = FIELD_REQUIRED },
    { DECLARED_TEXT(into, DELIVERY_NAME_BYTES_MAX) },
    { DECLARED_TEXT(source, DELIVERY_ID_BYTES_MAX) },
    { DECLARED_TEXT(id_field, DELIVERY_ID_BYTES_MAX) },
    { DECLARED_TEXT(generation, GENERATION_BYTES_MAX) },
    { DECLARED_TEXT(stream, PAWL__NATS_NAME_SIZE - 1) },
    { DECLARED_TEXT(consumer, PAWL__NATS_NAME_SIZE - 1) },
    { DECLARED_TEXT(subject, PAWL__NATS_SUBJECT_SIZE - 1) },
    { FIELD(struct delivery_declaration, create_stream, FIELD_BOOL) },
    { DECLARED_TEXT(nkey_file, LOCATION_BYTES_MAX) },
    { DECLARED_TEXT(creds_file, LOCATION_BYTES_MAX) },
    { DECLARED_TEXT(tls_ca, LOCATION_BYTES_MAX) },
    { DECLARED_TEXT(tls_certificate, LOCATION_BYTES_MAX) },
    { DECLARED_TEXT(tls_key, LOCATION_BYTES_MAX) },
    { FIELD(struct delivery_declaration, complete_turns, FIELD_BOOL) },
    { FIELD(struct delivery_declaration, columns, FIELD_RECORDS),
      .record = &column_record,
      .count_offset = offsetof(struct delivery_declaration, column_count),
      .max = DELIVERY_COLUMNS_MAX },
    { DECLARED_TEXT(filter, DELIVERY_EXPRESSION_BYTES_MAX) },
    { FIELD(struct delivery_declaration, unique_index, FIELD_BOOL) },
};
static const struct pawl__record declaration_record =
    RECORD("Pipeline", struct delivery_declaration, fields);

struct stored {
    int64_t version;
    bool paused;
    const pawl_view *generations;
    size_t generation_count;
    const struct delivery_declaration *pipeline;
};
static const struct pawl__field stored_fields[] = {
    { FIELD(struct stored, version, FIELD_INT64),
      .flags = FIELD_REQUIRED,
      .min = 1,
      .max = INT32_MAX },
    { FIELD(struct stored, paused, FIELD_BOOL) },
    { FIELD(struct stored, generations, FIELD_TEXTS),
      .count_offset = offsetof(struct stored, generation_count),
      .max = PAWL_PIPELINE_GENERATIONS_MAX },
    { FIELD(struct stored, pipeline, FIELD_RECORD),
      .flags = FIELD_REQUIRED,
      .record = &declaration_record },
};
static const struct pawl__record stored_record =
    RECORD("StoredPipeline", struct stored, stored_fields);

void pawl__delivery_declared_done(struct delivery_declared *declared)
{
    pawl__arena_done(&declared->arena);
}

/* --- texts --- */

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a declaration");
}

static pawl_status copy_text(struct delivery_declared *declared,
                             const char *text,
                             pawl_view *ret_copy,
                             pawl_error *reterr)
{
    return pawl__arena_copy(&declared->arena, pawl_view_of(text), ret_copy) ? PAWL_OK
                                                                            : no_memory(reterr);
}

static pawl_status default_text(struct delivery_declared *declared,
                                pawl_view *text,
                                const char *otherwise,
                                pawl_error *reterr)
{
    return text->len > 0 ? PAWL_OK : copy_text(declared, otherwise, text, reterr);
}

pawl_status pawl__delivery_check_name(const char *name, pawl_error *reterr)
{
    size_t len = strlen(name);

    if (len == 0 || len > PAWL_PIPELINE_NAME_BYTES_MAX
        || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != len) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "name: a pipeline's name has 1 to %d of a-z, 0-9, - and _",
                          PAWL_PIPELINE_NAME_BYTES_MAX);
    }
    return PAWL_OK;
}

/* --- where it reads --- */

struct form {
    const char *prefix;
    enum delivery_source_kind kind;
    bool is_path; /* what follows the prefix, unless it is a location of another kind */
    bool whole;   /* the prefix belongs to the location */
};
static const struct form forms[] = {
    { "nats://", DELIVERY_KIND_NATS, .whole = true },
    { "tls://", DELIVERY_KIND_NATS, .whole = true },
    { "ledger:", DELIVERY_KIND_LEDGER, .is_path = true },
    { "file:", DELIVERY_KIND_FILE, .is_path = true },
};

/* A file that is named in two ways is one file. */
static pawl_status find_path(const char *path, char **ret_path, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *here = NULL;

    *ret_path = realpath(path, NULL);
    if (*ret_path != NULL) {
        return PAWL_OK;
    }
    here = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
    *ret_path = here == NULL ? NULL : path[0] == '/' ? strdup(path) : pawl__fs_join(here, path);
    return *ret_path == NULL ? no_memory(reterr) : PAWL_OK;
}

static pawl_status keep_path(struct delivery_declared *declared,
                             const char *prefix,
                             const char *path,
                             pawl_error *reterr)
{
    AUTO(pawl__text_free) char *found = NULL;
    AUTO(pawl__buf_done) struct pawl__buf from = BUF_INIT((size_t)2 * LOCATION_BYTES_MAX);

    TRY(find_path(path, &found, reterr));
    pawl__buf_add_format(&from, "%s%s", prefix, found);
    TRY(pawl__buf_check(&from, "a path", reterr));
    TRY(copy_text(declared, from.data, &declared->is.from, reterr));
    declared->location = declared->is.from.data + strlen(prefix);
    declared->shown = declared->is.from;
    return PAWL_OK;
}

static pawl_status keep_url(struct delivery_declared *declared, pawl_error *reterr)
{
    AUTO(pawl__nats_url_done) struct pawl__nats_url url = { .server_count = 0 };
    pawl_status status = pawl__nats_url_parse(declared->is.from.data, &url, reterr);

    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "from");
    }
    declared->location = declared->is.from.data;
    return copy_text(declared, url.shown, &declared->shown, reterr);
}

static bool is_plain_path(const char *location)
{
    return strncmp(location, "sqlite:", 7) != 0 && strncmp(location, "memory:", 7) != 0
           && strstr(location, "://") == NULL;
}

static pawl_status find_source(struct delivery_declared *declared, pawl_error *reterr)
{
    const char *from = declared->is.from.data;

    if (strcmp(from, "-") == 0 || strcmp(from, "http") == 0) {
        declared->kind = from[0] == '-' ? DELIVERY_KIND_STDIN : DELIVERY_KIND_HTTP;
        declared->location = from;
        declared->shown = declared->is.from;
        return PAWL_OK;
    }
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        size_t len = strlen(forms[i].prefix);
        if (strncmp(from, forms[i].prefix, len) != 0 || from[len] == '\0') {
            continue;
        }
        declared->kind = forms[i].kind;
        if (forms[i].whole) {
            return keep_url(declared, reterr);
        }
        if (is_plain_path(&from[len])) {
            return keep_path(declared, forms[i].prefix, &from[len], reterr);
        }
        declared->location = &from[len];
        declared->shown = pawl_view_of(forms[i].prefix); /* a URL may hold a password */
        return PAWL_OK;
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "from: allowed are nats://HOST:PORT, tls://HOST:PORT, ledger:LOCATION, "
                      "file:PATH, http for events that are posted, and - for standard input");
}

/* --- what is made of it --- */

static const char *default_source(const struct delivery_declared *declared)
{
    return declared->kind == DELIVERY_KIND_NATS ? declared->is.stream.data : declared->is.name.data;
}

/* What a field is for: one that means nothing for this source was meant for another. */
static pawl_status check_used(const struct delivery_declared *declared, pawl_error *reterr)
{
    const struct delivery_declaration *is = &declared->is;
    const struct {
        const char *name;
        bool is_given;
        unsigned kinds;
        const char *of;
    } uses[] = {
        { "generation",
          is->generation.len > 0,
          1U << DELIVERY_KIND_FILE | 1U << DELIVERY_KIND_STDIN,
          "files and standard input" },
        { "stream", is->stream.len > 0, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "consumer", is->consumer.len > 0, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "subject", is->subject.len > 0, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "create_stream", is->create_stream, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "nkey_file", is->nkey_file.len > 0, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "creds_file", is->creds_file.len > 0, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "tls_ca", is->tls_ca.len > 0, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "tls_certificate", is->tls_certificate.len > 0, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "tls_key", is->tls_key.len > 0, 1U << DELIVERY_KIND_NATS, "NATS" },
        { "complete_turns", is->complete_turns, 1U << DELIVERY_KIND_LEDGER, "ledgers" },
    };

    for (size_t i = 0; i < COUNT_OF(uses); i++) {
        if (uses[i].is_given && (uses[i].kinds & 1U << declared->kind) == 0) {
            return pawl__fail(
                reterr, PAWL_INVALID, "%s: only for sources that are %s", uses[i].name, uses[i].of);
        }
    }
    return PAWL_OK;
}

/* What a place is a place of: a stream, the lines of a generation, a ledger. */
static pawl_view stream_of(const struct delivery_declared *declared)
{
    switch (declared->kind) {
    case DELIVERY_KIND_NATS:
        return declared->is.stream;
    case DELIVERY_KIND_LEDGER:
        return pawl_view_of("ledger");
    case DELIVERY_KIND_HTTP:
        return pawl_view_of("http");
    case DELIVERY_KIND_FILE:
    case DELIVERY_KIND_STDIN:
        break;
    }
    return declared->is.generation;
}

static pawl_status fill_in(struct delivery_declared *declared, pawl_error *reterr)
{
    struct delivery_declaration *is = &declared->is;
    char consumer[PAWL_PIPELINE_NAME_BYTES_MAX + sizeof("pawl-")];

    if (declared->kind == DELIVERY_KIND_NATS && is->stream.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "stream: missing; name the stream to read");
    }
    if (is->create_stream && is->subject.len == 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "subject: missing; a stream that is created needs its subjects");
    }
    if (declared->kind == DELIVERY_KIND_STDIN && is->source.len == 0) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "source: missing; standard input has no name of its own to begin ids with");
    }
    TRY(default_text(declared, &is->into, "events", reterr));
    TRY(default_text(declared, &is->source, default_source(declared), reterr));
    if (declared->kind == DELIVERY_KIND_FILE || declared->kind == DELIVERY_KIND_STDIN) {
        TRY(default_text(declared, &is->generation, "1", reterr));
    }
    if (declared->kind == DELIVERY_KIND_NATS) {
        memcpy(consumer, "pawl-", sizeof("pawl-"));
        strcat(consumer, is->name.data); /* its length was checked */
        TRY(default_text(declared, &is->consumer, consumer, reterr));
    }
    declared->identity = (struct delivery_identity_rule){ .source = is->source,
                                                          .stream = stream_of(declared),
                                                          .id_field = is->id_field };
    return pawl__delivery_check_rule(&declared->identity, reterr);
}

static const enum delivery_from from_of[] = {
    DELIVERY_FROM_PATH,     DELIVERY_FROM_TRANSACTION_ID, DELIVERY_FROM_SOURCE,
    DELIVERY_FROM_EVENT_ID, DELIVERY_FROM_SUBJECT,        DELIVERY_FROM_HEADERS,
    DELIVERY_FROM_RECEIVED,
};

/* A value comes from one place. */
static pawl_status check_column(const struct delivery_declared_column *given,
                                size_t index,
                                pawl_error *reterr)
{
    int places = (given->from > 0) + (given->path.len > 0) + (given->expression.len > 0);

    return places <= 1 ? PAWL_OK
                       : pawl__fail(reterr,
                                    PAWL_INVALID,
                                    "columns[%zu]: has more than one of path, from and expression",
                                    index);
}

/* "$.name" unless a path is given. */
static pawl_status column_path(struct delivery_declared *declared,
                               const struct delivery_declared_column *given,
                               const char **ret_path,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf path = BUF_INIT(DELIVERY_PATH_BYTES_MAX);
    pawl_view copy = given->path;

    if (copy.len == 0) {
        pawl__buf_add_format(&path, "$.%s", given->name.data);
        TRY(pawl__buf_check(&path, "a path", reterr));
        TRY(copy_text(declared, path.data, &copy, reterr));
    }
    *ret_path = copy.data;
    return PAWL_OK;
}

static pawl_status make_mapping(struct delivery_declared *declared, pawl_error *reterr)
{
    const struct delivery_declaration *is = &declared->is;
    struct delivery_column *columns = NULL;

    declared->mapping = *pawl__delivery_default_mapping();
    declared->mapping.table = is->into.data;
    declared->mapping.has_unique_index = is->unique_index;
    declared->mapping.filter = is->filter.len > 0 ? is->filter.data : NULL;
    if (is->column_count > 0) {
        columns = pawl__arena_take(&declared->arena, is->column_count * sizeof(*columns));
        TRY(pawl__check_memory(columns, "a declaration", reterr));
        declared->mapping.columns = columns;
        declared->mapping.count = is->column_count;
    }
    for (size_t i = 0; i < is->column_count; i++) {
        const struct delivery_declared_column *given = &is->columns[i];
        TRY(check_column(given, i, reterr));
        columns[i] = (struct delivery_column){
            .name = given->name.data,
            .type = (enum delivery_type)given->type,
            .from = from_of[given->from],
            .is_required = given->required,
            .is_lenient = given->lenient,
        };
        if (given->expression.len > 0) {
            columns[i].from = DELIVERY_FROM_EXPRESSION;
            columns[i].expression = given->expression.data;
        }
        if (columns[i].from == DELIVERY_FROM_PATH) {
            TRY(column_path(declared, given, &columns[i].path, reterr));
        }
    }
    return pawl__delivery_mapping_check(&declared->mapping, reterr);
}

/* From `is`, whose views are anybody's, to the rest. */
static pawl_status complete(const struct delivery_declaration *given,
                            struct delivery_declared *declared,
                            pawl_error *reterr)
{
    if (!pawl__record_copy(&declaration_record, &declared->arena, given, &declared->is)) {
        return no_memory(reterr);
    }
    TRY(pawl__delivery_check_name(declared->is.name.data, reterr));
    TRY(find_source(declared, reterr));
    TRY(check_used(declared, reterr));
    TRY(fill_in(declared, reterr));
    TRY(make_mapping(declared, reterr));
    if (declared->is.generation.len > 0) {
        pawl_view *one = pawl__arena_take(&declared->arena, sizeof(*one));
        TRY(pawl__check_memory(one, "a declaration", reterr));
        *one = declared->is.generation;
        declared->generations = one;
        declared->generation_count = 1;
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_declare(pawl_view json,
                                   struct delivery_declared *ret_declared,
                                   pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    AUTO(pawl__delivery_declared_done) struct delivery_declared declared = { .paused = false };
    json_auto_t *value = NULL;
    struct delivery_declaration given = { .create_stream = false };

    TRY(pawl__json_parse(json, PAWL_DECLARATION_BYTES_MAX, &value, reterr));
    TRY(pawl__record_read(&declaration_record, pawl__json_root(value, ""), &arena, &given, reterr));
    TRY(complete(&given, &declared, reterr));
    *ret_declared = declared;
    declared.arena = (struct pawl__arena)ARENA_INIT; /* it is the caller's now */
    return PAWL_OK;
}

/* --- declared again --- */

static pawl_status fail_other(const struct delivery_declared *before,
                              const char *field,
                              pawl_view is,
                              pawl_error *reterr)
{
    return pawl__fail_advised(reterr,
                              PAWL_CONFLICT,
                              "pipeline '%s' has %s '%.*s', which cannot change; to start anew, "
                              "choose another name and table",
                              before->is.name.data,
                              field,
                              VIEW_ARGS(is));
}

/* Two generations are two streams of lines; one that was left is not entered again, because only the newest one's
 * place is known. */
static pawl_status follow_generation(const struct delivery_declared *before,
                                     struct delivery_declared *next,
                                     pawl_error *reterr)
{
    size_t count = before->generation_count;
    bool is_same = pawl__view_equal(before->is.generation, next->is.generation);

    if (is_same && !pawl__view_equal(before->is.from, next->is.from)) {
        return pawl__fail_advised(
            reterr,
            PAWL_CONFLICT,
            "pipeline '%s' reads '%.*s' as generation '%.*s'; to read something else with it, "
            "name another --generation",
            before->is.name.data,
            VIEW_ARGS(before->shown),
            VIEW_ARGS(before->is.generation));
    }
    for (size_t i = 0; !is_same && i < count; i++) {
        if (pawl__view_equal(before->generations[i], next->is.generation)) {
            return pawl__fail(reterr,
                              PAWL_CONFLICT,
                              "generation '%.*s' of pipeline '%s' was followed by '%.*s'; a "
                              "generation is not entered twice",
                              VIEW_ARGS(next->is.generation),
                              before->is.name.data,
                              VIEW_ARGS(before->is.generation));
        }
    }
    if (!is_same && count == PAWL_PIPELINE_GENERATIONS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "generation: pipeline '%s' has had %d of them, which is the limit",
                          before->is.name.data,
                          PAWL_PIPELINE_GENERATIONS_MAX);
    }
    return PAWL_OK;
}

static pawl_status take_generations(const struct delivery_declared *before,
                                    struct delivery_declared *next,
                                    pawl_error *reterr)
{
    bool is_same = pawl__view_equal(before->is.generation, next->is.generation);
    size_t count = before->generation_count + (is_same ? 0 : 1);
    pawl_view *generations = pawl__arena_take(&next->arena, (count + 1) * sizeof(*generations));

    TRY(pawl__check_memory(generations, "a declaration", reterr));
    for (size_t i = 0; i < before->generation_count; i++) {
        if (!pawl__arena_copy(&next->arena, before->generations[i], &generations[i])) {
            return no_memory(reterr);
        }
    }
    if (!is_same) {
        generations[count - 1] = next->is.generation;
    }
    next->generations = generations;
    next->generation_count = count;
    return PAWL_OK;
}

pawl_status pawl__delivery_declared_follow(const struct delivery_declared *before,
                                           struct delivery_declared *next,
                                           pawl_error *reterr)
{
    const struct {
        const char *field;
        pawl_view before;
        pawl_view next;
    } fixed[] = {
        { "source", before->is.source, next->is.source },
        { "id_field", before->is.id_field, next->is.id_field },
        { "stream", before->is.stream, next->is.stream },
        { "table", before->is.into, next->is.into },
    };

    if (before->kind != next->kind) {
        return fail_other(before, "a source of another kind,", before->shown, reterr);
    }
    for (size_t i = 0; i < COUNT_OF(fixed); i++) {
        if (!pawl__view_equal(fixed[i].before, fixed[i].next)) {
            return fail_other(before, fixed[i].field, fixed[i].before, reterr);
        }
    }
    next->paused = before->paused;
    if (next->is.generation.len == 0) {
        return PAWL_OK;
    }
    TRY(follow_generation(before, next, reterr));
    return take_generations(before, next, reterr);
}

/* --- stored --- */

void pawl__delivery_declared_write(const struct delivery_declared *declared, struct pawl__buf *buf)
{
    const struct stored stored = { .version = VERSION,
                                   .paused = declared->paused,
                                   .generations = declared->generations,
                                   .generation_count = declared->generation_count,
                                   .pipeline = &declared->is };

    pawl__record_write(&stored_record, &stored, buf);
    pawl__buf_add_char(buf, '\n');
}

/* Before its fields: those of a newer version are not known here. */
static pawl_status check_version(json_t *value, pawl_error *reterr)
{
    json_int_t version = json_integer_value(json_object_get(value, "version"));

    return version <= VERSION ? PAWL_OK
                              : pawl__fail(reterr,
                                           PAWL_UNSUPPORTED,
                                           "written by a newer pawl (version %lld, known is %d)",
                                           (long long)version,
                                           VERSION);
}

static pawl_status copy_generations(const struct stored *stored,
                                    struct delivery_declared *declared,
                                    pawl_error *reterr)
{
    pawl_view *copies =
        pawl__arena_take(&declared->arena, (stored->generation_count + 1) * sizeof(*copies));

    TRY(pawl__check_memory(copies, "a declaration", reterr));
    for (size_t i = 0; i < stored->generation_count; i++) {
        if (!pawl__arena_copy(&declared->arena, stored->generations[i], &copies[i])) {
            return no_memory(reterr);
        }
    }
    declared->generations = copies;
    declared->generation_count = stored->generation_count;
    return PAWL_OK;
}

pawl_status pawl__delivery_declared_read(pawl_view json,
                                         struct delivery_declared *ret_declared,
                                         pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    AUTO(pawl__delivery_declared_done) struct delivery_declared declared = { .paused = false };
    json_auto_t *value = NULL;
    struct stored stored = { .paused = false };

    pawl_status status = pawl__json_parse(json, SIZE_MAX, &value, reterr);
    if (status == PAWL_OK) {
        TRY(check_version(value, reterr));
        status =
            pawl__record_read(&stored_record, pawl__json_root(value, ""), &arena, &stored, reterr);
    }
    if (status == PAWL_OK) {
        status = complete(stored.pipeline, &declared, reterr);
    }
    if (status == PAWL_OK) {
        declared.paused = stored.paused;
        status = copy_generations(&stored, &declared, reterr);
    }
    if (status != PAWL_OK) {
        return status == PAWL_INVALID ? pawl__fail_context(reterr, PAWL_CORRUPT, "a declaration")
                                      : status;
    }
    *ret_declared = declared;
    declared.arena = (struct pawl__arena)ARENA_INIT;
    return PAWL_OK;
}
