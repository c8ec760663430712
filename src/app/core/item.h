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
    bool decided;             /* it has its outcome */
    bool isolated;            /* it runs by itself: in a group it was, or may be, in conflict */
    size_t entry_at;          /* of the attempt: the place of its first entry in the batch */
    pawl_app_record *targets; /* what the updates found; of the attempt */
    const pawl_app *app;      /* of one that nobody waits for, and so the next two */
    pawl_app_exec_done done;
    void *context;
};

/* check_command.c: what can be decided before a command gets numbers. PAWL_OK with *ret_state
 *
 *   APP_RUN       it gets numbers
 *   APP_DEFERRED  an earlier command of the batch has the same key: to be examined again after it
 *   APP_ANSWERED  the key was used by the same command: its response is filled in
 *
 * NOT_FOUND, CONFLICT and others are the command's outcome. */
enum app_examined { APP_RUN, APP_DEFERRED, APP_ANSWERED };
PAWL_MUST_USE pawl_status pawl__app_examine(struct app_partition *partition,
                                            struct app_item *item,
                                            enum app_examined *ret_state,
                                            pawl_error *reterr);

/* build_event.c: gives a command numbers of the open transaction, adds its event and all that it does to the batch,
 * fills in its response. After an error the caller drops event and entries. */
PAWL_MUST_USE pawl_status pawl__app_build_event(struct app_partition *partition,
                                                struct app_item *item,
                                                uint64_t offset,
                                                pawl_error *reterr);

/* conflict.c: after a conflict, isolates the commands of the attempt whose keys exist; all of them when that
 * cannot be found out. */
void pawl__app_find_conflicts(struct app_partition *partition);

/* conflict.c: after the conflict of a single command. When it was about the number of an own sequence, the message
 * says which one and what to do; else it stays. */
void pawl__app_explain_conflict(struct app_partition *partition, pawl_error *error);

#endif
