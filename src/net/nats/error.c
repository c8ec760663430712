#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "net/nats/internal.h"

static const struct {
    natsStatus native;
    pawl_status status;
} native_map[] = {
    { NATS_OK, PAWL_OK },
    { NATS_IO_ERROR, PAWL_UNAVAILABLE },
    { NATS_PROTOCOL_ERROR, PAWL_UNAVAILABLE },
    { NATS_CONNECTION_CLOSED, PAWL_UNAVAILABLE },
    { NATS_NO_SERVER, PAWL_UNAVAILABLE },
    { NATS_STALE_CONNECTION, PAWL_UNAVAILABLE },
    { NATS_CONNECTION_DISCONNECTED, PAWL_UNAVAILABLE },
    { NATS_NOT_YET_CONNECTED, PAWL_UNAVAILABLE },
    { NATS_NO_RESPONDERS, PAWL_UNAVAILABLE },
    { NATS_MISSED_HEARTBEAT, PAWL_UNAVAILABLE },
    { NATS_DRAINING, PAWL_UNAVAILABLE },
    { NATS_TIMEOUT, PAWL_TIMEOUT },
    { NATS_SLOW_CONSUMER, PAWL_BUSY },
    { NATS_INSUFFICIENT_BUFFER, PAWL_BUSY },
    { NATS_SECURE_CONNECTION_WANTED, PAWL_DENIED },
    { NATS_SECURE_CONNECTION_REQUIRED, PAWL_DENIED },
    { NATS_SSL_ERROR, PAWL_DENIED },
    { NATS_CONNECTION_AUTH_FAILED, PAWL_DENIED },
    { NATS_NOT_PERMITTED, PAWL_DENIED },
    { NATS_NOT_FOUND, PAWL_NOT_FOUND },
    { NATS_ADDRESS_MISSING, PAWL_INVALID },
    { NATS_INVALID_SUBJECT, PAWL_INVALID },
    { NATS_INVALID_ARG, PAWL_INVALID },
    { NATS_INVALID_TIMEOUT, PAWL_INVALID },
    { NATS_INVALID_QUEUE_NAME, PAWL_INVALID },
    { NATS_MAX_PAYLOAD, PAWL_INVALID },
    { NATS_NO_MEMORY, PAWL_NOMEM },
    { NATS_NO_SERVER_SUPPORT, PAWL_UNSUPPORTED },
};

/* Codes of JetStream's API; those that are not here are FAILED. Numbers, because those after 10126 have no
 * name in cnats 3.4. */
static const struct {
    int code;
    pawl_status status;
} code_map[] = {
    { 10002, PAWL_NO_SPACE },    /* resource limits exceeded for the account */
    { 10003, PAWL_INVALID },     /* bad request */
    { 10004, PAWL_UNAVAILABLE }, /* cluster: incomplete results */
    { 10005, PAWL_UNAVAILABLE }, /* cluster: no suitable peers */
    { 10007, PAWL_UNAVAILABLE }, /* cluster: not assigned to this server */
    { 10008, PAWL_UNAVAILABLE }, /* cluster: JetStream temporarily unavailable */
    { 10009, PAWL_UNAVAILABLE }, /* cluster: not the leader */
    { 10013, PAWL_CONFLICT },    /* consumer name in use */
    { 10014, PAWL_NOT_FOUND },   /* no such consumer */
    { 10023, PAWL_NO_SPACE },    /* insufficient resources */
    { 10025, PAWL_INVALID },     /* bad JSON */
    { 10026, PAWL_NO_SPACE },    /* too many consumers */
    { 10027, PAWL_NO_SPACE },    /* too many streams */
    { 10028, PAWL_NO_SPACE },    /* no memory left on the server */
    { 10037, PAWL_NOT_FOUND },   /* no message found */
    { 10039, PAWL_UNSUPPORTED }, /* JetStream not enabled for the account */
    { 10041, PAWL_UNAVAILABLE }, /* raft */
    { 10043, PAWL_NOT_FOUND },   /* no such sequence */
    { 10047, PAWL_NO_SPACE },    /* no storage left */
    { 10052, PAWL_INVALID },     /* stream configuration */
    { 10054, PAWL_INVALID },     /* message larger than the stream takes */
    { 10058, PAWL_CONFLICT },    /* stream name in use with another configuration */
    { 10059, PAWL_NOT_FOUND },   /* no such stream */
    { 10060, PAWL_CONFLICT },    /* not the expected stream */
    { 10063, PAWL_CONFLICT },    /* not the expected sequence */
    { 10065, PAWL_CONFLICT },    /* subjects overlap with another stream's */
    { 10070, PAWL_CONFLICT },    /* not the expected last id */
    { 10071, PAWL_CONFLICT },    /* not the expected last sequence */
    { 10074, PAWL_UNSUPPORTED }, /* replicas without a cluster */
    { 10076, PAWL_UNSUPPORTED }, /* JetStream not enabled */
    { 10077, PAWL_NO_SPACE },    /* the stream refused or failed to store it */
    { 10093, PAWL_INVALID },     /* the consumer's filter is no subject of the stream */
    { 10103, PAWL_INVALID },     /* durable name */
    { 10105, PAWL_CONFLICT },    /* the consumer exists and is in use */
    { 10109, PAWL_DENIED },      /* sealed */
    { 10118, PAWL_UNAVAILABLE }, /* stream offline */
    { 10119, PAWL_UNAVAILABLE }, /* consumer offline */
    { 10122, PAWL_NO_SPACE },    /* more bytes than the account allows */
    { 10148, PAWL_CONFLICT },    /* the consumer exists already */
};

pawl_status pawl__nats_status_of(natsStatus native, int code)
{
    for (size_t i = 0; code != 0 && i < COUNT_OF(code_map); i++) {
        if (code_map[i].code == code) {
            return code_map[i].status;
        }
    }
    for (size_t i = 0; code == 0 && i < COUNT_OF(native_map); i++) {
        if (native_map[i].native == native) {
            return native_map[i].status;
        }
    }
    return PAWL_FAILED;
}

static pawl_status fail_with(pawl_error *reterr, natsStatus native, int code, const char *text)
{
    pawl_status status = pawl__nats_status_of(native, code);

    if (code == 10039 || code == 10076) {
        pawl__fail_advised(
            reterr, status, "the NATS server runs without JetStream; start it with '-js'");
    } else {
        pawl__fail(reterr, status, "%s", text == NULL ? natsStatus_GetText(native) : text);
    }
    if (reterr != NULL) {
        reterr->native = code != 0 ? code : (int)native;
    }
    return status;
}

pawl_status pawl__nats_fail(
    pawl_error *reterr, natsStatus native, int code, const char *text, const char *format, ...)
{
    char what[PAWL_ERROR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return pawl__fail_context(reterr, fail_with(reterr, native, code, text), "%s", what);
}

uint64_t pawl__nats_refusals(struct pawl__nats *nats)
{
    pawl__lock(&nats->events->lock);
    uint64_t refusals = nats->events->refusals;
    pawl__unlock(&nats->events->lock);
    return refusals;
}

/* A server that forbids a request answers nothing to it; it complains on the connection instead. */
static bool was_refused(struct pawl__nats *nats, uint64_t refusals, char ret_text[160])
{
    pawl__lock(&nats->events->lock);
    bool refused = nats->events->refusals > refusals;
    snprintf(ret_text, 160, "%s", nats->events->refusal);
    pawl__unlock(&nats->events->lock);
    return refused;
}

/* cnats keeps one text per thread: of a JetStream error what the server described, with " [nnnnn]" behind it
 * in some versions. */
static const char *last_text(natsStatus native)
{
    natsStatus kept = NATS_OK;
    const char *text = nats_GetLastError(&kept);

    return text != NULL && text[0] != '\0' && kept == native ? text : NULL;
}

pawl_status pawl__nats_fail_call(struct pawl__nats *nats,
                                 uint64_t refusals,
                                 natsStatus native,
                                 jsErrCode code,
                                 pawl_error *reterr,
                                 const char *format,
                                 ...)
{
    char what[PAWL_ERROR_MESSAGE_SIZE];
    char refusal[160];
    const char *text = code != 0 ? last_text(native) : NULL;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (native == NATS_TIMEOUT && was_refused(nats, refusals, refusal)) {
        return pawl__nats_fail(reterr, NATS_NOT_PERMITTED, 0, refusal, "%s", what);
    }
    if (native == NATS_NO_RESPONDERS) {
        text = "nobody answers on its subject: JetStream is off or starting, or no stream takes it";
    } else if (native == NATS_TIMEOUT) {
        snprintf(refusal, sizeof(refusal), "no answer within %d ms", nats->answer_ms_max);
        text = refusal;
    }
    return pawl__nats_fail(reterr, native, (int)code, text, "%s", what);
}

pawl_status pawl__nats_fail_option(natsStatus native, const char *what, pawl_error *reterr)
{
    if (native == NATS_OK) {
        return PAWL_OK;
    }
    const char *text = nats_GetLastError(NULL);
    pawl_status status = native == NATS_NO_MEMORY ? PAWL_NOMEM : PAWL_INVALID;
    pawl__fail(reterr,
               status,
               "%s: %s",
               what,
               text == NULL || text[0] == '\0' ? natsStatus_GetText(native) : text);
    return status;
}
