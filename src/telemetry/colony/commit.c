/* What every store of the colony checks before it commits. */
#include <inttypes.h>

#include "base/core/error.h"
#include "telemetry/colony/store.h"

static struct telemetry_checkpoint checkpoint_of(const struct telemetry_cursor *cursor)
{
    if (pawl__telemetry_id_is_none(&cursor->session)) {
        return (struct telemetry_checkpoint){ .last = 0 };
    }
    const struct telemetry_generation *current = pawl__telemetry_current(cursor);
    return (struct telemetry_checkpoint){ cursor->session, current->id, current->last };
}

static bool is_same_line(const struct telemetry_checkpoint *a, const struct telemetry_checkpoint *b)
{
    return pawl__telemetry_id_equal(&a->session, &b->session)
           && pawl__telemetry_id_equal(&a->generation, &b->generation);
}

pawl_status pawl__telemetry_commit_check(const struct telemetry_commit *commit,
                                         const struct telemetry_checkpoint *stored,
                                         pawl_error *reterr)
{
    struct telemetry_checkpoint before = checkpoint_of(commit->before);
    struct telemetry_checkpoint after = checkpoint_of(commit->cursor);
    const char *type = pawl__telemetry_type(commit->type)->name;

    if (!is_same_line(&before, stored) || before.last != stored->last) {
        return pawl__fail(reterr,
                          PAWL_CONFLICT,
                          "agent '%s', %s: the checkpoint is at %" PRIu64 " and not at %" PRIu64
                          " any more",
                          commit->agent,
                          type,
                          stored->last,
                          before.last);
    }
    if (is_same_line(&before, &after) && after.last < before.last) {
        return pawl__fail(reterr,
                          PAWL_CONFLICT,
                          "agent '%s', %s: the checkpoint would go back from %" PRIu64
                          " to %" PRIu64,
                          commit->agent,
                          type,
                          before.last,
                          after.last);
    }
    return PAWL_OK;
}
