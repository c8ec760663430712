#include "base/core/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"

enum { CHUNK_BYTES_MIN = 4096 };

struct pawl__arena_chunk {
    struct pawl__arena_chunk *next;
    size_t size; /* of data */
    alignas(max_align_t) char data[];
};

static void free_chunks(struct pawl__arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct pawl__arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void pawl__arena_done(struct pawl__arena *arena)
{
    free_chunks(arena->chunk);
    *arena = (struct pawl__arena)ARENA_INIT;
}

/* Chunks grow, so the newest is the largest and the one worth keeping. */
void pawl__arena_clear(struct pawl__arena *arena)
{
    if (arena->chunk != NULL) {
        free_chunks(arena->chunk->next);
        arena->chunk->next = NULL;
    }
    arena->used = 0;
}

static bool add_chunk(struct pawl__arena *arena, size_t size)
{
    size_t last = arena->chunk == NULL ? 0 : arena->chunk->size;
    size_t bytes = MAX(MAX(size, last * 2), (size_t)CHUNK_BYTES_MIN);
    struct pawl__arena_chunk *chunk = malloc(sizeof(*chunk) + bytes);

    if (chunk == NULL) {
        return false;
    }
    chunk->next = arena->chunk;
    chunk->size = bytes;
    arena->chunk = chunk;
    arena->used = 0;
    return true;
}

void *pawl__arena_take(struct pawl__arena *arena, size_t size)
{
    size_t aligned = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);

    if (arena->chunk == NULL || aligned > arena->chunk->size - arena->used) {
        if (!add_chunk(arena, aligned)) {
            return NULL;
        }
    }
    void *piece = arena->chunk->data + arena->used;
    arena->used += aligned;
    return piece;
}

bool pawl__arena_copy(struct pawl__arena *arena, pawl_view bytes, pawl_view *ret_copy)
{
    char *copy = pawl__arena_take(arena, bytes.len + 1);

    if (copy == NULL) {
        return false;
    }
    if (bytes.len > 0) {
        memcpy(copy, bytes.data, bytes.len);
    }
    copy[bytes.len] = '\0';
    *ret_copy = (pawl_view){ copy, bytes.len };
    return true;
}
