#include "records/ledger.h"

#include "base/core/macros.h"

static const struct pawl__field event_fields[] = {
    { FIELD(pawl_event, offset, FIELD_UINT64), .about = "Its place in the ledger: 1, 2, 3, ..." },
    { FIELD(pawl_event, id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_event, run_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_event, turn, FIELD_INT64) },
    { FIELD(pawl_event, kind, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_event, actor, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_event, payload, FIELD_JSON), .flags = FIELD_SET },
    { FIELD_AS("created_at", pawl_event, created_at_us, FIELD_TIME), .flags = FIELD_SET },
    { FIELD(pawl_event, schema_version, FIELD_INT64) },
};
const struct pawl__record pawl__event_record = SIZED_RECORD("Event", pawl_event, event_fields);
