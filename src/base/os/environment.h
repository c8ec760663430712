/* The environment, handed in like every other input: a list of "NAME=value" that ends with NULL,
 * such as `(const char *const *)environ`. A test brings its own. */
#ifndef PAWL_BASE_OS_ENVIRONMENT_H
#define PAWL_BASE_OS_ENVIRONMENT_H

/* The value of a variable; NULL when it is missing or empty. The list may be NULL. Borrowed. */
const char *pawl__environment_get(const char *const *environment, const char *name);

#endif
