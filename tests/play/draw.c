#include "play/play.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/macros.h"

/* --- dice --- */

static uint64_t below(struct play *play, uint64_t bound)
{
    return pawl__prng_below(&play->prng, bound);
}

static bool chance(struct play *play, uint64_t percent)
{
    return below(play, 100) < percent;
}

uint64_t play_hash(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    }
    return hash >> 20;
}

/* --- what was seen --- */

void play_saw_item(struct play *play, const char *id, const char *task)
{
    struct play_known *known = &play->items[play->item_count++ % PLAY_RECENT];

    snprintf(known->id, sizeof(known->id), "%s", id);
    snprintf(known->task, sizeof(known->task), "%s", task);
}

void play_saw_lease(struct play *play, pawl_view name, uint64_t token)
{
    struct play_lease *lease = &play->leases[play->lease_count++ % PLAY_RECENT];

    snprintf(lease->id, sizeof(lease->id), "%.*s", VIEW_ARGS(name));
    lease->token = token;
}

static const struct play_known *some_item(struct play *play)
{
    static const struct play_known none = { .id = "i-never", .task = "t0" };
    uint64_t known = MIN(play->item_count, (uint64_t)PLAY_RECENT);

    return known == 0 || chance(play, 1) ? &none : &play->items[below(play, known)];
}

/* One of the last few, one that never was, or an old one, which may be cancelled. */
static void draw_task(struct play *play, char ret_task[PLAY_NAME])
{
    uint64_t last = play->tasks == 0 ? 0 : play->tasks - 1;
    uint64_t back = below(play, chance(play, 90) ? 4 : 12);

    snprintf(ret_task, PLAY_NAME, "t%" PRIu64, last > back ? last - back : 0);
}

/* --- one for each kind --- */

static void draw_new_task(struct play *play, struct play_command *command)
{
    if (chance(play, 20)) {
        draw_task(play, command->task);
        command->number = chance(play, 30); /* another title: refused */
    } else {
        snprintf(command->task, PLAY_NAME, "t%" PRIu64, play->tasks++);
    }
}

static void draw_any_task(struct play *play, struct play_command *command)
{
    draw_task(play, command->task);
    command->number = (int)below(play, 4);
}

static void draw_after(struct play *play, struct play_command *command, struct play_item *item)
{
    size_t at = (size_t)(item - command->items);

    while (item->after_count < PLAY_AFTER_MAX && chance(play, 60)) {
        bool inside = command->item_count > 1 && chance(play, 60);
        const struct play_known *known = some_item(play);
        if (!inside && strcmp(known->task, command->task) != 0 && chance(play, 95)) {
            return;
        }
        const char *id = inside ? command->items[(at + 1) % command->item_count].id : known->id;
        if (id[0] != 'g' || !inside) { /* what is made has no id to be named by yet */
            snprintf(item->after[item->after_count++], PLAY_NAME, "%s", id);
        }
    }
}

static void draw_submit(struct play *play, struct play_command *command)
{
    bool made = false;

    draw_task(play, command->task);
    command->item_count = 1 + (chance(play, 40) ? below(play, PLAY_ITEMS_MAX) : 0);
    for (size_t i = 0; i < command->item_count; i++) {
        struct play_item *item = &command->items[i];
        if (i == 0 && chance(play, 10)) {
            const struct play_known *known = some_item(play);
            snprintf(item->id, PLAY_NAME, "%s", known->id);
            if (chance(play, 70)) {
                snprintf(command->task, PLAY_NAME, "%s", known->task);
            }
        } else if (!made && chance(play, 10)) {
            made = item->made = true;
            snprintf(item->id, PLAY_NAME, "g%" PRIu64, play->step);
        } else {
            snprintf(item->id, PLAY_NAME, "i%" PRIu64 "-%zu", play->step, i);
        }
        item->delay_ms = chance(play, 85) ? 0 : chance(play, 50) ? 1000 : 60000;
    }
    for (size_t i = 0; i < command->item_count; i++) {
        if (chance(play, 12)) {
            draw_after(play, command, &command->items[i]);
        }
    }
}

static void draw_claim(struct play *play, struct play_command *command)
{
    static const uint32_t leases[] = { 0, 1000, 60000, 600000 };

    snprintf(command->who, PLAY_NAME, "w%" PRIu64, play->step);
    command->types = chance(play, 70) ? 0 : (uint32_t)below(play, 1U << PLAY_TYPES);
    if (chance(play, 10)) {
        draw_task(play, command->task);
    }
    command->count = chance(play, 60) ? 1 : 1 + (uint32_t)below(play, 8);
    command->lease_ms = leases[below(play, COUNT_OF(leases))];
}

static void draw_lease(struct play *play, struct play_command *command)
{
    static const struct play_lease none = { .id = "i-never", .token = 1 };
    uint64_t known = MIN(play->lease_count, (uint64_t)PLAY_RECENT);
    const struct play_lease *lease = &none;

    if (known > 0) {
        uint64_t back = below(play, chance(play, 80) ? MIN(known, UINT64_C(8)) : known);
        lease = &play->leases[(play->lease_count - 1 - back) % PLAY_RECENT];
    }
    snprintf(command->id, PLAY_NAME, "%s", lease->id);
    command->token = lease->token + (chance(play, 3) ? 1 : 0) - (chance(play, 3) ? 1 : 0);
    command->number = (int)below(play, 3);
    command->yes = chance(play, 80);
}

static void draw_leased(struct play *play, struct play_command *command)
{
    enum play_kind kind = command->kind;

    if (play->last.id[0] != '\0' && chance(play, 6)) { /* the same again */
        enum play_cut cut = command->cut;
        *command = play->last;
        command->cut = cut;
        return;
    }
    draw_lease(play, command);
    if (kind == PLAY_COMPLETE_AND_CLAIM) {
        draw_claim(play, command);
        command->count = chance(play, 90) ? 1 : command->count;
    } else {
        command->lease_ms = chance(play, 50) ? 0 : 1000 * (uint32_t)below(play, 1000);
        play->last = *command;
    }
}

static void draw_item(struct play *play, struct play_command *command)
{
    snprintf(command->id, PLAY_NAME, "%s", some_item(play)->id);
}

static void draw_nothing(struct play *play, struct play_command *command)
{
    (void)play;
    (void)command;
}

static void draw_retention(struct play *play, struct play_command *command)
{
    command->number = (int)below(play, 2); /* days */
    command->count = 1 + (uint32_t)below(play, 20);
    command->yes = chance(play, 30);
}

static void draw_checkpoint(struct play *play, struct play_command *command)
{
    draw_lease(play, command);
    draw_task(play, command->task);
    command->yes = chance(play, 40);
    command->types = (uint32_t)below(play, 7);
    if (play->checkpoints > 0 && chance(play, 10)) {
        snprintf(command->key, PLAY_NAME, "c%" PRIu64, below(play, play->checkpoints));
    } else {
        snprintf(command->key, PLAY_NAME, "c%" PRIu64, play->checkpoints++);
    }
}

static void draw_begin(struct play *play, struct play_command *command)
{
    snprintf(command->key, PLAY_NAME, "k%" PRIu64, below(play, PLAY_KEYS));
    snprintf(command->who, PLAY_NAME, "o%" PRIu64, play->step);
    command->number = chance(play, 85) ? 0 : 1;
    command->yes = chance(play, 25);
    command->lease_ms = chance(play, 50) ? 1000 : 0;
    command->count = (uint32_t)below(play, 3); /* which TTL */
    if (chance(play, 20)) {
        draw_task(play, command->task);
    }
}

static void draw_key(struct play *play, struct play_command *command)
{
    uint64_t key = below(play, PLAY_KEYS);

    snprintf(command->key, PLAY_NAME, "k%" PRIu64, key);
    command->token = play->key_tokens[key] - (chance(play, 5) ? 1 : 0);
    command->number = (int)below(play, 3);
}

static void draw_schedule(struct play *play, struct play_command *command)
{
    snprintf(command->id, PLAY_NAME, "s%" PRIu64, below(play, 3));
    command->number = (int)below(play, 3);
    if (chance(play, 60)) {
        draw_task(play, command->task);
    }
}

static void draw_pass(struct play *play, struct play_command *command)
{
    uint64_t span = below(play, 100);

    command->pass_us = span < 50   ? pawl__prng_between(&play->prng, 1, 5000000)
                       : span < 80 ? pawl__prng_between(&play->prng, 1000000, 70000000)
                       : span < 97 ? pawl__prng_between(&play->prng, 60000000, 900000000)
                                   : pawl__prng_between(&play->prng, 1, 40) * 3600 * US_PER_S;
}

/* --- all of them --- */

static const struct {
    const char *name;
    unsigned weight;
    void (*draw)(struct play *play, struct play_command *command);
} kinds[PLAY_KINDS] = {
    [PLAY_TASK] = { "task", 30, draw_new_task },
    [PLAY_SET_STATUS] = { "set status", 3, draw_any_task },
    [PLAY_CANCEL_TASK] = { "cancel task", 6, draw_any_task },
    [PLAY_SUBMIT] = { "submit", 190, draw_submit },
    [PLAY_CLAIM] = { "claim", 170, draw_claim },
    [PLAY_HEARTBEAT] = { "heartbeat", 40, draw_leased },
    [PLAY_COMPLETE] = { "complete", 130, draw_leased },
    [PLAY_COMPLETE_AND_CLAIM] = { "complete and claim", 90, draw_leased },
    [PLAY_FAIL] = { "fail", 60, draw_leased },
    [PLAY_RELEASE] = { "release", 30, draw_leased },
    [PLAY_CANCEL] = { "cancel", 10, draw_item },
    [PLAY_SWEEP] = { "sweep", 30, draw_nothing },
    [PLAY_RETENTION] = { "retention", 16, draw_retention },
    [PLAY_CHECKPOINT] = { "checkpoint", 40, draw_checkpoint },
    [PLAY_BEGIN] = { "begin", 35, draw_begin },
    [PLAY_KEY_COMPLETE] = { "key complete", 15, draw_key },
    [PLAY_KEY_FAIL] = { "key fail", 8, draw_key },
    [PLAY_KEY_RELEASE] = { "key release", 8, draw_key },
    [PLAY_SCHEDULE_PUT] = { "schedule put", 5, draw_schedule },
    [PLAY_SCHEDULE_REMOVE] = { "schedule remove", 2, draw_schedule },
    [PLAY_SCHEDULE_FIRE] = { "schedule fire", 10, draw_nothing },
    [PLAY_PASS] = { "pass", 78, draw_pass },
    [PLAY_REOPEN] = { "reopen", 2, draw_nothing },
};

const char *play_kind_name(enum play_kind kind)
{
    return kinds[kind].name;
}

static enum play_kind draw_kind(struct play *play)
{
    unsigned total = 0;

    for (size_t i = 0; i < PLAY_KINDS; i++) {
        total += kinds[i].weight;
    }
    uint64_t at = below(play, total);
    for (size_t i = 0; i < PLAY_KINDS; i++) {
        if (at < kinds[i].weight) {
            return (enum play_kind)i;
        }
        at -= kinds[i].weight;
    }
    return PLAY_PASS;
}

/* An id that the store makes is made again when a submit is repeated. A status that is set a second time
 * at the very same microsecond, as only a clock that stands still does it, is taken for foreign SQL,
 * whose updated_at is the server's. Both are left whole. */
static bool can_be_cut(const struct play_command *command)
{
    if (command->kind == PLAY_SET_STATUS) {
        return false;
    }
    for (size_t i = 0; i < command->item_count; i++) {
        if (command->items[i].made) {
            return false;
        }
    }
    return command->kind != PLAY_PASS && command->kind != PLAY_REOPEN;
}

void play_draw(struct play *play, struct play_command *ret_command)
{
    struct play_command command = { .kind = play->tasks < 3 ? PLAY_TASK : draw_kind(play) };

    kinds[command.kind].draw(play, &command);
    if (chance(play, 6) && can_be_cut(&command)) {
        command.cut = (enum play_cut)(1 + below(play, PLAY_CUTS - 1));
    }
    *ret_command = command;
}

static void describe_items(const struct play_command *command, struct pawl__buf *text)
{
    for (size_t i = 0; i < command->item_count; i++) {
        const struct play_item *item = &command->items[i];
        pawl__buf_add_format(text, " %s", item->id);
        if (item->delay_ms > 0) {
            pawl__buf_add_format(text, " in %" PRId64 " ms", item->delay_ms);
        }
        for (size_t j = 0; j < item->after_count; j++) {
            pawl__buf_add_format(text, " after %s", item->after[j]);
        }
    }
}

void play_describe(const struct play_command *command, struct pawl__buf *text)
{
    static const char *const cuts[PLAY_CUTS] = { "",
                                                 " CUT idle",
                                                 " CUT exec.before",
                                                 " CUT exec.after",
                                                 " CUT commit.before",
                                                 " CUT commit.after" };

    pawl__buf_add_text(text, kinds[command->kind].name);
    describe_items(command, text);
    pawl__buf_add_format(text,
                         " id=%s task=%s key=%s who=%s token=%" PRIu64
                         " types=%u count=%u lease=%u n=%d %s",
                         command->id,
                         command->task,
                         command->key,
                         command->who,
                         command->token,
                         command->types,
                         command->count,
                         command->lease_ms,
                         command->number,
                         command->yes ? "yes" : "no");
    if (command->pass_us > 0) {
        pawl__buf_add_format(text, " %" PRId64 " us", command->pass_us);
    }
    pawl__buf_add_text(text, cuts[command->cut]);
}
