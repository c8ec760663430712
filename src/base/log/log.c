#include "base/log/log.h"

#include <errno.h>
#include <pthread.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

enum { LEAST_SILENT = PAWL_LOG_ERROR + 1 };

atomic_int pawl__log_least = LEAST_SILENT;

/* Loggers read, pawl_set_log_sink writes: it waits for the sinks that run. The default kind would
 * let it wait for ever while lines keep coming. */
static pthread_rwlock_t sink_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pawl_log_sink sink_function;
static void *sink_context;

void pawl_set_log_sink(pawl_log_sink sink, void *context, pawl_log_level least)
{
    REQUIRE(pthread_rwlock_wrlock(&sink_lock) == 0);
    sink_function = sink;
    sink_context = context;
    atomic_store(&pawl__log_least, sink == NULL ? LEAST_SILENT : (int)least);
    REQUIRE(pthread_rwlock_unlock(&sink_lock) == 0);
}

const char *pawl_log_level_name(pawl_log_level level)
{
    static const char *const names[] = { "debug", "info", "warning", "error" };

    return (size_t)level < COUNT_OF(names) ? names[level] : "unknown";
}

void pawl__log(pawl_log_level level, const char *message, const pawl_log_field *fields)
{
    int saved_errno = errno;
    pawl_log_event event = {
        .size = sizeof(event),
        .level = level,
        .wall_us = pawl__wall_us(pawl__clock_or_real(NULL)),
        .message = message,
        .fields = fields,
    };

    while (fields[event.field_count].key != NULL) {
        event.field_count++;
    }
    REQUIRE(pthread_rwlock_rdlock(&sink_lock) == 0);
    if (sink_function != NULL) {
        sink_function(sink_context, &event);
    }
    REQUIRE(pthread_rwlock_unlock(&sink_lock) == 0);
    errno = saved_errno;
}
