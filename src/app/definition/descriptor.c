#include "app/definition/descriptor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"

/* Of every kind. */
static const pawl_app_sequence common[APP_COMMON_SEQUENCES] = {
    { sizeof(pawl_app_sequence), "wlog_offset", PAWL_APP_SEQ_WLOG_OFFSET, 1 },
    { sizeof(pawl_app_sequence), "c_record", PAWL_APP_SEQ_C_RECORD, PAWL_APP_C_ID_MIN },
    { sizeof(pawl_app_sequence), "ow_record", PAWL_APP_SEQ_OW_RECORD, PAWL_APP_OW_ID_MIN },
};

void pawl__app_definition_done(struct app_definition *definition)
{
    pawl__arena_done(&definition->arena);
    *definition = (struct app_definition){ .arena = ARENA_INIT };
}

/* --- checking --- */

pawl_status pawl__app_check_name(const char *what, pawl_view name, pawl_error *reterr)
{
    if (name.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: empty", what);
    }
    if (name.len > PAWL_APP_NAME_BYTES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s has %zu bytes, the limit is %d",
                          what,
                          name.len,
                          PAWL_APP_NAME_BYTES_MAX);
    }
    if (!pawl__view_is_utf8(name)) {
        return pawl__fail(reterr, PAWL_INVALID, "%s is not UTF-8", what);
    }
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.data[i] < ' ' || name.data[i] == 0x7F) {
            return pawl__fail(reterr, PAWL_INVALID, "%s has a control character", what);
        }
    }
    return PAWL_OK;
}

pawl_status pawl_app_check_name(const char *name, pawl_error *reterr)
{
    TRY(pawl__app_check_name("the application's name", pawl_view_of(name), reterr));
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_")] != '\0') {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the application's name '%s' may contain only a-z, 0-9, - and _",
                          name);
    }
    return PAWL_OK;
}

const pawl_app_sequence *pawl__app_common_sequences(void)
{
    return common;
}

const char *pawl__app_common_sequence(uint16_t sequence)
{
    for (size_t i = 0; i < COUNT_OF(common); i++) {
        if (common[i].id == sequence) {
            return common[i].name;
        }
    }
    return NULL;
}

const char *pawl__app_sequence_name(const pawl_app_descriptor *descriptor, uint16_t sequence)
{
    const char *name = pawl__app_common_sequence(sequence);

    for (size_t i = 0; i < descriptor->kind_count && name == NULL; i++) {
        const pawl_app_kind *kind = &descriptor->kinds[i];
        for (size_t k = 0; k < kind->sequence_count && name == NULL; k++) {
            name = kind->sequences[k].id == sequence ? kind->sequences[k].name : NULL;
        }
    }
    return name == NULL ? "" : name;
}

static bool is_common(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(common); i++) {
        if (strcmp(common[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static pawl_status check_sequence(const pawl_app_kind *kind, size_t at, pawl_error *reterr)
{
    const pawl_app_sequence *sequence = &kind->sequences[at];

    TRY(pawl__app_check_name("a sequence's name", pawl_view_of(sequence->name), reterr));
    if (sequence->id < PAWL_APP_SEQ_OWN_MIN) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "sequence '%s': id %u is reserved, an application's own begin at %d",
                          sequence->name,
                          sequence->id,
                          PAWL_APP_SEQ_OWN_MIN);
    }
    if (is_common(sequence->name)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "sequence '%s': every kind has one of that name already",
                          sequence->name);
    }
    if (sequence->initial < 1 || sequence->initial > PAWL_APP_C_ID_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "sequence '%s': the initial value %" PRIu64 " is not in 1-%" PRIu64,
                          sequence->name,
                          sequence->initial,
                          PAWL_APP_C_ID_MAX);
    }
    for (size_t i = 0; i < at; i++) {
        if (kind->sequences[i].id == sequence->id
            || strcmp(kind->sequences[i].name, sequence->name) == 0) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "kind '%s' has sequence '%s' (%u) twice",
                              kind->name,
                              sequence->name,
                              sequence->id);
        }
    }
    return PAWL_OK;
}

static pawl_status check_kind(const pawl_app_kind *kind, pawl_error *reterr)
{
    pawl_status status = pawl__app_check_name("a kind's name", pawl_view_of(kind->name), reterr);

    if (status == PAWL_OK && kind->sequence_count > PAWL_APP_SEQUENCES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "kind '%s' has %zu sequences, the limit is %d",
                          kind->name,
                          kind->sequence_count,
                          PAWL_APP_SEQUENCES_MAX);
    }
    NEED_ARRAY(kind->sequences, kind->sequence_count, reterr);
    for (size_t i = 0; i < kind->sequence_count && status == PAWL_OK; i++) {
        status = check_sequence(kind, i, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "kind '%s'", kind->name);
        }
    }
    return status;
}

/* One definition of a sequence for all kinds: its numbers are a workspace's, whatever its kind. */
static pawl_status check_same(const pawl_app_kind *a, const pawl_app_kind *b, pawl_error *reterr)
{
    for (size_t i = 0; i < a->sequence_count; i++) {
        for (size_t k = 0; k < b->sequence_count; k++) {
            const pawl_app_sequence *one = &a->sequences[i];
            const pawl_app_sequence *other = &b->sequences[k];
            bool same_name = strcmp(one->name, other->name) == 0;
            if ((one->id == other->id) != same_name
                || (same_name && one->initial != other->initial)) {
                return pawl__fail(reterr,
                                  PAWL_INVALID,
                                  "sequence '%s' (%u) of kind '%s' and '%s' (%u) of kind '%s' must "
                                  "have the same id, name and initial value, or none of them",
                                  one->name,
                                  one->id,
                                  a->name,
                                  other->name,
                                  other->id,
                                  b->name);
            }
        }
    }
    return PAWL_OK;
}

static pawl_status check_kinds(const pawl_app_descriptor *descriptor, pawl_error *reterr)
{
    for (size_t i = 0; i < descriptor->kind_count; i++) {
        const pawl_app_kind *kind = &descriptor->kinds[i];
        TRY(check_kind(kind, reterr));
        for (size_t k = 0; k < i; k++) {
            const pawl_app_kind *before = &descriptor->kinds[k];
            if (before->id == kind->id || strcmp(before->name, kind->name) == 0) {
                return pawl__fail(reterr,
                                  PAWL_INVALID,
                                  "kind '%s' (%u) stands there twice",
                                  kind->name,
                                  kind->id);
            }
            TRY(check_same(before, kind, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status check(const pawl_app_descriptor *descriptor, pawl_error *reterr)
{
    TRY(pawl_app_check_name(descriptor->name, reterr));
    if (descriptor->id == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "the application's id is 0");
    }
    if (descriptor->partitions < 1 || descriptor->partitions > PAWL_APP_PARTITIONS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%u partitions are not in 1-%d",
                          descriptor->partitions,
                          PAWL_APP_PARTITIONS_MAX);
    }
    if ((unsigned)descriptor->trust > PAWL_APP_TRUST_2) {
        return pawl__fail(
            reterr, PAWL_INVALID, "trust level %u is not in 0-2", (unsigned)descriptor->trust);
    }
    if (descriptor->kind_count < 1 || descriptor->kind_count > PAWL_APP_KINDS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%zu kinds of workspaces are not in 1-%d",
                          descriptor->kind_count,
                          PAWL_APP_KINDS_MAX);
    }
    NEED_ARRAY(descriptor->kinds, descriptor->kind_count, reterr);
    return check_kinds(descriptor, reterr);
}

/* --- copying --- */

static int by_kind_id(const void *a, const void *b)
{
    return (int)((const pawl_app_kind *)a)->id - (int)((const pawl_app_kind *)b)->id;
}

static int by_sequence_id(const void *a, const void *b)
{
    return (int)((const pawl_app_sequence *)a)->id - (int)((const pawl_app_sequence *)b)->id;
}

static bool copy_text(struct pawl__arena *arena, const char **text)
{
    pawl_view copy;

    if (!pawl__arena_copy(arena, pawl_view_of(*text), &copy)) {
        return false;
    }
    *text = copy.data;
    return true;
}

static bool copy_kind(struct pawl__arena *arena, pawl_app_kind *kind)
{
    size_t count = kind->sequence_count;
    pawl_app_sequence *sequences = pawl__arena_take(arena, (count + 1) * sizeof(*sequences));
    bool copied = sequences != NULL && copy_text(arena, &kind->name);

    if (!copied) {
        return false;
    }
    for (size_t i = 0; i < count && copied; i++) {
        sequences[i] = kind->sequences[i];
        copied = copy_text(arena, &sequences[i].name);
    }
    if (count > 1) {
        qsort(sequences, count, sizeof(*sequences), by_sequence_id);
    }
    kind->sequences = sequences;
    return copied;
}

/* The descriptor of a caller of an older version becomes one of this; what it points to is in the arena. */
static pawl_status take_descriptor(const pawl_app_descriptor *given,
                                   pawl_app_descriptor *descriptor,
                                   struct pawl__arena *arena,
                                   pawl_error *reterr)
{
    static const pawl_app_kind kind = PAWL_APP_KIND_INIT;
    static const pawl_app_sequence sequence = PAWL_APP_SEQUENCE_INIT;

    TRY(pawl__take_sized("descriptor", given, descriptor, sizeof(*descriptor), reterr));
    size_t count = descriptor->kind_count;
    if (descriptor->kinds == NULL || count > PAWL_APP_KINDS_MAX) {
        return PAWL_OK; /* which is refused */
    }
    pawl_app_kind *kinds = pawl__arena_take(arena, (count + 1) * sizeof(*kinds));
    TRY(pawl__check_memory(kinds, "a descriptor", reterr));
    TRY(pawl__take_sized_array(
        "kinds", descriptor->kinds, count, &kind, kinds, sizeof(*kinds), reterr));
    for (size_t i = 0; i < count; i++) {
        const void *sequences = kinds[i].sequences;
        if (sequences != NULL && kinds[i].sequence_count <= PAWL_APP_SEQUENCES_MAX) {
            TRY(pawl__widen_sized("sequences",
                                  &sequences,
                                  kinds[i].sequence_count,
                                  &sequence,
                                  sizeof(sequence),
                                  arena,
                                  reterr));
        }
        kinds[i].sequences = sequences;
    }
    descriptor->kinds = kinds;
    return PAWL_OK;
}

pawl_status pawl__app_definition_copy(const pawl_app_descriptor *descriptor,
                                      struct app_definition *definition,
                                      pawl_error *reterr)
{
    pawl_app_descriptor whole = PAWL_APP_DESCRIPTOR_INIT;
    TRY(take_descriptor(descriptor, &whole, &definition->arena, reterr));
    descriptor = &whole;
    TRY(check(descriptor, reterr));
    pawl_app_descriptor *copy = &definition->descriptor;
    *copy = *descriptor;
    pawl_app_kind *kinds =
        pawl__arena_take(&definition->arena, descriptor->kind_count * sizeof(*kinds));
    bool copied = kinds != NULL && copy_text(&definition->arena, &copy->name);
    for (size_t i = 0; i < descriptor->kind_count && copied; i++) {
        kinds[i] = descriptor->kinds[i];
        copied = copy_kind(&definition->arena, &kinds[i]);
    }
    if (!copied) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a descriptor");
    }
    qsort(kinds, copy->kind_count, sizeof(*kinds), by_kind_id);
    copy->kinds = kinds;
    return PAWL_OK;
}

/* --- looking up --- */

const pawl_app_kind *pawl__app_find_kind(const pawl_app_descriptor *descriptor, pawl_view name)
{
    for (size_t i = 0; i < descriptor->kind_count; i++) {
        if (pawl__view_is(name, descriptor->kinds[i].name)) {
            return &descriptor->kinds[i];
        }
    }
    return NULL;
}

const pawl_app_sequence *pawl__app_find_sequence(const pawl_app_kind *kind, pawl_view name)
{
    for (size_t i = 0; i < kind->sequence_count; i++) {
        if (pawl__view_is(name, kind->sequences[i].name)) {
            return &kind->sequences[i];
        }
    }
    return NULL;
}

uint64_t pawl__app_initial_of(const pawl_app_descriptor *descriptor, uint16_t sequence)
{
    for (size_t i = 0; i < COUNT_OF(common); i++) {
        if (common[i].id == sequence) {
            return common[i].initial;
        }
    }
    for (size_t i = 0; i < descriptor->kind_count; i++) {
        const pawl_app_kind *kind = &descriptor->kinds[i];
        for (size_t k = 0; k < kind->sequence_count; k++) {
            if (kind->sequences[k].id == sequence) {
                return kind->sequences[k].initial;
            }
        }
    }
    return 0;
}

pawl_status pawl__app_definition_types(struct app_definition *definition,
                                       const pawl_seq_type **ret_types,
                                       size_t *ret_count,
                                       pawl_error *reterr)
{
    const pawl_app_descriptor *descriptor = &definition->descriptor;
    size_t room = 0;

    for (size_t i = 0; i < descriptor->kind_count; i++) {
        room += COUNT_OF(common) + descriptor->kinds[i].sequence_count;
    }
    pawl_seq_type *types = pawl__arena_take(&definition->arena, room * sizeof(*types));
    if (types == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu sequences", room);
    }
    size_t count = 0;
    for (size_t i = 0; i < descriptor->kind_count; i++) {
        const pawl_app_kind *kind = &descriptor->kinds[i];
        for (size_t k = 0; k < COUNT_OF(common); k++) {
            types[count++] =
                (pawl_seq_type){ sizeof(pawl_seq_type), kind->id, common[k].id, common[k].initial };
        }
        for (size_t k = 0; k < kind->sequence_count; k++) {
            types[count++] = (pawl_seq_type){
                sizeof(pawl_seq_type), kind->id, kind->sequences[k].id, kind->sequences[k].initial
            };
        }
    }
    *ret_types = types;
    *ret_count = count;
    return PAWL_OK;
}
