// gRPC by @grpc/grpc-js, against net/h2 (tests/lib/h2_peer.c), in both roles. Messages are plain bytes.
//
//   node peer.mjs client ADDRESS [DIR]   calls every kind of method, and fails with an exception
//   node peer.mjs server [DIR]           has the same methods; prints its port; ends when standard input does
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

const [role, ...rest] = process.argv.slice(2);
const same = (bytes) => Buffer.from(bytes);
const method = (name, requestStream, responseStream) => ({
  path: `/test.Echo/${name}`, requestStream, responseStream,
  requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same,
});
const Echo = {
  Unary: method('Unary', false, false), Later: method('Later', false, false), Blocks: method('Blocks', false, false),
  Hold: method('Hold', false, false), Fail: method('Fail', false, false), Who: method('Who', false, false),
  Big: method('Big', false, false), Count: method('Count', false, true), Join: method('Join', true, false),
  Chat: method('Chat', true, true),
};
const file = (directory, name) => fs.readFileSync(path.join(directory, name));
const LARGE = { 'grpc.max_receive_message_length': 32 << 20, 'grpc.max_send_message_length': 32 << 20 };

function call(client, name, request, { metadata = new grpc.Metadata(), options = {} } = {}) {
  return new Promise((resolve, reject) => {
    client[name](request, metadata, options, (error, answer) => (error ? reject(error) : resolve(answer.toString())));
  });
}

async function fails(promise, code) {
  const error = await promise.then(() => assert.fail('it passed'), (failure) => failure);
  assert.equal(error.code, code, `${error.code} ${error.details}`);
  return error;
}

function credentials(directory) {
  return directory === undefined ? grpc.credentials.createInsecure()
    : grpc.credentials.createSsl(file(directory, 'ca.pem'), file(directory, 'client.key'), file(directory, 'client.pem'));
}

async function unary(client, directory) {
  for (const name of ['Unary', 'Later', 'Blocks']) {
    assert.equal(await call(client, name, Buffer.from('hello')), 'hello');
    assert.equal(await call(client, name, Buffer.alloc(0)), '');
  }
  const metadata = new grpc.Metadata();
  metadata.set('x-test', 'seen');
  const peer = directory === undefined ? '' : 'agent-7';
  assert.equal(await call(client, 'Who', Buffer.alloc(0), { metadata }), `peer=${peer} metadata=seen`);
  assert.equal((await call(client, 'Big', Buffer.from('10000000'))).length, 10000000);
  const large = Buffer.alloc(10 << 20, 'q');
  assert.equal((await call(client, 'Unary', large)).length, large.length);
  const error = await fails(call(client, 'Fail', Buffer.from('x')), grpc.status.FAILED_PRECONDITION);
  assert.equal(error.details, 'what 100% ü');
  assert.deepEqual(error.metadata.get('grpc-status-details-bin')[0], Buffer.from([1, 2, 3]));
  await fails(call(client, 'Hold', Buffer.from('x'), { options: { deadline: Date.now() + 100 } }), grpc.status.DEADLINE_EXCEEDED);
  await fails(call(client, 'Unary', Buffer.alloc(17 << 20)), grpc.status.RESOURCE_EXHAUSTED);
  const many = await Promise.all(Array.from({ length: 500 }, (_, i) => call(client, 'Later', Buffer.from(`n${i}`))));
  many.forEach((answer, i) => assert.equal(answer, `n${i}`));
}

async function streams(client) {
  const counted = client.Count(Buffer.from('3000'));
  let bytes = 0;
  for await (const message of counted) bytes += message.length;
  assert.equal(bytes, 3000 * 1000);

  const joined = await new Promise((resolve, reject) => {
    const stream = client.Join((error, answer) => (error ? reject(error) : resolve(answer.toString())));
    for (let i = 0; i < 100; i++) stream.write(Buffer.from(`${i},`));
    stream.end();
  });
  assert.equal(joined, Array.from({ length: 100 }, (_, i) => `${i},`).join(''));

  const chat = client.Chat();
  const seen = [];
  chat.write(Buffer.from('0'));
  for await (const message of chat) {
    seen.push(message.toString());
    if (seen.length < 50) chat.write(Buffer.from(`${seen.length}`));
    else if (seen.length === 50) chat.end();
  }
  assert.equal(seen.length, 51);
  assert.equal(seen[50], 'end');

  const cancelled = client.Chat();
  cancelled.write(Buffer.from('x'));
  await new Promise((resolve) => cancelled.once('data', resolve));
  const ended = new Promise((resolve) => cancelled.once('error', resolve));
  cancelled.cancel();
  assert.equal((await ended).code, grpc.status.CANCELLED);
}

async function compressed(address, directory) {
  const client = new (grpc.makeGenericClientConstructor(Echo))(address, credentials(directory),
    { ...LARGE, 'grpc.default_compression_algorithm': grpc.compressionAlgorithms.gzip });
  const text = 'compressible '.repeat(100000);
  assert.equal(await call(client, 'Unary', Buffer.from(text)), text);
  await fails(call(client, 'Unary', Buffer.alloc(30 << 20)), grpc.status.RESOURCE_EXHAUSTED);
  assert.equal(await call(client, 'Unary', Buffer.from('after')), 'after');
  client.close();
}

const protos = (name) => grpc.loadPackageDefinition(protoLoader.loadSync(
  path.join(import.meta.dirname, '..', '..', 'proto', name), { keepCase: true, enums: String, oneofs: true }));

async function health(address, directory) {
  const { Health } = protos('grpc_health_v1.proto').grpc.health.v1;
  const client = new Health(address, credentials(directory));
  const check = (service) => new Promise((resolve, reject) => {
    client.Check({ service }, (error, answer) => (error ? reject(error) : resolve(answer.status)));
  });
  assert.equal(await check(''), 'SERVING');
  assert.equal(await check('test.Echo'), 'SERVING');
  await fails(check('nobody'), grpc.status.NOT_FOUND);
  const watch = client.Watch({ service: 'nobody' });
  const first = await new Promise((resolve) => watch.once('data', resolve));
  assert.equal(first.status, 'SERVICE_UNKNOWN');
  watch.on('error', () => {});
  watch.cancel();
  client.close();
}

async function reflection(address, directory, version) {
  const { ServerReflection } = protos(`grpc_reflection_${version}.proto`).grpc.reflection[version];
  const client = new ServerReflection(address, credentials(directory));
  const stream = client.ServerReflectionInfo();
  const ask = (request) => {
    const answer = new Promise((resolve) => stream.once('data', resolve));
    stream.write({ host: 'h', ...request });
    return answer;
  };
  const listed = await ask({ list_services: '*' });
  assert.deepEqual(listed.list_services_response.service.map(({ name }) => name).sort(),
    ['grpc.health.v1.Health', 'grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection', 'test.Echo']);
  assert.equal(listed.valid_host, 'h');
  for (const symbol of ['grpc.health.v1.Health', 'grpc.health.v1.Health.Watch', 'grpc.health.v1.HealthCheckResponse.ServingStatus']) {
    const found = await ask({ file_containing_symbol: symbol });
    const [bytes] = found.file_descriptor_response.file_descriptor_proto;
    assert.ok(bytes.includes('HealthCheckResponse'), symbol);
  }
  const named = await ask({ file_by_filename: 'grpc_reflection_v1.proto' });
  assert.equal(named.file_descriptor_response.file_descriptor_proto.length, 1);
  for (const request of [{ file_containing_symbol: 'grpc.health.v1.Heal' }, { file_by_filename: 'x.proto' },
    { all_extension_numbers_of_type: 'grpc.health.v1.Health' }]) {
    assert.equal((await ask(request)).error_response.error_code, grpc.status.NOT_FOUND);
  }
  const over = new Promise((resolve) => stream.once('end', resolve));
  stream.end();
  await over;
  client.close();
}

async function runClient(address, directory) {
  const client = new (grpc.makeGenericClientConstructor(Echo))(address, credentials(directory), LARGE);
  await unary(client, directory);
  await streams(client);
  client.close();
  await compressed(address, directory);
  await health(address, directory);
  for (const version of ['v1', 'v1alpha']) await reflection(address, directory, version);
}

function runServer(directory) {
  const server = new grpc.Server(LARGE);
  const number = (request) => Number(request.toString());
  server.addService(Echo, {
    Unary: (call_, answer) => answer(null, call_.request),
    Big: (call_, answer) => answer(null, Buffer.alloc(number(call_.request), 'b')),
    Who: (call_, answer) => answer(null, Buffer.from(`${call_.metadata.get('authorization')} ${call_.getDeadline() > new Date()}`)),
    Fail: (call_, answer) => {
      const metadata = new grpc.Metadata();
      metadata.set('grpc-status-details-bin', Buffer.from([1, 2, 3]));
      answer({ code: grpc.status.FAILED_PRECONDITION, details: 'what 100% ü', metadata });
    },
    Count: async (stream) => {
      for (let i = 0; i < number(stream.request); i++) {
        if (!stream.write(Buffer.alloc(1000, 'x'))) await new Promise((resolve) => stream.once('drain', resolve));
      }
      stream.end();
    },
    Join: (stream, answer) => {
      const parts = [];
      stream.on('data', (part) => parts.push(part));
      stream.on('end', () => answer(null, Buffer.concat(parts)));
    },
    Chat: (stream) => {
      stream.on('data', (part) => stream.write(part));
      stream.on('end', () => { stream.write(Buffer.from('end')); stream.end(); });
    },
  });
  const secure = directory === undefined ? grpc.ServerCredentials.createInsecure()
    : grpc.ServerCredentials.createSsl(file(directory, 'ca.pem'),
      [{ private_key: file(directory, 'server.key'), cert_chain: file(directory, 'server.pem') }], true);
  server.bindAsync('127.0.0.1:0', secure, (error, port) => {
    if (error) throw error;
    console.log(`127.0.0.1:${port}`);
  });
  process.stdin.resume();
  process.stdin.on('end', () => server.forceShutdown());
}

if (role === 'server') runServer(rest[0]);
else await runClient(rest[0], rest[1]);
