/* YAML as a tree, before anything is known of its keys: what may stand where is decided elsewhere.
 *
 * One document, UTF-8. Anchors, aliases and tags are marked and never followed: they can make a
 * small file huge, or promise a meaning that they would not get. A key may be anything, even a
 * list. Nodes and texts live in the arena. */
#ifndef PAWL_CONFIG_YAML_H
#define PAWL_CONFIG_YAML_H

#include <pawl/pawl.h>

#include "base/core/arena.h"

enum pawl__yaml_kind {
    PAWL__YAML_VALUE,
    PAWL__YAML_LIST,
    PAWL__YAML_MAP,
    PAWL__YAML_ALIAS,
};

struct pawl__yaml_node {
    enum pawl__yaml_kind kind;
    bool decorated;              /* has an anchor or a tag, or is an alias */
    size_t line;                 /* from 1; in a MAP that of the key */
    pawl_view text;              /* of a VALUE, with a NUL behind it */
    struct pawl__yaml_node *key; /* in a MAP, else NULL */
    struct pawl__yaml_node *parent;
    struct pawl__yaml_node *first; /* of a LIST or MAP */
    struct pawl__yaml_node *last;
    struct pawl__yaml_node *next;    /* in the same LIST or MAP */
    struct pawl__yaml_node *pending; /* of a MAP that is being read: a key without its value yet */
};

struct pawl__yaml {
    struct pawl__yaml_node *root; /* NULL when the text says nothing */
    size_t second_line;           /* where a second document begins; 0: there is none */
    const char *error;            /* why the text is no YAML, or NULL; the tree ends before it */
    size_t error_line;
};

/* `text` must be UTF-8. Text that is no YAML is PAWL_OK, with ret_yaml->error. Fails with NOMEM alone. */
PAWL_MUST_USE pawl_status pawl__yaml_parse(pawl_view text,
                                           struct pawl__arena *arena,
                                           struct pawl__yaml *ret_yaml);

/* "a list", "a section", "an alias", "a value". */
const char *pawl__yaml_word(const struct pawl__yaml_node *node);

/* The pair before `node` in the same MAP that has the same plain key, or NULL. */
const struct pawl__yaml_node *pawl__yaml_earlier(const struct pawl__yaml_node *node);

#endif
