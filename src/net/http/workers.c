/* What may block: requests for a few threads that do nothing else. */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/thread/shutdown.h"
#include "net/http/internal.h"

enum { JOBS_MAX = 1024 };

static const struct http_lane *lane_of(const struct pawl__http_request *request)
{
    const struct http_lane *lanes = request->http->lanes;
    bool isolated =
        pawl__http_route_of(request)->isolated && lanes[HTTP_LANE_ISOLATED].jobs != NULL;

    return &lanes[isolated ? HTTP_LANE_ISOLATED : HTTP_LANE_MAIN];
}

bool pawl__http_hand_over(struct pawl__http_request *request,
                          pawl__http_handler *job,
                          void *context)
{
    request->job = job;
    request->job_context = context;
    return pawl__queue_push(lane_of(request)->jobs, request, 0, NULL, NULL) == PAWL_OK;
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
        && !pawl__http_hand_over(request, run_route, pawl__http_context_of(request))) {
        (void)pawl__fail(&error, PAWL_BUSY, "%d requests wait for a thread", JOBS_MAX);
        pawl__http_fail(request, &error);
        pawl__http_resume(request, NULL, NULL);
    }
}

static void work(void *context)
{
    struct http_lane *lane = context;
    void *item = NULL;

    while (pawl__queue_pop(lane->jobs, INT64_MAX, NULL, &item, NULL) == PAWL_OK) {
        struct pawl__http_request *request = item;

        atomic_fetch_add(&request->refs, 1); /* it stays until the job is done with it */
        request->job(request, request->job_context);
        pawl__http_request_unref(request);
    }
}

static pawl_status start_lane(struct http_lane *lane, size_t count, pawl_error *reterr)
{
    pawl_status status = pawl__queue_new(JOBS_MAX, &lane->jobs, reterr);

    REQUIRE(count <= HTTP_WORKERS_MAX);
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = pawl__thread_start(&lane->workers[i], "pawl-http-work", work, lane, reterr);
    }
    return status;
}

pawl_status pawl__http_work_start(struct pawl__http *http, pawl_error *reterr)
{
    TRY(start_lane(&http->lanes[HTTP_LANE_MAIN], http->options.workers, reterr));
    return http->options.workers_isolated > 0 ? start_lane(
               &http->lanes[HTTP_LANE_ISOLATED], http->options.workers_isolated, reterr)
                                              : PAWL_OK;
}

pawl_status pawl__http_work_stop(struct pawl__http *http, int64_t deadline_ns, pawl_error *reterr)
{
    struct pawl__stop stops[HTTP_LANES * HTTP_WORKERS_MAX];
    int64_t least_ns = pawl__monotonic_ns(http->options.clock) + HTTP_GRACE_MS * NS_PER_MS;
    size_t count = 0;

    for (size_t i = 0; i < HTTP_LANES; i++) {
        if (http->lanes[i].jobs != NULL) {
            pawl__queue_close(http->lanes[i].jobs);
        }
        for (size_t k = 0; k < HTTP_WORKERS_MAX; k++) {
            if (http->lanes[i].workers[k].started) {
                stops[count++] =
                    (struct pawl__stop){ "an HTTP worker", &http->lanes[i].workers[k] };
            }
        }
    }
    TRY(pawl__stop_threads(NULL, stops, count, MAX(deadline_ns, least_ns), reterr));
    for (size_t i = 0; i < HTTP_LANES; i++) {
        pawl__queue_free(STEAL(http->lanes[i].jobs));
    }
    return PAWL_OK;
}
