#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "store/postgres/internal.h"

static pawl_status check_channel(const char *channel, pawl_error *reterr)
{
    size_t len = strlen(channel);

    if (len == 0 || len > PAWL__PG_NAME_BYTES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "a channel's name has 1 to %d bytes, not %zu",
                          PAWL__PG_NAME_BYTES_MAX,
                          len);
    }
    return PAWL_OK;
}

/* LISTEN takes no parameters: the one statement whose text holds a value, quoted by libpq. */
static pawl_status send_listen(struct pawl__pg *pg, const char *channel, pawl_error *reterr)
{
    struct pawl__buf sql = BUF_INIT(512);
    char *quoted = PQescapeIdentifier(pg->conn, channel, strlen(channel));

    if (quoted == NULL) {
        return pawl__fail(
            reterr, PAWL_INVALID, "channel '%s': %s", channel, PQerrorMessage(pg->conn));
    }
    pawl__buf_add_format(&sql, "LISTEN %s", quoted);
    PQfreemem(quoted);
    pawl_status status = pawl__buf_check(&sql, "LISTEN", reterr);
    if (status == PAWL_OK) {
        status = pawl__pg_simple(pg, sql.data, reterr);
    }
    pawl__buf_done(&sql);
    return status;
}

pawl_status pawl__pg_listen_again(struct pawl__pg *pg, pawl_error *reterr)
{
    for (size_t i = 0; i < pg->channel_count; i++) {
        TRY(send_listen(pg, pg->channels[i], reterr));
    }
    pg->missed = pg->channel_count > 0;
    return PAWL_OK;
}

static bool is_listening(const struct pawl__pg *pg, const char *channel)
{
    for (size_t i = 0; i < pg->channel_count; i++) {
        if (strcmp(pg->channels[i], channel) == 0) {
            return true;
        }
    }
    return false;
}

pawl_status pawl__pg_listen(struct pawl__pg *pg, const char *channel, pawl_error *reterr)
{
    /* A rollback would take the LISTEN back without our knowing. */
    REQUIRE(!pg->in_transaction);
    pawl_status status = check_channel(channel, reterr);
    if (status != PAWL_OK || is_listening(pg, channel)) {
        return status;
    }
    if (pg->channel_count == PAWL__PG_CHANNELS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "a connection listens to %d channels at most",
                          PAWL__PG_CHANNELS_MAX);
    }
    char *copy = strdup(channel);
    if (copy == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for channel '%s'", channel);
    }
    status = pawl__pg_ready(pg, reterr);
    status = status != PAWL_OK ? status : send_listen(pg, channel, reterr);
    if (status != PAWL_OK) {
        free(copy);
        return status;
    }
    pg->channels[pg->channel_count++] = copy;
    return PAWL_OK;
}

/* What is there without waiting: the loss of a connection first, then what the new one brought. */
static bool take_notification(struct pawl__pg *pg, struct pawl__pg_notification *ret_notification)
{
    if (pg->missed) {
        pg->missed = false;
        *ret_notification = (struct pawl__pg_notification){ .missed = true };
        return true;
    }
    pg->notification = pg->broken ? NULL : PQnotifies(pg->conn);
    if (pg->notification == NULL) {
        return false;
    }
    *ret_notification = (struct pawl__pg_notification){
        .channel = pg->notification->relname,
        .payload = pg->notification->extra,
        .own = pg->notification->be_pid == pg->session,
    };
    return true;
}

static pawl_status wait_once(struct pawl__pg *pg, int64_t deadline_ns, pawl_error *reterr)
{
    if (pg->broken) {
        return pawl__pg_reconnect_until(pg, deadline_ns, deadline_ns, reterr);
    }
    pawl_status status = pawl__pg_poll(pg, PQsocket(pg->conn), POLLIN, deadline_ns);
    if (status != PAWL_OK) {
        return pawl__fail(
            reterr, status, status == PAWL_TIMEOUT ? "no notification" : "interrupted");
    }
    if (PQconsumeInput(pg->conn) == 0) {
        pg->broken = true;
    }
    return PAWL_OK;
}

pawl_status pawl__pg_wait(struct pawl__pg *pg,
                          int64_t deadline_ns,
                          struct pawl__pg_notification *ret_notification,
                          pawl_error *reterr)
{
    REQUIRE(!pg->in_transaction); /* none arrives in one */
    REQUIRE(!pg->pipeline.open);
    pg->gave_up = PAWL_OK;
    if (pg->notification != NULL) {
        PQfreemem(pg->notification);
        pg->notification = NULL;
    }
    while (!take_notification(pg, ret_notification)) {
        TRY(wait_once(pg, deadline_ns, reterr));
    }
    return PAWL_OK;
}
