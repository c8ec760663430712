/* Delivery from JetStream into DuckDB, beside loops that promise less, on the same server and the same messages:
 *
 *   bare          fetch(1000) and acknowledge each; the messages go nowhere
 *   one by one    insert a row, commit, acknowledge
 *   no WAL        fetch(1000), append, commit, acknowledge each: a crash doubles or loses events
 *   ours          the whole pipeline: index, write-ahead log, acknowledgement, transaction, checkpoint
 *
 * The bare loop speaks to cnats itself. Rounds alternate and the median counts. Then: a pipeline that was killed
 * with a million events in its log, lines of a file, and events through the outbox.
 *
 *   PAWL_BENCH_DELIVERY_EVENTS   messages of a round, 1,000,000. 20,000 takes a few seconds
 *   PAWL_BENCH_DELIVERY_TIMES    after that ours runs on for so many times as many; 1. 10 shows whether it slows down
 *   PAWL_BENCH_DELIVERY_PARTS    some of "stream recovery file publish"; all of them
 */
#include "bench.h"
#include "must.h"

#include <inttypes.h>
#include <nats/nats.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pawl/delivery.h>
#include <pawl/publisher.h>

#include "base/core/macros.h"
#include "delivery/duckdb/sink.h"
#include "delivery/pipeline/pipeline.h"
#include "delivery/rocksdb/wal.h"
#include "delivery/sources/jetstream.h"
#include "lib/nats_server.h"
#include "lib/tempdir.h"
#include "net/nats/nats.h"
#include "net/nats/publish.h"
#include "net/nats/stream.h"
#include "store/duckdb/duckdb.h"

enum {
    RUNS = 3,
    FETCH = 1000,
    PAYLOAD_BYTES = 300,
    SINGLES = 20000,
    SUBJECTS = 64,
    PUBLISH_BATCH = 1000,
    WAIT_MS = 60000,
    NAME_SIZE = 64,
    PATH_SIZE = TEMPDIR_SIZE + 64,
};

static struct nats_server *server;
static char dir[TEMPDIR_SIZE];
static size_t events = 1000000;

static const char *path_of(const char *name)
{
    static char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static size_t number_from(const char *variable, size_t fallback)
{
    const char *text = getenv(variable);
    unsigned long long value = text == NULL ? 0 : strtoull(text, NULL, 10);

    return value > 0 ? (size_t)value : fallback;
}

static bool is_wanted(const char *part)
{
    const char *parts = getenv("PAWL_BENCH_DELIVERY_PARTS");

    return parts == NULL || strstr(parts, part) != NULL;
}

static void native_must(natsStatus status, const char *what)
{
    if (status != NATS_OK) {
        fprintf(stderr, "bench: %s: %s\n", what, natsStatus_GetText(status));
        exit(1);
    }
}

/* --- the stream --- */

static size_t write_payload(char text[PAYLOAD_BYTES + 1], size_t number)
{
    int len = snprintf(
        text,
        PAYLOAD_BYTES + 1,
        "{\"order\":%zu,\"session_key\":\"s-%zu\",\"correlation_key\":\"c-%zu\",\"euro\":%zu.%02zu,"
        "\"at\":\"2026-02-03T10:%02zu:%02zuZ\",\"note\":\"",
        number,
        number % 9973,
        number % 773,
        number % 500,
        number % 100,
        number / 60 % 60,
        number % 60);

    for (size_t at = (size_t)len; at < PAYLOAD_BYTES - 2; at++) {
        text[at] = (char)('a' + (number * 31 + at * 7) % 26);
    }
    memcpy(&text[PAYLOAD_BYTES - 2], "\"}", 3);
    return PAYLOAD_BYTES;
}

static void collect_answers(struct pawl__nats_publisher *publisher, size_t *stored)
{
    static struct pawl__nats_published answers[1024];
    size_t count = 0;

    MUST(pawl__nats_publisher_collect(
        publisher, WAIT_MS, NULL, answers, COUNT_OF(answers), &count, err));
    for (size_t i = 0; i < count; i++) {
        if (answers[i].fate != PAWL__NATS_STORED) {
            fprintf(stderr, "bench: publish: %s\n", answers[i].why);
            exit(1);
        }
    }
    *stored += count;
}

/* Messages number from to to - 1, without waiting for each answer. Returns the seconds. */
static double fill_stream(const char *subject, size_t from, size_t to)
{
    struct pawl__nats *nats = NULL;
    struct pawl__nats_publisher *publisher = NULL;
    char payload[PAYLOAD_BYTES + 1];
    char id[NAME_SIZE];
    size_t stored = 0;
    double start_s = bench_now_s();

    MUST(pawl__nats_open(nats_server_url(server), NULL, &nats, err));
    MUST(pawl__nats_publisher_open(nats, 8000, &publisher, err));
    for (size_t i = from; i < to; i++) {
        snprintf(id, sizeof(id), "%s-%zu", subject, i);
        size_t payload_len = write_payload(payload, i);
        const struct pawl__nats_outgoing message = {
            .subject = subject,
            .payload = { payload, payload_len },
            .id = pawl_view_of(id),
        };
        while (i - from - stored >= 8000) {
            collect_answers(publisher, &stored);
        }
        MUST(pawl__nats_publisher_send(publisher, &message, i, err));
    }
    while (stored < to - from) {
        collect_answers(publisher, &stored);
    }
    pawl__nats_publisher_close(publisher);
    pawl__nats_close(nats);
    return bench_now_s() - start_s;
}

static void make_stream(const char *stream, const char *subject)
{
    struct pawl__nats *nats = NULL;
    const char *const subjects[] = { subject };
    const struct pawl__nats_stream_options options = { .subjects = subjects, .subject_count = 1 };

    MUST(pawl__nats_open(nats_server_url(server), NULL, &nats, err));
    MUST(pawl__nats_stream_create(nats, stream, &options, NULL, err));
    pawl__nats_close(nats);
}

/* --- loops to compare with --- */

struct loop {
    natsConnection *conn;
    jsCtx *js;
    natsSubscription *sub;
    struct pawl__duck *db;
    struct pawl__duck_conn *duck;
};

static void loop_open(struct loop *loop, const char *consumer, const char *file)
{
    jsConsumerConfig config;
    jsSubOptions options;

    *loop = (struct loop){ .conn = NULL };
    native_must(natsConnection_ConnectTo(&loop->conn, nats_server_url(server)), "connect");
    native_must(natsConnection_JetStream(&loop->js, loop->conn, NULL), "JetStream");
    jsConsumerConfig_Init(&config);
    config.Durable = consumer;
    config.AckPolicy = js_AckExplicit;
    config.MaxAckPending = 20000;
    native_must(js_AddConsumer(NULL, loop->js, "BENCH", &config, NULL, NULL), "add a consumer");
    jsSubOptions_Init(&options);
    options.Stream = "BENCH";
    options.Consumer = consumer;
    native_must(js_PullSubscribe(&loop->sub, loop->js, "bench", consumer, NULL, &options, NULL),
                "subscribe");
    if (file != NULL) {
        const struct pawl__duck_options duck = { .threads = 1 };
        MUST(pawl__duck_open(path_of(file), &duck, &loop->db, err));
        MUST(pawl__duck_connect(loop->db, &loop->duck, err));
        MUST(pawl__duck_script(
            loop->duck,
            "CREATE TABLE events (event_id VARCHAR, payload JSON, received_at TIMESTAMP)",
            err));
    }
}

static void loop_close(struct loop *loop)
{
    natsSubscription_Destroy(loop->sub);
    jsCtx_Destroy(loop->js);
    natsConnection_Destroy(loop->conn);
    pawl__duck_disconnect(loop->duck);
    pawl__duck_close(loop->db);
}

static pawl_view payload_of(natsMsg *msg)
{
    return (pawl_view){ natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg) };
}

static pawl_view id_of(natsMsg *msg)
{
    const char *id = "";

    (void)!natsMsgHeader_Get(msg, "Nats-Msg-Id", &id);
    return pawl_view_of(id);
}

static void append_batch(struct loop *loop, natsMsgList *list)
{
    struct pawl__duck_appender *appender = NULL;

    MUST(pawl__duck_begin(loop->duck, PAWL__DUCK_WRITE, err));
    MUST(pawl__duck_appender_open(loop->duck, "events", &appender, err));
    for (int i = 0; i < list->Count; i++) {
        pawl__duck_append_text(appender, id_of(list->Msgs[i]));
        pawl__duck_append_text(appender, payload_of(list->Msgs[i]));
        pawl__duck_append_time(appender, 1770000000000000);
        MUST(pawl__duck_append_row_end(appender, err));
    }
    MUST(pawl__duck_appender_finish(appender, err));
    pawl__duck_appender_free(appender);
    MUST(pawl__duck_commit(loop->duck, err));
}

static void insert_one(struct loop *loop, natsMsg *msg)
{
    MUST(pawl__duck_run(loop->duck,
                        0,
                        DUCK_ARGS(pawl__duck_text(id_of(msg)),
                                  pawl__duck_text(payload_of(msg)),
                                  pawl__duck_time(1770000000000000)),
                        NULL,
                        err));
}

enum kind { BARE, SINGLE, NO_WAL };

static void ack_batch(struct loop *loop, natsMsgList *list, enum kind kind)
{
    for (int i = 0; i < list->Count; i++) {
        if (kind == SINGLE) {
            insert_one(loop, list->Msgs[i]);
        }
        native_must(natsMsg_Ack(list->Msgs[i], NULL), "acknowledge");
    }
}

static double run_loop(enum kind kind, int run, size_t count)
{
    static const char *const names[] = { "bare", "single", "nowal" };
    static const char *const inserts[] = { "INSERT INTO events VALUES (?, ?, ?)" };
    struct loop loop;
    char consumer[NAME_SIZE];
    char file[NAME_SIZE];
    size_t done = 0;

    snprintf(consumer, sizeof(consumer), "%s-%d", names[kind], run);
    snprintf(file, sizeof(file), "%s-%d.duckdb", names[kind], run);
    loop_open(&loop, consumer, kind == BARE ? NULL : file);
    if (kind == SINGLE) {
        MUST(pawl__duck_prepare(loop.duck, inserts, 1, err));
    }
    double start_s = bench_now_s();
    while (done < count) {
        natsMsgList list;
        native_must(natsSubscription_Fetch(
                        &list, loop.sub, (int)MIN(count - done, (size_t)FETCH), WAIT_MS, NULL),
                    "fetch");
        if (kind == NO_WAL) {
            append_batch(&loop, &list);
        }
        ack_batch(&loop, &list, kind);
        done += (size_t)list.Count;
        natsMsgList_Destroy(&list);
    }
    native_must(natsConnection_Flush(loop.conn), "flush");
    double seconds = bench_now_s() - start_s;
    native_must(js_DeleteConsumer(loop.js, "BENCH", consumer, NULL, NULL), "delete a consumer");
    loop_close(&loop);
    tempdir_remove(path_of(file));
    return (double)count / seconds;
}

/* --- ours --- */

static double resident_mb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    double kb = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = strtod(&line[6], NULL);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kb / 1024;
}

static bool remember_status(void *context, const pawl_pipeline_status *status)
{
    pawl_pipeline_status *kept = context;

    *kept = *status;
    return true;
}

static uint64_t delivered(pawl_delivery *delivery)
{
    pawl_pipeline_status status = { .size = sizeof(status) };

    MUST(pawl_pipeline_get(delivery, "bench", remember_status, &status, err));
    return status.delivered;
}

static pawl_delivery *open_pipeline(const char *name, const char *from)
{
    pawl_delivery *delivery = NULL;
    char declaration[512];

    snprintf(declaration,
             sizeof(declaration),
             "{\"name\":\"bench\",\"from\":\"%s\",\"source\":\"bench\"%s}",
             from,
             strncmp(from, "nats", 4) == 0 ? ",\"stream\":\"BENCH\",\"subject\":\"bench\"" : "");
    MUST(pawl_delivery_open(path_of(name), NULL, &delivery, err));
    MUST(pawl_pipeline_add(delivery, pawl_view_of(declaration), err));
    MUST(pawl_pipeline_start(delivery, "bench", err));
    return delivery;
}

/* A pipeline that finds its consumer and none of its stores takes it for a rebuild, and asks its table about every
 * event. */
static void forget_consumer(void)
{
    struct pawl__nats *nats = NULL;

    MUST(pawl__nats_open(nats_server_url(server), NULL, &nats, err));
    MUST(pawl__nats_consumer_delete(nats, "BENCH", "pawl-bench", err));
    pawl__nats_close(nats);
}

/* Of the whole process: what a busy machine cannot distort. */
static double cpu_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double run_ours(const char *name, const char *from, size_t count)
{
    double start_s = bench_now_s();
    double start_cpu_s = cpu_now_s();
    pawl_delivery *delivery = open_pipeline(name, from);

    MUST(pawl_pipeline_drain(delivery, "bench", 0, NULL, err));
    double seconds = bench_now_s() - start_s;
    if (delivered(delivery) != count) {
        fprintf(stderr, "bench: %" PRIu64 " of %zu delivered\n", delivered(delivery), count);
        exit(1);
    }
    MUST(pawl_delivery_close(delivery, WAIT_MS, err));
    fprintf(stderr,
            "ours: %.1f us of CPU per event\n",
            1e6 * (cpu_now_s() - start_cpu_s) / (double)count);
    forget_consumer();
    tempdir_remove(path_of(name));
    return (double)count / seconds;
}

/* Ours again and on: each time as many messages as before, in the same directory, while it runs. */
static void run_long(double first, size_t times)
{
    pawl_delivery *delivery = open_pipeline("long", nats_server_url(server));
    double last = first;
    double early_mb = 0;

    MUST(pawl_pipeline_drain(delivery, "bench", 0, NULL, err));
    early_mb = resident_mb();
    for (size_t i = 1; i < times; i++) {
        fill_stream("bench", i * events, (i + 1) * events);
        /* The stream is filled while it is read; what counts is a round that finds it full. */
        MUST(pawl_pipeline_drain(delivery, "bench", 0, NULL, err));
    }
    double late_mb = resident_mb();
    MUST(pawl_pipeline_pause(delivery, "bench", err));
    fill_stream("bench", times * events, (times + 1) * events);
    double start_s = bench_now_s();
    MUST(pawl_pipeline_resume(delivery, "bench", err));
    MUST(pawl_pipeline_start(delivery, "bench", err));
    MUST(pawl_pipeline_drain(delivery, "bench", 0, NULL, err));
    last = (double)events / (bench_now_s() - start_s);
    bench_report("delivery/the last of many", "events/s", last, "the first", first, 0.8);
    bench_report("delivery/memory after many", "MiB", early_mb, "after the first", late_mb, 0);
    MUST(pawl_delivery_close(delivery, WAIT_MS, err));
    tempdir_remove(path_of("long"));
}

static void bench_stream(void)
{
    double bare[RUNS];
    double no_wal[RUNS];
    double ours[RUNS];
    size_t times = number_from("PAWL_BENCH_DELIVERY_TIMES", 1);

    for (int run = 0; run < RUNS; run++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof(name), "ours-%d", run);
        bare[run] = run_loop(BARE, run, events);
        ours[run] = run_ours(name, nats_server_url(server), events);
        no_wal[run] = run_loop(NO_WAL, run, events);
        fprintf(stderr,
                "round %d: bare %.0f, ours %.0f, no WAL %.0f events/s, %.0f MiB\n",
                run + 1,
                bare[run],
                ours[run],
                no_wal[run],
                resident_mb());
    }
    double single = run_loop(SINGLE, 0, MIN(events, (size_t)SINGLES));
    double median = bench_median(ours, RUNS);
    bench_report("delivery/stream",
                 "events/s",
                 median,
                 "bare fetch and ack",
                 bench_median(bare, RUNS),
                 0.45);
    bench_report("delivery/stream", "events/s", median, "insert and ack one by one", single, 20);
    bench_report("delivery/stream",
                 "events/s",
                 median,
                 "batches without a WAL",
                 bench_median(no_wal, RUNS),
                 0);
    if (times > 1) {
        run_long(median, times);
    }
}

/* --- recovery --- */

struct parts {
    struct delivery_source *source;
    struct delivery_wal *wal;
    struct delivery_duckdb_file *file;
    struct delivery_sink *sink;
    struct delivery_pipeline pipeline;
};

static void parts_open(struct parts *parts)
{
    const struct delivery_jetstream_options source = { .url = nats_server_url(server),
                                                       .stream = "BENCH",
                                                       .consumer = "recovery" };
    char file[PATH_SIZE];
    struct delivery_settings settings = pawl__delivery_settings_default();

    snprintf(file, sizeof(file), "%s", path_of("recovery.duckdb"));
    const struct delivery_duckdb_options options = { .path = file, .duck = { .threads = 1 } };
    settings.identity = (struct delivery_identity_rule){ .source = pawl_view_of("bench"),
                                                         .stream = pawl_view_of("BENCH") };
    MUST(pawl__delivery_jetstream_open(&source, &parts->source, err));
    MUST(pawl__delivery_rocksdb_wal_open(path_of("recovery"), NULL, &parts->wal, err));
    MUST(pawl__delivery_duckdb_open(&options, &parts->file, NULL, err));
    MUST(pawl__delivery_duckdb_sink(parts->file, "bench", NULL, &parts->sink, err));
    const struct delivery_parts given = { .source = parts->source,
                                          .wal = parts->wal,
                                          .sink = parts->sink,
                                          .clock = pawl__clock_or_real(NULL),
                                          .random = pawl__random_real() };
    MUST(pawl__delivery_pipeline_open(&parts->pipeline, &settings, &given, err));
}

static void parts_close(struct parts *parts)
{
    pawl__delivery_pipeline_close(&parts->pipeline);
    parts->source->ops->close(parts->source);
    parts->wal->ops->close(parts->wal);
    parts->sink->ops->close(parts->sink);
    pawl__delivery_duckdb_close(parts->file);
}

/* The log has all of them, the table none: what a kill in the longest outage of the table leaves. */
static void bench_recovery(void)
{
    static struct parts parts;
    size_t taken = 0;
    size_t moved = 0;

    parts_open(&parts);
    while (taken < events) {
        MUST(pawl__delivery_intake(&parts.pipeline, &moved, err));
        taken += moved;
    }
    parts_close(&parts);
    double start_s = bench_now_s();
    parts_open(&parts);
    do {
        MUST(pawl__delivery_apply(&parts.pipeline, &moved, err));
    } while (moved > 0);
    double seconds = bench_now_s() - start_s;
    if (parts.pipeline.cursor.counters.delivered != events) {
        fprintf(stderr, "bench: recovered %" PRIu64 "\n", parts.pipeline.cursor.counters.delivered);
        exit(1);
    }
    parts_close(&parts);
    double wanted_s = 60.0 * (double)events / 1e6;
    bench_report("delivery/recovery of what was pending",
                 "events/s",
                 (double)events / seconds,
                 "60 s for a million",
                 (double)events / wanted_s,
                 1);
    tempdir_remove(path_of("recovery"));
    tempdir_remove(path_of("recovery.duckdb"));
}

/* --- a file --- */

static void bench_file(double baseline)
{
    char payload[PAYLOAD_BYTES + 1];
    char from[PATH_SIZE + 8];
    FILE *file = fopen(path_of("events.jsonl"), "w");

    for (size_t i = 0; file != NULL && i < events; i++) {
        write_payload(payload, i);
        fprintf(file, "%s\n", payload);
    }
    if (file == NULL || fclose(file) != 0) {
        perror("bench: write the file");
        exit(1);
    }
    snprintf(from, sizeof(from), "file:%s", path_of("events.jsonl"));
    double ours = run_ours("lines", from, events);
    bench_report("delivery/lines of a file", "events/s", ours, "bare fetch and ack", baseline, 0);
}

/* --- the outbox --- */

static void publish_batch(pawl_publisher *publisher, size_t first, size_t count, size_t subjects)
{
    static char payloads[PUBLISH_BATCH][PAYLOAD_BYTES + 1];
    static char ids[PUBLISH_BATCH][NAME_SIZE];
    static char names[PUBLISH_BATCH][NAME_SIZE];
    static pawl_outgoing batch[PUBLISH_BATCH];

    for (size_t i = 0; i < count; i++) {
        batch[i] = (pawl_outgoing)PAWL_OUTGOING_INIT;
        snprintf(ids[i], sizeof(ids[i]), "e-%zu", first + i);
        snprintf(names[i], sizeof(names[i]), "outbox%zu.%zu", subjects, (first + i) % subjects);
        batch[i].subject = pawl_view_of(names[i]);
        batch[i].event_id = pawl_view_of(ids[i]);
        batch[i].payload = (pawl_view){ payloads[i], write_payload(payloads[i], first + i) };
    }
    MUST(pawl_publisher_publish(publisher, batch, count, NULL, err));
}

static double run_publisher(size_t subjects, size_t count)
{
    pawl_publisher_options options = PAWL_PUBLISHER_OPTIONS_INIT;
    pawl_publisher *publisher = NULL;
    char name[NAME_SIZE];

    snprintf(name, sizeof(name), "outbox%zu", subjects);
    options.servers = nats_server_url(server);
    options.source = "bench";
    MUST(pawl_publisher_open(path_of(name), &options, &publisher, err));
    double start_s = bench_now_s();
    for (size_t at = 0; at < count; at += PUBLISH_BATCH) {
        publish_batch(publisher, at, MIN(count - at, (size_t)PUBLISH_BATCH), subjects);
    }
    MUST(pawl_publisher_flush(publisher, 20 * WAIT_MS, err));
    double seconds = bench_now_s() - start_s;
    MUST(pawl_publisher_close(publisher, WAIT_MS, err));
    tempdir_remove(path_of(name));
    return (double)count / seconds;
}

static void bench_publish(void)
{
    size_t count = MAX(events / 10, (size_t)PUBLISH_BATCH);
    double bare = 0;

    make_stream("BARE", "bare");
    make_stream("OUTBOX1", "outbox1.*");
    make_stream("OUTBOX64", "outbox64.*");
    bare = (double)count / fill_stream("bare", 0, count);
    bench_report("delivery/publish, 1 subject",
                 "events/s",
                 run_publisher(1, count),
                 "publish without an outbox",
                 bare,
                 0);
    bench_report("delivery/publish, 64 subjects",
                 "events/s",
                 run_publisher(SUBJECTS, count),
                 "publish without an outbox",
                 bare,
                 0);
}

int main(void)
{
    pawl_error error = PAWL_ERROR_INIT;

    events = number_from("PAWL_BENCH_DELIVERY_EVENTS", events);
    if (nats_server_start(&(struct nats_server_options){ 0 }, &server, &error)
        == PAWL_UNSUPPORTED) {
        fprintf(stderr, "bench: no nats-server is installed\n");
        return 1;
    }
    MUST(tempdir_make(dir, "pawl-bench", err));
    if (is_wanted("publish")) {
        bench_publish();
    }
    make_stream("BENCH", "bench");
    fill_stream("bench", 0, events);
    if (is_wanted("stream")) {
        bench_stream();
    }
    if (is_wanted("recovery")) {
        bench_recovery();
    }
    if (is_wanted("file")) {
        bench_file(run_loop(BARE, RUNS, events));
    }
    nats_server_free(server);
    tempdir_remove(dir);
    return 0;
}
