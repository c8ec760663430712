/* A program of 0.1.0 that uses <pawl/ledger.h>: append, read, count. */
#include <pawl/ledger.h>
#include <stdio.h>
#include <stdlib.h>

static bool print_count(void *context, pawl_view name, uint64_t count)
{
    (void)context;
    printf("%.*s %llu\n", (int)name.len, name.data, (unsigned long long)count);
    return true;
}

static pawl_status use(pawl_ledger *ledger, pawl_error *error)
{
    pawl_event event = { .id = pawl_view_of("e-1"),
                         .run_id = pawl_view_of("village"),
                         .turn = 1,
                         .kind = pawl_view_of("say"),
                         .actor = pawl_view_of("ada"),
                         .payload = pawl_view_of("{\"text\":\"hello\"}") };
    pawl_append_result result;
    pawl_reader *reader = NULL;
    const pawl_event *read = NULL;
    char *json = NULL;
    pawl_status status = pawl_ledger_append(ledger, &event, &result, error);

    if (status == PAWL_OK) {
        status = pawl_reader_open(ledger, NULL, &reader, error);
    }
    if (status == PAWL_OK && (status = pawl_reader_next(reader, &read, error)) == PAWL_OK) {
        status = pawl_event_to_json(read, &json, NULL, error);
    }
    free(json);
    pawl_reader_close(reader);
    return status == PAWL_OK
               ? pawl_ledger_counts(ledger, PAWL_COUNT_BY_KIND, NULL, print_count, NULL, error)
               : status;
}

int main(void)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_ledger *ledger = NULL;
    pawl_status status = pawl_ledger_open("memory:", NULL, &ledger, &error);

    if (status == PAWL_OK) {
        status = use(ledger, &error);
    }
    pawl_ledger_close(ledger);
    return pawl_status_exit_code(status);
}
