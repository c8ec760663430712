#include "torture/app/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"

struct app_oracle *app_oracle_new(void)
{
    struct app_oracle *oracle = calloc(1, sizeof(*oracle));

    REQUIRE(oracle != NULL);
    oracle->next = 1;
    return oracle;
}

void app_oracle_free(struct app_oracle *oracle)
{
    for (uint64_t i = 0; i < oracle->room; i++) {
        free(oracle->slots[i].must);
        free(oracle->slots[i].seen);
    }
    free(oracle->slots);
    free(oracle);
}

static void make_room(struct app_oracle *oracle, uint64_t commands)
{
    if (commands < oracle->room) {
        return;
    }
    uint64_t room = commands * 2;
    struct app_slot *slots = realloc(oracle->slots, room * sizeof(*slots));
    REQUIRE(slots != NULL);
    memset(&slots[oracle->room], 0, (room - oracle->room) * sizeof(*slots));
    oracle->slots = slots;
    oracle->room = room;
}

uint64_t app_oracle_ask(struct app_oracle *oracle, uint64_t commands)
{
    uint64_t first = oracle->next;

    oracle->next += commands;
    make_room(oracle, oracle->next);
    return first;
}

static struct app_slot *slot_of(struct app_oracle *oracle, const char *line)
{
    uint64_t command = strtoull(line, NULL, 10);

    return command >= 1 && command < oracle->next ? &oracle->slots[command] : NULL;
}

static char *copy(const char *line)
{
    char *made = strdup(line);

    REQUIRE(made != NULL);
    return made;
}

bool app_oracle_acknowledge(struct app_oracle *oracle, const char *line)
{
    struct app_slot *slot = slot_of(oracle, line);

    if (slot == NULL || slot->gone) {
        return false;
    }
    slot->twice = slot->twice || (slot->must != NULL && strcmp(slot->must, line) != 0);
    free(slot->must);
    slot->must = copy(line);
    return true;
}

void app_oracle_see(struct app_oracle *oracle, const char *line)
{
    make_room(oracle, strtoull(line, NULL, 10) + 1);
    struct app_slot *slot = &oracle->slots[strtoull(line, NULL, 10)];

    slot->twice = slot->twice || slot->seen != NULL;
    free(slot->seen);
    slot->seen = copy(line);
}

static void compare_slot(struct app_slot *slot, bool asked, struct app_finding *found)
{
    bool there = slot->seen != NULL;

    if (slot->must != NULL) {
        found->acknowledged++;
        found->lost += !there || strcmp(slot->must, slot->seen) != 0;
    } else {
        found->invented += there && (slot->gone || !asked);
    }
    found->duplicated += slot->twice;
    free(slot->must);
    slot->must = STEAL(slot->seen);
    slot->gone = slot->must == NULL;
    slot->twice = false;
}

struct app_finding app_oracle_compare(struct app_oracle *oracle)
{
    struct app_finding found = { 0 };

    for (uint64_t i = 0; i < oracle->room; i++) {
        bool asked = i >= 1 && i < oracle->next;
        compare_slot(&oracle->slots[i], asked, &found);
        if (!asked) { /* whoever is asked for it later may write it */
            oracle->slots[i].gone = false;
        }
    }
    return found;
}
