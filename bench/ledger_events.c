#include "ledger_events.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/uuid.h"

static char directory[EVENTS_PATH_SIZE - 64];

void events_stop(const char *what, const char *message)
{
    fprintf(stderr, "%s: %s\n", what, message);
    exit(1);
}

void events_check(pawl_status status, const pawl_error *error)
{
    if (status != PAWL_OK) {
        events_stop(pawl_status_name(status), error->message);
    }
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_directory(void)
{
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void events_path(const char *name, char ret_path[EVENTS_PATH_SIZE])
{
    const char *parent = getenv("TMPDIR");

    if (directory[0] == '\0') {
        snprintf(
            directory, sizeof(directory), "%s/pawl-bench-XXXXXX", parent == NULL ? "/tmp" : parent);
        if (mkdtemp(directory) == NULL) {
            events_stop("bench", "cannot make a temporary directory");
        }
        atexit(remove_directory);
    }
    snprintf(ret_path, EVENTS_PATH_SIZE, "%s/%s", directory, name);
}

struct texts {
    char id[PAWL__UUID_TEXT_SIZE];
    char payload[256];
};

static pawl_event make_event(uint64_t number, struct texts *texts)
{
    static const char *const runs[] = { "run-a", "run-b", "run-c", "run-d" };
    static const char *const kinds[] = { "said", "thought", "moved", "asked",
                                         "gave", "took",    "built", "slept" };
    static const char *const actors[] = {
        "ada", "ben", "cleo", "dov", "eve", "finn", "gus", "hal",
        "ida", "jon", "kit",  "lea", "max", "nia",  "oto", "pia"
    };
    struct pawl__uuid uuid;
    pawl_error error = PAWL_ERROR_INIT;

    events_check(pawl__uuid_next(pawl__uuid_process(), &uuid, &error), &error);
    pawl__uuid_text(&uuid, texts->id);
    int len = snprintf(texts->payload,
                       sizeof(texts->payload),
                       "{\"number\":%llu,\"text\":\"%0150llu\",\"place\":\"the mill\"}",
                       (unsigned long long)number,
                       (unsigned long long)number);
    return (pawl_event){
        .size = sizeof(pawl_event),
        .id = { texts->id, sizeof(texts->id) - 1 },
        .run_id = pawl_view_of(runs[number / 7 % 4]),
        .turn = (int64_t)(number / 100),
        .kind = pawl_view_of(kinds[number % 8]),
        .actor = pawl_view_of(actors[number / 3 % 16]),
        .payload = { texts->payload, (size_t)len },
    };
}

const pawl_event *events_batch(uint64_t first_number)
{
    static struct texts texts[EVENTS_BATCH];
    static pawl_event events[EVENTS_BATCH];

    for (size_t i = 0; i < EVENTS_BATCH; i++) {
        events[i] = make_event(first_number + i, &texts[i]);
    }
    return events;
}

void events_fill(const char *location, uint64_t count)
{
    pawl_ledger *ledger = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    events_check(pawl_ledger_open(location, NULL, &ledger, &error), &error);
    for (uint64_t at = 0; at < count; at += EVENTS_BATCH) {
        const pawl_event *events = events_batch(at);
        events_check(pawl_ledger_append_many(ledger, events, EVENTS_BATCH, NULL, &error), &error);
    }
    pawl_ledger_close(ledger, 0, NULL);
}
