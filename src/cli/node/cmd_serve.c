/* pawl serve: the node, until somebody stops it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "base/terminal/display.h"
#include "cli/app/app.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/settings.h"
#include "cli/node/open_files.h"
#include "cli/node/tls.h"
#include "cli/node/tokens.h"
#include "cli/run/step.h"
#include "cli/work/work.h"
#include "config/config.h"
#include "server/node.h"
#include "store/location.h"

/* Threads for what the work store is asked and waited for: so many calls share a commit. */
enum { WORKERS = 8 };

/* The first line waits this long, so that it counts the applications that open quickly. */
enum { OPEN_MS = 1000 };

static uint32_t milliseconds(const struct pawl__cli_run *run, enum pawl__setting_id id)
{
    return (uint32_t)(pawl__config_number(run->config, id) / NS_PER_MS);
}

/* Where the work store beside these applications would be; malloc'ed, NULL: nowhere, since a directory of
 * applications alone has none. */
static pawl_status work_beside(const struct pawl__cli_run *run,
                               const char *apps,
                               char **ret_location,
                               pawl_error *reterr)
{
    struct pawl__buf location = BUF_INIT(1 << 16);

    *ret_location = NULL;
    if (pawl__location_is_postgres(apps)) {
        pawl__buf_add_text(&location, apps);
    } else if (pawl__cli_args_has(run->args, "apps")) {
        return PAWL_OK;
    } else if (pawl__cli_settings_use_database(run->config)) { /* sqlite:FILE */
        pawl__buf_add_text(&location, pawl__config_text(run->config, PAWL__DATABASE_URL));
    } else {
        pawl__buf_add_format(
            &location, "sqlite:%s/work.sqlite", pawl__config_text(run->config, PAWL__DATA));
    }
    *ret_location = pawl__buf_steal(&location);
    return *ret_location == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a path") : PAWL_OK;
}

/* What nobody chose has to fit the lease. */
static int64_t sweep_ms(const struct pawl__cli_run *run)
{
    int64_t ms = pawl__cli_work_setting_ms(run, PAWL__WORK_SWEEP);
    bool chosen = pawl__config_origin(run->config, PAWL__WORK_SWEEP).kind != PAWL__ORIGIN_DEFAULT;

    return chosen
               ? ms
               : pawl__cli_sweep_fitting_ms(ms, pawl__cli_work_setting_ms(run, PAWL__WORK_LEASE));
}

static struct pawl__serve_options options_of(const struct pawl__cli_run *run,
                                             const char *location,
                                             const char *work)
{
    struct pawl__serve_options options = {
        .location = location,
        .app = pawl__cli_app_options(run),
        .work = work,
        .work_options = pawl__cli_work_options(run),
        .http = PAWL__HTTP_OPTIONS_INIT,
        .stop_ms_max = milliseconds(run, PAWL__SERVER_STOP_TIMEOUT),
    };
    const char *listen = pawl__cli_args_value(run->args, "listen");

    options.work_sweep_ms = (uint32_t)sweep_ms(run);
    options.http.clock = run->clock;
    options.http.workers_isolated = WORKERS;
    options.open_ms = OPEN_MS;
    options.partitions_max =
        (uint32_t)pawl__config_number(run->config, PAWL__SERVER_PARTITIONS_MAX);
    options.app.busy_ms_max = milliseconds(run, PAWL__SERVER_BUSY_TIMEOUT);
    options.http.listen =
        listen != NULL ? listen : pawl__config_text(run->config, PAWL__SERVER_LISTEN);
    options.http.body_bytes_max = (size_t)pawl__config_number(run->config, PAWL__SERVER_BODY_MAX);
    options.http.bodies_bytes_max =
        (size_t)pawl__config_number(run->config, PAWL__SERVER_BODIES_MAX);
    options.http.header_bytes_max =
        (size_t)pawl__config_number(run->config, PAWL__SERVER_HEADER_MAX);
    options.http.connections_max =
        (uint32_t)pawl__config_number(run->config, PAWL__SERVER_CONNECTIONS_MAX);
    options.http.idle_ms_max = milliseconds(run, PAWL__SERVER_IDLE_TIMEOUT);
    options.http.read_ms_max = milliseconds(run, PAWL__SERVER_READ_TIMEOUT);
    options.http.answer_ms_max = milliseconds(run, PAWL__SERVER_ANSWER_TIMEOUT);
    return options;
}

/* Before anything is open. */
static pawl_status fit_connections(uint32_t *connections_max, pawl_error *reterr)
{
    uint64_t files = 0;

    TRY(pawl__cli_open_files_raise(&files, reterr));
    uint32_t fit = pawl__cli_connections_that_fit(files, *connections_max);
    if (fit < MIN(*connections_max, PAWL__CONNECTIONS_LEAST)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "only %llu files may be open, which is too few for a node: raise the "
                          "limit (ulimit -n, LimitNOFILE=)",
                          (unsigned long long)files);
    }
    if (fit < *connections_max) {
        LOG_WARNING("server.connections_max does not fit into the limit of open files, half of "
                    "which is for the stores: it is lowered",
                    LOG_NATURAL("connections_max", *connections_max),
                    LOG_NATURAL("lowered_to", fit),
                    LOG_NATURAL("open_files", files));
        *connections_max = fit;
    }
    return PAWL_OK;
}

/* --- waiting for the end --- */

static void wake(void *object)
{
    const int *fd = object;
    uint64_t one = 1;
    int before = errno;

    (void)!write(*fd, &one, sizeof(one)); /* in a signal handler: nothing else could be done */
    errno = before;
}

static void wait_for_signal(int fd)
{
    struct pollfd waits = { .fd = fd, .events = POLLIN };

    while (!pawl__cli_interrupted()) {
        (void)poll(&waits, 1, -1);
    }
}

/* --- what it says --- */

static void add_location(struct pawl__buf *text, const char *location)
{
    if (pawl__location_is_postgres(location)) {
        pawl__url_add_masked(pawl_view_of(location), text);
    } else {
        pawl__buf_add_text(text, location);
    }
}

static pawl_status say(const struct pawl__cli_run *run,
                       struct pawl__serve_node *node,
                       const char *location,
                       const char *scheme,
                       pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf shown = BUF_INIT(1 << 16);
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 18);
    const char *address = pawl__serve_listens_on(node);
    size_t count = pawl__serve_app_count(node);

    add_location(&shown, location);
    if (run->json) {
        pawl__buf_add_format(&text, "{\"url\":\"%s://%s\",\"apps\":", scheme, address);
        pawl__display_add_json(&text, pawl__buf_view(&shown));
        pawl__buf_add_format(&text, ",\"app_count\":%zu,\"pid\":%ld}\n", count, (long)getpid());
    } else {
        pawl__buf_add_format(&text, "listening on %s://%s\n", scheme, address);
        pawl__buf_add_format(&text, "%zu applications in ", count);
        pawl__display_add(&text, pawl__buf_view(&shown));
        pawl__buf_add_format(&text, "\nstop it with Ctrl-C or 'kill %ld'\n", (long)getpid());
    }
    TRY(pawl__cli_out_add(&text, reterr));
    return pawl__cli_out_check(reterr);
}

/* A store that does not answer is in the log, and no failure of the end: what was answered is on disk, and
 * the process ends, in time, as it was told to. */
static pawl_status end(struct pawl__serve_node *node, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__serve_node_close(node, &error);

    if (status == PAWL_OK || status == PAWL_TIMEOUT) {
        return PAWL_OK;
    }
    *reterr = error;
    return status;
}

/* Where its socket and its jobs are, which it makes: in the data directory, or beside the applications of --apps. */
static pawl_status own_places(const struct pawl__cli_run *run,
                              const char *location,
                              char **ret_socket,
                              char **ret_jobs,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf jobs = BUF_INIT(1 << 16);

    TRY(pawl__cli_socket_path(run, location, ret_socket, reterr));
    const pawl_view directory = { *ret_socket, (size_t)(strrchr(*ret_socket, '/') - *ret_socket) };
    pawl__buf_add(&jobs, directory);
    TRY(pawl__fs_make_dir(jobs.data, reterr));
    TRY(pawl__location_is_postgres(location) ? PAWL_OK : pawl__fs_make_dir(location, reterr));
    pawl__buf_add_text(&jobs, "/jobs.sqlite");
    return pawl__buf_hand_out(&jobs, "the path", ret_jobs, NULL, reterr);
}

static pawl_status configure_pipelines(void *context, pawl_delivery *delivery, pawl_error *reterr)
{
    struct pawl__cli_delivery here = { .run = context, .here = delivery };

    return pawl__cli_delivery_add_configured(context, &here, reterr);
}

/* A directory of applications alone has no pipelines. */
static void set_delivery(const struct pawl__cli_run *run, struct pawl__serve_options *options)
{
    if (pawl__cli_args_has(run->args, "apps")) {
        return;
    }
    options->delivery = pawl__config_text(run->config, PAWL__DATA);
    options->delivery_options = pawl__cli_delivery_options(run);
    if (pawl__cli_delivery_is_configured(run)) {
        options->delivery_configure = configure_pipelines;
        options->delivery_context = (void *)(uintptr_t)run;
    }
}

static pawl_status serve(const struct pawl__cli_run *run,
                         const char *location,
                         int fd,
                         pawl_error *reterr)
{
    AUTO(pawl__text_free) char *work = NULL;
    AUTO(pawl__text_free) char *certificate = NULL;
    AUTO(pawl__text_free) char *key = NULL;
    AUTO(pawl__buf_done) struct pawl__buf tokens = BUF_INIT(1 << 16);
    AUTO(pawl__text_free) char *socket = NULL;
    AUTO(pawl__text_free) char *jobs = NULL;
    char apps_id[PAWL__CLI_APPS_ID_SIZE];
    struct pawl__serve_node *node = NULL;

    TRY(own_places(run, location, &socket, &jobs, reterr));
    TRY(pawl__cli_apps_id(location, apps_id, reterr));
    TRY(work_beside(run, location, &work, reterr));
    TRY(pawl__cli_tls_read(run->config, &certificate, &key, reterr));
    TRY(pawl__cli_tokens_path(run, &tokens, reterr));
    struct pawl__serve_options options = options_of(run, location, work);
    set_delivery(run, &options);
    options.tokens = tokens.data;
    options.socket = socket;
    options.jobs = jobs;
    options.apps_id = apps_id;
    options.unsafe_plain = pawl__cli_args_has(run->args, "unsafe-plain");
    options.http.tls_certificate = certificate;
    options.http.tls_key = key;

    TRY(fit_connections(&options.http.connections_max, reterr));
    options.http.streams_max = options.http.connections_max / 2; /* half is for questions */
    TRY(pawl__serve_node_open(&options, &node, reterr));
    pawl_status status = say(run, node, location, certificate == NULL ? "http" : "https", reterr);
    if (status == PAWL_OK) {
        wait_for_signal(fd);
    }
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status ended = end(node, &error);
    if (status == PAWL_OK && ended != PAWL_OK) {
        *reterr = error;
        status = ended;
    }
    return status;
}

static pawl_status print_openapi(pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(64 << 20);

    TRY(pawl__serve_openapi(&text, reterr));
    TRY(pawl__cli_out_add(&text, reterr));
    return pawl__cli_out_check(reterr);
}

static pawl_status serve_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    if (pawl__cli_args_has(run->args, "openapi")) {
        return print_openapi(reterr);
    }
    AUTO(pawl__text_free) char *location = NULL;
    AUTO(pawl__fs_close) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const struct pawl__cli_wakeable woken = { wake, &fd };

    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "make an event to wait for");
    }
    TRY(pawl__cli_apps_location(run, &location, reterr));
    pawl__cli_interrupt_catch(&woken);
    pawl_status status = serve(run, location, fd, reterr);
    pawl__cli_interrupt_release();
    return status;
}

const struct pawl__cli_command pawl__cli_cmd_serve = {
    .name = "serve",
    .summary = "serve applications, work and delivery over HTTP",
    .description =
        "Listens, opens every application and answers requests under /v1 until it is stopped: "
        "commands, "
        "records, logs and sequences of applications; tasks, items, leases and checkpoints of the "
        "work store beside them, whose leases that ran out it takes back and whose "
        "schedules it fires; the pipelines of the data directory and of pawl.yaml, which it runs, "
        "with their events, failed events and SQL. /livez, /readyz, /healthz and /metrics are for "
        "whoever looks after "
        "it; /metrics has the numbers of the work store, too, when there is one. It prints where "
        "it listens, where the applications are and how it is stopped, one line each.\n\n"
        "Without tokens ('pawl token') it answers everybody on this machine and listens nowhere "
        "else. An address that other machines reach needs a token, and TLS "
        "(server.tls_certificate, "
        "server.tls_key) unless --unsafe-plain says that the network is trusted; without them it "
        "is "
        "refused with exit code 2. An address that is in use, or a directory that another node "
        "has, "
        "is exit code 5.\n\n"
        "An application that cannot be opened, since it is damaged or another process has it, "
        "stops none of the others: /readyz and the log name it, and one that is busy is opened "
        "when it is free.\n\n"
        "Ctrl-C or SIGTERM ends it in order: requests that have begun are answered, for "
        "server.stop_timeout at the longest. Killing it loses nothing that was answered; whoever "
        "got no answer sends the command again, with the same key.\n\n" APP_WHERE,
    .flags = FLAGS(
        FLAG("listen",
             "ADDRESS",
             "Where to listen, instead of server.listen: 127.0.0.1:8470, "
             "[::1]:8470; port 0 is a free one."),
        { .name = "openapi", .help = "Print the description of the API (OpenAPI 3.1) and exit." },
        { .name = "unsafe-plain", .help = "Let other machines send tokens without TLS." },
        APP_FLAG),
    .examples =
        EXAMPLES({ .line = "pawl serve --data ./data", .says = "until Ctrl-C, on 127.0.0.1:8470" },
                 { .line = "pawl serve --data ./data --listen 127.0.0.1:0 --json",
                   .says = "on a free port, which the first line tells" }),
    .run = serve_run,
};
