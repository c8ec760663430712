/* Carries out a group of write requests as one transaction of a backend. */
#ifndef PAWL_LEDGER_CORE_WRITE_H
#define PAWL_LEDGER_CORE_WRITE_H

#include "ledger/core/backend.h"
#include "ledger/core/plan.h"

/* Belongs to the committer thread. */
struct ledger_writer {
    struct ledger_backend *backend;
    struct ledger_plan plan;
    size_t embedded;  /* embeddings that this group wrote */
    unsigned careful; /* groups that look ids up first, because duplicates came lately */
    struct ledger_open_turns open;
};

#define LEDGER_WRITER_INIT(of_backend)                    \
    {                                                     \
        .backend = (of_backend), .plan = LEDGER_PLAN_INIT \
    }

void pawl__ledger_writer_done(struct ledger_writer *writer);

/* PAWL_OK: each request has its own answer in item.outcome, and those with PAWL_OK are durable.
 * Anything else holds for all of them; `reterr` is not NULL. */
PAWL_MUST_USE pawl_status pawl__ledger_write_group(struct ledger_writer *writer,
                                                   struct ledger_request *const *requests,
                                                   size_t count,
                                                   pawl_error *reterr);

/* --- count_ordinals.c --- */

/* Fills in what is stored of the request's ordinals. Inside the writer's transaction. */
PAWL_MUST_USE pawl_status pawl__ledger_count_ordinals(struct ledger_backend *backend,
                                                      const struct ledger_request *request,
                                                      pawl_error *reterr);

#endif
