/* orders: an application with a million workspaces.
 *
 *     orders --orders 100000 data/apps/orders
 *
 * Each shop is a workspace. An order is one command: it creates an order (a C-record, which can be
 * listed), two lines (W-records, of which there are too many for that) that refer to it, and takes the
 * shop's next invoice number. Event, records and numbers are one atomic write.
 *
 * Orders have a key. Kill the program and start it again: orders that were done are known already and
 * keep their numbers, the rest is done now, and no shop has a gap in its invoices.
 *
 * Memory does not grow with the number of shops: numbers are cached, and the rest is on disk.
 *
 * Build it alone with
 *
 *     cc orders.c $(pkg-config --cflags --libs pawl) -pthread */
#include <pawl/app.h>

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { THREADS = 64, INVOICE = PAWL_APP_SEQ_OWN_MIN, TRIES_MAX = 1000, SAY_EVERY = 1000 };

struct shops {
    pawl_app *app;
    uint64_t workspaces;
    uint64_t orders;
    atomic_uint_fast64_t next;
    atomic_uint_fast64_t made;
    atomic_uint_fast64_t known;
};

static void check(pawl_status status, const char *what, const pawl_error *error)
{
    if (status != PAWL_OK) {
        fprintf(stderr, "orders: %s: %s\n", what, error->message);
        exit(pawl_status_exit_code(status));
    }
}

/* The same shop for the same order, whenever it is made; any of them. */
static uint64_t shop_of(const struct shops *shops, uint64_t order)
{
    return 1 + (order * UINT64_C(0x9E3779B97F4A7C15) >> 20) % shops->workspaces;
}

/* Busy means that sequences are being rebuilt or written: the same call works a moment later. */
static pawl_app_response *exec(pawl_app *app, const pawl_app_command *command)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app_response *response = NULL;
    pawl_status status = PAWL_BUSY;

    for (int i = 0; status == PAWL_BUSY && i < TRIES_MAX; i++) {
        check(pawl_app_wait(app, 60000, &error), "wait", &error);
        status = pawl_app_exec(app, command, &response, &error);
        if (status == PAWL_BUSY) {
            nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
        }
    }
    check(status, "order", &error);
    return response;
}

static void make_order(struct shops *shops, uint64_t order)
{
    char key[32];
    const pawl_view line = pawl_view_of("{\"order\": {\"$raw\": 1}, \"piece\": \"tea\"}");
    const pawl_app_create creates[] = {
        { sizeof(pawl_app_create),
          PAWL_APP_C_RECORD,
          1,
          0,
          pawl_view_of("order"),
          pawl_view_of("{\"invoice\": {\"$next\": \"invoice\"}}") },
        { sizeof(pawl_app_create), PAWL_APP_W_RECORD, 2, 0, pawl_view_of("line"), line },
        { sizeof(pawl_app_create), PAWL_APP_W_RECORD, 3, 0, pawl_view_of("line"), line },
    };

    snprintf(key, sizeof(key), "order-%" PRIu64, order);
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = shop_of(shops, order),
                                       .kind = pawl_view_of("shop"),
                                       .key = pawl_view_of(key),
                                       .creates = creates,
                                       .create_count = sizeof(creates) / sizeof(creates[0]) };
    pawl_app_response *response = exec(shops->app, &command);
    atomic_fetch_add(response->duplicate ? &shops->known : &shops->made, 1);
    pawl_app_response_free(response);
}

static void *run(void *context)
{
    struct shops *shops = context;
    uint64_t order;

    while ((order = atomic_fetch_add(&shops->next, 1)) <= shops->orders) {
        make_order(shops, order);
        if (order % SAY_EVERY == 0) {
            printf("order %" PRIu64 "\n", order);
        }
    }
    return NULL;
}

static void open_app(struct shops *shops, const char *place)
{
    static const pawl_app_sequence invoices = { sizeof(pawl_app_sequence), "invoice", INVOICE, 1 };
    static const pawl_app_kind shop = { sizeof(pawl_app_kind), "shop", 1, &invoices, 1 };
    pawl_app_descriptor descriptor = PAWL_APP_DESCRIPTOR_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    descriptor.name = "orders";
    descriptor.id = 1;
    descriptor.partitions = 2;
    descriptor.kinds = &shop;
    descriptor.kind_count = 1;
    /* An application lives under its own name: PLACE/orders. */
    bool in_memory = strcmp(place, "memory:") == 0;
    char *location = NULL;
    if (!in_memory) {
        check(pawl_app_locate(place, descriptor.name, &location, &error), "locate", &error);
    }
    check(pawl_app_open(in_memory ? place : location, &descriptor, NULL, &shops->app, &error),
          "open",
          &error);
    free(location);
}

static void report(const struct shops *shops, double seconds)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app_certificate proof = PAWL_APP_CERTIFICATE_INIT;
    struct rusage usage;
    uint64_t shop = shop_of(shops, 1);

    getrusage(RUSAGE_SELF, &usage);
    printf("%" PRIuFAST64 " orders made, %" PRIuFAST64 " known already, %.0f a second, %ld MiB\n",
           atomic_load(&shops->made),
           atomic_load(&shops->known),
           (double)shops->orders / seconds,
           usage.ru_maxrss / 1024);
    check(pawl_app_verify_sequence(shops->app, shop, INVOICE, NULL, NULL, NULL, &proof, &error),
          "invoices",
          &error);
    printf("shop %" PRIu64 ": invoices %" PRIu64 " to %" PRIu64 ", each once\n",
           shop,
           proof.initial,
           proof.last);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        { "orders", required_argument, NULL, 'o' },
        { "workspaces", required_argument, NULL, 'w' },
        { NULL, 0, NULL, 0 },
    };
    struct shops shops = { .workspaces = 1000000, .orders = 10000, .next = 1 };
    pthread_t threads[THREADS];
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        uint64_t number = optarg == NULL ? 0 : strtoull(optarg, NULL, 10);
        if (option == 'o' && number > 0) {
            shops.orders = number;
        } else if (option == 'w' && number > 0) {
            shops.workspaces = number;
        } else {
            optind = argc;
        }
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "usage: orders [--orders N] [--workspaces N] DIRECTORY|memory:\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_app(&shops, argv[optind]);
    double start = now();
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, run, &shops) != 0) {
            fprintf(stderr, "orders: no thread\n");
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    report(&shops, now() - start);
    pawl_app_close(shops.app, 0, NULL);
    return 0;
}
