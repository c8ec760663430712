#include "torture/lossfs/file.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"

static const char *const cut_names[] = {
    [LOSS_CUT_DROP] = "drop",     [LOSS_CUT_KEEP] = "keep", [LOSS_CUT_RANDOM] = "random",
    [LOSS_CUT_PREFIX] = "prefix", [LOSS_CUT_TORN] = "torn",
};
_Static_assert(COUNT_OF(cut_names) == LOSS_CUT_COUNT, "one name a kind of cut");

const char *loss_cut_name(enum loss_cut cut)
{
    return cut_names[cut];
}

bool loss_cut_parse(const char *name, enum loss_cut *ret_cut)
{
    for (size_t i = 0; i < COUNT_OF(cut_names); i++) {
        if (strcmp(cut_names[i], name) == 0) {
            *ret_cut = (enum loss_cut)i;
            return true;
        }
    }
    return false;
}

/* Test equipment: without memory it cannot go on, and says where. */
static void reserve(struct loss_file *file, size_t len)
{
    if (len <= file->durable_cap) {
        return;
    }
    size_t cap = MAX(len, file->durable_cap * 2);
    char *grown = realloc(file->durable, cap);
    REQUIRE(grown != NULL);
    memset(&grown[file->durable_cap], 0, cap - file->durable_cap);
    file->durable = grown;
    file->durable_cap = cap;
}

static void apply_write(struct loss_file *file, uint64_t offset, const char *data, size_t len)
{
    size_t end = (size_t)offset + len;

    if (len == 0) {
        return;
    }
    reserve(file, end);
    memcpy(&file->durable[offset], data, len);
    file->durable_len = MAX(file->durable_len, end);
}

static void apply_resize(struct loss_file *file, uint64_t len)
{
    reserve(file, (size_t)len);
    if (len < file->durable_len) {
        memset(&file->durable[len], 0, file->durable_len - (size_t)len);
    }
    file->durable_len = (size_t)len;
}

static void apply(struct loss_file *file, const struct loss_change *change, size_t len)
{
    if (change->resize) {
        apply_resize(file, change->offset);
    } else {
        apply_write(file, change->offset, change->data, len);
    }
}

static struct loss_change *append(struct loss_file *file, uint64_t offset, size_t len)
{
    struct loss_change *change = malloc(sizeof(*change) + len);

    REQUIRE(change != NULL);
    *change = (struct loss_change){ .offset = offset, .len = len };
    if (file->newest == NULL) {
        file->oldest = change;
    } else {
        file->newest->next = change;
    }
    file->newest = change;
    return change;
}

void loss_file_write(
    struct loss_file *file, uint64_t offset, const char *data, size_t len, bool synced)
{
    file->live_len = MAX(file->live_len, offset + len);
    if (synced && file->oldest == NULL) {
        apply_write(file, offset, data, len);
        return;
    }
    struct loss_change *change = append(file, offset, len);
    memcpy(change->data, data, len);
    change->synced = synced;
    file->pending += synced ? 0 : 1;
}

void loss_file_resize(struct loss_file *file, uint64_t len)
{
    file->live_len = len;
    append(file, len, 0)->resize = true;
    file->pending++;
}

void loss_file_sync(struct loss_file *file)
{
    for (const struct loss_change *change = file->oldest; change != NULL; change = change->next) {
        apply(file, change, change->len);
    }
    loss_file_forget(file);
}

void loss_file_forget(struct loss_file *file)
{
    while (file->oldest != NULL) {
        struct loss_change *change = file->oldest;
        file->oldest = change->next;
        free(change);
    }
    file->newest = NULL;
    file->pending = 0;
}

/* How many bytes of a write that the cut interrupted reached the disk: whole sectors from its
 * start, never all of it. */
static size_t torn_len(size_t len, struct pawl__prng *random)
{
    size_t sectors = (len + LOSS_SECTOR_BYTES - 1) / LOSS_SECTOR_BYTES;

    return sectors == 0 ? 0 : (size_t)pawl__prng_below(random, sectors) * LOSS_SECTOR_BYTES;
}

size_t loss_file_cut(struct loss_file *file, enum loss_cut cut, struct pawl__prng *random)
{
    size_t kept_first = 0; /* PREFIX and TORN: so many unsynced changes from the oldest on */
    size_t position = 0;
    size_t lost = 0;

    if (cut == LOSS_CUT_PREFIX || cut == LOSS_CUT_TORN) {
        kept_first = (size_t)pawl__prng_below(random, file->pending + 1);
    }
    for (const struct loss_change *change = file->oldest; change != NULL; change = change->next) {
        if (change->synced) {
            apply(file, change, change->len);
            continue;
        }
        bool keep = cut == LOSS_CUT_KEEP || position < kept_first
                    || (cut == LOSS_CUT_RANDOM && pawl__prng_below(random, 2) == 0);
        if (keep) {
            apply(file, change, change->len);
        } else {
            lost++;
            if (cut == LOSS_CUT_TORN && position == kept_first && !change->resize) {
                apply(file, change, torn_len(change->len, random));
            }
        }
        position++;
    }
    loss_file_forget(file);
    file->live_len = file->durable_len;
    return lost;
}

void loss_file_done(struct loss_file *file)
{
    loss_file_forget(file);
    free(file->durable);
    *file = (struct loss_file){ 0 };
}
