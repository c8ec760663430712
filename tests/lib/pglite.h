/* A real pgvector for one test program: PGlite, which is PostgreSQL in WebAssembly, behind a free
 * port on loopback (tests/pglite/serve.mjs). It ends with the program.
 *
 * It is one session for all who connect, so the ledger under test has to make do with a single
 * connection: `connections=1` stands in the URL. LISTEN, pools and concurrent writers are tested on
 * a real server.
 *
 * PAWL_UNSUPPORTED means that Node or the packages are not installed (scripts/bootstrap installs
 * them): skip(). */
#ifndef TESTS_PGLITE_H
#define TESTS_PGLITE_H

#include <sys/types.h>

#include <pawl/pawl.h>

struct pglite {
    pid_t pid; /* 0: not running */
    int out;
    char url[160]; /* for the ledger, with connections=1 */
    char libpq_url[128];
};

PAWL_MUST_USE pawl_status pglite_start(struct pglite *pglite, pawl_error *reterr);
void pglite_stop(struct pglite *pglite);

/* Runs a script while no ledger is open. */
PAWL_MUST_USE pawl_status pglite_admin(struct pglite *pglite, const char *sql, pawl_error *reterr);

#endif
