"""What is published: event n of a run, as a pure function of n, and the SQL that says what must have become of it.

1 % is poison of three kinds, some events are published twice with the same payload, and some once more with another.
"""
import json

SOURCE = "S"
COLUMNS = [{"name": "n", "type": "BIGINT", "path": "$.n", "required": True},
           {"name": "amount", "type": "INTEGER", "path": "$.amount"}]
POISON = ("not_json", "unmappable", "out_of_range")
IS_POISON = "n % 100 = 37"
IS_CONFLICT = "n % 500 = 250"


def poison(n):
    """None, or which kind."""
    return POISON[n // 100 % 3] if n % 100 == 37 else None


def payload(n):
    kind = poison(n)
    if kind == "not_json":
        return b"{not json %d" % n
    if kind == "unmappable":
        return b'{"n": "x%d", "amount": 1}' % n
    if kind == "out_of_range":
        return b'{"n": %d, "amount": 3000000000}' % n
    return b'{"n": %d, "amount": %d, "text": "%s"}' % (n, n % 1000, b"x" * (n % 90))


def messages(n):
    """Those of event n: (the server may find it by its id, payload)."""
    found = [(True, payload(n))]
    if n % 50 == 7:
        found.append((False, payload(n)))  # a retry, after the server has forgotten the id
    if n % 500 == 250:
        found.append((False, b'{"n": %d, "amount": -1}' % n))
    return found


def headers(n, has_message_id):
    if has_message_id:
        return b"NATS/1.0\r\nNats-Msg-Id: e-%d\r\n\r\n" % n
    return b"NATS/1.0\r\nPawl-Source: %s\r\nPawl-Event-Id: e-%d\r\nPawl-Sequence: 0\r\n\r\n" % (SOURCE.encode(), n)


def columns():
    return json.dumps(COLUMNS)


def line(n):
    """Event n for `pawl publish`, without poison."""
    return json.dumps({"id": f"e-{n}", "n": n, "amount": n % 1000}) + "\n"


def plain_questions(count):
    """Of events without poison and conflicts."""
    return {
        "lost": f"SELECT 'e-' || range AS id, 'no row' AS why FROM range({count}) WHERE range NOT IN (SELECT n FROM events)",
        "duplicated": "SELECT 'e-' || n AS id, count(*) || ' rows' AS why FROM events GROUP BY n HAVING count(*) > 1",
        "invented": f"SELECT 'e-' || n AS id, 'a row of nothing' AS why FROM events WHERE n >= {count} "
                    "UNION ALL SELECT transaction_id, failure_reason FROM failed_events",
    }


def questions(count):
    """{what is wrong: SQL with a row for each case of it}, its id and why."""
    all_of_them = f"(SELECT range AS n, '{SOURCE}:e-' || range || ':0' AS id FROM range({count}))"
    return {
        "lost": f"""
            SELECT id, 'no row' AS why FROM {all_of_them} WHERE NOT {IS_POISON} AND n NOT IN (SELECT n FROM events)
            UNION ALL
            SELECT id, 'poison, and not in failed_events' FROM {all_of_them} WHERE {IS_POISON}
                AND id NOT IN (SELECT transaction_id FROM failed_events)
            UNION ALL
            SELECT id, 'a conflict, and not in failed_events' FROM {all_of_them} WHERE {IS_CONFLICT}
                AND id NOT IN (SELECT transaction_id FROM failed_events WHERE failure_reason = 'conflict')""",
        "duplicated": """
            SELECT transaction_id AS id, count(*) || ' rows' AS why FROM events GROUP BY ALL HAVING count(*) > 1
            UNION ALL
            SELECT transaction_id, count(*) || ' rows of failed_events' FROM failed_events GROUP BY transaction_id
                HAVING count(*) > 1""",
        "invented": f"""
            SELECT transaction_id AS id, 'a row of nothing' AS why FROM events
                WHERE n >= {count} OR {IS_POISON} OR transaction_id <> '{SOURCE}:e-' || n || ':0'
            UNION ALL
            SELECT transaction_id, 'failed: ' || failure_reason FROM failed_events
                WHERE transaction_id NOT IN (SELECT id FROM {all_of_them} WHERE {IS_POISON} OR {IS_CONFLICT})
                OR event_payload IS NULL OR coalesce(failure_reason, '') = ''""",
    }


SLOWEST_FAILURE = "SELECT coalesce(max(epoch(failed_at) - epoch(received_at)), 0) AS seconds, count(*) AS n FROM failed_events"
