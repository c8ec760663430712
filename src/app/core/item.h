/* A command on its way through a partition. */
#ifndef PAWL_APP_CORE_ITEM_H
#define PAWL_APP_CORE_ITEM_H

#include "app/core/internal.h"

struct app_item {
    struct pawl__commit_item item; /* first */
    struct app_request request;
    pawl_app_response *response; /* with room for ... */
    pawl_app_id *ids;            /* ... these two */
    pawl_app_number *numbers;
    bool decided;    /* it has its outcome */
    bool alone;      /* it is tried by itself: with others it was, or may be, in conflict */
    size_t entry_at; /* of the attempt: the place of its first entry in the batch */
    pawl_app_record *targets; /* what the updates found; of the attempt */
    const pawl_app *app;      /* of one that nobody waits for, and so the next two */
    pawl_app_answer answer;
    void *context;
};

/* examine.c: what can be known before numbers are taken. PAWL_OK with *ret_state
 *
 *   APP_GO        take numbers for it
 *   APP_LATER     an earlier command of the batch has the same key: when that one has its answer
 *   APP_ANSWERED  the key was used by the same command: its response is filled in
 *
 * NOT_FOUND, CONFLICT and others are the command's outcome. */
enum app_examined { APP_GO, APP_LATER, APP_ANSWERED };
PAWL_MUST_USE pawl_status pawl__app_examine(struct app_partition *partition,
                                            struct app_item *item,
                                            enum app_examined *ret_state,
                                            pawl_error *reterr);

/* making.c: takes the numbers of a command from the open transaction, adds its event and all that it
 * does to the batch, fills in its response. After an error event and entries are to be given up. */
PAWL_MUST_USE pawl_status pawl__app_make_event(struct app_partition *partition,
                                               struct app_item *item,
                                               uint64_t offset,
                                               pawl_error *reterr);

/* blame.c: after a conflict, those of the attempt whose keys are taken become alone; all of it when
 * that cannot be found out. */
void pawl__app_blame(struct app_partition *partition);

/* blame.c: after the conflict of a single command. Was it the number of an own sequence, the message says
 * which one, and what to do; else it stays. */
void pawl__app_name_number(struct app_partition *partition, pawl_error *error);

#endif
