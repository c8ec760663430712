#include "play/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UUID_LEN = 36 };

static struct play_alias *alias_of(struct play *play, const char *name)
{
    for (size_t i = play->alias_count; i > 0; i--) {
        if (strcmp(play->aliases[i - 1].name, name) == 0) {
            return &play->aliases[i - 1];
        }
    }
    return NULL;
}

void play_alias(struct play *play, const char *name, enum play_store store, const char *actual)
{
    struct play_alias *alias = alias_of(play, name);

    if (alias == NULL) {
        if (play->alias_count == play->alias_room) {
            play->alias_room = 2 * play->alias_room + 64;
            play->aliases = realloc(play->aliases, play->alias_room * sizeof(*play->aliases));
            assert_non_null(play->aliases);
        }
        alias = &play->aliases[play->alias_count++];
        *alias = (struct play_alias){ .name = "" };
        snprintf(alias->name, sizeof(alias->name), "%s", name);
    }
    snprintf(alias->actual[store], sizeof(alias->actual[store]), "%s", actual);
}

pawl_view play_actual(struct play *play, enum play_store store, const char *name)
{
    const struct play_alias *alias = name[0] == 'g' ? alias_of(play, name) : NULL;

    return pawl_view_of(alias == NULL ? name : alias->actual[store]);
}

static const char *name_of(const struct play *play, enum play_store store, const char *uuid)
{
    for (size_t i = play->alias_count; i > 0; i--) {
        if (memcmp(play->aliases[i - 1].actual[store], uuid, UUID_LEN) == 0) {
            return play->aliases[i - 1].name;
        }
    }
    return NULL;
}

void play_add_named(struct play *play,
                    enum play_store store,
                    struct pawl__buf *text,
                    pawl_view given)
{
    for (size_t i = 0; i < given.len; i++) {
        const char *at = (const char *)given.data + i;
        const char *name = given.len - i >= UUID_LEN && at[8] == '-' && at[13] == '-'
                               ? name_of(play, store, at)
                               : NULL;
        if (name == NULL) {
            pawl__buf_add_char(text, *at);
        } else {
            pawl__buf_add_text(text, name);
            i += UUID_LEN - 1;
        }
    }
}
