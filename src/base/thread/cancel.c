#include "base/thread/cancel.h"

#include "base/core/error.h"

static void wake_child(void *context)
{
    pawl__cancel_now(context);
}

void pawl__cancel_init(struct pawl__cancel *cancel, struct pawl__cancel *parent)
{
    *cancel = (struct pawl__cancel){ .parent = parent };
    pawl__lock_cond_init(&cancel->lock, &cancel->cond);
    if (parent != NULL) {
        pawl__cancel_link(parent, &cancel->in_parent, wake_child, cancel);
    }
}

void pawl__cancel_done(struct pawl__cancel *cancel)
{
    if (cancel->parent != NULL) {
        pawl__cancel_unlink(cancel->parent, &cancel->in_parent);
    }
    REQUIRE(cancel->links == NULL);
    pawl__lock_cond_done(&cancel->lock, &cancel->cond);
}

void pawl__cancel_now(struct pawl__cancel *cancel)
{
    pawl__lock(&cancel->lock);
    if (!atomic_load(&cancel->cancelled)) {
        atomic_store(&cancel->cancelled, true);
        pawl__cond_broadcast(&cancel->cond);
        for (struct pawl__cancel_link *link = cancel->links; link != NULL; link = link->next) {
            link->wake(link->context);
        }
    }
    pawl__unlock(&cancel->lock);
}

bool pawl__cancelled(const struct pawl__cancel *cancel)
{
    return cancel != NULL && atomic_load_explicit(&cancel->cancelled, memory_order_acquire);
}

bool pawl__cancel_wait_until(struct pawl__cancel *cancel, int64_t deadline_ns)
{
    pawl__lock(&cancel->lock);
    bool in_time = true;
    while (in_time && !atomic_load(&cancel->cancelled)) {
        in_time = pawl__cond_wait_until(&cancel->cond, &cancel->lock, deadline_ns);
    }
    bool cancelled = atomic_load(&cancel->cancelled);
    pawl__unlock(&cancel->lock);
    return cancelled;
}

void pawl__cancel_link(struct pawl__cancel *cancel,
                       struct pawl__cancel_link *link,
                       void (*wake)(void *context),
                       void *context)
{
    *link = (struct pawl__cancel_link){ .wake = wake, .context = context };
    pawl__lock(&cancel->lock);
    link->next = cancel->links;
    if (link->next != NULL) {
        link->next->before = link;
    }
    cancel->links = link;
    if (atomic_load(&cancel->cancelled)) {
        wake(context);
    }
    pawl__unlock(&cancel->lock);
}

void pawl__cancel_unlink(struct pawl__cancel *cancel, struct pawl__cancel_link *link)
{
    if (link->wake == NULL) {
        return;
    }
    pawl__lock(&cancel->lock);
    if (link->next != NULL) {
        link->next->before = link->before;
    }
    if (link->before != NULL) {
        link->before->next = link->next;
    } else {
        cancel->links = link->next;
    }
    pawl__unlock(&cancel->lock);
    *link = (struct pawl__cancel_link){ 0 };
}
