#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "sim/telemetry/model.h"

enum { ROW_BYTES_AGE_S = 30, SIZE_MAX_BYTES = 1200, GROUP_ROWS = 4 };

enum telemetry_type pawl__sim_telemetry_type(size_t t)
{
    return t == 0 ? TELEMETRY_SPANS : TELEMETRY_SYSTEM_METRICS;
}

static size_t place_of(enum telemetry_type type)
{
    return type == TELEMETRY_SPANS ? 0 : 1;
}

struct sim_agent *pawl__sim_agent_of(struct telemetry_source *source)
{
    return (struct sim_agent *)(void *)((char *)source - offsetof(struct sim_agent, source));
}

static struct sim_agent *some_agent(struct sim_telemetry *sim)
{
    return &sim->agents[pawl__sim_below(&sim->world, SIM_AGENTS)];
}

static struct telemetry_retention retention(void)
{
    return (struct telemetry_retention){ ROW_BYTES_AGE_S * NS_PER_S, SIZE_MAX_BYTES, GROUP_ROWS };
}

static void open_database(struct sim_agent *agent)
{
    const struct telemetry_memory_agent_options options = {
        .clock = &agent->sim->agent_clock,
        .random = &agent->sim->world.random,
        .retention = retention(),
        .window_names = 64,
    };
    pawl_error error = PAWL_ERROR_INIT;

    REQUIRE(pawl__telemetry_memory_agent_open(&agent->live.store, &options, &error) == PAWL_OK);
    agent->live.is_there = true;
    agent->sim->opened++;
}

/* --- intake --- */

static struct telemetry_values row_of(enum telemetry_type type,
                                      size_t serial,
                                      char text[24],
                                      int64_t wall_us)
{
    struct telemetry_values row = { .at = { { .as = { .i64 = 0 } } } };
    const struct telemetry_type_info *info = pawl__telemetry_type(type);

    snprintf(text, 24, "row-%zu", serial);
    for (size_t i = 0; i < info->column_count; i++) {
        if (strchr("tml", info->columns[i].kind) != NULL) {
            row.at[i].as.text = pawl_view_of("");
        }
    }
    row.at[info->time_column].as.i64 = wall_us;
    row.at[1].as.text = pawl_view_of(text); /* trace_id, or a metric's name */
    return row;
}

static void note_given(struct sim_agent *agent,
                       enum telemetry_type type,
                       const struct telemetry_appended *appended)
{
    struct sim_telemetry *sim = agent->sim;

    for (uint64_t seq_id = appended->first; seq_id <= appended->last; seq_id++) {
        size_t serial = sim->given_count++;
        sim->given[serial] = (struct sim_given){
            .agent = (size_t)(agent - sim->agents),
            .type = type,
            .session = agent->live.store.state.session,
            .seq_id = seq_id,
            .arrived_ns = sim->world.now_ns,
            .is_bad = pawl__sim_happens(&sim->world, 15),
        };
        agent->live.line[place_of(type)][seq_id - 1] = serial;
    }
}

/* A row that the colony may not have yet. */
static struct sim_given *some_row(struct sim_agent *agent, enum telemetry_type type)
{
    const struct telemetry_memory_rows *rows = &agent->live.store.rows[type];

    if (rows->count == 0) {
        return NULL;
    }
    uint64_t seq_id =
        rows->at[rows->count - 1 - pawl__sim_below(&agent->sim->world, MIN(rows->count, (size_t)6))]
            .seq_id;
    return &agent->sim->given[agent->live.line[place_of(type)][seq_id - 1]];
}

/* One of the newest rows is late. */
static void hide(struct sim_agent *agent, enum telemetry_type type)
{
    struct sim_telemetry *sim = agent->sim;
    struct sim_given *row = some_row(agent, type);

    if (row == NULL || row->seq_id == agent->live.store.state.counters[type]
        || row->hidden_to_ns != 0) {
        return;
    }
    sim->faults++;
    row->hidden_from_ns = sim->world.now_ns;
    row->hidden_to_ns = sim->world.now_ns + pawl__sim_ms(&sim->world, 1000, 30000);
    pawl__sim_trace(&sim->world, "row hidden", (uint64_t)(agent - sim->agents), row->seq_id);
}

void pawl__sim_intake(struct sim_telemetry *sim)
{
    struct sim_agent *agent = some_agent(sim);
    enum telemetry_type type = pawl__sim_telemetry_type(pawl__sim_below(&sim->world, SIM_TYPES));
    struct telemetry_values rows[8];
    char texts[8][24];
    size_t count = 1 + (size_t)pawl__sim_below(&sim->world, 8);
    struct telemetry_appended appended;
    pawl_error error = PAWL_ERROR_INIT;

    if (sim->given_count + count > SIM_GIVEN_MAX) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        rows[i] = row_of(type, sim->given_count + i, texts[i], pawl__wall_us(&sim->world.clock));
    }
    struct telemetry_agent_store *store = &agent->live.store.base;
    REQUIRE(store->ops->append(store, type, rows, count, &appended, &error) == PAWL_OK);
    note_given(agent, type, &appended);
    pawl__sim_trace(&sim->world, "rows", appended.first, appended.last);
    if (pawl__sim_happens(&sim->world, 250)) {
        hide(agent, type);
    }
    if (pawl__sim_happens(&sim->world, 200)) { /* the exporter had no answer and sends them again */
        if (pawl__sim_coin(&sim->world, 300)) {
            open_database(agent);
        }
        REQUIRE(store->ops->append(store, type, rows, count, &appended, &error) == PAWL_OK);
        if (appended.stored != 0) {
            sim->broken = "an exporter's retry was stored again";
        }
    }
}

/* --- what happens to databases --- */

void pawl__sim_agent_restarts(struct sim_telemetry *sim)
{
    struct sim_agent *agent = some_agent(sim);

    pawl__sim_trace(&sim->world, "agent restarts", (uint64_t)(agent - sim->agents), 0);
    open_database(agent);
}

static void copy_database(struct sim_database *to, const struct sim_database *from)
{
    pawl_error error = PAWL_ERROR_INIT;

    REQUIRE(pawl__telemetry_memory_agent_copy(&to->store, &from->store, &error) == PAWL_OK);
    memcpy(to->line, from->line, sizeof(to->line));
    to->is_there = true;
}

void pawl__sim_agent_copied(struct sim_telemetry *sim)
{
    struct sim_agent *agent = some_agent(sim);

    copy_database(&agent->others[pawl__sim_below(&sim->world, SIM_DATABASES_MAX)], &agent->live);
}

void pawl__sim_agent_restored(struct sim_telemetry *sim)
{
    struct sim_agent *agent = some_agent(sim);
    uint64_t first = pawl__sim_below(&sim->world, SIM_DATABASES_MAX);
    struct sim_database *from = NULL;

    for (uint64_t i = 0; i < SIM_DATABASES_MAX && from == NULL; i++) {
        struct sim_database *other = &agent->others[(first + i) % SIM_DATABASES_MAX];
        from = other->is_there ? other : NULL;
    }
    if (from == NULL) {
        return;
    }
    sim->faults++;
    copy_database(&agent->live, from);
    open_database(agent);
    if (sim->defect == SIM_SAME_SESSION) {
        struct telemetry_epochs *epochs = &agent->live.store.state.epochs;
        epochs->count -= epochs->count > 1;
    }
    pawl__sim_trace(&sim->world,
                    "agent restored",
                    (uint64_t)(agent - sim->agents),
                    agent->live.store.state.counters[0]);
}

void pawl__sim_agent_replaced(struct sim_telemetry *sim)
{
    struct sim_agent *agent = some_agent(sim);

    sim->faults++;
    copy_database(&agent->others[0], &agent->live); /* it may come back */
    pawl__telemetry_memory_agent_done(&agent->live.store);
    open_database(agent);
    pawl__sim_trace(&sim->world, "agent replaced", (uint64_t)(agent - sim->agents), 0);
}

void pawl__sim_agent_damaged(struct sim_telemetry *sim)
{
    struct sim_agent *agent = some_agent(sim);
    enum telemetry_type type = pawl__sim_telemetry_type(pawl__sim_below(&sim->world, SIM_TYPES));
    struct sim_given *row = some_row(agent, type);

    /* The newest row of all stays: nothing tells of a hole at the end. */
    if (row == NULL || row->seq_id == agent->live.store.state.counters[type]) {
        return;
    }
    sim->faults++;
    pawl__telemetry_memory_agent_lose(&agent->live.store, type, row->seq_id);
    pawl__sim_trace(&sim->world, "row lost", (uint64_t)(agent - sim->agents), row->seq_id);
}

/* --- retention --- */

static void check_removed(struct sim_agent *agent, size_t t, uint64_t before, bool was_oversized)
{
    struct sim_telemetry *sim = agent->sim;
    uint64_t after = agent->live.store.state.removed[pawl__sim_telemetry_type(t)];

    for (uint64_t seq_id = before + 1; seq_id <= after; seq_id++) {
        const struct sim_given *row = &sim->given[agent->live.line[t][seq_id - 1]];
        if (!was_oversized && sim->world.now_ns - row->arrived_ns < ROW_BYTES_AGE_S * NS_PER_S) {
            sim->broken = "retention removed a row before its time";
        }
    }
}

void pawl__sim_retention(struct sim_telemetry *sim)
{
    struct sim_agent *agent = some_agent(sim);
    struct telemetry_agent_store *store = &agent->live.store.base;
    struct telemetry_agent_status before;
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t removed = 0;

    REQUIRE(store->ops->status(store, &before, &error) == PAWL_OK);
    REQUIRE(store->ops->maintain(store, &removed, &error) == PAWL_OK);
    for (size_t t = 0; t < SIM_TYPES; t++) {
        check_removed(agent,
                      t,
                      before.kept[pawl__sim_telemetry_type(t)].removed,
                      before.used_bytes > SIZE_MAX_BYTES);
    }
    if (removed > 0) {
        pawl__sim_trace(&sim->world, "retention", (uint64_t)(agent - sim->agents), removed);
    }
}

/* --- what the colony sees --- */

static void spoil(struct telemetry_page *page, struct telemetry_row *row)
{
    REQUIRE(pawl__arena_copy(&page->arena, pawl_view_of("\xff\xff\xff"), &row->bytes));
}

/* Rows that are hidden are left out, bad ones cannot be decoded. False: the defect stops at a bad one. */
static bool show_page(struct sim_agent *agent,
                      enum telemetry_type type,
                      struct telemetry_page *page)
{
    struct sim_telemetry *sim = agent->sim;
    size_t kept = 0;
    bool has_bad = false;

    for (size_t i = 0; i < page->count; i++) {
        const struct sim_given *row =
            &sim->given[agent->live.line[place_of(type)][page->rows[i].seq_id - 1]];
        if (row->hidden_from_ns <= sim->world.now_ns && sim->world.now_ns < row->hidden_to_ns) {
            continue;
        }
        page->rows[kept] = page->rows[i];
        if (row->is_bad) {
            spoil(page, &page->rows[kept]);
            has_bad = true;
        }
        kept++;
    }
    page->count = kept;
    return !has_bad || sim->defect != SIM_BAD_ROW_STOPS;
}

static pawl_status query(struct telemetry_source *source,
                         const struct telemetry_query *asked,
                         struct telemetry_page *page,
                         pawl_error *reterr)
{
    struct sim_agent *agent = pawl__sim_agent_of(source);
    struct sim_telemetry *sim = agent->sim;
    struct telemetry_agent_store *store = &agent->live.store.base;
    struct telemetry_query passed = *asked;

    if (agent->is_away || pawl__sim_happens(&sim->world, 40)) {
        sim->faults++;
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "agent '%s' does not answer", agent->name);
    }
    if (sim->defect == SIM_UNBOUNDED_RECOVERY) {
        passed.end = 0;
    }
    TRY(store->ops->query(store, &passed, page, reterr));
    if (!show_page(agent, asked->type, page)) {
        return pawl__fail(reterr, PAWL_INVALID, "a row cannot be decoded");
    }
    if (pawl__sim_happens(&sim->world, 40)) {
        sim->faults++;
        return pawl__fail(reterr, PAWL_TIMEOUT, "the answer of '%s' was lost", agent->name);
    }
    return PAWL_OK;
}

/* --- life --- */

static int64_t agent_wall(struct pawl__clock *clock)
{
    struct sim_telemetry *sim =
        (struct sim_telemetry *)(void *)((char *)clock
                                         - offsetof(struct sim_telemetry, agent_clock));

    return pawl__wall_us(&sim->world.clock);
}

static int64_t agent_boot(struct pawl__clock *clock)
{
    struct sim_telemetry *sim =
        (struct sim_telemetry *)(void *)((char *)clock
                                         - offsetof(struct sim_telemetry, agent_clock));

    return sim->world.now_ns
           + (sim->defect == SIM_WALL_RETENTION ? sim->world.wall_offset_us * NS_PER_US : 0);
}

void pawl__sim_agents_init(struct sim_telemetry *sim)
{
    static const struct pawl__clock_ops ops = {
        .wall_us = agent_wall,
        .monotonic_ns = agent_boot,
        .boot_ns = agent_boot,
    };

    sim->agent_clock = (struct pawl__clock){ &ops };
    for (size_t i = 0; i < SIM_AGENTS; i++) {
        struct sim_agent *agent = &sim->agents[i];
        agent->sim = sim;
        agent->source.query = query;
        snprintf(agent->name, sizeof(agent->name), "agent%zu", i);
        open_database(agent);
    }
}

void pawl__sim_agents_done(struct sim_telemetry *sim)
{
    for (size_t i = 0; i < SIM_AGENTS; i++) {
        pawl__telemetry_memory_agent_done(&sim->agents[i].live.store);
        for (size_t j = 0; j < SIM_DATABASES_MAX; j++) {
            pawl__telemetry_memory_agent_done(&sim->agents[i].others[j].store);
        }
    }
}
