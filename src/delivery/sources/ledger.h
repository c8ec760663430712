/* A ledger of pawl's as a source, read through <pawl/ledger.h>.
 *
 *   Sequence   The event's offset.
 *   Stored     The beginning of its hash, which covers everything before it: an older copy or another ledger at the
 *              same place shows.
 *   Created    The same for every ledger: what identifies one are its hashes.
 *
 * An event becomes a message with its payload, its kind as subject, its id as Nats-Msg-Id, and run, turn and actor as
 * headers. The ledger's own kinds ("pawl.…") are passed over. */
#ifndef PAWL_DELIVERY_SOURCES_LEDGER_H
#define PAWL_DELIVERY_SOURCES_LEDGER_H

#include <pawl/ledger.h>

#include "base/os/clock.h"
#include "base/thread/cancel.h"
#include "delivery/core/source.h"

#define DELIVERY_HEADER_RUN "Pawl-Run"
#define DELIVERY_HEADER_TURN "Pawl-Turn"
#define DELIVERY_HEADER_ACTOR "Pawl-Actor"

/* Borrowed for as long as the source is open. */
struct delivery_ledger_options {
    pawl_ledger *ledger;
    bool complete_turns; /* hold back turns that are open, leave out those that were abandoned */
    struct pawl__cancel *cancel; /* ends a fetch that waits; NULL: nobody does */
    struct pawl__clock *clock;   /* NULL: the real one */
};

PAWL_MUST_USE pawl_status pawl__delivery_ledger_open(const struct delivery_ledger_options *options,
                                                     struct delivery_source **ret_source,
                                                     pawl_error *reterr);

#endif
