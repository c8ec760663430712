/* What doctor makes of what it finds: the judges, on facts that no test machine has. */
#include "lib/check.h"

#include "base/core/error.h"
#include "base/os/clock.h"
#include "cli/node/doctor.h"
#include "cli/node/open_files.h"

#define MIB (UINT64_C(1) << 20)

static void assert_finding(struct pawl__cli_finding finding,
                           enum pawl__cli_verdict verdict,
                           pawl_status status,
                           const char *says)
{
    if (strstr(finding.says, says) == NULL) {
        fail_msg("'%s' is not in '%s'", says, finding.says);
    }
    assert_int_equal(finding.verdict, verdict);
    assert_int_equal(finding.status, status);
    /* Whoever is warned is told the cost and the way out. */
    assert_int_equal(finding.cost != NULL, verdict != VERDICT_OK);
    assert_int_equal(finding.fix[0] != '\0', verdict != VERDICT_OK);
}

static void test_a_directory_for_others_to_read_is_a_warning(void **state)
{
    struct pawl__cli_directory_facts facts = {
        .path = "/d", .mode = 040700, .owner = 7, .user = 7
    };

    (void)state;
    assert_finding(pawl__cli_judge_directory(&facts), VERDICT_OK, PAWL_OK, "'/d', mode 0700");
    facts.created = true;
    assert_finding(pawl__cli_judge_directory(&facts), VERDICT_OK, PAWL_OK, "created now");
    facts.mode = 040750;
    assert_finding(pawl__cli_judge_directory(&facts), VERDICT_WARNING, PAWL_OK, "mode 0750");
    facts.mode = 040700;
    facts.owner = 8;
    assert_finding(
        pawl__cli_judge_directory(&facts), VERDICT_WARNING, PAWL_OK, "belongs to user 8");
    facts.user = 0; /* root may look after the directory of somebody else */
    assert_finding(pawl__cli_judge_directory(&facts), VERDICT_OK, PAWL_OK, "'/d'");
}

static void test_memory_for_stores_is_half_of_what_there_is(void **state)
{
    (void)state;
    assert_finding(pawl__cli_judge_memory(512 * MIB, 256 * MIB), VERDICT_OK, PAWL_OK, "256 MiB");
    assert_finding(pawl__cli_judge_memory(0, 256 * MIB), VERDICT_OK, PAWL_OK, "256 MiB");
    assert_finding(
        pawl__cli_judge_memory(512 * MIB - 2, 256 * MIB), VERDICT_WARNING, PAWL_OK, "511 MiB");
}

static void test_space_runs_out_in_two_steps(void **state)
{
    (void)state;
    assert_finding(
        pawl__cli_judge_space("/d", 1024 * MIB, 256 * MIB), VERDICT_OK, PAWL_OK, "1024 MiB");
    assert_finding(pawl__cli_judge_space("/d", 1023 * MIB, 256 * MIB),
                   VERDICT_WARNING,
                   PAWL_OK,
                   "1023 MiB are free below '/d'");
    assert_finding(
        pawl__cli_judge_space("/d", 256 * MIB, 256 * MIB), VERDICT_WARNING, PAWL_OK, "256 MiB");
    assert_finding(pawl__cli_judge_space("/d", 256 * MIB - 1, 256 * MIB),
                   VERDICT_PROBLEM,
                   PAWL_NO_SPACE,
                   "255 MiB");
    assert_finding(pawl__cli_judge_space("/d", 0, 0), VERDICT_OK, PAWL_OK, "0 MiB");
}

static void test_few_open_files_are_a_warning(void **state)
{
    (void)state;
    assert_finding(pawl__cli_judge_open_files(1024, 4096, 1024), VERDICT_OK, PAWL_OK, "up to 1024");
    assert_finding(
        pawl__cli_judge_open_files(1023, 4096, 1024), VERDICT_WARNING, PAWL_OK, "only 1023");
    assert_non_null(strstr(pawl__cli_judge_open_files(1, 4096, 1024).fix, "ulimit -n 4096"));
    assert_non_null(strstr(pawl__cli_judge_open_files(1, 4095, 1024).fix, "hard limit"));
}

static void test_open_files_are_judged_by_the_connections_of_a_node(void **state)
{
    (void)state;
    assert_finding(
        pawl__cli_judge_open_files(1024, 10000, 5000), VERDICT_OK, PAWL_OK, "up to 1024");
    assert_finding(pawl__cli_judge_open_files(9998, 9998, 5000),
                   VERDICT_WARNING,
                   PAWL_OK,
                   "4999 of server.connections_max (5000)");
    assert_non_null(strstr(pawl__cli_judge_open_files(9998, 9998, 5000).fix, "to 10000"));
    assert_int_equal(pawl__cli_connections_that_fit(1024, 1024), 512);
    assert_int_equal(pawl__cli_connections_that_fit(2048, 1024), 1024);
    assert_int_equal(pawl__cli_connections_that_fit(UINT64_MAX, 1024), 1024);
    assert_int_equal(pawl__cli_connections_that_fit(0, 1024), 0);
}

static void test_a_clock_that_went_back_is_a_warning(void **state)
{
    int64_t now = INT64_C(1800000000) * US_PER_S; /* 2027-01-15 */

    (void)state;
    assert_finding(pawl__cli_judge_clock(now, 0), VERDICT_OK, PAWL_OK, "2027-01-15T08:00:00");
    assert_finding(pawl__cli_judge_clock(now, now + 60 * US_PER_S), VERDICT_OK, PAWL_OK, "2027");
    assert_finding(pawl__cli_judge_clock(now, now + 60 * US_PER_S + 1),
                   VERDICT_WARNING,
                   PAWL_OK,
                   "but a store was changed at 2027-01-15T08:01:00");
    assert_finding(pawl__cli_judge_clock(0, 0), VERDICT_WARNING, PAWL_OK, "1970-01-01");
}

static const char mountinfo[] =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    "30 22 0:26 / /tmp rw,nosuid shared:5 master:1 - tmpfs tmpfs rw,size=1024k\n"
    "31 22 8:2 / /srv rw - xfs /dev/sdb1 rw,nobarrier\n"
    "32 31 8:3 / /srv/a\\040b ro,relatime - ext4 /dev/sdb2 rw\n"
    "33 22 0:50 / /mnt/share rw - nfs4 host:/x rw,vers=4.2\n"
    "34 30 8:9 / /tmp rw - ext4 /dev/sdc1 rw\n"
    "a line that is none\n";

static void test_the_longest_mount_point_holds_the_path(void **state)
{
    pawl_view text = { mountinfo, sizeof(mountinfo) - 1 };

    (void)state;
    assert_string_equal(pawl__cli_mount_of(text, "/home/x").type, "ext4");
    assert_string_equal(pawl__cli_mount_of(text, "/srv").type, "xfs");
    assert_true(pawl__cli_mount_of(text, "/srv/data").no_barrier);
    assert_false(pawl__cli_mount_of(text, "/srvice").no_barrier); /* not below /srv */
    assert_true(pawl__cli_mount_of(text, "/srv/a b/data").read_only);
    assert_false(pawl__cli_mount_of(text, "/srv/a").read_only);
    assert_string_equal(pawl__cli_mount_of(text, "/mnt/share/d").type, "nfs4");
    /* The later mount hides the earlier one. */
    assert_string_equal(pawl__cli_mount_of(text, "/tmp/d").type, "ext4");
    assert_string_equal(pawl__cli_mount_of((pawl_view){ NULL, 0 }, "/tmp").type, "");
}

static void test_doubtful_file_systems_are_warnings(void **state)
{
    struct pawl__cli_mount mount = { .type = "ext4" };

    (void)state;
    assert_finding(pawl__cli_judge_mount("/d", &mount), VERDICT_OK, PAWL_OK, "ext4");
    mount.no_barrier = true;
    assert_finding(pawl__cli_judge_mount("/d", &mount), VERDICT_WARNING, PAWL_OK, "barriers");
    mount.read_only = true;
    assert_finding(pawl__cli_judge_mount("/d", &mount), VERDICT_PROBLEM, PAWL_DENIED, "read-only");
    mount = (struct pawl__cli_mount){ .type = "nfs4" };
    assert_finding(
        pawl__cli_judge_mount("/d", &mount), VERDICT_WARNING, PAWL_OK, "'/d' is on nfs4");
    mount = (struct pawl__cli_mount){ .type = "fuse.sshfs" };
    assert_finding(pawl__cli_judge_mount("/d", &mount), VERDICT_WARNING, PAWL_OK, "fuse.sshfs");
    mount = (struct pawl__cli_mount){ .type = "tmpfs" };
    assert_finding(pawl__cli_judge_mount("/d", &mount), VERDICT_WARNING, PAWL_OK, "tmpfs");
    mount = (struct pawl__cli_mount){ .type = "" };
    assert_finding(pawl__cli_judge_mount("/d", &mount), VERDICT_OK, PAWL_OK, "not known");
}

static void test_a_postgres_that_may_lose_commits_is_a_warning(void **state)
{
    struct pawl__cli_pg_facts facts = {
        .location = "u@h:5432/d",
        .version = 150012,
        .fsync = true,
        .full_page_writes = true,
        .default_commit = "on",
    };

    (void)state;
    assert_finding(
        pawl__cli_judge_pg_access(&facts), VERDICT_OK, PAWL_OK, "u@h:5432/d, version 15.12");
    assert_finding(pawl__cli_judge_pg_durability(&facts), VERDICT_OK, PAWL_OK, "fsync");
    facts.default_commit = "off";
    assert_finding(pawl__cli_judge_pg_durability(&facts), VERDICT_OK, PAWL_OK, "switch it on");
    facts.full_page_writes = false;
    assert_finding(
        pawl__cli_judge_pg_durability(&facts), VERDICT_WARNING, PAWL_OK, "full_page_writes");
    facts.fsync = false;
    assert_finding(pawl__cli_judge_pg_durability(&facts), VERDICT_WARNING, PAWL_OK, "fsync is off");
    facts.read_only = true;
    assert_finding(pawl__cli_judge_pg_access(&facts), VERDICT_PROBLEM, PAWL_DENIED, "read-only");
    facts.version = 120018;
    assert_finding(
        pawl__cli_judge_pg_access(&facts), VERDICT_PROBLEM, PAWL_UNSUPPORTED, "12.18; at least 13");
}

static void test_a_given_directory_wins_over_the_server(void **state)
{
    struct pawl__cli_choice_facts facts = { .data = "/d", .database_url = "postgres://h" };

    (void)state;
    assert_finding(
        pawl__cli_judge_choice(&facts), VERDICT_OK, PAWL_OK, "because database_url is not set");
    facts.database_origin = "environment variable DATABASE_URL";
    assert_finding(pawl__cli_judge_choice(&facts),
                   VERDICT_OK,
                   PAWL_OK,
                   "PostgreSQL, because database_url is set (environment variable DATABASE_URL)");
    facts.database_url = "sqlite:/e/l.db";
    assert_finding(pawl__cli_judge_choice(&facts),
                   VERDICT_OK,
                   PAWL_OK,
                   "the file 'sqlite:/e/l.db', because database_url is set");
    facts.data_flag = true;
    assert_finding(pawl__cli_judge_choice(&facts), VERDICT_OK, PAWL_OK, "because --data was given");
}

static void test_a_location_that_may_lose_is_a_warning(void **state)
{
    (void)state;
    assert_finding(
        pawl__cli_judge_location("sqlite:l.db?durability=full"), VERDICT_OK, PAWL_OK, "survives");
    assert_finding(pawl__cli_judge_location("sqlite:l.db?durability=normal"),
                   VERDICT_WARNING,
                   PAWL_OK,
                   "durability=normal");
}

static pawl_status worst_of(const pawl_status *statuses, size_t count, bool strict)
{
    struct pawl__cli_finding findings[8] = { 0 };

    for (size_t i = 0; i < count; i++) {
        findings[i].verdict = statuses[i] == PAWL_OK ? VERDICT_WARNING : VERDICT_PROBLEM;
        findings[i].status = statuses[i];
    }
    return pawl__cli_doctor_worst(findings, count, strict);
}

static void test_the_worst_problem_decides_and_strict_counts_warnings(void **state)
{
    /* From harmless to worst, a warning first. */
    static const pawl_status order[] = {
        PAWL_OK, PAWL_BUSY, PAWL_DENIED, PAWL_UNSUPPORTED, PAWL_CORRUPT
    };
    static const pawl_status strict[] = {
        PAWL_FAILED, PAWL_FAILED, PAWL_FAILED, PAWL_UNSUPPORTED, PAWL_CORRUPT
    };

    (void)state;
    assert_int_equal(worst_of(NULL, 0, true), PAWL_OK);
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        assert_int_equal(worst_of(order, i + 1, false), order[i]);
        assert_int_equal(worst_of(order, i + 1, true), strict[i]);
    }
}

static void test_a_broker_that_syncs_late_is_a_warning(void **state)
{
    struct pawl__cli_jetstream_facts facts = { .host = "localhost",
                                               .version = "2.10.27",
                                               .sync_always = true };

    (void)state;
    assert_finding(
        pawl__cli_judge_jetstream(&facts), VERDICT_OK, PAWL_OK, "2.10.27, syncs every message");
    facts.sync_always = false;
    facts.sync_interval_ns = 120 * NS_PER_S;
    assert_finding(
        pawl__cli_judge_jetstream(&facts), VERDICT_WARNING, PAWL_OK, "syncs every 120 seconds");
    facts.sync_interval_ns = 0;
    assert_finding(
        pawl__cli_judge_jetstream(&facts), VERDICT_WARNING, PAWL_OK, "does not say how often");
}

static void test_a_duplicate_window_shorter_than_a_retry_is_a_warning(void **state)
{
    (void)state;
    assert_finding(pawl__cli_judge_duplicate_window("ORDERS", 120 * NS_PER_S, 30 * NS_PER_S),
                   VERDICT_OK,
                   PAWL_OK,
                   "120 seconds");
    assert_finding(pawl__cli_judge_duplicate_window("ORDERS", 10 * NS_PER_S, 30 * NS_PER_S),
                   VERDICT_WARNING,
                   PAWL_OK,
                   "'ORDERS': duplicate window of 10 seconds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_directory_for_others_to_read_is_a_warning),
        cmocka_unit_test(test_space_runs_out_in_two_steps),
        cmocka_unit_test(test_memory_for_stores_is_half_of_what_there_is),
        cmocka_unit_test(test_few_open_files_are_a_warning),
        cmocka_unit_test(test_open_files_are_judged_by_the_connections_of_a_node),
        cmocka_unit_test(test_a_clock_that_went_back_is_a_warning),
        cmocka_unit_test(test_the_longest_mount_point_holds_the_path),
        cmocka_unit_test(test_doubtful_file_systems_are_warnings),
        cmocka_unit_test(test_a_postgres_that_may_lose_commits_is_a_warning),
        cmocka_unit_test(test_a_broker_that_syncs_late_is_a_warning),
        cmocka_unit_test(test_a_duplicate_window_shorter_than_a_retry_is_a_warning),
        cmocka_unit_test(test_a_given_directory_wins_over_the_server),
        cmocka_unit_test(test_a_location_that_may_lose_is_a_warning),
        cmocka_unit_test(test_the_worst_problem_decides_and_strict_counts_warnings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
