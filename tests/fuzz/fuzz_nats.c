/* Any bytes as a URL, a reply subject, an answer to a publish or an nkey seed (the first byte says which): no crash,
 * what is refused leaves its output alone, and no URL shows its password. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "net/nats/fetch.h"
#include "net/nats/nkey.h"
#include "net/nats/publish.h"
#include "net/nats/url.h"

static void try_url(const char *text)
{
    struct pawl__nats_url url = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__nats_url_parse(text, &url, &error) != PAWL_OK) {
        CHECK(error.status == PAWL_INVALID);
        CHECK(url.shown == NULL);
        return;
    }
    CHECK(url.server_count >= 1 && url.server_count <= PAWL__NATS_SERVERS_MAX);
    CHECK(strchr(url.shown, '@') == NULL);
    CHECK((url.user == NULL) == (url.password == NULL));
    CHECK(url.user == NULL || url.token == NULL);
    pawl__nats_url_done(&url);
}

static void try_reply(const char *text)
{
    struct pawl__nats_message message = { .sequence = 77 };

    if (pawl__nats_parse_reply(text, &message)) {
        CHECK(message.stored_ns >= 0);
    } else {
        CHECK(message.sequence == 77);
    }
}

static void try_answer(pawl_view text)
{
    struct pawl__nats_published published = { .fate = PAWL__NATS_MAYBE_STORED };

    if (!pawl__nats_parse_answer(text, &published)) {
        CHECK(published.fate == PAWL__NATS_MAYBE_STORED);
    } else if (published.fate == PAWL__NATS_STORED) {
        CHECK(published.sequence > 0 && published.status == PAWL_OK);
    } else {
        CHECK(published.status != PAWL_OK);
    }
}

static void try_seed(pawl_view text)
{
    char public[PAWL__NKEY_SIZE] = "";

    CHECK((pawl__nats_nkey_public(text, public, NULL) == PAWL_OK) == (strlen(public) == 56));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return -1;
    }
    pawl_view rest = { (const char *)&data[1], size - 1 };
    char *text = pawl__view_dup(rest);
    CHECK(text != NULL);
    switch (data[0] % 4) {
    case 0:
        try_url(text);
        break;
    case 1:
        try_reply(text);
        break;
    case 2:
        try_answer(rest);
        break;
    default:
        try_seed(rest);
        break;
    }
    free(text);
    return 0;
}
