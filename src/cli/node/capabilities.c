#include "cli/node/capabilities.h"

const struct pawl__cli_capability pawl__cli_capabilities[PAWL__CAPABILITIES_COUNT] = {
    { "ledger", true, "an idempotent, append-only event log" },
    { "sequencer", true, "numbers without a gap, recovered from the log" },
    { "work", true, "leased work items that resume where they died" },
    { "delivery", true, "exactly-once effect from a broker or a file into DuckDB" },
    { "telemetry", false, "agents and a colony that find and recover gaps" },
};
