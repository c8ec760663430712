/* village: a simulation that can be killed at any moment and goes on where it was.
 *
 *     village runs/village.db                         SQLite, one file
 *     village memory:                                 in this process, gone when it ends
 *     DATABASE_URL=postgres://user@host/db village    PostgreSQL
 *
 * Three rules make it so:
 *
 *   1. What happens is appended to the ledger. Nothing is stored anywhere else.
 *   2. The village is a fold over the ledger: apply() is the only function that changes it.
 *   3. A turn counts as a whole. What a crash left half written is abandoned by the next attempt,
 *      and the fold never sees it.
 *
 * So there is no save file and no code for recovery: start, fold, go on behind the last complete
 * turn. The first start and the one after a crash are the same few lines in main().
 *
 * It uses nothing of pawl but this header. Build it alone with
 *
 *     cc village.c $(pkg-config --cflags --libs pawl) */
#include <pawl/ledger.h>

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VILLAGERS = 4, PLACES = 4, FIRST_COINS = 10, ACTION_EVENTS_MAX = 2, PAYLOAD_SIZE = 64 };

static const char *const names[VILLAGERS] = { "Ada", "Ben", "Cleo", "Dov" };
static const char *const places[PLACES] = { "green", "mill", "market", "well" };

struct villager {
    char at[16];
    int coins;
};

struct village {
    struct villager villagers[VILLAGERS];
    uint64_t covered; /* the fold has seen everything up to this offset */
    uint64_t events;  /* how many of them counted ... */
    uint64_t digest;  /* ... and what they said */
};

struct settings {
    const char *location; /* NULL: DATABASE_URL */
    const char *run;
    int64_t turns;
    long pause_ms; /* between two villagers, so that one can watch */
};

/* One thing that a villager does, as one or two events. They go into the ledger together. */
struct action {
    pawl_event events[ACTION_EVENTS_MAX];
    char payloads[ACTION_EVENTS_MAX][PAYLOAD_SIZE];
    size_t count;
};

/* Every error ends the program, and the next start goes on where this one stopped. That is enough
 * even for a lost connection: whether the last append arrived does not matter, since its turn was
 * not complete. */
static void check(pawl_status status, const char *what, const pawl_error *error)
{
    if (status != PAWL_OK) {
        fprintf(stderr, "village: %s: %s\n", what, error->message);
        exit(pawl_status_exit_code(status));
    }
}

/* --- What happened: from the ledger into memory ----------------------------------------------- */

static uint64_t mix(uint64_t digest, pawl_view bytes)
{
    for (size_t i = 0; i < bytes.len; i++) { /* FNV-1a */
        digest = (digest ^ (unsigned char)bytes.data[i]) * UINT64_C(0x100000001b3);
    }
    return digest;
}

static int villager_named(pawl_view name)
{
    for (int who = 0; who < VILLAGERS; who++) {
        if (strlen(names[who]) == name.len && memcmp(names[who], name.data, name.len) == 0) {
            return who;
        }
    }
    return -1;
}

/* A step of the fold: one event that counts, in the order of the ledger. A payload comes back as it
 * was given, on every backend, so reading what we wrote ourselves needs no JSON parser. */
static pawl_status apply(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct village *village = context;
    int who = villager_named(event->actor);
    char payload[PAYLOAD_SIZE];

    (void)reterr;
    if (who < 0) {
        return PAWL_OK; /* somebody else's event */
    }
    snprintf(payload, sizeof(payload), "%.*s", (int)event->payload.len, event->payload.data);
    const char *at = strstr(payload, "\"at\":");
    const char *coins = strstr(payload, "\"coins\":");
    if (at != NULL) {
        sscanf(at, "\"at\":\"%15[a-z]\"", village->villagers[who].at);
    }
    if (coins != NULL) {
        village->villagers[who].coins += (int)strtol(coins + strlen("\"coins\":"), NULL, 10);
    }
    village->events++;
    village->digest = mix(mix(mix(village->digest, event->actor), event->kind), event->payload);
    return PAWL_OK;
}

/* Brings the village up to date, from wherever it was. */
static void catch_up(pawl_ledger *ledger, const struct settings *settings, struct village *village)
{
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    filter.run_id = pawl_view_of(settings->run);
    options.filter = &filter;
    options.from = village->covered;
    check(pawl_ledger_fold(ledger, &options, apply, village, &village->covered, &error),
          "rebuild the village",
          &error);
}

/* --- What happens next: from memory into the ledger ------------------------------------------- */

/* The dice depend on run, turn, villager and question alone, so every ledger tells the same story.
 * A villager driven by a language model would do something else in a second attempt; that is fine
 * as well, because the first attempt no longer counts. */
static unsigned roll(
    const struct settings *settings, int64_t turn, int who, const char *what, unsigned sides)
{
    char text[256];
    snprintf(text, sizeof(text), "%s/%" PRId64 "/%d/%s", settings->run, turn, who, what);
    uint64_t dice = mix(UINT64_C(0xcbf29ce484222325), pawl_view_of(text));

    return (unsigned)((dice ^ (dice >> 29)) % sides);
}

/* No id: a turn derives one from run, turn, attempt, actor, kind and ordinal. No run_id and no turn
 * either: the turn knows them. */
__attribute__((format(printf, 4, 5))) static void add(
    struct action *action, int who, const char *kind, const char *format, ...)
{
    char *payload = action->payloads[action->count];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(payload, PAYLOAD_SIZE, format, arguments);
    va_end(arguments);
    action->events[action->count++] = (pawl_event){
        .size = sizeof(pawl_event),
        .kind = pawl_view_of(kind),
        .actor = pawl_view_of(names[who]),
        .payload = pawl_view_of(payload),
    };
}

/* Everybody decides on what was true when the turn began. */
static void decide(const struct village *village,
                   const struct settings *settings,
                   int64_t turn,
                   int who,
                   struct action *action)
{
    const struct villager *self = &village->villagers[who];
    int other = (who + 1 + (int)roll(settings, turn, who, "other", VILLAGERS - 1)) % VILLAGERS;
    int coins = 1 + (int)roll(settings, turn, who, "coins", 3);
    const char *place = places[roll(settings, turn, who, "place", PLACES)];

    action->count = 0;
    if (turn == 0) {
        add(action, who, "arrived", "{\"at\":\"%s\",\"coins\":%d}", places[0], FIRST_COINS);
        return;
    }
    switch (roll(settings, turn, who, "action", 4)) {
    case 0:
        add(action, who, "walked", "{\"at\":\"%s\"}", place);
        break;
    case 1:
        add(action, who, "worked", "{\"coins\":%d}", coins);
        break;
    case 2:
        if (self->coins < coins) {
            add(action, who, "rested", "{}");
            break;
        }
        /* Two events or none: the turn keeps them together. */
        add(action, who, "gave", "{\"coins\":%d,\"to\":\"%s\"}", -coins, names[other]);
        add(action, other, "received", "{\"coins\":%d,\"from\":\"%s\"}", coins, names[who]);
        break;
    default:
        add(action, who, "rested", "{}");
        break;
    }
}

static void pause_for(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&time, NULL);
}

/* Begin, append, commit. Killed before the commit, the turn never happened; killed behind it, it
 * did. There is no third case. */
static void play(pawl_ledger *ledger,
                 const struct settings *settings,
                 const struct village *village,
                 int64_t number)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_turn *turn = NULL;
    struct action action;

    check(pawl_turn_begin(ledger, pawl_view_of(settings->run), number, &turn, &error),
          "begin a turn",
          &error);
    if (pawl_turn_attempt(turn) > 1) {
        printf("village: turn %" PRId64 " was half written; this is attempt %" PRIu32 "\n",
               number,
               pawl_turn_attempt(turn));
        fflush(stdout);
    }
    for (int who = 0; who < VILLAGERS; who++) {
        decide(village, settings, number, who, &action);
        check(pawl_turn_append(turn, action.events, action.count, NULL, &error), "append", &error);
        pause_for(settings->pause_ms);
    }
    check(pawl_turn_commit(turn, &error), "commit a turn", &error);
    pawl_turn_free(turn);
}

/* The turn to play: the one behind the last that is complete. */
static int64_t next_turn(pawl_ledger *ledger, const struct settings *settings)
{
    pawl_error error = PAWL_ERROR_INIT;
    int64_t last = 0;
    pawl_status status =
        pawl_ledger_last_complete_turn(ledger, pawl_view_of(settings->run), &last, &error);

    if (status == PAWL_NOT_FOUND) {
        printf("village: a new village\n");
        return 0;
    }
    check(status, "find the last complete turn", &error);
    printf("village: turn %" PRId64 " was the last complete one\n", last);
    return last + 1;
}

static void show(const struct village *village, const struct settings *settings)
{
    int coins = 0;

    printf("village '%s' after turn %" PRId64 "\n", settings->run, settings->turns);
    for (int who = 0; who < VILLAGERS; who++) {
        const struct villager *villager = &village->villagers[who];
        printf("  %-6s at the %-8s with %3d coins\n", names[who], villager->at, villager->coins);
        coins += villager->coins;
    }
    printf("  %d coins, %" PRIu64 " events, digest %016" PRIx64 "\n",
           coins,
           village->events,
           village->digest);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: village [--run NAME] [--turns N] [--pause MS] [LOCATION]\n"
            "LOCATION: memory:, a path, sqlite:PATH or postgres://...; without one DATABASE_URL\n");
    return 2;
}

/* False for what is no whole number from 0 to `max`. */
static bool read_number(const char *text, int64_t max, int64_t *ret_number)
{
    char *end = NULL;
    long long number = strtoll(text, &end, 10);

    if (end == text || *end != '\0' || number < 0 || number > max) {
        return false;
    }
    *ret_number = number;
    return true;
}

static bool read_arguments(int argc, char **argv, struct settings *settings)
{
    static const struct option options[] = { { "run", required_argument, NULL, 'r' },
                                             { "turns", required_argument, NULL, 't' },
                                             { "pause", required_argument, NULL, 'p' },
                                             { NULL, 0, NULL, 0 } };
    bool good = true;
    int64_t pause_ms = 0;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'r') {
            settings->run = optarg;
        } else if (option == 't') {
            good = good && read_number(optarg, INT64_MAX - 1, &settings->turns);
        } else {
            good = good && option == 'p' && read_number(optarg, 60000, &pause_ms);
        }
    }
    settings->pause_ms = (long)pause_ms;
    settings->location = optind < argc ? argv[optind] : NULL;
    return good && optind + 1 >= argc;
}

int main(int argc, char **argv)
{
    struct settings settings = { .location = NULL, .run = "village", .turns = 24 };
    struct village village = { .digest = UINT64_C(0xcbf29ce484222325) };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_ledger *ledger = NULL;

    if (!read_arguments(argc, argv, &settings)) {
        return usage();
    }
    check(pawl_ledger_open(settings.location, NULL, &ledger, &error), "open", &error);
    catch_up(ledger, &settings, &village);
    for (int64_t turn = next_turn(ledger, &settings); turn <= settings.turns; turn++) {
        fflush(stdout);
        play(ledger, &settings, &village, turn);
        catch_up(ledger, &settings, &village);
    }
    show(&village, &settings);
    pawl_ledger_close(ledger, 0, NULL);
    return 0;
}
