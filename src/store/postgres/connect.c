#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/random.h"
#include "base/decide/backoff.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "store/postgres/internal.h"
#include "store/postgres/statements.h"

enum {
    ANSWER_MS_DEFAULT = 10000,
    RECONNECT_MS_DEFAULT =
        1000, /* of those who wait for the answer; a restart takes longer anyway */
    STATEMENT_MS_DEFAULT = 60000,
    LOCK_MS_DEFAULT = 10000,
    IDLE_MS_DEFAULT = 300000,
    KEYWORDS_MAX = 96, /* libpq 15 knows 41, libpq 17 51 */
};

/* Promised: a server that refuses fails a call within three seconds. A call tries twice at the most. */
_Static_assert(2 * RECONNECT_MS_DEFAULT <= 3000, "a refusal is told in time");

static const struct pawl__backoff reconnect_backoff = { .first_ns = 50 * NS_PER_MS,
                                                        .max_ns = 2 * NS_PER_S };

static const char *target_get(const PQconninfoOption *target, const char *keyword)
{
    for (; target->keyword != NULL; target++) {
        if (strcmp(target->keyword, keyword) == 0) {
            return target->val;
        }
    }
    return NULL;
}

static bool is_port_list(const char *text)
{
    return strspn(text, "0123456789,") == strlen(text);
}

/* A password with a raw '@' or '/' slides into host, port or database, and from there into
 * messages. Such a URL is refused without showing any of it. */
static pawl_status check_target(const PQconninfoOption *target, pawl_error *reterr)
{
    const char *host = target_get(target, "host");
    const char *port = target_get(target, "port");
    const char *database = target_get(target, "dbname");

    if ((host != NULL && strchr(host, '@') != NULL) || (port != NULL && !is_port_list(port))
        || (database != NULL && strchr(database, '@') != NULL)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the PostgreSQL URL cannot be right: write '@', '/' and '%%' inside user "
                          "and password as %%40, %%2F and %%25");
    }
    return PAWL_OK;
}

static pawl_status parse_target(const char *url, PQconninfoOption **ret_target, pawl_error *reterr)
{
    char *why = NULL;
    PQconninfoOption *target = PQconninfoParse(url, &why);

    if (target == NULL) {
        /* libpq's reason quotes the part it does not like, which may be the password. */
        bool explained = why != NULL;
        PQfreemem(why);
        return explained ? pawl__fail(reterr,
                                      PAWL_INVALID,
                                      "the PostgreSQL URL cannot be read: expected postgresql://"
                                      "user:password@host:port/database?option=value with '%%' "
                                      "written as %%25, or libpq's \"key=value ...\"")
                         : pawl__fail(reterr, PAWL_NOMEM, "no memory for the PostgreSQL URL");
    }
    pawl_status status = check_target(target, reterr);
    if (status != PAWL_OK) {
        PQconninfoFree(target);
        return status;
    }
    *ret_target = target;
    return PAWL_OK;
}

/* Item `index` of a comma-separated list; the last one when it is shorter (one port for all hosts).
 */
static pawl_view list_item(const char *list, size_t index)
{
    pawl_view rest = pawl_view_of(list);
    pawl_view item = { 0 };

    for (size_t i = 0; i <= index; i++) {
        if (!pawl__view_split(&rest, ',', &item)) {
            break;
        }
    }
    return item;
}

static size_t list_length(const char *list)
{
    size_t count = 1;

    for (; list != NULL && *list != '\0'; list++) {
        count += *list == ',';
    }
    return count;
}

/* What libpq is told: our defaults, over them the URL (the last of equal keywords counts), over it
 * what must be. Of several hosts it gets one at a time: waiting for a machine that is switched off
 * must not use up the time of the next, and libpq's own loop gives us no way to move on. */
struct connect_args {
    const char *keywords[KEYWORDS_MAX];
    const char *values[KEYWORDS_MAX];
    size_t count;
    char lists[3][PAWL_ERROR_MESSAGE_SIZE];
    size_t list_count;
    char user_timeout[16];
};

static void args_add(struct connect_args *args, const char *keyword, const char *value)
{
    REQUIRE(args->count + 1 < KEYWORDS_MAX);
    args->keywords[args->count] = keyword;
    args->values[args->count] = value;
    args->count++;
    args->keywords[args->count] = NULL;
    args->values[args->count] = NULL;
}

static const char *args_list_item(struct connect_args *args, const char *list, size_t index)
{
    pawl_view item = list_item(list, index);
    char *copy = args->lists[args->list_count++];

    snprintf(copy, sizeof(args->lists[0]), "%.*s", VIEW_ARGS(item));
    return copy;
}

static void args_fill(struct connect_args *args, const struct pawl__pg *pg, size_t host)
{
    args->count = 0;
    args->list_count = 0;
    snprintf(args->user_timeout, sizeof(args->user_timeout), "%d", pg->options.connect_ms_max);
    args_add(args, "fallback_application_name", pg->application_name);
    /* A peer that vanished is noticed: with data on the way after user_timeout, idle after
     * 30 + 3 * 10 seconds. */
    args_add(args, "tcp_user_timeout", args->user_timeout);
    args_add(args, "keepalives_idle", "30");
    args_add(args, "keepalives_interval", "10");
    args_add(args, "keepalives_count", "3");
    for (const PQconninfoOption *at = pg->target; at->keyword != NULL; at++) {
        bool is_list = strcmp(at->keyword, "host") == 0 || strcmp(at->keyword, "hostaddr") == 0
                       || strcmp(at->keyword, "port") == 0;
        if (at->val != NULL) {
            args_add(args, at->keyword, is_list ? args_list_item(args, at->val, host) : at->val);
        }
    }
    if (pg->address != NULL) {
        args_add(args, "hostaddr", pg->address); /* `host` still names whom TLS expects there */
    }
    args_add(args, "client_encoding", "UTF8");
}

/* libpq itself would print notices on stderr. */
static void notice_to_log(void *context, const PGresult *notice)
{
    struct pawl__pg *pg = context;
    const char *message = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    const char *sqlstate = PQresultErrorField(notice, PG_DIAG_SQLSTATE);

    if (pawl__pg_is_fatal(notice)) {
        pg->broken = true; /* a server that hangs up on an idle session says so here */
    }
    LOG_DEBUG("notice of the PostgreSQL server",
              LOG_TEXT("server", pg->server.location),
              LOG_TEXT("sqlstate", sqlstate == NULL ? "" : sqlstate),
              LOG_TEXT("text", message == NULL ? PQresultErrorMessage(notice) : message));
}

pawl_status pawl__pg_connect_host(struct pawl__pg *pg,
                                  size_t host,
                                  int64_t deadline_ns,
                                  pawl_error *reterr)
{
    struct connect_args args;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    args_fill(&args, pg, host);
    pg->conn = PQconnectStartParams(args.keywords, args.values, 0);
    TRY(pawl__check_memory(pg->conn, "a connection", reterr));
    PQsetErrorVerbosity(pg->conn, PQERRORS_VERBOSE); /* for the code, see find_sqlstate */
    PQsetNoticeReceiver(pg->conn, notice_to_log, pg);
    while (PQstatus(pg->conn) != CONNECTION_BAD && next != PGRES_POLLING_OK
           && next != PGRES_POLLING_FAILED) {
        pawl_status status = pawl__pg_poll(
            pg, PQsocket(pg->conn), next == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_ns);
        if (status != PAWL_OK) {
            return pawl__fail(reterr,
                              status,
                              "%s while connecting to '%s:%s'",
                              status == PAWL_TIMEOUT ? "no answer" : "interrupted",
                              PQhost(pg->conn),
                              PQport(pg->conn));
        }
        next = PQconnectPoll(pg->conn);
    }
    if (PQstatus(pg->conn) != CONNECTION_OK) {
        return pawl__pg_fail_connect(pg->conn, reterr);
    }
    PQsetErrorVerbosity(pg->conn, PQERRORS_DEFAULT);
    return PQsetnonblocking(pg->conn, 1) == 0 ? PAWL_OK : pawl__pg_fail_link(pg, reterr);
}

static pawl_status connect_any_host(struct pawl__pg *pg, int64_t deadline_ns, pawl_error *reterr)
{
    size_t hosts = MAX(list_length(target_get(pg->target, "host")),
                       list_length(target_get(pg->target, "hostaddr")));
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < hosts && status != PAWL_CANCELLED; i++) {
        int64_t start_ns = pawl__pg_now_ns(pg);
        int64_t share_ns = MAX(deadline_ns - start_ns, 0) / (int64_t)(hosts - i);

        pg->host = i;
        status = pawl__pg_connect_host(pg, i, start_ns + share_ns, &error);
        if (status == PAWL_OK) {
            return PAWL_OK;
        }
        if (status != PAWL_CANCELLED) {
            pawl__pg_drop(pg);
        }
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

static bool is_on(pawl_view text)
{
    return pawl__view_is(text, "on");
}

static void copy_text(char *ret_text, size_t size, pawl_view text)
{
    snprintf(ret_text, size, "%.*s", VIEW_ARGS(text));
}

/* The triggers that guard our tables do not fire for a replica, nor do those of foreign keys. Somebody
 * has set it for the user or the database: only a superuser can. */
static pawl_status check_role(pawl_view role, pawl_error *reterr)
{
    return !pawl__view_is(role, "replica")
               ? PAWL_OK
               : pawl__fail_advised(
                   reterr,
                   PAWL_CORRUPT,
                   "session_replication_role is 'replica' for this user or database, so no "
                   "trigger guards what is written; reset it: ALTER ROLE (or DATABASE) ... "
                   "RESET session_replication_role");
}

static pawl_status read_promises(struct pawl__pg *pg, int *ret_session, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct pawl__pg_server *server = &pg->server;

    TRY(pawl__pg_query(
        pg, &pawl__store_pg_statements[STORE_PG_PROMISES], PG_NO_ARGS, &rows, reterr));
    server->version = PQserverVersion(pg->conn);
    server->fsync = is_on(pawl__pg_get_text(&rows, 0, 0));
    server->full_page_writes = is_on(pawl__pg_get_text(&rows, 0, 1));
    server->read_only = is_on(pawl__pg_get_text(&rows, 0, 2));
    copy_text(
        server->default_commit, sizeof(server->default_commit), pawl__pg_get_text(&rows, 0, 3));
    *ret_session = (int)pawl__pg_get_i64(&rows, 0, 4); /* libpq's may be that of a pooler */
    pg->started_us = pawl__pg_get_i64(&rows, 0, 5);
    return check_role(pawl__pg_get_text(&rows, 0, 6), reterr);
}

/* Anything but off waits for the local disk (remote_write and remote_apply wait for more), so only
 * off is raised. */
static const char *commit_mode(const struct pawl__pg *pg)
{
    if (pg->options.unsafe_async_commit) {
        return "off";
    }
    return strcmp(pg->server.default_commit, "off") == 0 ? "on" : pg->server.default_commit;
}

static pawl_status set_session(struct pawl__pg *pg, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_query(pg,
                       &pawl__store_pg_statements[STORE_PG_SET_SESSION],
                       PG_ARGS(pawl__pg_text(pawl_view_of(pg->namespace)),
                               pawl__pg_text(pawl_view_of(commit_mode(pg))),
                               pawl__pg_i64(pg->options.statement_ms_max),
                               pawl__pg_i64(pg->options.lock_ms_max),
                               pawl__pg_i64(pg->options.idle_ms_max)),
                       &rows,
                       reterr));
    copy_text(pg->server.synchronous_commit,
              sizeof(pg->server.synchronous_commit),
              pawl__pg_get_text(&rows, 0, 1));
    return PAWL_OK;
}

/* The session of a link that was just made. */
static pawl_status set_up_session(struct pawl__pg *pg, int *ret_session, pawl_error *reterr)
{
    snprintf(pg->server.location,
             sizeof(pg->server.location),
             "%s@%s:%s/%s",
             PQuser(pg->conn),
             PQhost(pg->conn),
             PQport(pg->conn),
             PQdb(pg->conn));
    pawl_status status = read_promises(pg, ret_session, reterr);
    status = status != PAWL_OK ? status : set_session(pg, reterr);
    if (status == PAWL_OK && pg->options.settings != NULL) {
        status = pawl__pg_simple(pg, pg->options.settings, reterr);
    }
    if (pg->opened) {
        status = status != PAWL_OK ? status : pawl__pg_prepare_all(pg, reterr);
        status = status != PAWL_OK ? status : pawl__pg_listen_again(pg, reterr);
    }
    return status;
}

static pawl_status connect_once(struct pawl__pg *pg, int64_t deadline_ns, pawl_error *reterr)
{
    int64_t kept_ns = pg->deadline_ns;
    int session = 0;

    pawl__pg_drop(pg);
    pawl_status status = connect_any_host(pg, deadline_ns, reterr);
    if (status == PAWL_OK) {
        pg->broken = false;
        pg->deadline_ns = kept_ns == 0 ? deadline_ns : MIN(kept_ns, deadline_ns);
        status = set_up_session(pg, &session, reterr);
        pg->deadline_ns = kept_ns;
    }
    if (status != PAWL_OK) {
        pawl__pg_drop(pg);
    }
    pg->session = session;
    return status;
}

static uint64_t any_bits(const struct pawl__pg *pg)
{
    uint64_t bits = 0;

    /* Without the kernel's randomness the clock parts a herd as well. */
    return pawl__random_bytes(pawl__random_real(), &bits, sizeof(bits), NULL) == PAWL_OK
               ? bits
               : (uint64_t)pawl__pg_now_ns(pg);
}

pawl_status pawl__pg_reconnect_until(struct pawl__pg *pg,
                                     int64_t again_ns,
                                     int64_t deadline_ns,
                                     pawl_error *reterr)
{
    for (uint64_t attempt = 1;; attempt++) {
        int64_t start_ns = pawl__pg_now_ns(pg);
        int64_t until_ns = MIN(deadline_ns, start_ns + pg->options.connect_ms_max * NS_PER_MS);
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = connect_once(pg, until_ns, &error);
        if (!pawl__status_may_pass(status)) {
            return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
        }
        int64_t wait_ns = pawl__backoff_ns(&reconnect_backoff, attempt, any_bits(pg));
        if (pawl__pg_now_ns(pg) + wait_ns >= MIN(again_ns, deadline_ns)) {
            (void)pawl__fail_with(reterr, status, &error);
            return pawl__fail_context(
                reterr, status, "%d attempt%s to reconnect", (int)attempt, attempt == 1 ? "" : "s");
        }
        if (pawl__pg_poll(pg, -1, 0, pawl__pg_now_ns(pg) + wait_ns) == PAWL_CANCELLED) {
            return pawl__fail(reterr, PAWL_CANCELLED, "interrupted while reconnecting");
        }
    }
}

pawl_status pawl__pg_reconnect(struct pawl__pg *pg, pawl_error *reterr)
{
    if (pg->in_transaction) {
        return pawl__fail(reterr, PAWL_INVALID, "a transaction is open: roll it back first");
    }
    pg->failed = PAWL_OK; /* who asks for it means now */
    return pawl__pg_ready(pg, reterr);
}

int pawl__pg_session(const struct pawl__pg *pg)
{
    return pg->session;
}

bool pawl__pg_is_broken(const struct pawl__pg *pg)
{
    return pg->broken;
}

const struct pawl__pg_server *pawl__pg_server_of(const struct pawl__pg *pg)
{
    return &pg->server;
}

static int or_default(int value, int otherwise)
{
    return value > 0 ? value : otherwise;
}

static pawl_status fill_options(struct pawl__pg *pg,
                                const struct pawl__pg_options *options,
                                pawl_error *reterr)
{
    struct pawl__pg_options *own = &pg->options;

    if (options != NULL) {
        *own = *options;
    }
    REQUIRE(own->statement_count <= PG_STATEMENTS_MAX);
    own->clock = pawl__clock_or_real(own->clock);
    own->answer_ms_max = or_default(own->answer_ms_max, ANSWER_MS_DEFAULT);
    own->connect_ms_max =
        MIN(or_default(own->connect_ms_max, own->answer_ms_max), own->answer_ms_max);
    own->reconnect_ms_max = or_default(own->reconnect_ms_max, RECONNECT_MS_DEFAULT);
    own->statement_ms_max = or_default(own->statement_ms_max, STATEMENT_MS_DEFAULT);
    own->lock_ms_max = or_default(own->lock_ms_max, LOCK_MS_DEFAULT);
    own->idle_ms_max = or_default(own->idle_ms_max, IDLE_MS_DEFAULT);
    pg->namespace = strdup(own->namespace == NULL ? "pawl" : own->namespace);
    pg->application_name = strdup(own->application_name == NULL ? "pawl" : own->application_name);
    pg->prepared = calloc(MAX(own->statement_count, 1), sizeof(*pg->prepared));
    if (pg->namespace == NULL || pg->application_name == NULL || pg->prepared == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a connection");
    }
    own->namespace = pg->namespace;
    own->application_name = pg->application_name;
    if (strlen(pg->namespace) > PAWL__PG_NAME_BYTES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the schema's name has %zu bytes, the limit is %d",
                          strlen(pg->namespace),
                          PAWL__PG_NAME_BYTES_MAX);
    }
    return PAWL_OK;
}

static void interrupt_linked(void *context)
{
    pawl__pg_interrupt(context);
}

pawl_status pawl__pg_open(const char *url,
                          const struct pawl__pg_options *options,
                          struct pawl__pg **ret_pg,
                          pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = calloc(1, sizeof(*pg));

    TRY(pawl__check_memory(pg, "a connection", reterr));
    pg->wake_fd = -1;
    pg->probe.fd = -1;
    TRY(fill_options(pg, options, reterr));
    TRY(parse_target(url, &pg->target, reterr));
    pg->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pg->wake_fd < 0) {
        return pawl__fail_errno(reterr, errno, "eventfd");
    }
    if (pg->options.cancel != NULL) {
        pawl__cancel_link(pg->options.cancel, &pg->cancel_link, interrupt_linked, pg);
    }
    TRY(connect_once(pg, pawl__pg_now_ns(pg) + pg->options.connect_ms_max * NS_PER_MS, reterr));
    if (pg->options.schema != NULL) {
        TRY(pawl__migrate(&pawl__pg_migrate_ops, pg, pg->options.schema, reterr));
    }
    TRY(pawl__pg_prepare_all(pg, reterr));
    pg->opened = true;
    *ret_pg = STEAL(pg);
    return PAWL_OK;
}

void pawl__pg_close(struct pawl__pg *pg)
{
    if (pg == NULL) {
        return;
    }
    if (pg->options.cancel != NULL) {
        pawl__cancel_unlink(pg->options.cancel, &pg->cancel_link);
    }
    pawl__pg_drop(pg);
    PQconninfoFree(pg->target);
    pawl__fs_close(&pg->wake_fd);
    for (size_t i = 0; i < pg->channel_count; i++) {
        free(pg->channels[i]);
    }
    free(pg->prepared);
    free(pg->application_name);
    free(pg->namespace);
    free(pg);
}
