#include "seq_app.h"

#include <string.h>

#include "base/core/macros.h"
#include "must.h"

pawl_app *seq_app_open(const char *path, pawl_app_trust trust)
{
    static const pawl_app_sequence own[] = {
        { sizeof(pawl_app_sequence), "invoice", PAWL_APP_SEQ_OWN_MIN, 1 }
    };
    static const pawl_app_kind kinds[] = {
        { sizeof(pawl_app_kind), "shop", 1, own, COUNT_OF(own) }
    };
    const char *slash = strrchr(path, '/');
    pawl_app_descriptor descriptor = PAWL_APP_DESCRIPTOR_INIT;
    pawl_app *app = NULL;

    descriptor.name = slash == NULL ? path : slash + 1;
    descriptor.id = 1 + (uint32_t)trust; /* of its own in its directory */
    descriptor.trust = trust;
    descriptor.kinds = kinds;
    descriptor.kind_count = COUNT_OF(kinds);
    MUST(pawl_app_open(path, &descriptor, NULL, &app, err));
    MUST(pawl_app_wait(app, 600000, err));
    return app;
}

static void exec(pawl_app *app, uint64_t workspace, const char *data)
{
    const pawl_app_create create = { .size = sizeof(pawl_app_create),
                                     .record_class = PAWL_APP_O_RECORD,
                                     .raw_id = 1,
                                     .table = pawl_view_of("order"),
                                     .data = pawl_view_of(data) };
    const pawl_app_command command = {
        .size = sizeof(pawl_app_command),
        .workspace = workspace,
        .kind = pawl_view_of("shop"),
        .creates = &create,
        .create_count = 1,
    };
    pawl_app_response *response = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status;

    do {
        status = pawl_app_exec(app, &command, &response, &error);
    } while (status == PAWL_BUSY);
    if (status != PAWL_OK) {
        fprintf(stderr, "bench: exec: %s\n", error.message);
        exit(1);
    }
    pawl_app_response_free(response);
}

void seq_app_exec(pawl_app *app, uint64_t workspace)
{
    exec(app, workspace, "{\"sum\":5,\"item\":\"a book\"}");
}

void seq_app_invoice(pawl_app *app, uint64_t workspace)
{
    exec(app, workspace, "{\"sum\":5,\"invoice\":{\"$next\":\"invoice\"}}");
}
