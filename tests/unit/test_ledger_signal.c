/* pawl_reader_cancel is promised to work in a signal handler: at every moment of the thread that it
 * interrupts, with whatever lock that thread holds. */
#include "lib/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <pawl/ledger.h>

#include "base/thread/thread.h"

enum { SIGNALS = 1000, DEADLINE_S = 60 };

static pawl_reader *reader; /* for the handler */
static atomic_bool over;
static atomic_int handled;

static void on_signal(int signal)
{
    (void)signal;
    pawl_reader_cancel(reader); /* NOLINT(bugprone-signal-handler): what is tested */
    atomic_fetch_add(&handled, 1);
}

static void send_signals(void *context)
{
    const pthread_t *target = context;

    while (!atomic_load(&over)) {
        pthread_kill(*target, SIGUSR1);
    }
}

static pawl_ledger *open_reader(void)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_ledger *ledger = NULL;

    assert_ok(pawl_ledger_open("memory:", NULL, &ledger, &error), &error);
    assert_ok(pawl_reader_open(ledger, NULL, &reader, &error), &error);
    return ledger;
}

static void test_a_signal_may_cancel_a_reader_at_any_moment(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_ledger *ledger = open_reader();
    struct pawl__thread sender = { 0 };
    pthread_t self = pthread_self();

    signal(SIGUSR1, on_signal);
    alarm(DEADLINE_S); /* a handler that waits for a lock waits for ever */
    assert_ok(pawl__thread_start(&sender, "sender", send_signals, &self, &error), &error);
    assert_status(pawl_reader_wait(reader, UINT32_MAX, &error), PAWL_CANCELLED, &error);
    while (atomic_load(&handled) < SIGNALS) {
        const pawl_event *event;
        assert_status(pawl_reader_next(reader, &event, &error), PAWL_NOT_FOUND, &error);
        assert_status(pawl_reader_wait(reader, 1, &error), PAWL_CANCELLED, &error);
    }
    atomic_store(&over, true);
    pawl__thread_join(&sender);
    alarm(0);
    signal(SIGUSR1, SIG_DFL);
    pawl_reader_free(reader);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_signal_ends_a_wait_that_has_begun(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_ledger *ledger = open_reader();

    signal(SIGALRM, on_signal);
    alarm(1); /* long after the wait has begun; earlier would be as good */
    assert_status(pawl_reader_wait(reader, UINT32_MAX, &error), PAWL_CANCELLED, &error);
    signal(SIGALRM, SIG_DFL);
    pawl_reader_free(reader);
    pawl_ledger_close(ledger, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_may_cancel_a_reader_at_any_moment),
        cmocka_unit_test(test_a_signal_ends_a_wait_that_has_begun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
