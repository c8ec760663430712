/* A backup that nobody has restored is a hope. A proof restores the newest snapshot, replays what
 * came later and compares the end with the ledger's; when it succeeded last is kept beside the
 * snapshots. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sha256.h"
#include "base/core/sized.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "ledger/core/chain.h"
#include "ledger/core/internal.h"
#include "ledger/snapshot/snapshot.h"
#include "store/lock.h"

#define PROOF_NAME "proof.json"
enum { PROOF_VERSION = 1, PROOF_BYTES_MAX = 4096 };

/* --- the file --- */

static pawl_status write_proof(const char *directory, const pawl_proof *proof, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(PROOF_BYTES_MAX - 1);
    AUTO(pawl__text_free) char *path = pawl__fs_join(directory, PROOF_NAME);
    struct pawl__sha256 hash;
    char hex[PAWL__SHA256_HEX_SIZE];
    char proven_at[PAWL__TIME_SIZE];
    char taken_at[PAWL__TIME_SIZE];

    memcpy(hash.bytes, proof->head.hash, sizeof(hash.bytes));
    pawl__sha256_hex(&hash, hex);
    pawl__time_rfc3339(proof->proven_at_us, proven_at);
    pawl__time_rfc3339(proof->snapshot_taken_at_us, taken_at);
    json_auto_t *json = json_pack("{s:i, s:s, s:I, s:s, s:I, s:I, s:s, s:s}",
                                  "version",
                                  (int)PROOF_VERSION,
                                  "snapshot",
                                  proof->snapshot,
                                  "snapshot_offset",
                                  (json_int_t)proof->snapshot_offset,
                                  "snapshot_taken_at",
                                  taken_at,
                                  "replayed",
                                  (json_int_t)proof->replayed,
                                  "offset",
                                  (json_int_t)proof->head.offset,
                                  "hash",
                                  hex,
                                  "proven_at",
                                  proven_at);
    TRY(pawl__fs_check_path(path, reterr));
    if (json == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a proof");
    }
    TRY(pawl__json_dump(json, &text, reterr));
    pawl__buf_add_char(&text, '\n');
    TRY(pawl__buf_check(&text, "the proof", reterr));
    return pawl__fs_replace(path, pawl__buf_view(&text), reterr);
}

static pawl_status read_time(struct pawl__json_node node, int64_t *ret_us, pawl_error *reterr)
{
    pawl_view text;

    TRY(pawl__json_text(node, &text, reterr));
    return pawl__time_parse(text, ret_us, reterr);
}

static pawl_status read_texts(const struct pawl__json_node *object,
                              pawl_proof *proof,
                              pawl_error *reterr)
{
    struct pawl__sha256 hash;
    pawl_view snapshot;
    pawl_view hex;

    TRY(pawl__json_text(pawl__json_key(object, "snapshot"), &snapshot, reterr));
    if (snapshot.len >= sizeof(proof->snapshot)) {
        return pawl__fail(reterr, PAWL_INVALID, "snapshot: has %zu bytes", snapshot.len);
    }
    TRY(pawl__json_text(pawl__json_key(object, "hash"), &hex, reterr));
    TRY(pawl__sha256_parse(hex, &hash, reterr));
    snprintf(proof->snapshot, sizeof(proof->snapshot), "%.*s", VIEW_ARGS(snapshot));
    memcpy(proof->head.hash, hash.bytes, sizeof(proof->head.hash));
    TRY(read_time(
        pawl__json_key(object, "snapshot_taken_at"), &proof->snapshot_taken_at_us, reterr));
    return read_time(pawl__json_key(object, "proven_at"), &proof->proven_at_us, reterr);
}

static pawl_status parse_proof(pawl_view text, pawl_proof *ret_proof, pawl_error *reterr)
{
    json_auto_t *json = NULL;
    struct pawl__json_node object;
    pawl_proof proof = { .size = sizeof(pawl_proof) };
    struct {
        const char *key;
        int64_t value;
    } numbers[] = { { "snapshot_offset", 0 }, { "replayed", 0 }, { "offset", 0 } };
    int64_t version;

    TRY(pawl__json_parse(text, PROOF_BYTES_MAX, &json, reterr));
    TRY(pawl__json_object(pawl__json_root(json, ""), &object, reterr));
    TRY(pawl__json_int(
        pawl__json_key(&object, "version"), PROOF_VERSION, PROOF_VERSION, &version, reterr));
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        TRY(pawl__json_int(
            pawl__json_key(&object, numbers[i].key), 0, INT64_MAX, &numbers[i].value, reterr));
    }
    TRY(read_texts(&object, &proof, reterr));
    proof.snapshot_offset = (uint64_t)numbers[0].value;
    proof.replayed = (uint64_t)numbers[1].value;
    proof.head.offset = (uint64_t)numbers[2].value;
    pawl__give_sized(&proof, sizeof(proof), ret_proof);
    return PAWL_OK;
}

pawl_status pawl_ledger_last_proof(const char *directory, pawl_proof *ret_proof, pawl_error *reterr)
{
    char text[PROOF_BYTES_MAX];
    size_t len = 0;

    NEED_TEXT(directory, reterr);
    NEED(ret_proof, reterr);
    TRY(pawl__check_sized("ret_proof", ret_proof, reterr));
    AUTO(pawl__text_free) char *path = pawl__fs_join(directory, PROOF_NAME);
    TRY(pawl__fs_check_path(path, reterr));
    pawl_status status = pawl__fs_read_small(path, text, sizeof(text), &len, reterr);
    if (status == PAWL_OK) {
        status = parse_proof((pawl_view){ text, len }, ret_proof, reterr);
    }
    if (status != PAWL_INVALID) {
        return status;
    }
    pawl__fail_context(reterr, PAWL_CORRUPT, "'%s'", path);
    return pawl__fail_advise(reterr, PAWL_CORRUPT, "remove it and run `pawl ledger prove` again");
}

/* --- the proof --- */

static pawl_status newest_snapshot(const char *directory, pawl_proof *proof, pawl_error *reterr)
{
    uint64_t *offsets = NULL;
    size_t count = 0;
    struct stat info;

    TRY(pawl__ledger_snapshot_offsets(directory, &offsets, &count, reterr));
    uint64_t offset = count == 0 ? 0 : offsets[0];
    free(offsets);
    if (count == 0) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no snapshot in '%s'", directory);
    }
    AUTO(pawl__text_free) char *path = pawl__ledger_snapshot_path(directory, offset);
    TRY(pawl__fs_check_path(path, reterr));
    if (strlen(path) >= sizeof(proof->snapshot)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the path of a snapshot has %zu bytes, the limit is %zu",
                          strlen(path),
                          sizeof(proof->snapshot) - 1);
    }
    memcpy(proof->snapshot, path, strlen(path) + 1);
    proof->snapshot_offset = offset;
    if (stat(path, &info) == 0) {
        proof->snapshot_taken_at_us =
            (int64_t)info.st_mtim.tv_sec * US_PER_S + info.st_mtim.tv_nsec / NS_PER_US;
    }
    return PAWL_OK;
}

static pawl_status restore_and_compare(pawl_ledger *handle,
                                       const char *directory,
                                       pawl_proof *proof,
                                       pawl_error *reterr)
{
    AUTO(pawl__ledger_scratch_done) struct ledger_scratch scratch = { NULL };
    AUTO(pawl__text_free) char *name = pawl__fs_join(directory, "proof");
    struct ledger_stage stage = { .interrupted = &handle->engine.interrupted };
    struct ledger_backend *ledger = handle->backend;
    struct ledger_restored restored;
    pawl_ledger_head head;

    TRY(ledger->ops->head(ledger, &head, reterr));
    TRY(pawl__fs_check_path(name, reterr));
    TRY(pawl__ledger_scratch_make(name, &scratch, reterr));
    const struct ledger_restore restore = {
        .snapshot = proof->snapshot,
        .tail = ledger,
        .up_to = head.offset,
        .accept_cut_tail = true, /* it was opened, so it is not */
        .scratch = &scratch,
        .stage = &stage,
    };
    pawl_status status = pawl__ledger_restore_into(&restore, &restored, reterr);
    /* Of another ledger, no ledger at all, or empty: whatever is in that file, it is no backup. */
    if (status == PAWL_CONFLICT || status == PAWL_INVALID || status == PAWL_NOT_FOUND) {
        return pawl__fail_context(reterr, PAWL_CORRUPT, "no proof");
    }
    TRY(status);
    if (restored.head.offset != head.offset
        || !pawl__ledger_chain_hash_equal(restored.head.hash, head.hash)) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "restored up to offset %llu, which is not the ledger's head at %llu",
                          (unsigned long long)restored.head.offset,
                          (unsigned long long)head.offset);
    }
    proof->head = head;
    proof->replayed = head.offset - restored.snapshot.offset;
    return PAWL_OK;
}

static pawl_status prove(pawl_ledger *ledger,
                         const char *directory,
                         pawl_proof *proof,
                         pawl_error *reterr)
{
    AUTO(pawl__store_lock_release_p) struct pawl__store_lock *lock = NULL;

    TRY(pawl__ledger_snapshot_lock(directory, &lock, reterr));
    TRY(newest_snapshot(directory, proof, reterr));
    TRY(restore_and_compare(ledger, directory, proof, reterr));
    proof->proven_at_us = pawl__wall_us(ledger->engine.clock);
    return write_proof(directory, proof, reterr);
}

pawl_status pawl_ledger_prove(pawl_ledger *ledger,
                              const char *directory,
                              pawl_proof *ret_proof,
                              pawl_error *reterr)
{
    pawl_proof proof = { .size = sizeof(pawl_proof) };

    NEED(ledger, reterr);
    NEED_TEXT(directory, reterr);
    TRY(pawl__check_sized("ret_proof", ret_proof, reterr));
    pawl_status status = prove(ledger, directory, &proof, reterr);
    if (status != PAWL_OK) {
        pawl__fail_context(
            reterr, status, "prove '%s'", proof.snapshot[0] == '\0' ? directory : proof.snapshot);
        return status == PAWL_CORRUPT ? pawl__fail_advise_default(
                   reterr,
                   status,
                   "run `pawl ledger verify`; when the ledger is whole, move "
                   "this snapshot away and take a new one")
                                      : status;
    }
    pawl__give_sized(&proof, sizeof(proof), ret_proof);
    return PAWL_OK;
}
