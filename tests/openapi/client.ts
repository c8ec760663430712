// A program that somebody wrote against the description of the API alone: the types are generated from it
// (openapi-typescript), the requests are made by openapi-fetch. It is type-checked, then run against a node.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const api = createClient<paths>({ baseUrl: process.argv[2] });

async function tasks(): Promise<void> {
    const made = await api.POST("/v1/work/tasks", {
        body: { task_id: "newsletter", title: "Write to all", metadata: { issue: 7 } },
    });
    assert.equal(made.response.status, 201);
    assert.equal(made.data?.status, "pending");
    const again = await api.POST("/v1/work/tasks", {
        body: { task_id: "newsletter", title: "Write to all", metadata: { issue: 7 } },
    });
    assert.equal(again.response.status, 200);
    const other = await api.POST("/v1/work/tasks", { body: { task_id: "newsletter", title: "Another one" } });
    assert.equal(other.response.status, 409);
    assert.equal(other.error?.code, "CONFLICT");
}

async function submits(): Promise<void> {
    const one = await api.POST("/v1/work/items", {
        body: { work_item_id: "ada", task_id: "newsletter", work_type: "mail", input_data: { to: "ada@example.org" } },
    });
    assert.deepEqual(one.data, { items: [{ work_item_id: "ada", duplicate: false }] });
    const batch = await api.POST("/v1/work/items", {
        body: {
            items: [
                { work_item_id: "bob", task_id: "newsletter", work_type: "mail", priority: -1, max_retries: 0 },
                { work_item_id: "report", task_id: "newsletter", work_type: "report", after: ["ada", "bob"] },
            ],
        },
    });
    assert.equal(batch.response.status, 201);
    assert.equal(batch.data?.items.length, 2);
}

async function claim(type: string): Promise<components["schemas"]["Item"]> {
    const claimed = await api.POST("/v1/work/claims", { body: { holder: "worker-1", types: [type], lease: "30s", wait: "10s" } });
    const item = claimed.data?.items[0];
    assert.ok(item, JSON.stringify(claimed.error));
    return item;
}

async function works(): Promise<void> {
    const ada = await claim("mail");
    assert.equal(ada.work_item_id, "ada");
    assert.deepEqual(ada.input_data, { to: "ada@example.org" });
    const path = { params: { path: { item: ada.work_item_id } } };
    const beat = await api.POST("/v1/work/items/{item}/heartbeat", { ...path, body: { token: ada.token, lease: "1m" } });
    assert.ok(Date.parse(beat.data?.lease_expires_at ?? "") > Date.now() + 30_000);
    const done = await api.POST("/v1/work/items/{item}/complete", { ...path, body: { token: ada.token, output_data: { sent: true } } });
    assert.equal(done.data?.status, "completed");
    const lost = await api.POST("/v1/work/items/{item}/heartbeat", { ...path, body: { token: ada.token } });
    assert.equal(lost.response.status, 409);
    assert.equal(lost.error?.code, "LEASE_LOST");

    const bob = await claim("mail");
    const failed = await api.POST("/v1/work/items/{item}/fail", {
        params: { path: { item: bob.work_item_id } },
        body: { token: bob.token, error_message: "mailbox is full", permanent: true },
    });
    assert.equal(failed.data?.status, "failed");
}

async function lists(): Promise<void> {
    const seen: string[] = [];
    let from: string | undefined;
    do {
        const page = await api.GET("/v1/work/items", { params: { query: { task: "newsletter", limit: 2, from } } });
        seen.push(...(page.data?.items.map((item) => `${item.work_item_id} ${item.status}`) ?? []));
        from = page.data?.next ?? undefined;
    } while (from !== undefined);
    assert.deepEqual(seen, ["ada completed", "bob failed", "report failed"]);
    const shown = await api.GET("/v1/work/items/{item}", { params: { path: { item: "ada" } } });
    assert.equal(shown.data?.history.at(-1)?.to, "completed");
    const stats = await api.GET("/v1/work/stats");
    assert.equal(stats.data?.completed, 1);
    assert.equal(stats.data?.types.find((type) => type.status === "completed")?.work_type, "mail");
}

async function checkpoints(): Promise<void> {
    const path = { params: { path: { task: "newsletter" } } };
    const added = await api.POST("/v1/work/tasks/{task}/checkpoints", {
        ...path,
        body: { checkpoint_type: "iteration_end", snapshot_data: { sent: 1 } },
    });
    assert.equal(added.data?.sequence_number, 1);
    const latest = await api.GET("/v1/work/tasks/{task}/checkpoints/latest", path);
    assert.deepEqual(latest.data?.snapshot_data, { sent: 1 });
    const recovery = await api.GET("/v1/work/tasks/{task}/recovery", path);
    assert.equal(recovery.data?.resume?.sequence_number, 1);
}

async function ends(): Promise<void> {
    await api.POST("/v1/work/tasks", { body: { task_id: "draft" } });
    await api.POST("/v1/work/items", { body: { work_item_id: "proof", task_id: "draft", work_type: "read" } });
    const failed = await api.POST("/v1/work/items/{item}/cancel", { params: { path: { item: "proof" } }, body: {} });
    assert.equal(failed.data?.status, "failed");
    await api.POST("/v1/work/tasks", { body: { task_id: "sequel" } });
    await api.POST("/v1/work/items", { body: { task_id: "sequel", work_type: "read" } });
    const cancelled = await api.POST("/v1/work/tasks/{task}/cancel", { params: { path: { task: "sequel" } }, body: {} });
    assert.equal(cancelled.data?.failed_items, 1);
    const missing = await api.GET("/v1/work/tasks/{task}", { params: { path: { task: "nosuch" } } });
    assert.equal(missing.response.status, 404);
    assert.equal(missing.error?.code, "NOT_FOUND");
    // @ts-expect-error: a limit is a number; the node says which ones
    const wrong = await api.GET("/v1/work/items", { params: { query: { limit: "many" } } });
    assert.equal(wrong.response.status, 400);
    assert.match(wrong.error?.detail ?? "", /limit/);
}

async function applications(): Promise<void> {
    const app = { path: { app: "orders" } };
    const created = await api.PUT("/v1/apps/{app}", {
        params: app,
        body: {
            name: "orders",
            id: 1,
            kinds: [{ name: "shop", id: 1, sequences: [{ name: "invoice", id: 16, initial: 1000 }] }],
        },
    });
    assert.equal(created.response.status, 201);
    assert.equal(created.data?.partitions, 1);

    const command = {
        params: { path: { app: "orders", wsid: 7 }, header: { "Idempotency-Key": "pay-1" } },
        body: {
            kind: "shop",
            creates: [{ class: "c" as const, raw_id: 1, table: "order", data: { no: { $next: "invoice" } } }],
        },
    };
    let executed = await api.POST("/v1/apps/{app}/workspaces/{wsid}/commands", command);
    for (let tries = 0; executed.response.status === 503 && tries < 100; tries++) {
        await new Promise((wake) => setTimeout(wake, 100)); // the application reads its log
        executed = await api.POST("/v1/apps/{app}/workspaces/{wsid}/commands", command);
    }
    assert.deepEqual(executed.data?.numbers, [{ sequence: "invoice", number: 1000 }]);
    const replayed = await api.POST("/v1/apps/{app}/workspaces/{wsid}/commands", command);
    assert.equal(replayed.data?.duplicate, true);
    assert.equal(replayed.response.headers.get("Idempotent-Replayed"), "true");
    const reused = await api.POST("/v1/apps/{app}/workspaces/{wsid}/commands", { ...command, body: { kind: "shop" } });
    assert.equal(reused.response.status, 422);
    assert.equal(reused.error?.code, "KEY_REUSED");

    const records = await api.GET("/v1/apps/{app}/workspaces/{wsid}/records", { params: { path: { app: "orders", wsid: 7 } } });
    assert.deepEqual(records.data?.items.map((record) => record.data), [{ no: 1000 }]);
    const log = await api.GET("/v1/apps/{app}/workspaces/{wsid}/wlog", { params: { path: { app: "orders", wsid: 7 } } });
    assert.equal(log.data?.items[0]?.records[0]?.table, "order");
    const list = await api.GET("/v1/apps");
    assert.deepEqual(list.data?.items.map((item) => item.name), ["orders"]);
    const health = await api.GET("/healthz");
    assert.equal(health.data?.apps, 1);
}

for (const step of [tasks, submits, works, lists, checkpoints, ends, applications]) {
    await step();
}
