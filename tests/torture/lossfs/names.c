#include "torture/lossfs/names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/macros.h"

static void *must(void *memory)
{
    REQUIRE(memory != NULL);
    return memory;
}

static char *copy_of(const char *text)
{
    return must(strdup(text));
}

struct loss_node *loss_node_ref(struct loss_node *node)
{
    node->refs++;
    return node;
}

static void drop_entries(struct loss_names *names, struct loss_entry **entries)
{
    while (*entries != NULL) {
        struct loss_entry *entry = *entries;
        *entries = entry->next;
        loss_names_unref(names, entry->node);
        free(entry);
    }
}

void loss_names_unref(struct loss_names *names, struct loss_node *node)
{
    if (node == NULL) {
        return;
    }
    REQUIRE(node->refs > 0);
    if (--node->refs > 0) {
        return;
    }
    drop_entries(names, &node->live);
    drop_entries(names, &node->durable);
    loss_file_done(&node->file);
    free(node->target);
    free(node);
}

static struct loss_node *node_new(mode_t mode)
{
    struct loss_node *node = must(calloc(1, sizeof(*node)));

    node->refs = 1;
    node->mode = mode;
    return node;
}

static struct loss_entry **entry_at(struct loss_entry **entries, const char *name, size_t len)
{
    while (*entries != NULL
           && (strncmp((*entries)->name, name, len) != 0 || (*entries)->name[len] != '\0')) {
        entries = &(*entries)->next;
    }
    return entries;
}

static void entry_remove(struct loss_names *names, struct loss_entry **entries, const char *name)
{
    struct loss_entry **at = entry_at(entries, name, strlen(name));
    struct loss_entry *entry = *at;

    if (entry != NULL) {
        *at = entry->next;
        loss_names_unref(names, entry->node);
        free(entry);
    }
}

static void entry_put(struct loss_names *names,
                      struct loss_entry **entries,
                      const char *name,
                      struct loss_node *node)
{
    loss_node_ref(node); /* first: the entry that is replaced may be its last owner */
    entry_remove(names, entries, name);
    struct loss_entry *entry = must(malloc(sizeof(*entry) + strlen(name) + 1));
    entry->next = *entries;
    entry->node = node;
    memcpy(entry->name, name, strlen(name) + 1);
    *entries = entry;
}

/* Live entries count towards the quota; a file without a name no longer does, open or not. */
static void live_remove(struct loss_names *names, struct loss_node *directory, const char *name)
{
    struct loss_entry *entry = *entry_at(&directory->live, name, strlen(name));

    if (entry != NULL && --entry->node->live_links == 0) {
        names->live_bytes -= entry->node->file.live_len;
    }
    entry_remove(names, &directory->live, name);
}

static void live_put(struct loss_names *names,
                     struct loss_node *directory,
                     const char *name,
                     struct loss_node *node)
{
    if (node->live_links++ == 0) {
        names->live_bytes += node->file.live_len;
    }
    loss_node_ref(node); /* the entry that is replaced may be its last owner */
    live_remove(names, directory, name);
    entry_put(names, &directory->live, name, node);
    loss_names_unref(names, node);
}

/* The live node that the first `len` bytes of `path` name. */
static struct loss_node *find(const struct loss_names *names, const char *path, size_t len)
{
    struct loss_node *node = names->root;

    for (size_t at = 0; node != NULL && at < len;) {
        size_t part = strcspn(&path[at], "/");
        part = MIN(part, len - at);
        if (part > 0) {
            struct loss_entry *entry = *entry_at(&node->live, &path[at], part);
            node = entry == NULL ? NULL : entry->node;
        }
        at += part + 1;
    }
    return node;
}

struct loss_node *loss_names_find(const struct loss_names *names, const char *path)
{
    return find(names, path, strlen(path));
}

static struct loss_node *parent_of(const struct loss_names *names,
                                   const char *path,
                                   const char **ret_name)
{
    const char *slash = strrchr(path, '/');

    REQUIRE(slash != NULL);
    struct loss_node *parent = find(names, path, (size_t)(slash - path));
    REQUIRE(parent != NULL);
    *ret_name = slash + 1;
    return parent;
}

static void step_free(struct loss_names *names, struct loss_step *step)
{
    loss_names_unref(names, step->from);
    loss_names_unref(names, step->to);
    loss_names_unref(names, step->node);
    free(step->from_name);
    free(step->to_name);
    free(step);
}

static void step_forget(struct loss_names *names, struct loss_step *step)
{
    *(step->previous == NULL ? &names->oldest : &step->previous->next) = step->next;
    *(step->next == NULL ? &names->newest : &step->next->previous) = step->previous;
    names->pending--;
    step_free(names, step);
}

static void step_apply(struct loss_names *names, struct loss_step *step)
{
    if (step->from != NULL) {
        entry_remove(names, &step->from->durable, step->from_name);
    }
    if (step->to != NULL) {
        entry_put(names, &step->to->durable, step->to_name, step->node);
    }
    step_forget(names, step);
}

static struct loss_step *step_new(struct loss_names *names)
{
    struct loss_step *step = must(calloc(1, sizeof(*step)));

    step->previous = names->newest;
    *(names->newest == NULL ? &names->oldest : &names->newest->next) = step;
    names->newest = step;
    names->pending++;
    return step;
}

static void step_take(struct loss_step *step, struct loss_node *directory, const char *name)
{
    step->from = loss_node_ref(directory);
    step->from_name = copy_of(name);
}

static void step_give(struct loss_step *step,
                      struct loss_node *directory,
                      const char *name,
                      struct loss_node *node)
{
    step->to = loss_node_ref(directory);
    step->to_name = copy_of(name);
    step->node = loss_node_ref(node);
}

void loss_names_init(struct loss_names *names, enum loss_metadata metadata)
{
    *names = (struct loss_names){ .metadata = metadata, .root = node_new(S_IFDIR | 0755) };
}

void loss_names_done(struct loss_names *names)
{
    while (names->oldest != NULL) {
        step_forget(names, names->oldest);
    }
    loss_names_unref(names, names->root);
    names->root = NULL;
}

void loss_names_link(struct loss_names *names, const char *path, struct loss_node *node)
{
    const char *name = NULL;
    struct loss_node *parent = parent_of(names, path, &name);

    step_give(step_new(names), parent, name, node);
    live_put(names, parent, name, node);
}

struct loss_node *loss_names_create(struct loss_names *names, const char *path, mode_t mode)
{
    struct loss_node *node = node_new(mode);

    loss_names_link(names, path, node);
    loss_names_unref(names, node); /* its name and the journal hold it */
    return node;
}

void loss_names_unlink(struct loss_names *names, const char *path)
{
    const char *name = NULL;
    struct loss_node *parent = parent_of(names, path, &name);

    step_take(step_new(names), parent, name);
    live_remove(names, parent, name);
}

/* Replacing an open file comes as two operations, hide and rename, but is one to a disk: it has the
 * old file or the new one. So a hide that comes last is undone: by the rename that belongs to it,
 * or by a cut before that. */
static void unhide(struct loss_names *names)
{
    if (names->newest != NULL && names->newest->hides) {
        step_forget(names, names->newest);
    }
}

void loss_names_hide(struct loss_names *names, const char *from, const char *to)
{
    const char *from_name = NULL;
    const char *to_name = NULL;
    struct loss_node *from_parent = parent_of(names, from, &from_name);
    struct loss_node *to_parent = parent_of(names, to, &to_name);
    struct loss_entry *entry = *entry_at(&from_parent->live, from_name, strlen(from_name));
    struct loss_step *step = step_new(names);

    REQUIRE(entry != NULL);
    step_take(step, from_parent, from_name);
    step->hides = true;
    live_put(names, to_parent, to_name, entry->node);
    live_remove(names, from_parent, from_name);
}

void loss_names_rename(struct loss_names *names, const char *from, const char *to)
{
    const char *from_name = NULL;
    const char *to_name = NULL;
    struct loss_node *from_parent = parent_of(names, from, &from_name);
    struct loss_node *to_parent = parent_of(names, to, &to_name);
    struct loss_entry *entry = *entry_at(&from_parent->live, from_name, strlen(from_name));

    REQUIRE(entry != NULL);
    struct loss_node *node = entry->node;
    if (names->newest != NULL && names->newest->from == to_parent
        && strcmp(names->newest->from_name, to_name) == 0) {
        unhide(names);
    }
    struct loss_step *step = step_new(names);
    step_take(step, from_parent, from_name);
    step_give(step, to_parent, to_name, node);
    live_put(names, to_parent, to_name, node);
    live_remove(names, from_parent, from_name);
}

static bool touches_marked(const struct loss_step *step)
{
    return (step->from != NULL && step->from->marked) || (step->to != NULL && step->to->marked);
}

static void mark(const struct loss_step *step, bool marked)
{
    if (step->from != NULL) {
        step->from->marked = marked;
    }
    if (step->to != NULL) {
        step->to->marked = marked;
    }
}

/* A rename between two directories ties them together: what happened in the other one before it has
 * to be durable too, or a later sync of that one would bring back an old name. Going backwards
 * finds everything that a step depends on. */
static void sync_directory(struct loss_names *names, struct loss_node *directory)
{
    directory->marked = true;
    for (struct loss_step *step = names->newest; step != NULL; step = step->previous) {
        step->marked = touches_marked(step);
        if (step->marked) {
            mark(step, true);
        }
    }
    directory->marked = false;
    for (struct loss_step *step = names->oldest; step != NULL; step = step->next) {
        mark(step, false);
    }
    for (struct loss_step *step = names->oldest, *next; step != NULL; step = next) {
        next = step->next;
        if (step->marked) {
            step_apply(names, step);
        }
    }
}

void loss_names_sync_all(struct loss_names *names)
{
    while (names->oldest != NULL) {
        step_apply(names, names->oldest);
    }
}

static void sync_files(struct loss_node *directory)
{
    for (struct loss_entry *entry = directory->durable; entry != NULL; entry = entry->next) {
        loss_file_sync(&entry->node->file);
        sync_files(entry->node);
    }
}

void loss_names_sync_files(struct loss_names *names)
{
    sync_files(names->root);
}

void loss_names_sync(struct loss_names *names, struct loss_node *node)
{
    if (names->metadata == LOSS_METADATA_JOURNAL) {
        loss_names_sync_all(names);
    } else if (S_ISDIR(node->mode)) {
        sync_directory(names, node);
    }
}

static size_t cut_files(struct loss_node *directory, enum loss_cut cut, struct pawl__prng *random)
{
    size_t lost = 0;

    for (struct loss_entry *entry = directory->durable; entry != NULL; entry = entry->next) {
        lost += S_ISDIR(entry->node->mode) ? cut_files(entry->node, cut, random)
                                           : loss_file_cut(&entry->node->file, cut, random);
    }
    return lost;
}

struct loss_lost loss_names_cut(struct loss_names *names, enum loss_cut cut, uint64_t seed)
{
    struct pawl__prng random = pawl__prng_seeded(seed);
    size_t kept = 0;

    unhide(names);
    if (cut == LOSS_CUT_KEEP) {
        kept = names->pending;
    } else if (cut != LOSS_CUT_DROP) {
        kept = (size_t)pawl__prng_below(&random, names->pending + 1);
    }
    for (; kept > 0; kept--) {
        step_apply(names, names->oldest);
    }
    struct loss_lost lost = { .names = names->pending };
    while (names->oldest != NULL) {
        step_forget(names, names->oldest);
    }
    lost.writes = cut_files(names->root, cut, &random);
    return lost;
}

static void account(struct loss_names *names, const struct loss_node *node, uint64_t before)
{
    if (node->live_links > 0) {
        names->live_bytes += node->file.live_len - before;
    }
}

void loss_names_write(struct loss_names *names,
                      struct loss_node *node,
                      uint64_t offset,
                      const char *data,
                      size_t len,
                      bool synced)
{
    uint64_t before = node->file.live_len;

    loss_file_write(&node->file, offset, data, len, synced);
    account(names, node, before);
}

void loss_names_resize(struct loss_names *names, struct loss_node *node, uint64_t len)
{
    uint64_t before = node->file.live_len;

    loss_file_resize(&node->file, len);
    account(names, node, before);
}
