/* The modelled parts of telemetry: agents whose databases are copied, restored, replaced and shortened, a network that
 * loses questions and answers, a colony that is killed, and a store whose answers get lost. The real steps
 * (telemetry/colony) run on them. */
#ifndef PAWL_SIM_TELEMETRY_MODEL_H
#define PAWL_SIM_TELEMETRY_MODEL_H

#include "sim/sim.h"
#include "sim/world.h"
#include "telemetry/agent/memory.h"
#include "telemetry/colony/memory.h"
#include "telemetry/colony/poller.h"

enum {
    SIM_AGENTS = 2,
    SIM_TYPES = 2, /* of each agent: spans and system metrics */
    SIM_FEEDS = SIM_AGENTS * SIM_TYPES,
    SIM_GIVEN_MAX = 1024,  /* rows in one run */
    SIM_DATABASES_MAX = 6, /* of an agent: copies, and those that were replaced */
};

/* Everything about one row that an agent has acknowledged to its exporter. */
struct sim_given {
    size_t agent;
    enum telemetry_type type;
    struct telemetry_id session;
    uint64_t seq_id;
    int64_t arrived_ns;
    bool is_bad; /* it cannot be decoded */
    bool
        is_known; /* a committed checkpoint has named a high-water mark at or above it, in its own line */
    bool is_removed;        /* by retention or damage, in the line that is live */
    int64_t hidden_from_ns; /* not visible to queries until ... */
    int64_t hidden_to_ns;
};

/* A database, and which rows were given in its line: place i is the row with id i + 1. */
struct sim_database {
    bool is_there;
    struct telemetry_memory_agent store;
    size_t line[SIM_TYPES][SIM_GIVEN_MAX];
};

struct sim_agent {
    struct sim_telemetry *sim;
    struct telemetry_source source; /* what the colony sees */
    struct sim_database live;
    struct sim_database others[SIM_DATABASES_MAX];
    bool is_away; /* cannot be asked */
    char name[8];
};

struct sim_telemetry {
    struct sim_world world;
    enum sim_telemetry_defect defect;
    uint64_t faults;
    uint64_t opened;
    const char *broken; /* a promise that was seen to be broken on the way */

    struct sim_agent agents[SIM_AGENTS];
    struct pawl__clock agent_clock; /* of their retention */
    struct sim_given given[SIM_GIVEN_MAX];
    size_t given_count;

    struct pawl__clock colony_clock;
    struct telemetry_memory_colony disk;
    struct telemetry_colony_store store; /* what the colony sees */
    bool is_alive;
    struct telemetry_colony colony;
    struct telemetry_feed feeds[SIM_FEEDS];
};

enum telemetry_type pawl__sim_telemetry_type(size_t t);
struct sim_agent *pawl__sim_agent_of(struct telemetry_source *source);

/* agents.c */
void pawl__sim_agents_init(struct sim_telemetry *sim);
void pawl__sim_agents_done(struct sim_telemetry *sim);
void pawl__sim_intake(struct sim_telemetry *sim);
void pawl__sim_agent_restarts(struct sim_telemetry *sim);
void pawl__sim_agent_copied(struct sim_telemetry *sim);
void pawl__sim_agent_restored(
    struct sim_telemetry *sim); /* from a copy, or from a database that was replaced */
void pawl__sim_agent_replaced(struct sim_telemetry *sim); /* by an empty one */
void pawl__sim_agent_damaged(struct sim_telemetry *sim);  /* a row is gone for good */
void pawl__sim_retention(struct sim_telemetry *sim);

/* colony.c */
void pawl__sim_colony_init(struct sim_telemetry *sim);
void pawl__sim_colony_start(struct sim_telemetry *sim);
void pawl__sim_colony_end(struct sim_telemetry *sim);

/* oracle.c: false fills `violation`. */
bool pawl__sim_telemetry_is_settled(struct sim_telemetry *sim);
bool pawl__sim_telemetry_judge(struct sim_telemetry *sim, char *violation, size_t size);

#endif
