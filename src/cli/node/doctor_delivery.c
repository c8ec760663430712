/* Delivery: settings that give a promise up, and what the JetStream servers of declared pipelines promise, as their monitoring
 * port tells it. Its stores are among the others (doctor_stores.c). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/node/doctor_checks.h"
#include "config/config.h"
#include "net/http/client.h"

enum {
    MONITOR_PORT = 8222, /* of nats-server -m */
    ASK_MS = 2000,
    FILE_BYTES_MAX = 2 << 20,
    HOSTS_MAX = 8,
    HOST_SIZE = 256,
};
#define ANSWER_BYTES_MAX ((size_t)4 << 20)

/* --- judging; pure --- */

static const char *const broker_cost =
    "a power cut of the server loses messages that it acknowledged, and perhaps the stream";

struct pawl__cli_finding pawl__cli_judge_jetstream(const struct pawl__cli_jetstream_facts *facts)
{
    if (facts->sync_always) {
        return pawl__cli_finding_ok(
            "JetStream", "%s: version %s, syncs every message", facts->host, facts->version);
    }
    struct pawl__cli_finding finding =
        facts->sync_interval_ns > 0
            ? pawl__cli_finding_warning("JetStream",
                                        broker_cost,
                                        "%s: version %s syncs every %lld seconds",
                                        facts->host,
                                        facts->version,
                                        (long long)(facts->sync_interval_ns / NS_PER_S))
            : pawl__cli_finding_warning("JetStream",
                                        broker_cost,
                                        "%s: version %s does not say how often it syncs",
                                        facts->host,
                                        facts->version);
    pawl__cli_finding_fix(
        &finding,
        "set 'sync_interval: always' under jetstream, on version 2.10.23 or newer; "
        "keep producer_wal.keep longer than the interval until then");
    return finding;
}

struct pawl__cli_finding pawl__cli_judge_duplicate_window(const char *stream,
                                                          int64_t window_ns,
                                                          int64_t retry_ns)
{
    if (window_ns >= retry_ns) {
        return pawl__cli_finding_ok("JetStream",
                                    "stream '%s': duplicate window of %lld seconds",
                                    stream,
                                    (long long)(window_ns / NS_PER_S));
    }
    struct pawl__cli_finding finding = pawl__cli_finding_warning(
        "JetStream",
        "a message that is published again after it is in the stream twice; pipelines of pawl "
        "recognise it by its id, other consumers do not",
        "stream '%s': duplicate window of %lld seconds, and a producer may retry after %lld",
        stream,
        (long long)(window_ns / NS_PER_S),
        (long long)(retry_ns / NS_PER_S));
    pawl__cli_finding_fix(&finding, "make the stream's duplicate window longer");
    return finding;
}

/* --- settings --- */

void pawl__cli_inspect_syncs(struct pawl__cli_doctor *doctor)
{
    static const struct {
        enum pawl__setting_id id;
        const char *name;
        const char *cost;
    } settings[] = {
        { PAWL__CONSUMER_WAL_SYNC_WRITES,
          "consumer_wal.sync_writes",
          "a power cut loses events that their source was told we have" },
        { PAWL__PRODUCER_WAL_SYNC_WRITES,
          "producer_wal.sync_writes",
          "a power cut loses events that were accepted for publishing" },
    };

    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        if (pawl__config_number(doctor->config, settings[i].id) == 0) {
            struct pawl__cli_finding finding = pawl__cli_finding_warning(
                settings[i].name, settings[i].cost, "%s is false", settings[i].name);
            pawl__cli_finding_fix(&finding, "set it to true");
            pawl__cli_doctor_add(doctor, finding);
        }
    }
}

/* --- the servers of pipelines --- */

struct hosts {
    char items[HOSTS_MAX][HOST_SIZE];
    size_t count;
};

/* nats://user:password@HOST:4222,... */
static void add_host(struct hosts *hosts, const char *url)
{
    const char *start = url == NULL ? NULL : strstr(url, "://");
    char host[HOST_SIZE];

    if (start == NULL || (strncmp(url, "nats:", 5) != 0 && strncmp(url, "tls:", 4) != 0)) {
        return;
    }
    start += 3;
    const char *at = strchr(start, '@');
    start = at == NULL ? start : at + 1;
    (void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(start, ":,/"), start);
    for (size_t i = 0; i < hosts->count; i++) {
        if (strcmp(hosts->items[i], host) == 0) {
            return;
        }
    }
    if (hosts->count < HOSTS_MAX && host[0] != '\0') {
        memcpy(hosts->items[hosts->count++], host, sizeof(host));
    }
}

static void add_declared(struct hosts *hosts, const char *path)
{
    AUTO(pawl__text_free) char *text = malloc(FILE_BYTES_MAX);
    json_auto_t *json = NULL;
    size_t len = 0;

    if (text != NULL && pawl__fs_read_small(path, text, FILE_BYTES_MAX, &len, NULL) == PAWL_OK
        && pawl__json_parse((pawl_view){ text, len }, len, &json, NULL) == PAWL_OK) {
        const json_t *pipeline = json_object_get(json, "pipeline");
        add_host(hosts, json_string_value(json_object_get(pipeline, "from")));
    }
}

static void find_hosts(const struct pawl__cli_doctor *doctor, struct hosts *hosts)
{
    const struct pawl__section *section = pawl__config_section(doctor->config, "pipelines");
    AUTO(pawl__text_free) char *path = pawl__fs_join(doctor->data, "pipelines");
    DIR *dir = path == NULL ? NULL : opendir(path);

    for (size_t i = 0; i < section->count; i++) {
        add_host(hosts, pawl__section_field(&section->entries[i], "from")->text);
    }
    if (dir == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        AUTO(pawl__text_free) char *file = pawl__fs_join(path, entry->d_name);
        if (file != NULL && strstr(entry->d_name, ".json") != NULL) {
            add_declared(hosts, file);
        }
    }
    closedir(dir);
}

/* --- asking --- */

static pawl_status gather(void *context, pawl_view bytes, pawl_error *reterr)
{
    pawl__buf_add(context, bytes);
    return pawl__buf_check(context, "the answer", reterr);
}

static json_t *ask(const struct pawl__cli_doctor *doctor, const char *host, const char *target)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(ANSWER_BYTES_MAX);
    AUTO(pawl__http_client_close_p) struct pawl__http_client *client = NULL;
    int64_t deadline_ns = pawl__monotonic_ns(doctor->clock) + ASK_MS * NS_PER_MS;
    char address[HOST_SIZE + 8];
    struct pawl__http_reply reply;
    json_t *json = NULL;
    const struct pawl__http_ask request = { .method = "GET",
                                            .target = target,
                                            .deadline_ns = deadline_ns,
                                            .body_bytes_max = ANSWER_BYTES_MAX,
                                            .sink = gather,
                                            .context = &body };

    /* Addresses are numbers here: a name other than this machine's is left to whoever runs it. */
    (void)snprintf(address,
                   sizeof(address),
                   "%s:%d",
                   strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                   MONITOR_PORT);
    if (pawl__http_client_open(address, doctor->clock, deadline_ns, &client, NULL) != PAWL_OK
        || pawl__http_client_ask(client, &request, &reply, NULL) != PAWL_OK || reply.code != 200
        || pawl__json_parse(pawl__buf_view(&body), body.len, &json, NULL) != PAWL_OK) {
        return NULL;
    }
    return json;
}

static void inspect_streams(struct pawl__cli_doctor *doctor, const char *host)
{
    json_auto_t *jsz = ask(doctor, host, "/jsz?streams=true&config=true");
    const json_t *accounts = json_object_get(jsz, "account_details");
    int64_t retry_ns = pawl__config_number(doctor->config, PAWL__PRODUCER_WAL_RETRY_INTERVAL);

    for (size_t i = 0; i < json_array_size(accounts); i++) {
        const json_t *streams = json_object_get(json_array_get(accounts, i), "stream_detail");
        for (size_t j = 0; j < json_array_size(streams); j++) {
            const json_t *stream = json_array_get(streams, j);
            const json_t *config = json_object_get(stream, "config");
            const char *name = json_string_value(json_object_get(stream, "name"));
            int64_t window_ns = json_integer_value(json_object_get(config, "duplicate_window"));
            if (name != NULL && config != NULL) {
                pawl__cli_doctor_add(doctor,
                                     pawl__cli_judge_duplicate_window(name, window_ns, retry_ns));
            }
        }
    }
}

static void inspect_host(struct pawl__cli_doctor *doctor, const char *host)
{
    json_auto_t *varz = ask(doctor, host, "/varz");
    const json_t *config = json_object_get(json_object_get(varz, "jetstream"), "config");
    const char *version = json_string_value(json_object_get(varz, "version"));

    if (varz == NULL) {
        pawl__cli_doctor_add(doctor,
                             pawl__cli_finding_ok("JetStream",
                                                  "%s: its monitoring port %d does not answer, so "
                                                  "nobody knows how often it syncs",
                                                  host,
                                                  MONITOR_PORT));
        return;
    }
    const struct pawl__cli_jetstream_facts facts = {
        .host = host,
        .version = version == NULL ? "unknown" : version,
        .sync_always = json_is_true(json_object_get(config, "sync_always")),
        .sync_interval_ns = json_integer_value(json_object_get(config, "sync_interval")),
    };
    pawl__cli_doctor_add(doctor, pawl__cli_judge_jetstream(&facts));
    inspect_streams(doctor, host);
}

void pawl__cli_inspect_jetstream(struct pawl__cli_doctor *doctor)
{
    struct hosts hosts = { .count = 0 };

    find_hosts(doctor, &hosts);
    for (size_t i = 0; i < hosts.count; i++) {
        inspect_host(doctor, hosts.items[i]);
    }
}
