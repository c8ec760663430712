/* Creating an application through the node, or finding the one that is there. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "server/apps/apps.h"

/* A descriptor that somebody sent: read, not opened. */
struct wanted {
    char *json; /* as an application has it */
    size_t len;
    json_t *parsed;
    const char *name;
    unsigned partitions;
};

static void wanted_done(struct wanted *wanted)
{
    json_decref(wanted->parsed);
    free(wanted->json);
}

static pawl_status read_wanted(pawl_view descriptor, struct wanted *wanted, pawl_error *reterr)
{
    TRY(pawl_app_descriptor_normalize(descriptor, &wanted->json, &wanted->len, reterr));
    TRY(pawl__json_parse(
        (pawl_view){ wanted->json, wanted->len }, SIZE_MAX, &wanted->parsed, reterr));
    wanted->name = json_string_value(json_object_get(wanted->parsed, "name"));
    wanted->partitions =
        (unsigned)json_integer_value(json_object_get(wanted->parsed, "partitions"));
    REQUIRE(wanted->name != NULL && wanted->partitions > 0);
    return PAWL_OK;
}

static pawl_status compare(const struct wanted *wanted, const pawl_app *there, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *stored = NULL;
    size_t len = 0;

    TRY(pawl_app_descriptor_to_json(there, &stored, &len, reterr));
    if (strcmp(wanted->json, stored) != 0) {
        return pawl__fail(
            reterr, PAWL_CONFLICT, "there is an application with another descriptor: %s", stored);
    }
    return PAWL_OK;
}

/* After a good descriptor a failure is the store's, not the client's, unless another application is in the
 * way. */
static pawl_status map_store_error(const char *name, pawl_status status, pawl_error *reterr)
{
    bool ours = status == PAWL_CONFLICT && pawl__http_problem_of_error(reterr)->http == 409;

    if (!ours && pawl__http_problem_of(status)->http < 500) {
        status = PAWL_FAILED;
        reterr->status = status;
    }
    return ours ? status : pawl__fail_context(reterr, status, "create application '%s'", name);
}

static pawl_status create_new(struct apps_part *part,
                              const struct wanted *wanted,
                              pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    pawl_view json = { wanted->json, wanted->len };
    pawl_app *app = NULL;

    TRY(pawl__serve_apps_check_room(part, wanted->partitions, reterr));
    pawl_status status = pawl_app_locate(part->location, wanted->name, &location, reterr);
    if (status == PAWL_OK) { /* which makes the directory, unless there is no room */
        status = pawl_app_open_json(location, json, &part->options->app, &app, reterr);
    }
    return status == PAWL_OK ? pawl__serve_app_add(part, wanted->name, app, reterr)
                             : map_store_error(wanted->name, status, reterr);
}

static pawl_status create_or_find(struct apps_part *part,
                                  const struct wanted *wanted,
                                  struct node_app_state *ret_state,
                                  bool *ret_created,
                                  pawl_error *reterr)
{
    pawl_view name = pawl_view_of(wanted->name);

    *ret_created = !pawl__serve_app_find(part, name, ret_state);
    if (*ret_created) {
        TRY(create_new(part, wanted, reterr));
        bool found = pawl__serve_app_find(part, name, ret_state);
        REQUIRE(found);
        return PAWL_OK;
    }
    return ret_state->app == NULL ? PAWL_OK : compare(wanted, ret_state->app, reterr);
}

pawl_status pawl__serve_apps_create(struct apps_part *part,
                                    pawl_view name,
                                    pawl_view descriptor,
                                    struct node_app_state *ret_state,
                                    bool *ret_created,
                                    pawl_error *reterr)
{
    AUTO(wanted_done) struct wanted wanted = { .json = NULL }; /* what is refused leaves nothing */

    TRY(read_wanted(descriptor, &wanted, reterr));
    if (!pawl__view_is(name, wanted.name)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the descriptor is that of '%s', which the address does not say",
                          wanted.name);
    }
    pawl__lock(&part->create_lock);
    pawl_status status = create_or_find(part, &wanted, ret_state, ret_created, reterr);
    pawl__unlock(&part->create_lock);
    return status;
}
