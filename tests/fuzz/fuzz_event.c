/* Any bytes as a line of an event: no crash, and what is refused says why. What is read comes back
 * the same from what is written, and the payload stays as it was, to the letter. */
#include "fuzz/fuzz.h"

#include <string.h>

#include <pawl/ledger.h>

#include "base/core/buf.h"

static void check_same(const pawl_event *a, const pawl_event *b)
{
    CHECK(a->offset == b->offset);
    CHECK(a->turn == b->turn);
    CHECK(a->created_at_us == b->created_at_us);
    CHECK(a->schema_version == b->schema_version);
    CHECK(memcmp(a->hash, b->hash, sizeof(a->hash)) == 0);
    CHECK(pawl__view_equal(a->id, b->id));
    CHECK(pawl__view_equal(a->run_id, b->run_id));
    CHECK(pawl__view_equal(a->kind, b->kind));
    CHECK(pawl__view_equal(a->actor, b->actor));
    CHECK(pawl__view_equal(a->payload, b->payload));
}

/* Only what a ledger would take has to survive being written. */
static bool is_taken(const pawl_event *event)
{
    pawl_ledger *ledger = NULL;

    CHECK(pawl_ledger_open("memory:", NULL, &ledger, NULL) == PAWL_OK);
    pawl_status status = pawl_ledger_append(ledger, event, NULL, NULL);
    CHECK(status == PAWL_OK || status == PAWL_INVALID);
    pawl_ledger_close(ledger, 0, NULL);
    return status == PAWL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_event *event = NULL;
    pawl_event *again = NULL;
    char *json = NULL;
    size_t len = 0;

    pawl_status status =
        pawl_event_from_json((pawl_view){ (const char *)data, size }, NULL, &event, &error);
    if (status != PAWL_OK) {
        CHECK(status == PAWL_INVALID);
        CHECK(error.message[0] != '\0');
        CHECK(event == NULL);
        return 0;
    }
    status = pawl_event_to_json(event, &json, &len, &error);
    CHECK(status == PAWL_OK || status == PAWL_INVALID || status == PAWL_CORRUPT); /* its payload */
    CHECK(status != PAWL_OK || memchr(json, '\n', len) == NULL);
    CHECK(status != PAWL_OK || memchr(json, '\r', len) == NULL);
    if (is_taken(event)) {
        event->schema_version = event->schema_version == 0 ? 1 : event->schema_version;
        free(json);
        CHECK(pawl_event_to_json(event, &json, &len, &error) == PAWL_OK);
        CHECK(pawl_event_from_json((pawl_view){ json, len }, NULL, &again, &error) == PAWL_OK);
        check_same(event, again);
        pawl_event_free(again);
    }
    free(json);
    pawl_event_free(event);
    return 0;
}
