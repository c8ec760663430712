/* What a declaration would make of the first events of its source: no log, no table, no thread. */
#include <stdlib.h>
#include <unistd.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/json/object.h"
#include "delivery/duckdb/dry_run.h"
#include "delivery/service/internal.h"
#include "delivery/sources/file.h"
#include "delivery/sources/ledger.h"

enum { LIMIT_MAX = 1000, SAMPLE_BYTES = 64 << 20, JSON_BYTES_MAX = 128 << 20 };

struct preview {
    struct delivery_declared declared;
    pawl_ledger *ledger;
    struct delivery_source *source;
    struct delivery_page sample;
    pawl_json_visit visit;
    void *context;
    bool is_over; /* the visitor has seen enough */
    struct pawl__buf json;
};

static void preview_done(struct preview *preview)
{
    if (preview->source != NULL) {
        preview->source->ops->close(preview->source);
    }
    (void)!pawl_ledger_close(preview->ledger, 0, NULL);
    pawl__delivery_page_done(&preview->sample);
    pawl__buf_done(&preview->json);
    pawl__delivery_declared_done(&preview->declared);
}

static pawl_status open_source(struct preview *preview, pawl_error *reterr)
{
    const struct delivery_declared *declared = &preview->declared;
    struct delivery_file_options file = { .fd = STDIN_FILENO,
                                          .generation = declared->is.generation.data };
    struct delivery_ledger_options ledger = { .complete_turns = declared->is.complete_turns };

    switch (declared->kind) {
    case DELIVERY_KIND_NATS:
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "a stream cannot be read without a consumer: try the mapping on a file");
    case DELIVERY_KIND_HTTP:
        return pawl__fail(
            reterr,
            PAWL_UNSUPPORTED,
            "events that are posted later cannot be read now: try the mapping on a file");
    case DELIVERY_KIND_LEDGER:
        TRY(pawl__delivery_open_ledger(declared->location, &preview->ledger, reterr));
        ledger.ledger = preview->ledger;
        return pawl__delivery_ledger_open(&ledger, &preview->source, reterr);
    case DELIVERY_KIND_FILE:
        file.path = declared->location;
        break;
    case DELIVERY_KIND_STDIN:
        break;
    }
    return pawl__delivery_file_open(&file, &preview->source, reterr);
}

static pawl_status add_entry(struct preview *preview,
                             const struct delivery_message *message,
                             pawl_error *reterr)
{
    char memory[DELIVERY_TRANSACTION_ID_BYTES_MAX + 1];
    struct pawl__buf text = BUF_OVER(memory);
    struct delivery_identity identity;

    TRY(pawl__delivery_identify(&preview->declared.identity, message, &text, &identity, reterr));
    const struct delivery_entry entry = {
        .lsn = preview->sample.count + 1,
        .key = identity.id,
        .payload_hash = identity.payload,
        .place = message->place,
        .sequence = identity.sequence,
        .transaction_id = identity.transaction_id,
        .source = identity.source,
        .event_id = identity.event_id,
        .subject = message->subject,
        .headers = message->headers,
        .header_count = message->header_count,
        .payload = message->payload,
    };
    return pawl__delivery_page_add(&preview->sample, &entry, reterr);
}

static pawl_status read_sample(struct preview *preview, uint32_t limit, pawl_error *reterr)
{
    struct delivery_source *source = preview->source;
    const struct delivery_fetch fetch = { .messages_max = limit,
                                          .bytes_max = SAMPLE_BYTES,
                                          .wait_ns = 0 };
    struct delivery_batch batch = { .count = 0 };

    TRY(source->ops->restart_at(source, 1, reterr));
    TRY(source->ops->fetch(source, &fetch, &batch, reterr));
    for (size_t i = 0; i < batch.count; i++) {
        TRY(add_entry(preview, &batch.messages[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status show(void *context,
                        const struct delivery_entry *entry,
                        const struct delivery_verdict *verdict,
                        pawl_view row,
                        pawl_error *reterr)
{
    static const char *const words[DELIVERY_OUTCOME_COUNT] = { [DELIVERY_ROW] = "row",
                                                               [DELIVERY_FILTERED] = "filtered",
                                                               [DELIVERY_TO_FAILED] = "failed",
                                                               [DELIVERY_DEFERRED] = "retried" };
    struct preview *preview = context;
    bool has_failed = verdict->kind == DELIVERY_TO_FAILED;

    if (preview->is_over) {
        return PAWL_OK;
    }
    pawl__buf_clear(&preview->json);
    struct pawl__object object = pawl__object_start(&preview->json);
    pawl__object_text(&object, "transaction_id", entry->transaction_id);
    pawl__object_text(&object, "verdict", pawl_view_of(words[verdict->kind]));
    pawl__object_json(&object, "row", row.len > 0 ? row : pawl_view_of("null"));
    pawl__object_text(&object, "reason", pawl_view_of(has_failed ? verdict->reason : NULL));
    pawl__object_text(&object, "error", pawl_view_of(has_failed ? verdict->error : NULL));
    pawl__object_end(&object);
    TRY(pawl__buf_check(&preview->json, "a row", reterr));
    pawl_view json = pawl__buf_view(&preview->json);
    preview->is_over = !preview->visit(preview->context, &json);
    return PAWL_OK;
}

pawl_status pawl_pipeline_preview(
    pawl_view declaration, uint32_t limit, pawl_json_visit visit, void *context, pawl_error *reterr)
{
    NEED_VIEW(declaration, reterr);
    NEED(visit, reterr);
    AUTO(preview_done)
    struct preview preview = { .visit = visit,
                               .context = context,
                               .json = BUF_INIT(JSON_BYTES_MAX) };

    TRY(pawl__check_range("limit", limit, 1, LIMIT_MAX, reterr));
    TRY(pawl__delivery_declare(declaration, &preview.declared, reterr));
    TRY(open_source(&preview, reterr));
    TRY(read_sample(&preview, limit, reterr));
    return pawl__delivery_dry_run(&preview.declared.mapping,
                                  NULL,
                                  preview.sample.entries,
                                  preview.sample.count,
                                  show,
                                  &preview,
                                  reterr);
}
