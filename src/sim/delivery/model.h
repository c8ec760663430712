/* The modelled parts of one delivery: a broker, a disk for the WAL, a sink, and the process that runs a pipeline on
 * them. A call may fail, may do its work and lose the answer, or may be the process's last. */
#ifndef PAWL_SIM_DELIVERY_MODEL_H
#define PAWL_SIM_DELIVERY_MODEL_H

#include "delivery/memory/sink.h"
#include "delivery/memory/source.h"
#include "delivery/memory/wal.h"
#include "delivery/pipeline/pipeline.h"
#include "sim/sim.h"
#include "sim/world.h"

enum {
    SIM_ITEMS_MAX = 96,     /* distinct (id, payload) */
    SIM_MESSAGES_MAX = 256, /* published */
    SIM_COPIES_MAX = 4,     /* older copies of a store */
    SIM_OUTCOMES_MAX = 64,  /* of a transaction that is held back */
    SIM_LOSSES_MAX = 32,    /* the same */
};

/* What becomes of an event in the sink. */
enum sim_nature {
    SIM_GOOD,
    SIM_NOT_JSON,
    SIM_UNWANTED, /* filtered */
    SIM_POISON,   /* the sink refuses it, for good */
    SIM_FLAKY,    /* the sink refuses it until some time */
    SIM_STUBBORN, /* the sink refuses it for no reason that it names, for good */
};

struct sim_item {
    enum sim_nature nature;
    bool has_id;
    uint64_t id;      /* of conflicts: the same as another item's */
    int64_t heals_ns; /* FLAKY */
    char payload[48];
};

enum sim_end {
    SIM_IN_STREAM,
    SIM_PURGED,
    SIM_BEFORE_US, /* purged before the pipeline had ever made its consumer: nobody promised it */
    SIM_WITHOUT_TRACE, /* came and was purged between two looks, at a place that was read before */
    SIM_ROLLED_BACK,
    SIM_RECREATED,
};

/* A message that the broker acknowledged to its producer. */
struct sim_message {
    size_t item;
    int64_t created_ns;
    uint64_t sequence;
    enum sim_end end; /* of its life in the stream */
};

/* A transaction of a process that was stopped in mid call, and comes late. */
struct sim_parked {
    bool is_there;
    struct delivery_transaction transaction;
    struct delivery_page page;
    struct delivery_outcome outcomes[SIM_OUTCOMES_MAX];
    struct delivery_loss losses[SIM_LOSSES_MAX];
};

struct sim_delivery {
    struct sim_world world;
    enum sim_defect defect;
    unsigned allowed; /* of sim_fault */
    uint64_t faults;

    /* The process. */
    bool is_alive;
    bool is_open;
    uint64_t opened;
    struct delivery_settings settings;
    int64_t drain_ns_max;
    int64_t quiet_step_ms; /* between two steps, at most, once it is quiet */
    struct delivery_pipeline pipeline;

    /* The broker. */
    struct delivery_memory_source broker;
    bool is_cut;          /* the connection: the next fetch fails */
    bool has_begun;       /* the pipeline has made a consumer, once */
    bool was_looked_at;   /* the stream, since something happened to it */
    uint64_t reused_from; /* places that were handed out before the stream lost its tail, */
    uint64_t reused_to;   /* as long as nobody has looked since; 0: none */
    struct delivery_source source; /* what the pipeline sees; so are the next two */
    struct delivery_message fetched[SIM_MESSAGES_MAX];
    struct delivery_header counter_headers[SIM_MESSAGES_MAX];
    char counter_texts[SIM_MESSAGES_MAX][24];
    uint64_t counter;

    /* The WAL: as the process sees it, and what a power cut would leave. */
    struct delivery_wal wal;
    struct delivery_memory_wal live;
    struct delivery_memory_wal disk;
    struct delivery_memory_wal wal_copies[SIM_COPIES_MAX];

    struct delivery_sink sink;
    struct delivery_memory_sink table;
    struct delivery_memory_sink table_copies[SIM_COPIES_MAX];
    size_t copy_count;
    bool sink_is_out;
    struct sim_parked parked;

    /* What the oracle remembers. */
    struct sim_item items[SIM_ITEMS_MAX];
    size_t item_count;
    struct sim_message messages[SIM_MESSAGES_MAX];
    size_t message_count;
    uint64_t unsafe_acks; /* of messages that no disk had */
    bool sink_was_lost;   /* or replaced by an older copy, with what it had on record */
    bool memory_was_lost; /* both of them at once */
};

/* models.c: the three parts around the memory ones. */
void pawl__sim_models_init(struct sim_delivery *sim);
void pawl__sim_unpark(struct sim_delivery *sim, bool run);

/* Chance, as far as this kind of fault is allowed. It is drawn in any case, so that a seed stays what it is. */
bool pawl__sim_strikes(struct sim_delivery *sim, enum sim_fault fault, unsigned per_mille);

/* crash.c. Nothing happens when neither a kill nor a power cut is allowed. */
void pawl__sim_crash(struct sim_delivery *sim);
void pawl__sim_disaster(struct sim_delivery *sim); /* stores are lost or replaced by older copies */
void pawl__sim_take_copies(struct sim_delivery *sim);

/* producer.c */
void pawl__sim_make_items(struct sim_delivery *sim);
void pawl__sim_publish(struct sim_delivery *sim, size_t item);
const struct sim_item *pawl__sim_item_of(const struct sim_delivery *sim, pawl_view payload);
void pawl__sim_purge(struct sim_delivery *sim);
void pawl__sim_roll_back(struct sim_delivery *sim);
void pawl__sim_recreate(struct sim_delivery *sim);

/* oracle.c */
bool pawl__sim_is_durable(const struct sim_delivery *sim, pawl_view payload);
/* False fills `violation`. */
bool pawl__sim_is_drained(const struct sim_delivery *sim);
bool pawl__sim_judge(const struct sim_delivery *sim, char *violation, size_t size);

#endif
