#include <string.h>

#include "base/buf.h"
#include "base/config.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/macros.h"
#include "cli/app.h"

enum { ACTUALIZE_MS_MAX = 600000 };

void pawl__app_close_p(pawl_app **app)
{
    pawl_app_close(*app);
}

pawl_status pawl__app_path(const struct pawl__run *run,
                           const char *name,
                           char **ret_path,
                           pawl_error *reterr)
{
    struct pawl__buf path = BUF_INIT(1 << 16);

    if (name[0] == '\0' || strlen(name) > PAWL_APP_NAME_BYTES_MAX
        || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_")] != '\0') {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%.64s' is no application's name: it has 1 to %d of a-z 0-9 - _",
                          name,
                          PAWL_APP_NAME_BYTES_MAX);
    }
    pawl__buf_add_format(&path, "%s/apps/%s", pawl__config_text(run->config, PAWL__DATA), name);
    *ret_path = pawl__buf_steal(&path);
    return *ret_path == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a path") : PAWL_OK;
}

pawl_status pawl__app_open_named(const struct pawl__run *run,
                                 pawl_app **ret_app,
                                 pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = NULL;
    AUTO(pawl__app_close_p) pawl_app *app = NULL;
    pawl_status status = pawl__app_path(run, pawl__args_operand(run->args, 0), &path, reterr);

    if (status == PAWL_OK) {
        status = pawl_app_open(path, NULL, NULL, &app, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl_app_wait(app, ACTUALIZE_MS_MAX, reterr);
    }
    if (status == PAWL_OK) {
        *ret_app = STEAL(app);
    }
    return status;
}
