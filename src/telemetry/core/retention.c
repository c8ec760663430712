#include "telemetry/core/retention.h"

#include <string.h>

#include "base/core/macros.h"

/* Every second mark goes; the one that stays is the later one, and stands for both. */
static void thin_out(struct telemetry_arrivals *arrivals)
{
    size_t kept = 0;

    for (size_t i = 1; i < arrivals->count; i += 2) {
        arrivals->at[kept++] = arrivals->at[i];
    }
    arrivals->count = kept;
}

void pawl__telemetry_arrived(struct telemetry_arrivals *arrivals, uint64_t last, int64_t boot_ns)
{
    if (arrivals->count > 0 && arrivals->at[arrivals->count - 1].boot_ns == boot_ns) {
        arrivals->at[arrivals->count - 1].last = last;
        return;
    }
    if (arrivals->count == TELEMETRY_ARRIVALS_MAX) {
        thin_out(arrivals);
    }
    arrivals->at[arrivals->count++] = (struct telemetry_arrival){ last, boot_ns };
}

uint64_t pawl__telemetry_arrived_by(const struct telemetry_arrivals *arrivals, int64_t boot_ns)
{
    uint64_t last = 0;

    for (size_t i = 0; i < arrivals->count && arrivals->at[i].boot_ns <= boot_ns; i++) {
        last = arrivals->at[i].last;
    }
    return last;
}

void pawl__telemetry_arrivals_forget(struct telemetry_arrivals *arrivals, uint64_t removed)
{
    size_t gone = 0;

    while (gone < arrivals->count && arrivals->at[gone].last <= removed) {
        gone++;
    }
    arrivals->count -= gone;
    memmove(arrivals->at, &arrivals->at[gone], arrivals->count * sizeof(*arrivals->at));
}

static uint64_t whole_groups(const struct telemetry_retention *retention,
                             uint64_t removed,
                             uint64_t up_to)
{
    return up_to <= removed
               ? removed
               : removed + (up_to - removed) / retention->group_rows * retention->group_rows;
}

uint64_t pawl__telemetry_remove_by_age(const struct telemetry_retention *retention,
                                       const struct telemetry_kept *kept)
{
    if (retention->age_ns == 0) {
        return kept->removed;
    }
    return whole_groups(retention, kept->removed, MIN(kept->aged, kept->acked));
}

/* The type with the most rows of which the colony has a whole group, else the one with the most rows. */
bool pawl__telemetry_remove_by_size(const struct telemetry_retention *retention,
                                    const struct telemetry_kept kept[TELEMETRY_TYPE_COUNT],
                                    uint64_t used,
                                    enum telemetry_type *ret_type,
                                    uint64_t *ret_up_to)
{
    uint64_t most[2] = { 0, 0 };
    size_t which[2] = { 0, 0 };

    if (retention->used_max == 0 || used <= retention->used_max) {
        return false;
    }
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        uint64_t rows = kept[t].counter - kept[t].removed;
        uint64_t acked = MIN(kept[t].acked, kept[t].counter);
        bool has_group = acked >= kept[t].removed + retention->group_rows;
        if (has_group && rows > most[0]) {
            most[0] = rows;
            which[0] = t;
        }
        if (rows > most[1]) {
            most[1] = rows;
            which[1] = t;
        }
    }
    size_t pick = most[0] > 0 ? which[0] : which[1];
    *ret_type = (enum telemetry_type)pick;
    *ret_up_to = MIN(kept[pick].counter, kept[pick].removed + retention->group_rows);
    return most[1] > 0;
}
