/* pawl ledger embed|recall */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "base/os/fs.h"
#include "base/os/lines.h"
#include "cli/ledger/ledger.h"

enum { VECTOR_BYTES_MAX = PAWL_EMBEDDING_DIMENSIONS_MAX * 32 }; /* written as JSON */

struct vector {
    float *values;
    size_t count;
};

static void vector_done(struct vector *vector)
{
    free(vector->values);
}

static pawl_status read_vector(struct pawl__json_node node,
                               struct vector *ret_vector,
                               pawl_error *reterr)
{
    struct pawl__json_node array;

    TRY(pawl__json_array(node, &array, reterr));
    size_t count = pawl__json_count(&array);
    if (count == 0 || count > PAWL_EMBEDDING_DIMENSIONS_MAX) {
        return pawl__json_fail(&array,
                               reterr,
                               "has %zu numbers, allowed are 1 to %d",
                               count,
                               PAWL_EMBEDDING_DIMENSIONS_MAX);
    }
    AUTO(vector_done)
    struct vector vector = { .values = calloc(count, sizeof(float)), .count = count };
    if (vector.values == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an embedding");
    }
    for (size_t i = 0; i < count; i++) {
        double value = 0;
        TRY(pawl__json_real(pawl__json_item(&array, i), &value, reterr));
        vector.values[i] = (float)value;
    }
    *ret_vector = vector;
    vector.values = NULL;
    return PAWL_OK;
}

/* --- embed --- */

static pawl_status find_offset(pawl_ledger *ledger,
                               const struct pawl__json_node *line,
                               uint64_t *ret_offset,
                               pawl_error *reterr)
{
    AUTO(pawl__cli_event_free_p) pawl_event *event = NULL;
    pawl_view id = { NULL, 0 };
    int64_t offset = 0;

    TRY(pawl__json_int(pawl__json_optional(line, "offset"), 1, INT64_MAX, &offset, reterr));
    TRY(pawl__json_text(pawl__json_optional(line, "id"), &id, reterr));
    if ((offset == 0) == (id.len == 0)) {
        return pawl__fail(reterr, PAWL_INVALID, "either 'offset' or 'id' says which event");
    }
    if (id.len > 0) {
        pawl_status status = pawl_ledger_get(ledger, id, 0, &event, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "id '%.*s'", VIEW_ARGS(id));
        }
        offset = (int64_t)event->offset;
    }
    *ret_offset = (uint64_t)offset;
    return PAWL_OK;
}

static pawl_status embed_line(pawl_ledger *ledger, pawl_view text, pawl_error *reterr)
{
    static const char *const names[] = { "offset", "id", "embedding" };
    AUTO(vector_done) struct vector vector = { .values = NULL };
    json_auto_t *json = NULL;
    struct pawl__json_node line;
    uint64_t offset = 0;

    TRY(pawl__json_parse(text, VECTOR_BYTES_MAX, &json, reterr));
    TRY(pawl__json_object(pawl__json_root(json, ""), &line, reterr));
    TRY(pawl__json_only(&line, names, COUNT_OF(names), reterr));
    TRY(find_offset(ledger, &line, &offset, reterr));
    TRY(read_vector(pawl__json_key(&line, "embedding"), &vector, reterr));
    return pawl_ledger_embed(ledger, offset, vector.values, vector.count, reterr);
}

static pawl_status embed_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(pawl__lines_done)
    struct pawl__lines lines = pawl__lines_of(STDIN_FILENO, VECTOR_BYTES_MAX);
    pawl_view line;
    pawl_status status;
    uint64_t count = 0;

    TRY(pawl__cli_ledger_open(run, LEDGER_TO_WRITE, &ledger, reterr));
    while ((status = pawl__lines_next(&lines, &line, reterr)) == PAWL_OK) {
        status = embed_line(ledger, line, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(
                reterr, status, "line %llu", (unsigned long long)lines.number);
        }
        count++;
    }
    return status != PAWL_NOT_FOUND ? status
                                    : pawl__cli_ledger_print_row(
                                        json_pack("{s:I}", "embedded", (json_int_t)count), reterr);
}

#define EMBED "echo '{\"id\":\"e-1\",\"embedding\":[0.6,0.8]}' | pawl ledger embed --data ./data"

const struct pawl__cli_command pawl__cli_cmd_ledger_embed = {
    .name = "embed",
    .summary = "attach embeddings to events",
    .description =
        "Reads lines {\"id\":\"e-1\",\"embedding\":[0.6,0.8]} (or \"offset\" instead of \"id\") "
        "from "
        "standard input and attaches each to its event, in place of an earlier one. All "
        "embeddings of a ledger have the same number of dimensions. They are derived data: not "
        "part of the hash chain, and not exported.",
    .examples = EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND EMBED, "one event")),
    .run = embed_run,
};

/* --- recall --- */

static pawl_status parse_vector(const char *given, struct vector *ret_vector, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *text = malloc(VECTOR_BYTES_MAX);
    json_auto_t *json = NULL;
    size_t len = 0;

    if (text == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an embedding");
    }
    pawl_view view = pawl_view_of(given);
    if (given[0] == '@') {
        TRY(pawl__fs_read_given(given + 1, text, VECTOR_BYTES_MAX, &len, reterr));
        view = (pawl_view){ text, len };
    }
    pawl_status status = pawl__json_parse(view, VECTOR_BYTES_MAX, &json, reterr);
    return status == PAWL_OK ? read_vector(pawl__json_root(json, "vector"), ret_vector, reterr)
                             : pawl__fail_context(reterr, status, "vector");
}

static pawl_status print_found(const struct pawl__cli_run *run,
                               pawl_ledger *ledger,
                               const pawl_recalled *found,
                               pawl_error *reterr)
{
    AUTO(pawl__cli_event_free_p) pawl_event *event = NULL;
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(SIZE_MAX / 2);

    TRY(pawl_ledger_get(ledger, pawl_view_of(NULL), found->offset, &event, reterr));
    if (!run->json && run->term.is_terminal) {
        pawl__buf_add_format(&out, "%6.3f ", found->similarity);
        TRY(pawl__cli_out_add(&out, reterr));
        return pawl__cli_ledger_print(run, event, reterr);
    }
    pawl__buf_add_text(&out, "{\"similarity\":");
    pawl__buf_add_real(&out, found->similarity);
    pawl__buf_add_text(&out, ",\"event\":");
    TRY(pawl__cli_ledger_add_json(run, event, &out, reterr));
    pawl__buf_add_text(&out, "}\n");
    return pawl__cli_out_add(&out, reterr);
}

static void free_found(pawl_recalled **found)
{
    free(*found);
}

static pawl_status recall(const struct pawl__cli_run *run,
                          pawl_ledger *ledger,
                          const struct vector *vector,
                          const pawl_event_filter *filter,
                          pawl_error *reterr)
{
    size_t wanted = (size_t)pawl__cli_args_number(run->args, "count");
    AUTO(free_found) pawl_recalled *found = calloc(wanted, sizeof(*found));
    size_t count = 0;

    if (found == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for what is found");
    }
    TRY(pawl_ledger_recall(
        ledger, vector->values, vector->count, filter, found, wanted, &count, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(print_found(run, ledger, &found[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status parse_like(const struct pawl__cli_run *run,
                              pawl_ledger *ledger,
                              struct vector *ret_vector,
                              pawl_error *reterr)
{
    ret_vector->values = calloc(PAWL_EMBEDDING_DIMENSIONS_MAX, sizeof(float));
    if (ret_vector->values == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an embedding");
    }
    return pawl_ledger_get_embedding(ledger,
                                     (uint64_t)pawl__cli_args_number(run->args, "like"),
                                     ret_vector->values,
                                     PAWL_EMBEDDING_DIMENSIONS_MAX,
                                     &ret_vector->count,
                                     reterr);
}

static pawl_status recall_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(vector_done) struct vector vector = { .values = NULL };
    const char *given = pawl__cli_args_value(run->args, "vector");
    bool like = pawl__cli_args_has(run->args, "like");
    pawl_event_filter filter;

    if (like == (given != NULL)) {
        return pawl__fail(reterr, PAWL_INVALID, "near to what? Give --vector or --like");
    }
    TRY(pawl__cli_ledger_filter(run, &filter, reterr));
    if (given != NULL) {
        TRY(parse_vector(given, &vector, reterr));
    }
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
    if (like) {
        TRY(parse_like(run, ledger, &vector, reterr));
    }
    return recall(run, ledger, &vector, &filter, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_recall = {
    .name = "recall",
    .summary = "find the events nearest to an embedding",
    .description =
        "Prints the events whose embeddings have the largest cosine with the one that is "
        "given, best first, each with its similarity from -1 to 1.",
    .flags = FLAGS(
        FLAG("vector", "JSON", "An array of numbers; @FILE reads a file."),
        NUMBER_FLAG("like", "OFFSET", 1, INT64_MAX, "The embedding of this event."),
        NUMBER_FLAG(
            "count", "N", 1, PAWL_RECALL_COUNT_MAX, "How many.", .letter = 'k', .fallback = "10"),
        LEDGER_FILTER_FLAGS),
    .examples = EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND EMBED
                                " && pawl ledger recall --data ./data --vector '[1,0]' -k 3",
                                "the three nearest"),
                         { .line = "pawl ledger recall --data ./data --like 12 --actor ada",
                           .says = "what ada did that is like event 12" }),
    .run = recall_run,
    .only_prints = true,
};
