/* grpc.health.v1.Health: Check answers once, Watch with every change. */
#include "net/h2/server.h"

#include <stdlib.h>
#include <string.h>

#include <proto/grpc_health_v1.desc.h>
#include <proto/grpc_health_v1.pb-c.h>

#include "base/core/error.h"
#include "net/h2/core/proto.h"

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;

#define SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define NOT_SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
#define SERVICE_UNKNOWN GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN

enum { SERVICES_MAX = 256, WATCHERS_MAX = 1000, SERVICE_NAME_MAX = 200 };

struct watcher {
    struct watcher *next;
    struct watcher *before;
    struct pawl__h2_call *call;
    serving_status told;
    bool listed;
    char service[SERVICE_NAME_MAX + 1];
};

struct h2_health {
    struct pawl__lock lock; /* covers everything below */
    struct {
        char *name;
        bool serving;
    } services[SERVICES_MAX];
    size_t count;
    struct watcher *watchers;
    size_t watcher_count;
    bool stopped;
    struct pawl__h2_method methods[2];
};

static serving_status status_locked(const struct h2_health *health, const char *service)
    REQUIRES_LOCK(health->lock)
{
    for (size_t i = 0; i < health->count; i++) {
        if (strcmp(health->services[i].name, service) == 0) {
            return health->services[i].serving ? SERVING : NOT_SERVING;
        }
    }
    return SERVICE_UNKNOWN;
}

static void write_status(serving_status status, struct pawl__buf *out)
{
    Grpc__Health__V1__HealthCheckResponse answer = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

    answer.status = status;
    pawl__h2_proto_pack(&answer.base, out);
}

/* Which service a request is about; false: it has been refused. */
static bool read_service(struct pawl__h2_call *call, char ret_service[SERVICE_NAME_MAX + 1])
{
    AUTO(pawl__h2_proto_arena_done) struct pawl__h2_proto_arena arena = { .used = 0 };
    static const struct pawl__h2_proto_limits limits = { .depth_max = 1,
                                                         .messages_max = 1,
                                                         .elements_max = 16,
                                                         .unknown_max = 16,
                                                         .memory_max = 65536 };
    ProtobufCMessage *message = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__h2_proto_unpack(&pawl__proto_grpc__health__v1__health_check_request__descriptor,
                              pawl__h2_request(call),
                              &limits,
                              &arena,
                              &message,
                              &error)
        != PAWL_OK) {
        pawl__h2_fail(call, &error);
        return false;
    }
    const char *service = ((Grpc__Health__V1__HealthCheckRequest *)message)->service;
    size_t len = strlen(service);
    if (len > SERVICE_NAME_MAX) {
        pawl__h2_refuse(call,
                        PAWL__H2_INVALID_ARGUMENT,
                        "a service's name has at most 200 bytes",
                        (pawl_view){ 0 });
        return false;
    }
    memcpy(ret_service, service, len + 1);
    return true;
}

static void check(struct pawl__h2_call *call, void *context)
{
    struct h2_health *health = context;
    char service[SERVICE_NAME_MAX + 1] = "";
    char bytes[16];
    struct pawl__buf answer = BUF_INIT(sizeof(bytes));

    if (!read_service(call, service)) {
        return;
    }
    pawl__lock(&health->lock);
    serving_status status = status_locked(health, service);
    pawl__unlock(&health->lock);
    if (status == SERVICE_UNKNOWN) {
        pawl__h2_refuse(call, PAWL__H2_NOT_FOUND, "unknown service", (pawl_view){ 0 });
        return;
    }
    write_status(status, &answer);
    pawl__h2_reply(call, &answer);
    pawl__buf_done(&answer);
}

/* Tells it what it does not know. With the lock held, so that changes arrive in their order. */
static void tell_locked(struct h2_health *health, struct watcher *watcher)
    REQUIRES_LOCK(health->lock)
{
    char bytes[16];
    struct pawl__buf message = BUF_OVER(bytes);
    serving_status status = status_locked(health, watcher->service);

    if (status == watcher->told) {
        return;
    }
    write_status(status, &message);
    if (pawl__h2_send(watcher->call, pawl__buf_view(&message), NULL) == PAWL_OK) {
        watcher->told = status; /* else when there is room, or never */
    }
}

/* True for the one who took it out: that one finishes the call. */
static bool remove_locked(struct h2_health *health, struct watcher *watcher)
    REQUIRES_LOCK(health->lock)
{
    if (!watcher->listed) {
        return false;
    }
    watcher->listed = false;
    if (watcher->before != NULL) {
        watcher->before->next = watcher->next;
    } else {
        health->watchers = watcher->next;
    }
    if (watcher->next != NULL) {
        watcher->next->before = watcher->before;
    }
    health->watcher_count--;
    return true;
}

static bool add_locked(struct h2_health *health, struct watcher *watcher)
    REQUIRES_LOCK(health->lock)
{
    if (health->stopped || health->watcher_count == WATCHERS_MAX) {
        return false;
    }
    watcher->next = health->watchers;
    if (watcher->next != NULL) {
        watcher->next->before = watcher;
    }
    health->watchers = watcher;
    health->watcher_count++;
    watcher->listed = true;
    tell_locked(health, watcher);
    return true;
}

static void watch(struct pawl__h2_call *call, void *context)
{
    struct h2_health *health = context;
    char service[SERVICE_NAME_MAX + 1] = "";

    if (!read_service(call, service)) {
        return;
    }
    struct watcher *watcher = calloc(1, sizeof(*watcher));
    if (watcher != NULL) {
        memcpy(watcher->service, service, sizeof(service));
        watcher->call = call;
        pawl__h2_attach(call, watcher, free);
    }
    pawl__lock(&health->lock);
    bool added = watcher != NULL && add_locked(health, watcher);
    pawl__unlock(&health->lock);
    if (!added) {
        pawl__h2_refuse(
            call, PAWL__H2_RESOURCE_EXHAUSTED, "too many watch already", (pawl_view){ 0 });
    }
}

static void watch_ready(struct pawl__h2_call *call, void *context)
{
    struct h2_health *health = context;
    struct watcher *watcher = pawl__h2_attached(call);

    pawl__lock(&health->lock);
    if (watcher->listed) {
        tell_locked(health, watcher);
    }
    pawl__unlock(&health->lock);
}

static void watch_gone(struct pawl__h2_call *call, void *context)
{
    struct h2_health *health = context;

    pawl__lock(&health->lock);
    bool mine = remove_locked(health, pawl__h2_attached(call));
    pawl__unlock(&health->lock);
    if (mine) {
        pawl__h2_end(call);
    }
}

void pawl__h2_health_stop(struct pawl__h2 *server)
{
    struct h2_health *health = server->health;
    struct watcher *watcher = NULL;

    while (health != NULL) {
        pawl__lock(&health->lock);
        health->stopped = true;
        watcher = health->watchers;
        bool mine = watcher != NULL && remove_locked(health, watcher);
        pawl__unlock(&health->lock);
        if (!mine) {
            return;
        }
        pawl__h2_refuse(watcher->call, PAWL__H2_UNAVAILABLE, "the server stops", (pawl_view){ 0 });
    }
}

static pawl_status set_locked(struct h2_health *health,
                              pawl_view service,
                              bool serving,
                              pawl_error *reterr) REQUIRES_LOCK(health->lock)
{
    for (size_t i = 0; i < health->count; i++) {
        if (pawl__view_is(service, health->services[i].name)) {
            health->services[i].serving = serving;
            return PAWL_OK;
        }
    }
    if (health->count == SERVICES_MAX) {
        return pawl__fail(reterr, PAWL_NO_SPACE, "health has %d services already", SERVICES_MAX);
    }
    char *name = pawl__view_dup(service);
    TRY(pawl__check_memory(name, "the health of a service", reterr));
    health->services[health->count].name = name;
    health->services[health->count++].serving = serving;
    return PAWL_OK;
}

static pawl_status set_serving(struct h2_health *health,
                               pawl_view service,
                               bool serving,
                               pawl_error *reterr)
{
    pawl__lock(&health->lock);
    pawl_status status = set_locked(health, service, serving, reterr);
    for (struct watcher *watcher = health->watchers; watcher != NULL; watcher = watcher->next) {
        tell_locked(health, watcher);
    }
    pawl__unlock(&health->lock);
    return status;
}

pawl_status pawl__h2_set_serving(struct pawl__h2 *server,
                                 const char *service,
                                 bool serving,
                                 pawl_error *reterr)
{
    if (server->health == NULL) {
        return pawl__fail(reterr, PAWL_UNSUPPORTED, "the server has no health service");
    }
    if (strlen(service) > SERVICE_NAME_MAX) {
        return pawl__fail(
            reterr, PAWL_INVALID, "a service's name has at most %d bytes", SERVICE_NAME_MAX);
    }
    return set_serving(server->health, pawl_view_of(service), serving, reterr);
}

static pawl_status add_services(struct pawl__h2 *server, pawl_error *reterr)
{
    pawl_view service = { 0 };
    pawl_view method = { 0 };

    TRY(set_serving(server->health, pawl_view_of(""), true, reterr));
    for (size_t i = 0; i < server->services.count; i++) {
        pawl_view path = pawl_view_of(server->services.methods[i]->path);
        if (pawl__h2_path_split(path, &service, &method)) {
            TRY(set_serving(server->health, service, true, reterr));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__h2_health_add(struct pawl__h2 *server, pawl_error *reterr)
{
    struct h2_health *health = calloc(1, sizeof(*health));

    TRY(pawl__check_memory(health, "the health service", reterr));
    pawl__lock_init(&health->lock);
    server->health = health;
    health->methods[0] = (struct pawl__h2_method){
        .path = "/grpc.health.v1.Health/Check", .open = true, .handle = check, .context = health
    };
    health->methods[1] = (struct pawl__h2_method){
        .path = "/grpc.health.v1.Health/Watch",
        .kind = PAWL__H2_SERVER_STREAM,
        .open = true,
        .handle = watch,
        .ready = watch_ready,
        .gone = watch_gone,
        .context = health,
    };
    TRY(pawl__h2_services_add(
        &server->services, health->methods, COUNT_OF(health->methods), reterr));
    return add_services(server, reterr);
}

void pawl__h2_health_free(struct h2_health *health)
{
    if (health == NULL) {
        return;
    }
    for (size_t i = 0; i < health->count; i++) {
        free(health->services[i].name);
    }
    pawl__lock_done(&health->lock);
    free(health);
}
