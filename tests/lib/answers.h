/* Checks what a node answers against its own description (OpenAPI), whatever else a test wants of the answers. */
#ifndef TESTS_ANSWERS_H
#define TESTS_ANSWERS_H

/* Records every answer of http_ask from here on. */
void answers_record(void);

/* At the end of the program: 0, or 1 after it has said which answers the document does not describe. Without the tools
 * (tests/openapi/node_modules) it is 0, unless CI is set. */
int answers_check(void);

#endif
