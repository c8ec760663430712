#include "delivery/service/asked.h"

#include <stdlib.h>

#include "base/core/error.h"

void pawl__delivery_asked_done(struct delivery_asked *asked)
{
    pawl__arena_done(&asked->arena);
    free(asked->events);
    free(asked->keys);
    free(asked->known);
    free(asked->which);
    *asked = (struct delivery_asked){ .count = 0 };
}

void pawl__delivery_asked_clear(struct delivery_asked *asked)
{
    pawl__arena_clear(&asked->arena);
    asked->count = 0;
}

static pawl_status make_room(struct delivery_asked *asked, pawl_error *reterr)
{
    if (asked->events != NULL) {
        return PAWL_OK;
    }
    asked->keys = calloc(DELIVERY_ASKED_MAX, sizeof(*asked->keys));
    asked->known = calloc(DELIVERY_ASKED_MAX, sizeof(*asked->known));
    asked->which = calloc(DELIVERY_ASKED_MAX, sizeof(*asked->which));
    asked->events = calloc(DELIVERY_ASKED_MAX, sizeof(*asked->events));
    return asked->keys != NULL && asked->known != NULL && asked->which != NULL
                   && asked->events != NULL
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a comparison");
}

static pawl_status add(struct delivery_asked *asked,
                       const struct delivery_asked_event *event,
                       pawl_error *reterr)
{
    TRY(make_room(asked, reterr));
    REQUIRE(asked->count < DELIVERY_ASKED_MAX);
    struct delivery_asked_event *copy = &asked->events[asked->count];
    *copy = *event;
    if (!pawl__arena_copy(&asked->arena, event->transaction_id, &copy->transaction_id)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a comparison");
    }
    asked->count++;
    return PAWL_OK;
}

pawl_status pawl__delivery_asked_add_message(struct delivery_asked *asked,
                                             const struct delivery_identity_rule *rule,
                                             const struct delivery_message *message,
                                             pawl_error *reterr)
{
    char room[DELIVERY_TRANSACTION_ID_BYTES_MAX + 1];
    struct pawl__buf text = BUF_OVER(room);
    struct delivery_identity identity;

    TRY(pawl__delivery_identify(rule, message, &text, &identity, reterr));
    struct delivery_asked_event event = {
        .names = { .id = identity.id },
        .payload_hash = identity.payload,
        .transaction_id = identity.transaction_id,
        .sequence = message->place.sequence,
    };
    TRY(pawl__delivery_conflict_key(
        &identity.id, &identity.payload, &event.names.conflict, reterr));
    return add(asked, &event, reterr);
}

pawl_status pawl__delivery_asked_add_entry(struct delivery_asked *asked,
                                           const struct delivery_entry *entry,
                                           pawl_error *reterr)
{
    struct delivery_asked_event event = {
        .payload_hash = entry->payload_hash,
        .transaction_id = entry->transaction_id,
        .sequence = entry->place.sequence,
        .lsn = entry->lsn,
    };

    TRY(pawl__delivery_entry_names(entry, &event.names, reterr));
    return add(asked, &event, reterr);
}

/* Under the id, or as a conflict: those that are not known yet. */
static pawl_status ask_under(struct delivery_asked *asked,
                             struct delivery_sink *sink,
                             bool as_conflict,
                             pawl_error *reterr)
{
    size_t count = 0;

    for (size_t i = 0; i < asked->count; i++) {
        const struct delivery_asked_event *event = &asked->events[i];
        if (event->is_known) {
            continue;
        }
        asked->which[count] = i;
        asked->keys[count++] =
            (struct delivery_key){ as_conflict ? event->names.conflict : event->names.id,
                                   event->payload_hash };
    }
    if (count == 0) {
        return PAWL_OK;
    }
    TRY(sink->ops->lookup(sink, asked->keys, count, asked->known, reterr));
    for (size_t i = 0; i < count; i++) {
        struct delivery_asked_event *event = &asked->events[asked->which[i]];
        event->id_taken |= !as_conflict && asked->known[i].found;
        event->is_known =
            asked->known[i].found
            && pawl__delivery_hash_equal(&asked->known[i].payload_hash, &event->payload_hash);
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_ask(struct delivery_asked *asked,
                               struct delivery_sink *sink,
                               pawl_error *reterr)
{
    TRY(ask_under(asked, sink, false, reterr));
    return ask_under(asked, sink, true, reterr);
}
