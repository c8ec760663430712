/* A program of 0.1.0 that uses <pawl/pawl.h> alone. */
#include <pawl/pawl.h>
#include <stdio.h>

static void print_event(void *context, const pawl_log_event *event)
{
    fprintf(context, "%s: %s\n", pawl_log_level_name(event->level), event->message);
}

int main(void)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl_set_log_sink(print_event, stderr, PAWL_LOG_DEBUG);
    printf(
        "%s %s %d\n", pawl_version(), pawl_status_name(error.status), (int)pawl_view_of("a").len);
    return pawl_status_exit_code(error.status) + (error.retryable ? PAWL_EXHAUSTED : PAWL_OK);
}
