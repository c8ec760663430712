/* The names that a power cut leaves.
 *
 * Every directory has two sets of entries: live, which programs see, and durable, which the disk is
 * known to have. What was linked, unlinked or renamed since stands in a journal, in order.
 *
 *   journal   like ext4 and XFS: one journal for all, so any fsync makes every earlier change of
 *             names durable
 *   strict    what fsync(2) promises and no more: a name is durable once its directory was synced.
 *             Syncing a file does not save its name.
 *
 * A rename is atomic in both. Owner and mode are durable at once; times are not kept. */
#ifndef TESTS_LOSSFS_NAMES_H
#define TESTS_LOSSFS_NAMES_H

#include <sys/types.h>

#include "torture/lossfs/file.h"

enum loss_metadata { LOSS_METADATA_JOURNAL, LOSS_METADATA_STRICT };

struct loss_entry {
    struct loss_entry *next;
    struct loss_node *node; /* holds a reference */
    char name[];
};

/* A file, directory or symbolic link. It lives as long as a name, the journal or an open file
 * refers to it. */
struct loss_node {
    unsigned refs;
    unsigned live_links;
    mode_t mode; /* type and permissions */
    uid_t uid;
    gid_t gid;
    struct loss_file file; /* regular files only */
    char *target;          /* symbolic links only */
    struct loss_entry *live;
    struct loss_entry *durable;
    bool marked; /* scratch of loss_names_sync */
};

/* One step of the journal: takes a name away, or gives one, or (a rename) both at once. */
struct loss_step {
    struct loss_step *next;
    struct loss_step *previous;
    struct loss_node *from; /* directory; NULL: nothing is taken away */
    struct loss_node *to;   /* directory; NULL: nothing is given */
    struct loss_node *node; /* what gets the name in `to` */
    char *from_name;
    char *to_name;
    bool hides;
    bool marked;
};

struct loss_names {
    enum loss_metadata metadata;
    struct loss_node *root;
    struct loss_step *oldest;
    struct loss_step *newest;
    size_t pending;
    uint64_t live_bytes; /* of all files that have a name: what a quota counts */
};

void loss_names_init(struct loss_names *names, enum loss_metadata metadata);
void loss_names_done(struct loss_names *names);

/* Paths start with '/'. The live node, not referenced for the caller; NULL when there is none. */
struct loss_node *loss_names_find(const struct loss_names *names, const char *path);

/* These follow a change that the live file system has accepted, so the directories exist. An entry
 * that stands at the new path is replaced. */
struct loss_node *loss_names_create(struct loss_names *names, const char *path, mode_t mode);
void loss_names_link(struct loss_names *names, const char *path, struct loss_node *node);
void loss_names_unlink(struct loss_names *names, const char *path);
void loss_names_rename(struct loss_names *names, const char *from, const char *to);

/* An open file loses its name, because it is unlinked or about to be replaced, and libfuse keeps it
 * as `to` until it is closed. The disk never hears of `to`. */
void loss_names_hide(struct loss_names *names, const char *from, const char *to);

/* What an fsync of `node` makes durable among the names. */
void loss_names_sync(struct loss_names *names, struct loss_node *node);

/* All names, whatever the mode; the contents of all files that have one. */
void loss_names_sync_all(struct loss_names *names);
void loss_names_sync_files(struct loss_names *names);

struct loss_lost {
    size_t names;  /* steps of the journal */
    size_t writes; /* changes of files that are still there */
};

/* Decides what reached the disk: a prefix of the journal, empty for DROP, and then of every file
 * that has a durable name what loss_file_cut leaves. Only the durable side is right afterwards. */
struct loss_lost loss_names_cut(struct loss_names *names, enum loss_cut cut, uint64_t seed);

/* A change of a file through the names, so that live_bytes stays right. */
void loss_names_write(struct loss_names *names,
                      struct loss_node *node,
                      uint64_t offset,
                      const char *data,
                      size_t len,
                      bool synced);
void loss_names_resize(struct loss_names *names, struct loss_node *node, uint64_t len);

struct loss_node *loss_node_ref(struct loss_node *node);
void loss_names_unref(struct loss_names *names, struct loss_node *node);

#endif
