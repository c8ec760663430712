#include "lib/answers.h"

#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/json/object.h"
#include "lib/http_client.h"
#include "lib/tempdir.h"
#include "server/node.h"

static struct pawl__buf answers = BUF_INIT((size_t)256 << 20);

static void on_answer(const char *method_and_target, const struct http_reply *reply)
{
    const char *target = strchr(method_and_target, ' ');
    char *type = http_reply_header(reply, "Content-Type");
    struct pawl__object line = pawl__object_start(&answers);

    assert_non_null(target);
    pawl__object_text(
        &line, "method", (pawl_view){ method_and_target, (size_t)(target - method_and_target) });
    pawl__object_text(&line, "target", pawl_view_of(target + 1));
    pawl__object_integer(&line, "status", reply->code);
    pawl__object_text(&line, "type", pawl_view_of(type == NULL ? "" : type));
    pawl__object_text(&line, "body", pawl_view_of(reply->body == NULL ? "" : reply->body));
    pawl__object_end(&line);
    pawl__buf_add_char(&answers, '\n');
    free(type);
}

void answers_record(void)
{
    http_on_answer = on_answer;
}

static int write_file(const char *path, const struct pawl__buf *text)
{
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        return 1;
    }
    size_t written = fwrite(text->data, 1, text->len, file);
    return fclose(file) == 0 && written == text->len ? 0 : 1;
}

/* Its output goes to stderr: stdout is TAP. */
static int run_check(const char *document, const char *lines)
{
    char program[4096];
    int ended = 0;

    (void)snprintf(program, sizeof(program), "%s/tests/openapi/check.mjs", getenv("PAWL_SOURCE"));
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        execlp("node", "node", program, document, lines, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &ended, 0) != child) {
        return 1;
    }
    return WIFEXITED(ended) && WEXITSTATUS(ended) == 0 ? 0 : 1;
}

static bool has_tools(void)
{
    char modules[4096];
    const char *source = getenv("PAWL_SOURCE");

    (void)snprintf(
        modules, sizeof(modules), "%s/tests/openapi/node_modules", source == NULL ? "" : source);
    return access(modules, R_OK) == 0;
}

int answers_check(void)
{
    struct pawl__buf document = BUF_INIT(64 << 20);
    char dir[TEMPDIR_SIZE];
    char files[2][TEMPDIR_SIZE + 16];
    pawl_error error = PAWL_ERROR_INIT;
    int wrong = 1;

    if (!has_tools()) {
        fprintf(stderr, "answers are not checked: scripts/bootstrap --test\n");
        pawl__buf_done(&answers);
        return getenv("CI") == NULL ? 0 : 1;
    }
    if (tempdir_make(dir, "answers", &error) == PAWL_OK) {
        (void)snprintf(files[0], sizeof(files[0]), "%s/openapi.json", dir);
        (void)snprintf(files[1], sizeof(files[1]), "%s/answers", dir);
        if (pawl__serve_openapi(&document, &error) == PAWL_OK
            && write_file(files[0], &document) == 0 && write_file(files[1], &answers) == 0) {
            wrong = run_check(files[0], files[1]);
        }
        tempdir_remove(dir);
    }
    pawl__buf_done(&document);
    pawl__buf_done(&answers);
    return wrong;
}
