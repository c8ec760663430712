#include "cli/frame/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "cli/frame/run.h"

static volatile sig_atomic_t interrupted;
/* Lock-free, so the handler may look at it. */
static _Atomic(const struct pawl__cli_wakeable *) woken;
static _Atomic(const struct pawl__cli_wakeable *) escalation;

static void on_alarm(int number)
{
    const struct pawl__cli_wakeable *target = atomic_load(&escalation);

    (void)number;
    if (target != NULL) {
        target->wake(target->object);
    }
}

static void on_signal(int number)
{
    const struct pawl__cli_wakeable *target = atomic_load(&woken);

    (void)number;
    interrupted = 1;
    if (target != NULL) {
        target->wake(target->object);
    }
    alarm(1);
}

void pawl__cli_interrupt_catch(const struct pawl__cli_wakeable *target)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
    struct sigaction late = { .sa_handler = on_alarm };
    struct sigaction before;

    atomic_store(&woken, target);
    sigemptyset(&action.sa_mask);
    sigemptyset(&late.sa_mask);
    sigaction(SIGALRM, &late, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0
        && before.sa_handler != SIG_IGN) { /* nohup ignores it */
        sigaction(SIGHUP, &action, NULL);
    }
}

bool pawl__cli_interrupted(void)
{
    return interrupted != 0;
}

void pawl__cli_interrupt_release(void)
{
    atomic_store(&woken, NULL);
}

void pawl__cli_interrupt_escalates(const struct pawl__cli_wakeable *target)
{
    atomic_store(&escalation, target);
}

struct pawl__cli_progress pawl__cli_progress_start(const struct pawl__cli_run *run,
                                                   const char *label,
                                                   bool bytes)
{
    pawl__cli_interrupt_catch(NULL);
    return (struct pawl__cli_progress){
        .options = { .term = pawl__term_detect(STDERR_FILENO, (const char *const *)environ),
                     .clock = run->clock,
                     .label = label,
                     .bytes = bytes },
        .fd = STDERR_FILENO,
    };
}

bool pawl__cli_progress_step(void *context, uint64_t done, uint64_t total)
{
    struct pawl__cli_progress *work = context;

    if (!work->started) {
        work->started = true;
        work->options.fd = work->fd;
        work->options.sink = pawl__sink_fd(&work->fd); /* here it stays where it is */
        work->options.total = total;
        work->options.already = done;
        work->progress = pawl__progress_start(&work->options);
    }
    work->progress.options.total = total;
    pawl__progress_update(&work->progress, done);
    return !pawl__cli_interrupted();
}

pawl_watch pawl__cli_progress_watch(struct pawl__cli_progress *work)
{
    return (pawl_watch){ .size = sizeof(pawl_watch),
                         .progress = pawl__cli_progress_step,
                         .context = work };
}

void pawl__cli_progress_done(struct pawl__cli_progress *work)
{
    if (work->started) {
        pawl__progress_done(&work->progress);
        work->started = false;
    }
}
