/* Which applications the node has, who uses one, and how many more fit in. */
#include "server/apps/registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"

/* --- finding --- */

struct node_app *pawl__serve_app_find_locked(struct node_apps *apps, pawl_view name)
{
    for (size_t i = 0; i < apps->count; i++) {
        if (pawl__view_is(name, apps->apps[i]->name)) {
            return apps->apps[i];
        }
    }
    return NULL;
}

struct node_app_state pawl__serve_app_state_of(const struct node_app *app)
{
    struct node_app_state state = {
        .app = app->app,
        .why = app->why,
        .opening = pawl__serve_app_is_pending(app),
        .probe = app->probe,
    };

    memcpy(state.name, app->name, sizeof(state.name));
    return state;
}

/* One that is open stays so until it is released. With the lock of the applications. */
static struct node_app_state hold(struct node_app *app)
{
    struct node_app_state state = pawl__serve_app_state_of(app);

    if (app->app != NULL) {
        app->uses++;
        state.held = app;
    }
    return state;
}

void pawl__serve_app_release(struct node_app *held)
{
    if (held != NULL) {
        pawl__lock(&held->all->lock);
        REQUIRE(held->uses > 0);
        if (--held->uses == 0) {
            pawl__cond_broadcast(&held->all->changed);
        }
        pawl__unlock(&held->all->lock);
    }
}

bool pawl__serve_app_find(struct apps_part *part, pawl_view name, struct node_app_state *ret_state)
{
    struct node_apps *apps = part->apps;

    pawl__lock(&apps->lock);
    struct node_app *found = pawl__serve_app_find_locked(apps, name);
    if (found != NULL) {
        *ret_state = hold(found);
    }
    pawl__unlock(&apps->lock);
    return found != NULL;
}

struct node_app_state *pawl__serve_app_states(struct apps_part *part,
                                              bool to_close,
                                              size_t *ret_count)
{
    struct node_apps *apps = part->apps;
    size_t count = 0;

    pawl__lock(&apps->lock);
    struct node_app_state *states = calloc(2 * apps->count + apps->lost_count + 1, sizeof(*states));
    for (size_t i = 0; states != NULL && i < apps->count; i++) {
        if (!to_close || apps->apps[i]->app != NULL) {
            states[count++] = hold(apps->apps[i]);
        }
        if (to_close && apps->apps[i]->unclosed.app != NULL) {
            states[count++] = apps->apps[i]->unclosed;
        }
    }
    for (size_t i = 0; states != NULL && to_close && i < apps->lost_count; i++) {
        states[count++] = apps->lost[i];
    }
    pawl__unlock(&apps->lock);
    *ret_count = count;
    return states;
}

void pawl__serve_app_states_free(struct node_app_state *states, size_t count)
{
    for (size_t i = 0; states != NULL && i < count; i++) {
        pawl__serve_app_release(states[i].held);
    }
    free(states);
}

size_t pawl__serve_apps_count(struct apps_part *part)
{
    pawl__lock(&part->apps->lock);
    size_t count = part->apps->count;
    pawl__unlock(&part->apps->lock);
    return count;
}

size_t pawl__serve_apps_open_count(struct apps_part *part)
{
    struct node_apps *apps = part->apps;
    size_t count = 0;

    pawl__lock(&apps->lock);
    for (size_t i = 0; i < apps->count; i++) {
        count += apps->apps[i]->app != NULL;
    }
    pawl__unlock(&apps->lock);
    return count;
}

/* --- room --- */

pawl_status pawl__serve_apps_check_room_locked(struct node_apps *apps,
                                               unsigned partitions,
                                               pawl_status refusal,
                                               pawl_error *reterr)
{
    uint32_t most = apps->part->options->partitions_max;
    unsigned there = 0;

    for (size_t i = 0; i < apps->count; i++) {
        const pawl_app *app = apps->apps[i]->app;

        there += app == NULL ? 0 : pawl_app_get_descriptor(app)->partitions;
    }
    return there + partitions <= most
               ? PAWL_OK
               : pawl__fail(reterr,
                            refusal,
                            "a node has %u partitions at the most (server.partitions_max): with "
                            "the %u of this application there would be %u",
                            most,
                            partitions,
                            there + partitions);
}

pawl_status pawl__serve_apps_check_room(struct apps_part *part,
                                        unsigned partitions,
                                        pawl_error *reterr)
{
    struct node_apps *apps = part->apps;

    pawl__lock(&apps->lock);
    pawl_status status =
        apps->count < NODE_APPS_MAX
            ? pawl__serve_apps_check_room_locked(apps, partitions, PAWL_CONFLICT, reterr)
            : pawl__fail(
                reterr, PAWL_CONFLICT, "a node has %d applications at the most", NODE_APPS_MAX);
    pawl__unlock(&apps->lock);
    return status;
}

/* --- adding and removing --- */

pawl_status pawl__serve_app_add_locked(struct node_apps *apps,
                                       const char *name,
                                       struct node_app **ret_app,
                                       pawl_error *reterr)
{
    struct node_app *app = calloc(1, sizeof(*app));

    if (app == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an application");
    }
    if (apps->count >= NODE_APPS_MAX || strlen(name) >= sizeof(app->name)) {
        free(app);
        return pawl__fail(
            reterr, PAWL_INVALID, "a node has %d applications at the most", NODE_APPS_MAX);
    }
    memcpy(app->name, name, strlen(name) + 1);
    app->all = apps;
    apps->apps[apps->count++] = app;
    *ret_app = app;
    return PAWL_OK;
}

void pawl__serve_app_remove_locked(struct node_apps *apps, struct node_app *app)
{
    size_t at = 0;

    while (apps->apps[at] != app) {
        at++;
    }
    apps->count--;
    memmove(&apps->apps[at], &apps->apps[at + 1], (apps->count - at) * sizeof(apps->apps[0]));
    if (app->uses == 0) {
        free(app);
    } else { /* a handle that was lost is still in a call */
        app->next = apps->removed;
        apps->removed = app;
    }
}

/* --- beginning and end --- */

pawl_status pawl__serve_apps_new(struct apps_part *part, pawl_error *reterr)
{
    struct node_apps *apps = calloc(1, sizeof(*apps));
    struct node_app **list = calloc(NODE_APPS_MAX, sizeof(list[0]));

    if (apps == NULL || list == NULL) {
        free(list);
        free(apps);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for applications");
    }
    pawl__lock_cond_init(&apps->lock, &apps->changed);
    apps->apps = list;
    apps->part = part;
    part->apps = apps;
    return PAWL_OK;
}

void pawl__serve_apps_free(struct apps_part *part)
{
    struct node_apps *apps = part->apps;

    if (apps == NULL) {
        return;
    }
    for (size_t i = 0; i < apps->count; i++) {
        free(apps->apps[i]);
    }
    while (apps->removed != NULL) {
        struct node_app *app = apps->removed;

        apps->removed = app->next;
        free(app);
    }
    pawl__cond_done(&apps->changed);
    pawl__lock_done(&apps->lock);
    free(apps->lost);
    free(apps->apps);
    free(apps);
    part->apps = NULL;
}
