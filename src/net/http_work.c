/* What may block: requests for a few threads that do nothing else. */
#include "base/error.h"
#include "base/shutdown.h"
#include "net/http_internal.h"

enum { JOBS_MAX = 1024 };

bool pawl__http_hand_over(struct pawl__http_request *request, pawl__http_handler job, void *context)
{
    request->job = job;
    request->job_context = context;
    return pawl__queue_push(request->http->jobs, request, 0, NULL, NULL) == PAWL_OK;
}

static void run_route(struct pawl__http_request *request, void *context)
{
    if (!pawl__http_is_gone(request)) {
        pawl__http_route_of(request)->handle(request, context);
    }
    pawl__http_resume(request, NULL, NULL);
}

void pawl__http_to_worker(struct pawl__http_request *request)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__http_keep(request)
        && !pawl__http_hand_over(request, run_route, request->http->options.context)) {
        (void)pawl__fail(&error, PAWL_BUSY, "%d requests wait for a thread", JOBS_MAX);
        pawl__http_fail(request, &error);
        pawl__http_resume(request, NULL, NULL);
    }
}

static void work(void *context)
{
    struct pawl__http *http = context;
    void *item = NULL;

    while (pawl__queue_pop(http->jobs, INT64_MAX, NULL, &item, NULL) == PAWL_OK) {
        struct pawl__http_request *request = item;

        atomic_fetch_add(&request->refs, 1); /* it stays until the job is done with it */
        request->job(request, request->job_context);
        pawl__http_request_unref(request);
    }
}

pawl_status pawl__http_work_start(struct pawl__http *http, pawl_error *reterr)
{
    pawl_status status = pawl__queue_new(JOBS_MAX, &http->jobs, reterr);

    REQUIRE(http->options.workers <= HTTP_WORKERS_MAX);
    for (size_t i = 0; i < http->options.workers && status == PAWL_OK; i++) {
        status = pawl__thread_start(&http->workers[i], "pawl-http-work", work, http, reterr);
    }
    return status;
}

pawl_status pawl__http_work_stop(struct pawl__http *http, int64_t deadline_ns, pawl_error *reterr)
{
    struct pawl__stop stops[HTTP_WORKERS_MAX];
    int64_t least_ns = pawl__monotonic_ns(pawl__clock_real()) + HTTP_GRACE_MS * NS_PER_MS;

    if (http->jobs == NULL) {
        return PAWL_OK;
    }
    pawl__queue_close(http->jobs);
    for (size_t i = 0; i < http->options.workers; i++) {
        stops[i] = (struct pawl__stop){ "an HTTP worker", &http->workers[i] };
    }
    pawl_status status =
        pawl__stop_threads(NULL, stops, http->options.workers, MAX(deadline_ns, least_ns), reterr);
    if (status == PAWL_OK) {
        pawl__queue_free(STEAL(http->jobs));
    }
    return status;
}
