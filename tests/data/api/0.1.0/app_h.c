/* A program of 0.1.0 that uses <pawl/app.h>: commands with and without waiting, reading, verifying. */
#include <pawl/app.h>
#include <stdio.h>

static void on_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    (void)context;
    printf("%s\n", pawl_status_name(error->status));
    pawl_app_response_free(response);
}

static pawl_status print_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    (void)context;
    (void)reterr;
    printf("%llu\n", (unsigned long long)event->plog_offset);
    return PAWL_OK;
}

static void print_wrong(void *context, pawl_app_part part, const char *what)
{
    (void)context;
    printf("%s: %s\n", pawl_app_part_word(part), what);
}

static pawl_status use(pawl_app *app, pawl_error *error)
{
    const pawl_app_command command = { .workspace = 7, .kind = pawl_view_of("shop") };
    pawl_app_report report;
    pawl_status status = pawl_app_submit(app, &command, on_answer, NULL, error);

    if (status == PAWL_CONFLICT && error->native == PAWL_APP_CONFLICT_OF_KEY) {
        status = pawl_app_submit_json(app, 7, pawl_view_of("{}"), on_answer, NULL, error);
    }
    if (status == PAWL_OK) {
        status = pawl_app_read_plog(app, 0, 1, 0, print_event, NULL, error);
    }
    return status == PAWL_OK ? pawl_app_verify(app, 0, print_wrong, NULL, &report, error) : status;
}

int main(void)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app *app = NULL;
    pawl_status status =
        pawl_app_open_json("memory:", pawl_view_of("{\"name\":\"orders\"}"), NULL, &app, &error);

    if (status == PAWL_OK) {
        status = use(app, &error);
    }
    pawl_app_close(app);
    return pawl_status_exit_code(status);
}
