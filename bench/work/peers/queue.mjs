// One run of a work queue of Node.
//
//   node queue.mjs graphile|graphile-batched|pg-boss|bullmq ADDRESS ITEMS WORKERS
//
// ADDRESS is a PostgreSQL URL of an empty database, or the port of an empty Redis. Prints
// {"enqueue_s":…,"drain_s":…}: items go in by the thousand with the queue's own call for many, then
// that many workers end them one by one, until the last one's end is stored.
import { performance } from "node:perf_hooks";

const BATCH = 1000;
const QUEUE = "noop";

function* batches(items) {
  for (let from = 0; from < items; from += BATCH) {
    yield Array.from({ length: Math.min(BATCH, items - from) }, (_, i) => from + i);
  }
}

async function seconds(action) {
  const start = performance.now();
  await action();
  return (performance.now() - start) / 1000;
}

// Resolves at the items-th call of the function that it hands out.
function countdown(items) {
  let left = items;
  let reached;
  const all = new Promise((resolve) => (reached = resolve));
  return { one: () => (--left === 0 ? reached() : undefined), all };
}

async function untilEmpty(pool, sql) {
  for (;;) {
    const { rows } = await pool.query(sql);
    if (rows.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function graphile(address, items, workers, settings) {
  const { Logger, makeWorkerUtils, run } = await import("graphile-worker");
  const { default: pg } = await import("pg");
  const logger = new Logger(() => () => {});
  // One connection a worker; the default of 10 would hold 16 workers back.
  const pool = new pg.Pool({ connectionString: address, max: workers + 4 });
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  const enqueue = await seconds(async () => {
    for (const batch of batches(items)) {
      await utils.addJobs(batch.map((i) => ({ identifier: QUEUE, payload: { i } })));
    }
  });
  const jobs = countdown(items);
  let runner;
  const drain = await seconds(async () => {
    runner = await run({
      pgPool: pool,
      logger,
      noHandleSignals: true,
      taskList: { [QUEUE]: async () => jobs.one() },
      preset: { worker: { concurrentJobs: workers, ...settings } },
    });
    await jobs.all;
    await untilEmpty(pool, "SELECT 1 FROM graphile_worker.jobs LIMIT 1");
  });
  await runner.stop();
  await utils.release();
  await pool.end();
  return { enqueue, drain };
}

// work() of pg-boss polls, every two seconds by default and at best every half second, and takes one
// job a poll. fetch() and complete() are its own calls for those who do not want to wait.
async function pgBoss(address, items, workers) {
  const { default: PgBoss } = await import("pg-boss");
  const boss = new PgBoss({ connectionString: address, max: workers + 4 });
  boss.on("error", (error) => {
    throw error;
  });
  await boss.start();
  await boss.createQueue(QUEUE);
  const enqueue = await seconds(async () => {
    for (const batch of batches(items)) {
      await boss.insert(batch.map((i) => ({ name: QUEUE, data: { i } })));
    }
  });
  let ended = 0;
  const work = async () => {
    for (;;) {
      const [job] = await boss.fetch(QUEUE);
      if (job === undefined) return;
      await boss.complete(QUEUE, job.id);
      ended++;
    }
  };
  const drain = await seconds(() => Promise.all(Array.from({ length: workers }, work)));
  await boss.stop({ graceful: false });
  if (ended !== items) throw new Error(`the drain ended after ${ended} of ${items}`);
  return { enqueue, drain };
}

async function bullmq(port, items, workers) {
  const { Queue, Worker } = await import("bullmq");
  const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
  const queue = new Queue(QUEUE, { connection });
  const enqueue = await seconds(async () => {
    for (const batch of batches(items)) {
      await queue.addBulk(batch.map((i) => ({ name: QUEUE, data: { i } })));
    }
  });
  const jobs = countdown(items);
  let worker;
  const drain = await seconds(async () => {
    worker = new Worker(QUEUE, async () => {}, { connection, concurrency: workers });
    worker.on("completed", jobs.one);
    worker.on("error", (error) => {
      throw error;
    });
    await jobs.all;
  });
  await worker.close();
  await queue.close();
  return { enqueue, drain };
}

const peers = {
  graphile: (address, items, workers) => graphile(address, items, workers, {}),
  // What its own performance test sets: a worker is given the next job before the end of the last
  // one is stored, which none of the others here does.
  "graphile-batched": (address, items, workers) =>
    graphile(address, items, workers, {
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    }),
  "pg-boss": pgBoss,
  bullmq,
};

const [name, address, items, workers] = process.argv.slice(2);
if (!(name in peers) || !(Number(items) > 0) || !(Number(workers) > 0)) {
  console.error(`usage: node queue.mjs ${Object.keys(peers).join("|")} ADDRESS ITEMS WORKERS`);
  process.exit(2);
}
const { enqueue, drain } = await peers[name](address, Number(items), Number(workers));
console.log(JSON.stringify({ enqueue_s: enqueue, drain_s: drain }));
process.exit(0);
