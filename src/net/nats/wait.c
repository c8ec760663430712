/* What fetching and publishing have in common: a link that works, a subject of our own, waiting on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "net/nats/internal.h"

jsOptions pawl__nats_call_options(const struct pawl__nats *nats)
{
    jsOptions options;

    jsOptions_Init(&options);
    options.Wait = nats->answer_ms_max;
    return options;
}

pawl_status pawl__nats_ready(struct pawl__nats *nats, pawl_error *reterr)
{
    switch (pawl__nats_state(nats)) {
    case PAWL__NATS_CONNECTED:
        return PAWL_OK;
    case PAWL__NATS_RECONNECTING:
        return pawl__fail(reterr,
                          PAWL_UNAVAILABLE,
                          "the connection to '%s' is lost; it reconnects by itself",
                          nats->shown);
    case PAWL__NATS_CLOSED:
    default:
        return pawl__fail(reterr,
                          PAWL_DENIED,
                          "the connection to '%s' is closed: the server refused our credentials",
                          nats->shown);
    }
}

pawl_status pawl__nats_next(struct pawl__nats *nats,
                            natsSubscription *subscription,
                            const struct pawl__nats_wait *wait,
                            natsMsg **ret_msg,
                            pawl_error *reterr)
{
    for (;;) {
        int64_t left_ms = (wait->deadline_ns - pawl__nats_now_ns(nats)) / NS_PER_MS;
        /* 1 and not 0: cnats takes no time-out of 0, and what has arrived it hands out at once. */
        natsStatus native = natsSubscription_NextMsg(
            ret_msg, subscription, MIN(MAX(left_ms, 1), (int64_t)NATS_SLICE_MS));
        if (native == NATS_OK) {
            return PAWL_OK;
        }
        if (native != NATS_TIMEOUT) {
            return pawl__nats_fail(reterr, native, 0, NULL, "wait for '%s'", nats->shown);
        }
        if (pawl__cancelled(wait->cancel)) {
            return pawl__fail(
                reterr, PAWL_CANCELLED, "cancelled while waiting for '%s'", nats->shown);
        }
        TRY(pawl__nats_ready(nats, reterr));
        if (pawl__nats_reconnects(nats) != wait->reconnects) {
            return pawl__fail(
                reterr, PAWL_UNAVAILABLE, "the connection to '%s' was lost meanwhile", nats->shown);
        }
        if (left_ms <= NATS_SLICE_MS && pawl__nats_now_ns(nats) >= wait->deadline_ns) {
            return pawl__fail(reterr, PAWL_TIMEOUT, "no answer from '%s' in time", nats->shown);
        }
    }
}

pawl_status pawl__nats_inbox_open(struct pawl__nats *nats,
                                  struct nats_inbox *ret_inbox,
                                  pawl_error *reterr)
{
    char all[sizeof(ret_inbox->prefix) + 2];
    natsInbox *unique = NULL;
    natsStatus native = natsInbox_Create(&unique);

    if (native == NATS_OK) {
        snprintf(ret_inbox->prefix, sizeof(ret_inbox->prefix), "%s.", unique);
        snprintf(all, sizeof(all), "%s*", ret_inbox->prefix);
        native = natsConnection_SubscribeSync(&ret_inbox->subscription, nats->conn, all);
    }
    natsInbox_Destroy(unique);
    if (native == NATS_OK) {
        /* What arrives is bounded by what we ask for. */
        native = natsSubscription_SetPendingLimits(ret_inbox->subscription, -1, -1);
    }
    return native == NATS_OK
               ? PAWL_OK
               : pawl__nats_fail(reterr, native, 0, NULL, "subscribe at '%s'", nats->shown);
}

void pawl__nats_inbox_done(struct nats_inbox *inbox)
{
    natsSubscription_Destroy(inbox->subscription);
    inbox->subscription = NULL;
}

bool pawl__nats_inbox_number(const struct nats_inbox *inbox,
                             const char *subject,
                             uint64_t *ret_number)
{
    size_t len = strlen(inbox->prefix);
    char *end = NULL;

    if (subject == NULL || strncmp(subject, inbox->prefix, len) != 0) {
        return false;
    }
    *ret_number = strtoull(&subject[len], &end, 10);
    return end != &subject[len] && *end == '\0';
}

int pawl__nats_msg_status(natsMsg *msg, const char **ret_description)
{
    const char *status = NULL;

    *ret_description = "";
    if (natsMsg_GetDataLength(msg) != 0 || natsMsgHeader_Get(msg, "Status", &status) != NATS_OK
        || status == NULL) {
        return 0;
    }
    if (natsMsgHeader_Get(msg, "Description", ret_description) != NATS_OK
        || *ret_description == NULL) {
        *ret_description = "";
    }
    return (int)strtol(status, NULL, 10);
}
