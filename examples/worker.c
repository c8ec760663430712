/* worker: one item after the other, each of them once.
 *
 *     worker --dir results jobs.sqlite
 *
 * The pattern of a worker that may be killed at any moment:
 *
 *   1. claim an item: it is leased to us, under a token
 *   2. a heartbeat thread keeps the lease while the work takes its time
 *   3. a checkpoint before, and one after
 *   4. the side effect under an idempotency key, so that a second try does not repeat it
 *   5. complete the item, or fail it so that it is tried again
 *
 * Whoever is too late (stopped, paged out, its machine asleep) is told LEASE_LOST by every one of
 * these calls and has changed nothing.
 *
 * The work here is to make a file named as the item. O_EXCL makes a repetition visible.
 *
 * Build it alone with
 *
 *     cc worker.c $(pkg-config --cflags --libs pawl) */
#include <pawl/work.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, KEY_SIZE = PAWL_WORK_NAME_BYTES_MAX + 1, HEARTBEAT_SECONDS = 60 };

struct settings {
    const char *location; /* NULL: DATABASE_URL */
    const char *dir;      /* where results go */
    uint32_t lease_ms;    /* 0: the store's own, five minutes */
    bool die_after_work;  /* as a crash between the effect and its completion would be */
};

static void check(pawl_status status, const char *what, const pawl_error *error)
{
    if (status != PAWL_OK) {
        fprintf(stderr, "worker: %s: %s\n", what, error->message);
        exit(pawl_status_exit_code(status));
    }
}

/* --- Heartbeat -------------------------------------------------------------------------------- */

struct heartbeat {
    pawl_work *work;
    pawl_lease lease;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool stop;
};

static void *beat(void *context)
{
    struct heartbeat *heartbeat = context;
    pawl_error error = PAWL_ERROR_INIT;

    pthread_mutex_lock(&heartbeat->mutex);
    while (!heartbeat->stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += HEARTBEAT_SECONDS;
        if (pthread_cond_timedwait(&heartbeat->cond, &heartbeat->mutex, &until) != ETIMEDOUT) {
            continue;
        }
        pthread_mutex_unlock(&heartbeat->mutex);
        pawl_status status =
            pawl_work_heartbeat(heartbeat->work, &heartbeat->lease, 0, NULL, &error);
        pthread_mutex_lock(&heartbeat->mutex);
        if (status == PAWL_LEASE_LOST) {
            break; /* the worker learns it from its next call */
        }
    }
    pthread_mutex_unlock(&heartbeat->mutex);
    return NULL;
}

static void start_heartbeat(struct heartbeat *heartbeat, pawl_work *work, pawl_lease lease)
{
    *heartbeat = (struct heartbeat){ .work = work, .lease = lease };
    pthread_mutex_init(&heartbeat->mutex, NULL);
    pthread_cond_init(&heartbeat->cond, NULL);
    if (pthread_create(&heartbeat->thread, NULL, beat, heartbeat) != 0) {
        fprintf(stderr, "worker: no thread for the heartbeat\n");
        exit(1);
    }
}

static void stop_heartbeat(struct heartbeat *heartbeat)
{
    pthread_mutex_lock(&heartbeat->mutex);
    heartbeat->stop = true;
    pthread_cond_signal(&heartbeat->cond);
    pthread_mutex_unlock(&heartbeat->mutex);
    pthread_join(heartbeat->thread, NULL);
    pthread_cond_destroy(&heartbeat->cond);
    pthread_mutex_destroy(&heartbeat->mutex);
}

/* --- The work --------------------------------------------------------------------------------- */

struct job {
    const char *dir;
    const pawl_item *item;
};

/* What has a side effect. It is called once, however often the item is tried. */
static pawl_status do_actual_work(void *context, char **ret_response, pawl_error *reterr)
{
    const struct job *job = context;
    char path[PATH_SIZE];

    snprintf(path,
             sizeof(path),
             "%s/%.*s",
             job->dir,
             (int)job->item->work_item_id.len,
             job->item->work_item_id.data);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        *reterr = (pawl_error)PAWL_ERROR_INIT;
        snprintf(reterr->message, sizeof(reterr->message), "%.400s: %s", path, strerror(errno));
        return errno == EEXIST ? PAWL_FAILED : PAWL_BUSY; /* BUSY: surely nothing happened */
    }
    close(fd);
    *ret_response = strdup("{\"made\":true}");
    return PAWL_OK;
}

static pawl_status add_checkpoint(pawl_work *work,
                                  const pawl_lease *lease,
                                  pawl_checkpoint_type type,
                                  const char *snapshot,
                                  pawl_error *error)
{
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .type = type, /* its task and item are the lease's */
        .snapshot_data = pawl_view_of(snapshot),
    };

    return pawl_checkpoint_add(work, &checkpoint, lease, NULL, NULL, 0, error);
}

/* Steps 3 to 5. */
static pawl_status process(const struct settings *settings,
                           pawl_work *work,
                           const pawl_item *item,
                           const pawl_lease *lease,
                           pawl_error *error)
{
    struct job job = { settings->dir, item };
    pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;
    char key[KEY_SIZE + 5];
    char hash[PAWL_REQUEST_HASH_SIZE];
    char *result = NULL;
    pawl_status status = add_checkpoint(
        work, lease, PAWL_CHECKPOINT_ITERATION_START, "{\"state\":\"before\"}", error);

    snprintf(key, sizeof(key), "work-%.*s", (int)item->work_item_id.len, item->work_item_id.data);
    if (status == PAWL_OK) {
        pawl_view input = item->input_data.len > 0 ? item->input_data : pawl_view_of("null");
        status = pawl_request_hash(input, hash, PAWL_REQUEST_HASH_SIZE, error);
    }
    if (status == PAWL_OK) {
        request.key = pawl_view_of(key);
        request.request_hash = pawl_view_of(hash);
        request.owner = item->lease_holder;
        request.task_id = item->task_id;
        request.work_item_id = item->work_item_id;
        status = pawl_execute_with_idempotency(
            work, &request, do_actual_work, &job, &result, NULL, error);
    }
    if (status == PAWL_OK && settings->die_after_work) {
        _exit(9);
    }
    if (status == PAWL_OK) {
        status = add_checkpoint(work, lease, PAWL_CHECKPOINT_TOOL_EXECUTED, result, error);
    }
    if (status == PAWL_OK) {
        status = pawl_work_complete(work, lease, pawl_view_of(result), error);
    }
    free(result);
    return status;
}

/* One item; false when there is none. */
static bool process_work_item(const struct settings *settings, pawl_work *work)
{
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;
    struct heartbeat heartbeat;
    pawl_error error = PAWL_ERROR_INIT;
    char holder[40];

    snprintf(holder, sizeof(holder), "worker-%ld", (long)getpid());
    claim.holder = pawl_view_of(holder);
    claim.lease_ms = settings->lease_ms;
    pawl_status status = pawl_work_claim(work, &claim, &claimed, &error);
    if (status == PAWL_NOT_FOUND) {
        return false;
    }
    check(status, "claim", &error);
    const pawl_item *item = &claimed->items[0];
    pawl_lease lease = { sizeof(pawl_lease), item->work_item_id, item->token };
    start_heartbeat(&heartbeat, work, lease);
    status = process(settings, work, item, &lease, &error);
    if (status != PAWL_OK && status != PAWL_LEASE_LOST) {
        pawl_view message = pawl_view_of(error.message);
        bool retryable = status != PAWL_FAILED && status != PAWL_INVALID;
        pawl_error ignored = PAWL_ERROR_INIT;
        pawl_status failed = pawl_work_fail(
            work, &lease, message, (pawl_view){ NULL, 0 }, retryable, NULL, &ignored);
        (void)failed; /* LEASE_LOST: it is somebody else's by now */
    }
    stop_heartbeat(&heartbeat);
    printf("%.*s %s\n",
           (int)item->work_item_id.len,
           item->work_item_id.data,
           status == PAWL_OK ? "done" : error.message);
    pawl_claimed_free(claimed);
    return true;
}

static void usage(void)
{
    fprintf(stderr,
            "usage: worker --dir DIRECTORY [--lease SECONDS] [--die-after-work] [LOCATION]\n");
    exit(2);
}

static uint32_t seconds_of(const char *text)
{
    char *end = NULL;
    long seconds = strtol(text, &end, 10);

    if (end == text || *end != '\0' || seconds < 1 || seconds > 86400) {
        usage();
    }
    return (uint32_t)seconds;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "dir", required_argument, NULL, 'd' },
                                             { "lease", required_argument, NULL, 'l' },
                                             { "die-after-work", no_argument, NULL, 'x' },
                                             { NULL, 0, NULL, 0 } };
    struct settings settings = { .location = NULL };
    pawl_work *work = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd') {
            settings.dir = optarg;
        } else if (option == 'l') {
            settings.lease_ms = seconds_of(optarg) * 1000;
        } else if (option == 'x') {
            settings.die_after_work = true;
        } else {
            usage();
        }
    }
    settings.location = optind < argc ? argv[optind++] : NULL;
    if (settings.dir == NULL || optind < argc) {
        usage();
    }
    check(pawl_work_open(settings.location, NULL, &work, &error), "open", &error);
    while (process_work_item(&settings, work)) {
    }
    pawl_work_close(work, 0, NULL);
    return 0;
}
