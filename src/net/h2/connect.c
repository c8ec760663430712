/* What Connect says in JSON. */
#include "net/h2/service.h"

#include <jansson.h>

#include "base/json/json.h"

void pawl__h2_connect_error(int code, pawl_view message, struct pawl__buf *out)
{
    json_t *json = json_pack("{s:s,s:s%}",
                             "code",
                             pawl__h2_connect_name(code),
                             "message",
                             message.data == NULL ? "" : message.data,
                             message.len);

    if (json == NULL || pawl__json_dump(json, out, NULL) != PAWL_OK) {
        pawl__buf_add_text(out,
                           "{\"code\":\"internal\"}"); /* no memory, or a message that is no text */
    }
    json_decref(json);
}
