/* Requests that libmicrohttpd refuses before a handler sees them.
 *
 * It answers with a page of HTML, and 0.9.75 sends the answer twice when it is the headers as a whole
 * that it does not like: no Host, a Content-Length that is no number, cookies for which there is no
 * memory. There is no callback for that. But its log says so, on the connection's thread, before it
 * answers; and of all requests of that thread there is one whose headers have arrived and which nobody
 * has handed to us. That one we answer ourselves, on the socket, and close our side of it: MHD cannot send
 * behind that, and ends the connection.
 *
 * First lines and header lines that are malformed, versions that it does not know, chunks that are none
 * and headers for which its memory is too small stay its own: one answer in HTML, or none, and the
 * connection ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "net/http/internal.h"

static void add_date(struct pawl__buf *answer, struct pawl__clock *clock)
{
    static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    time_t now = (time_t)(pawl__wall_us(clock) / US_PER_S);
    struct tm at;

    if (gmtime_r(&now, &at) != NULL) {
        pawl__buf_add_format(answer,
                             "Date: %s, %02d %s %d %02d:%02d:%02d GMT\r\n",
                             days[at.tm_wday],
                             at.tm_mday,
                             months[at.tm_mon],
                             at.tm_year + 1900,
                             at.tm_hour,
                             at.tm_min,
                             at.tm_sec);
    }
}

static void write_answer(const struct pawl__http_problem *problem,
                         const char *detail,
                         struct pawl__clock *clock,
                         struct pawl__buf *answer)
{
    struct pawl__buf body = BUF_INIT(4 * PAWL_ERROR_MESSAGE_SIZE + 1024);

    pawl__http_problem_write(problem, detail, NULL, &body);
    pawl__buf_add_format(
        answer, "HTTP/1.1 %u %s\r\n", problem->http, MHD_get_reason_phrase_for(problem->http));
    add_date(answer, clock);
    pawl__buf_add_format(answer,
                         "Connection: close\r\n"
                         "Content-Type: application/problem+json\r\n"
                         "Cache-Control: no-store\r\n"
                         "X-Content-Type-Options: nosniff\r\n"
                         "Content-Length: %zu\r\n\r\n",
                         body.len);
    pawl__buf_add(answer, pawl__buf_view(&body));
    answer->broken = answer->broken || body.broken;
    pawl__buf_done(&body);
}

/* What is sent before it on this connection has been sent: MHD reads one request at a time. A client
 * whose window is full gets no answer, only the end. */
void pawl__http_refuse_raw(struct pawl__http_request *request,
                           const struct pawl__http_problem *problem,
                           const char *detail)
{
    struct pawl__buf answer = BUF_INIT((size_t)16 * PAWL_ERROR_MESSAGE_SIZE);
    int64_t took_ns = pawl__monotonic_ns(request->http->options.clock) - request->began_ns;

    if (request->conn == NULL || request->refused) {
        return;
    }
    write_answer(problem, detail, request->http->options.clock, &answer);
    if (!answer.broken
        && request->http->options.tls_certificate == NULL) { /* else it were no TLS */
        pawl_view bytes = pawl__buf_view(&answer);
        (void)!send(request->conn->fd, bytes.data, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    (void)shutdown(request->conn->fd, SHUT_WR);
    request->refused = true;
    pawl__buf_done(&answer);
    pawl__http_metrics_count(request->http->metrics,
                             request->route,
                             request->method,
                             problem->http,
                             (double)took_ns / (double)NS_PER_S);
    LOG_DEBUG("request refused before its headers were read",
              LOG_NATURAL("code", problem->http),
              LOG_TEXT("detail", detail));
}

/* Of this thread's requests the one whose headers have arrived and that no handler has seen. MHD tells
 * without a lock whether they have. */
static struct pawl__http_request *find_refused(struct http_watch *watch)
{
    struct pawl__http_request *found = NULL;

    pawl__lock(&watch->lock);
    for (struct http_conn *conn = watch->conns; conn != NULL && found == NULL; conn = conn->next) {
        if (conn->request != NULL && pthread_equal(conn->thread, pthread_self())
            && conn->request->phase == HTTP_BEGUN
            && MHD_get_connection_info(conn->request->connection,
                                       MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                   != NULL) {
            found = conn->request;
        }
    }
    pawl__unlock(&watch->lock);
    return found;
}

static void refuse_headers(struct pawl__http_request *request, unsigned code)
{
    if (code == 413) {
        pawl__http_refuse_raw(request, &pawl__http_too_large, "Content-Length is too large");
    } else if (code == 431) {
        pawl__http_refuse_raw(
            request, &pawl__http_headers_too_large, "cookies are not needed here");
    } else if (pawl__http_header(request, "Host") == NULL) {
        pawl__http_refuse_raw(
            request, pawl__http_problem_of(PAWL_INVALID), "the header Host is missing");
    } else if (pawl__http_header(request, "Transfer-Encoding") != NULL) {
        pawl__http_refuse_raw(request,
                              pawl__http_problem_of(PAWL_INVALID),
                              "the only Transfer-Encoding is chunked, without Content-Length");
    } else {
        pawl__http_refuse_raw(
            request, pawl__http_problem_of(PAWL_INVALID), "Content-Length is not a whole number");
    }
}

void pawl__http_on_message(void *context, const char *format, va_list arguments)
{
    static const char answers[] = "Error processing request (HTTP response code is %u";
    struct pawl__http *http = context;
    char text[PAWL_ERROR_MESSAGE_SIZE];
    bool refuses = strncmp(format, answers, strlen(answers)) == 0;
    unsigned code = 0;

    if (refuses) {
        va_list copy;

        va_copy(copy, arguments);
        code = va_arg(copy, unsigned);
        va_end(copy);
    }
    (void)vsnprintf(text, sizeof(text), format, arguments);
    text[strcspn(text, "\n")] = '\0';
    LOG_DEBUG("libmicrohttpd", LOG_TEXT("message", text));
    struct pawl__http_request *request = refuses ? find_refused(&http->watch) : NULL;
    if (request != NULL) {
        refuse_headers(request, code);
    }
}
