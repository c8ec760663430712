/* pawl_http_requests_total and pawl_http_request_seconds. The series of a route are looked up when they
 * are first counted, and kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "net/http/internal.h"

enum { OTHER = 0, CODES = 25, METHODS = 7 };

struct http_metrics {
    const struct pawl__http_routes *routes;
    struct pawl__metric *requests;
    struct pawl__metric *seconds;
    struct route_series {
        _Atomic(struct pawl__series *) requests[METHODS][CODES];
        struct pawl__series *seconds;
    } * by_route; /* one behind the last: what fits no route */
};

static const char *const methods[METHODS] = { "GET",   "HEAD",   "POST", "PUT",
                                              "PATCH", "DELETE", "other" };
/* Those that we send, a slot each; the last one counts what is not among them. */
static const unsigned codes[CODES] = { 200, 201, 202, 204, 400, 401, 403,  404, 405,
                                       409, 410, 411, 413, 414, 415, 421,  422, 431,
                                       500, 501, 502, 503, 504, 507, OTHER };

static const double buckets[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                  0.1,    0.25,  0.5,    1,     2.5,  5,     10 };

static const struct pawl__metric_def requests_def = {
    .name = "pawl_http_requests_total",
    .help = "Requests that were answered, by what was asked and by the status of the answer.",
    .type = PAWL__COUNTER,
    .labels = { "method", "route", "code" },
};
static const struct pawl__metric_def seconds_def = {
    .name = "pawl_http_request_seconds",
    .help = "Time from the first line of a request to its answer.",
    .type = PAWL__HISTOGRAM,
    .labels = { "route" },
    .buckets = buckets,
    .bucket_count = COUNT_OF(buckets),
};

static const char *pattern_of(const struct http_metrics *metrics, size_t route)
{
    return route < metrics->routes->count ? metrics->routes->routes[route].pattern : "none";
}

static pawl_status fill(struct http_metrics *metrics,
                        struct pawl__metrics *registry,
                        pawl_error *reterr)
{
    TRY(pawl__metrics_register(registry, &requests_def, &metrics->requests, reterr));
    TRY(pawl__metrics_register(registry, &seconds_def, &metrics->seconds, reterr));
    for (size_t i = 0; i <= metrics->routes->count; i++) {
        TRY(pawl__metric_series(metrics->seconds,
                                (const char *[]){ pattern_of(metrics, i) },
                                &metrics->by_route[i].seconds,
                                reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__http_metrics_new(struct pawl__metrics *registry,
                                   const struct pawl__http_routes *routes,
                                   struct http_metrics **ret_metrics,
                                   pawl_error *reterr)
{
    struct http_metrics *metrics = calloc(1, sizeof(*metrics));

    if (metrics != NULL) {
        metrics->routes = routes;
        metrics->by_route = calloc(routes->count + 1, sizeof(metrics->by_route[0]));
    }
    if (metrics == NULL || metrics->by_route == NULL) {
        free(metrics);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for metrics");
    }
    pawl_status status = fill(metrics, registry, reterr);
    if (status != PAWL_OK) {
        pawl__http_metrics_free(metrics);
        return status;
    }
    *ret_metrics = metrics;
    return PAWL_OK;
}

void pawl__http_metrics_free(struct http_metrics *metrics)
{
    if (metrics != NULL) {
        free(metrics->by_route);
        free(metrics);
    }
}

static size_t method_index(const char *method)
{
    size_t index = 0;

    while (index + 1 < METHODS && strcmp(methods[index], method) != 0) {
        index++;
    }
    return index;
}

static size_t code_index(unsigned code)
{
    size_t index = 0;

    while (codes[index] != code && codes[index] != OTHER) {
        index++;
    }
    return index;
}

void pawl__http_metrics_count(
    struct http_metrics *metrics, size_t route, const char *method, unsigned code, double seconds)
{
    if (metrics == NULL) {
        return;
    }
    size_t which = method_index(method);
    _Atomic(struct pawl__series *) *slot =
        &metrics->by_route[route].requests[which][code_index(code)];
    struct pawl__series *series = atomic_load(slot);
    if (series == NULL) {
        char text[16] = "other";

        if (codes[code_index(code)] != OTHER) {
            (void)snprintf(text, sizeof(text), "%u", code);
        }
        const char *values[] = { methods[which], pattern_of(metrics, route), text };
        if (pawl__metric_series(metrics->requests, values, &series, NULL) == PAWL_OK) {
            atomic_store(slot, series);
        }
    }
    pawl__counter_add(series, 1);
    pawl__histogram_observe(metrics->by_route[route].seconds, seconds);
}
