/* pawl idem begin|complete|fail|release|get|hash */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/commands.h"
#include "cli/frame/input.h"
#include "cli/work/work.h"
#include "records/work.h"

#define KEY_OPERAND                                        \
    {                                                      \
        .name = "KEY", .help = "The key, as you chose it." \
    }
#define BEGIN "pawl idem begin --data ./data pay-7 --request '{\"euro\":5}' --only-new && "
#define BEGIN_NEW "pawl idem begin --data ./data pay-7 --request '{\"euro\":5}' --only-new >new && "

static pawl_status print_text(const struct pawl__cli_run *run,
                              const pawl_idem *idem,
                              pawl_error *reterr)
{
    char lease[WORK_TIME_SIZE];
    char end[WORK_TIME_SIZE];
    struct pawl__cell token = idem->answer == PAWL_IDEM_NEW
                                  ? pawl__cell_integer((int64_t)idem->owner_token)
                                  : pawl__cell_none();

    return pawl__cli_work_answer(
        run,
        ANSWER({ "answer",
                 true,
                 pawl__cell_text(pawl_view_of(pawl__idem_answer_names[idem->answer])) },
               { "owner_token", true, token },
               { "owner", false, pawl__cli_cell_of(idem->owner) },
               { "lease_expires_at", true, pawl__cli_cell_time(idem->lease_expires_at_us, lease) },
               { "expires_at", true, pawl__cli_cell_time(idem->expires_at_us, end) },
               { "response", false, pawl__cli_cell_value(idem->response) }),
        reterr);
}

static pawl_status print_idem(const struct pawl__cli_run *run,
                              const pawl_idem *idem,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(SIZE_MAX / 2);

    if (!run->json) {
        return print_text(run, idem, reterr);
    }
    struct pawl__object object = pawl__object_start(&line);
    pawl__object_text(&object, "answer", pawl_view_of(pawl__idem_answer_names[idem->answer]));
    if (idem->answer == PAWL_IDEM_NEW) {
        pawl__object_integer(&object, "owner_token", (int64_t)idem->owner_token);
    }
    pawl__record_write_fields(&pawl__idem_record, idem, &object);
    pawl__object_end(&object);
    return pawl__cli_work_print_line(run, &line, reterr);
}

/* --- begin --- */

static pawl_status judge(const pawl_idem *idem, bool only_new, pawl_error *reterr)
{
    switch (idem->answer) {
    case PAWL_IDEM_NEW:
        return PAWL_OK;
    case PAWL_IDEM_DONE:
        return only_new ? pawl__fail(reterr, PAWL_NOT_FOUND, "it was done before") : PAWL_OK;
    case PAWL_IDEM_IN_FLIGHT:
        return pawl__fail(reterr, PAWL_BUSY, "somebody is at it");
    case PAWL_IDEM_FAILED:
        return pawl__fail(reterr, PAWL_FAILED, "it failed for good; --take-over tries again");
    case PAWL_IDEM_HASH_CONFLICT:
        return pawl__fail(reterr, PAWL_CONFLICT, "the key stands for another request");
    case PAWL_IDEM_IN_DOUBT:
        return pawl__fail(
            reterr,
            PAWL_CONFLICT,
            "in doubt: whoever was at it stopped, and it may have happened; look, and "
            "then use --take-over");
    }
    return PAWL_OK;
}

static pawl_status request_hash(const struct pawl__cli_run *run,
                                char ret_hash[PAWL_REQUEST_HASH_SIZE],
                                pawl_view *ret_view,
                                pawl_error *reterr)
{
    AUTO(pawl__text_free) char *request = NULL;
    const char *hash = pawl__cli_args_value(run->args, "hash");

    if ((hash == NULL) == !pawl__cli_args_has(run->args, "request")) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          hash == NULL ? "one of --request and --hash is needed"
                                       : "--request and --hash say the same: give one of them");
    }
    if (hash != NULL) {
        *ret_view = pawl_view_of(hash);
        return PAWL_OK;
    }
    TRY(pawl__cli_work_json(run, "request", &request, reterr));
    TRY(pawl_request_hash(pawl_view_of(request), ret_hash, PAWL_REQUEST_HASH_SIZE, reterr));
    *ret_view = pawl_view_of(ret_hash);
    return PAWL_OK;
}

static pawl_status begin_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;
    char hash[PAWL_REQUEST_HASH_SIZE] = "";
    AUTO(pawl_idem_free_p) pawl_idem *idem = NULL;
    int64_t lease_ms = 0; /* that of the options */

    request.key = pawl__cli_work_operand(run, 0);
    request.owner = pawl__cli_work_value(run, "owner");
    request.task_id = pawl__cli_work_value(run, "task");
    request.work_item_id = pawl__cli_work_value(run, "item");
    request.take_over = pawl__cli_args_has(run->args, "take-over");
    TRY(request_hash(run, hash, &request.request_hash, reterr));
    TRY(pawl__cli_work_ms(run, "lease", 1, WORK_TIME_MS_MAX, &lease_ms, reterr));
    TRY(pawl__cli_work_ms(run, "ttl", 1, INT64_C(3650) * 86400000, &request.ttl_ms, reterr));
    TRY(pawl__cli_work_open(run, WORK_TO_CREATE, &work, reterr));
    request.lease_ms = (uint32_t)lease_ms;
    TRY(pawl_idem_begin(work, &request, &idem, reterr));
    TRY(print_idem(run, idem, reterr));
    return judge(idem, pawl__cli_args_has(run->args, "only-new"), reterr);
}

static const struct pawl__cli_command begin = {
    .name = "begin",
    .summary = "ask whether something is to be done",
    .description =
        "Of many at once exactly one gets 'new', with a token: do it, then complete or fail. The "
        "others get 'in_flight' (exit code 5) while that one's lease lasts, and then 'in_doubt' "
        "(exit code 4): it may have happened; --take-over decides that it is done again. 'done' "
        "comes with the stored response, and is exit code 0, too: a script that goes on with && "
        "needs "
        "--only-new, with which it is exit code 3. 'failed' is exit code 1, 'hash_conflict', "
        "another request under the same key, exit code 4.\n\n"
        "The request is hashed as canonical JSON: order of keys and blanks do not matter.",
    .flags = FLAGS(
        FLAG("request", "JSON", "What is asked for; @FILE reads a file, - standard input."),
        FLAG("hash", "HASH", "Of the request, as 'pawl idem hash' prints it."),
        FLAG("owner", "NAME", "Who does it, for others to read."),
        FLAG("task", "TASK", "The task it belongs to."),
        FLAG("item", "ID", "The item it belongs to."),
        FLAG("lease", "DURATION", "How long it may take, from 1ms to 7d; instead of work.lease."),
        FLAG("ttl", "DURATION", "How long the answer is kept.", .fallback = "24h"),
        { .name = "only-new", .help = "Exit code 0 for 'new' alone; for 'done' it is 3." },
        { .name = "take-over", .help = "Do again what is in doubt or has failed." }),
    .operands = OPERANDS(KEY_OPERAND),
    .examples = EXAMPLES(TESTED(BEGIN "true", "may I?")),
    .run = begin_run,
};

/* --- complete and fail --- */

static pawl_status print_state(const struct pawl__cli_run *run,
                               const char *state,
                               pawl_error *reterr)
{
    return pawl__cli_work_answer(
        run,
        ANSWER({ "idempotency_key", true, pawl__cell_text(pawl__cli_work_operand(run, 0)) },
               { "status", true, pawl__cell_text(pawl_view_of(state)) }),
        reterr);
}

static pawl_status end_key(const struct pawl__cli_run *run, bool complete, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__text_free) char *response = NULL;
    pawl_view key = pawl__cli_work_operand(run, 0);
    uint64_t token = (uint64_t)pawl__cli_args_number(run->args, "token");

    TRY(pawl__cli_work_json(run, "response", &response, reterr));
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(complete ? pawl_idem_complete(work, key, token, pawl_view_of(response), reterr)
                 : pawl_idem_fail(work, key, token, pawl_view_of(response), reterr));
    return print_state(run, complete ? "completed" : "failed", reterr);
}

static pawl_status complete_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return end_key(run, true, reterr);
}

static pawl_status fail_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return end_key(run, false, reterr);
}

#define TOKEN_FLAG \
    NUMBER_FLAG("token", "N", 1, INT64_MAX, "The token that begin gave.", .required = true)
#define END_FLAGS     \
    FLAGS(TOKEN_FLAG, \
          FLAG("response", "JSON", "What came of it; @FILE reads a file, - standard input."))

static const struct pawl__cli_command complete = {
    .name = "complete",
    .summary = "store what came of it",
    .description = "From now on, until the key's time is over, begin answers 'done' with this "
                   "response. Exit code 4: the key was taken over.",
    .flags = END_FLAGS,
    .operands = OPERANDS(KEY_OPERAND),
    .examples =
        EXAMPLES(TESTED(BEGIN_NEW "pawl idem complete --data ./data pay-7 --token $(cut -f 2 new) "
                                  "--response '{\"receipt\":42}'",
                        "done")),
    .run = complete_run,
};

static const struct pawl__cli_command fail = {
    .name = "fail",
    .summary = "say that it failed for good",
    .description = "From now on, until the key's time is over, begin answers 'failed' with this "
                   "response. Exit code 4: the key was taken over.",
    .flags = END_FLAGS,
    .operands = OPERANDS(KEY_OPERAND),
    .examples =
        EXAMPLES(TESTED(BEGIN_NEW "pawl idem fail --data ./data pay-7 --token $(cut -f 2 new) "
                                  "--response '{\"error\":\"no money\"}'",
                        "it cannot be done")),
    .run = fail_run,
};

/* --- release --- */

static pawl_status release_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    uint64_t token = (uint64_t)pawl__cli_args_number(run->args, "token");

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_idem_release(work, pawl__cli_work_operand(run, 0), token, reterr));
    return print_state(run, "released", reterr);
}

static const struct pawl__cli_command release = {
    .name = "release",
    .summary = "give a key up whose work did not happen",
    .description = "The next begin is 'new'. Exit code 4: the key was taken over.",
    .flags = FLAGS(TOKEN_FLAG),
    .operands = OPERANDS(KEY_OPERAND),
    .examples =
        EXAMPLES(TESTED(BEGIN_NEW "pawl idem release --data ./data pay-7 --token $(cut -f 2 new)",
                        "let somebody else do it")),
    .run = release_run,
};

/* --- get and hash --- */

static pawl_status get_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl_idem_free_p) pawl_idem *idem = NULL;

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_idem_get(work, pawl__cli_work_operand(run, 0), &idem, reterr));
    return print_idem(run, idem, reterr);
}

static const struct pawl__cli_command get = {
    .name = "get",
    .summary = "what is stored of a key",
    .description = "Changes nothing. Exit code 3 when there is no such key.",
    .operands = OPERANDS(KEY_OPERAND),
    .examples =
        EXAMPLES(TESTED(BEGIN "pawl idem get --data ./data pay-7 --json", "how far is it?")),
    .run = get_run,
    .only_prints = true,
};

static pawl_status hash_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *request = NULL;
    char hash[PAWL_REQUEST_HASH_SIZE];

    TRY(pawl__cli_input_read(
        "request", pawl__cli_args_operand(run->args, 0), WORK_DATA_BYTES_MAX, &request, reterr));
    TRY(pawl_request_hash(pawl_view_of(request), hash, PAWL_REQUEST_HASH_SIZE, reterr));
    return pawl__cli_work_answer(
        run, ANSWER({ "request_hash", true, pawl__cell_text(pawl_view_of(hash)) }), reterr);
}

static const struct pawl__cli_command hash = {
    .name = "hash",
    .summary = "the hash of a request",
    .description = "SHA-256 over the request as canonical JSON.",
    .operands =
        OPERANDS({ .name = "JSON", .help = "The request; @FILE reads a file, - standard input." }),
    .examples = EXAMPLES(TESTED("pawl idem hash '{\"euro\":5}'", "for begin --hash")),
    .run = hash_run,
    .only_prints = true,
};

const struct pawl__cli_command pawl__cli_cmd_idem = {
    .name = "idem",
    .summary = "side effects that happen once",
    .description =
        "A key stands for one request. Whoever is about to do something asks with begin, "
        "and stores with complete what came of it.\n\n" WORK_WHERE,
    .flags = FLAGS(WORK_FLAG),
    .when_damaged = "stop the workers, keep a copy of the store, and restore a backup of it",
    .commands = COMMANDS(&begin, &complete, &fail, &release, &get, &hash),
    .examples = EXAMPLES(TESTED(
        BEGIN_NEW "echo paid && pawl idem complete --data ./data pay-7 --token $(cut -f 2 new)",
        "pay once, however often this runs")),
};
