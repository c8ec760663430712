/* What happens to processes and to disks. */
#include "sim/delivery/model.h"

/* Either the process alone dies, and the kernel still writes what it had, or the power goes. */
void pawl__sim_crash(struct sim_delivery *sim)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool is_power_cut = pawl__sim_coin(&sim->world, 500);

    if (!sim->is_alive || (sim->allowed & (SIM_KILL | SIM_POWER)) == 0) {
        return;
    }
    is_power_cut =
        (is_power_cut && (sim->allowed & SIM_POWER) != 0) || (sim->allowed & SIM_KILL) == 0;
    sim->is_alive = false;
    sim->faults++;
    pawl__sim_trace(&sim->world, is_power_cut ? "POWER CUT" : "KILL", sim->opened, 0);
    pawl_status status = is_power_cut
                             ? pawl__delivery_memory_wal_copy(&sim->live, &sim->disk, &error)
                             : pawl__delivery_memory_wal_copy(&sim->disk, &sim->live, &error);
    REQUIRE(status == PAWL_OK);
}

void pawl__sim_take_copies(struct sim_delivery *sim)
{
    pawl_error error = PAWL_ERROR_INIT;
    size_t i = sim->copy_count < SIM_COPIES_MAX ? sim->copy_count++
                                                : pawl__sim_below(&sim->world, SIM_COPIES_MAX);
    pawl_status wal = pawl__delivery_memory_wal_copy(&sim->wal_copies[i], &sim->disk, &error);
    pawl_status sink = pawl__delivery_memory_sink_copy(&sim->table_copies[i], &sim->table, &error);

    REQUIRE(wal == PAWL_OK);
    REQUIRE(sink == PAWL_OK);
    pawl__sim_trace(&sim->world, "a copy is made", i, sim->table.cursor.applied);
}

static void replace_wal(struct sim_delivery *sim, const struct delivery_memory_wal *copy)
{
    const struct delivery_memory_wal nothing = pawl__delivery_memory_wal();
    pawl_error error = PAWL_ERROR_INIT;
    const struct delivery_memory_wal *from = copy == NULL ? &nothing : copy;
    pawl_status live = pawl__delivery_memory_wal_copy(&sim->live, from, &error);
    pawl_status disk = pawl__delivery_memory_wal_copy(&sim->disk, from, &error);

    REQUIRE(live == PAWL_OK);
    REQUIRE(disk == PAWL_OK);
    sim->faults++;
    pawl__sim_trace(&sim->world, copy == NULL ? "WAL LOST" : "OLDER WAL RESTORED", from->last, 0);
}

static void replace_sink(struct sim_delivery *sim, const struct delivery_memory_sink *copy)
{
    struct delivery_uuid sink_id = { { 2 } };
    sink_id.bytes[1] = (uint8_t)pawl__sim_below(&sim->world, 256);
    struct delivery_memory_sink nothing = pawl__delivery_memory_sink(&sink_id, &sim->table.rules);
    pawl_error error = PAWL_ERROR_INIT;
    const struct delivery_memory_sink *from = copy == NULL ? &nothing : copy;
    pawl_status status = pawl__delivery_memory_sink_copy(&sim->table, from, &error);

    REQUIRE(status == PAWL_OK);
    sim->faults++;
    sim->sink_was_lost = true;
    pawl__sim_unpark(sim, false); /* it was a commit to the file that is gone */
    pawl__sim_trace(
        &sim->world, copy == NULL ? "SINK LOST" : "OLDER SINK RESTORED", from->cursor.applied, 0);
}

static const void *draw(struct sim_delivery *sim, const void *copies, size_t size)
{
    if (sim->copy_count == 0 || pawl__sim_coin(&sim->world, 500)) {
        return NULL;
    }
    return (const char *)copies + pawl__sim_below(&sim->world, sim->copy_count) * size;
}

void pawl__sim_disaster(struct sim_delivery *sim)
{
    uint64_t which =
        pawl__sim_below(&sim->world, 5); /* WAL alone, sink alone, and more rarely both */

    if (sim->is_alive) {
        pawl__sim_crash(sim);
        sim->is_alive = false; /* nobody replaces the stores of a process that runs */
    }
    if (which != 1 && which != 3) {
        replace_wal(sim, draw(sim, sim->wal_copies, sizeof(*sim->wal_copies)));
    }
    if (which != 0 && which != 2) {
        replace_sink(sim, draw(sim, sim->table_copies, sizeof(*sim->table_copies)));
    }
    sim->memory_was_lost |= which == 4;
}
