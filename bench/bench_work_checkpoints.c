/* 20 writers on one task's checkpoints against one writer, on SQLite and on
 * PostgreSQL. Every write must succeed, and every number be there once. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/work.h>

#include "lib/pg_server.h"
#include "lib/tempdir.h"

enum { WRITERS = 20, CHECKPOINTS = 100 /* a writer */ };

#define MUST(call)                                                                    \
    do {                                                                              \
        pawl_error error_ = PAWL_ERROR_INIT;                                          \
        pawl_error *err = &error_;                                                    \
        if ((call) != PAWL_OK) {                                                      \
            fprintf(stderr, "bench_work_checkpoints: %s: %s\n", #call, err->message); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_work_checkpoints: %s: %s\n", what, detail);
    exit(1);
}

struct writer {
    pawl_work *work;
    const char *task;
    unsigned char *seen; /* by sequence number - 1 */
};

static void *write_checkpoints(void *argument)
{
    const struct writer *writer = argument;
    pawl_checkpoint checkpoint = { .size = sizeof(pawl_checkpoint),
                                   .task_id = pawl_view_of(writer->task),
                                   .type = PAWL_CHECKPOINT_ITERATION_END,
                                   .snapshot_data = pawl_view_of("{\"done\":[1,2,3]}") };

    for (int i = 0; i < CHECKPOINTS; i++) {
        int64_t number = 0;

        MUST(pawl_checkpoint_add(writer->work, &checkpoint, NULL, &number, NULL, 0, err));
        if (number < 1 || number > (int64_t)WRITERS * CHECKPOINTS
            || __atomic_exchange_n(&writer->seen[number - 1], 1, __ATOMIC_RELAXED) != 0) {
            die("a checkpoint's number is wrong or came twice", writer->task);
        }
    }
    return NULL;
}

static double checkpoints_per_second(pawl_work *work, const char *task, int writers)
{
    static unsigned char seen[WRITERS * CHECKPOINTS];
    struct writer writer = { work, task, seen };
    pawl_task made = { .size = sizeof(pawl_task),
                       .task_id = pawl_view_of(task),
                       .title = pawl_view_of("checkpoints") };
    pthread_t threads[WRITERS];

    memset(seen, 0, sizeof(seen));
    MUST(pawl_task_create(work, &made, NULL, 0, err));
    double start = bench_now_s();
    for (int i = 0; i < writers; i++) {
        if (pthread_create(&threads[i], NULL, write_checkpoints, &writer) != 0) {
            die("no thread", task);
        }
    }
    for (int i = 0; i < writers; i++) {
        pthread_join(threads[i], NULL);
    }
    double seconds = bench_now_s() - start;
    if (memchr(seen, 0, (size_t)writers * CHECKPOINTS) != NULL) {
        die("a checkpoint's number is missing", task);
    }
    return writers * CHECKPOINTS / seconds;
}

static void measure(const char *location, const char *name)
{
    pawl_work *work = NULL;

    MUST(pawl_work_open(location, NULL, &work, err));
    double one = checkpoints_per_second(work, "one-writer", 1);
    double many = checkpoints_per_second(work, "many-writers", WRITERS);
    pawl_work_close(work, 0, NULL);
    bench_report(name, "checkpoints/s", many, "one writer", one, 0);
}

int main(void)
{
    struct pg_server_options options = { 0 };
    struct pg_server *server = NULL;
    char dir[TEMPDIR_SIZE];
    char location[TEMPDIR_SIZE + 16];

    MUST(tempdir_make(dir, "pawl-bench-work", err));
    snprintf(location, sizeof(location), "%s/work.sqlite", dir);
    measure(location, "work: sqlite, 20 writers of checkpoints");
    tempdir_remove(dir);
    MUST(pg_server_start(&options, &server, err));
    measure(pg_server_url(server), "work: postgres, 20 writers of checkpoints");
    pg_server_free(server);
    return 0;
}
