// A tour of KeystoneDB's Dapr door with Dapr's SDK for JavaScript, as it is, and no sidecar; over HTTP
// and over gRPC.
//
//     DAPR_HTTP_PORT=3500 DAPR_GRPC_PORT=50001 node state.mjs
//
// Every step checks what came back. What was written is deleted at the end.

import { deepStrictEqual as expect, ok } from 'node:assert';
import { randomUUID } from 'node:crypto';
import dapr from '@dapr/dapr';

const { CommunicationProtocolEnum, DaprClient, LogLevel } = dapr;
const store = 'statestore';

async function tour(communicationProtocol, daprPort) {
  const client = new DaprClient({
    daprHost: '127.0.0.1',
    daprPort,
    communicationProtocol,
    // It prints what is refused on purpose, too.
    logger: { level: LogLevel.Error, service: { error() {}, warn() {}, info() {}, verbose() {}, debug() {} } },
  });
  const prefix = `tour-${randomUUID().slice(0, 8)}`;
  const key = (name) => `${prefix}:${name}`;
  const { state } = client;

  // Save, get, bulk.
  const order = { id: 1, lines: [{ sku: 'a', count: 2 }] };
  expect(await state.save(store, [{ key: key('order'), value: order }, { key: key('text'), value: 'hello' }]), {});
  expect(await state.get(store, key('order')), order);
  expect(await state.get(store, key('text')), 'hello');
  expect(await state.get(store, key('none')), '');
  const bulk = await state.getBulk(store, [key('order'), key('text')]);
  expect(bulk.map((one) => one.data), [order, 'hello']);

  // An ETag that was read wins once.
  const { etag } = bulk[0];
  const update = async () => {
    try {
      const done = await state.save(store, [{ key: key('order'), value: { id: 2 }, etag }]);
      return done.error === undefined;
    } catch {
      return false;
    }
  };
  expect([await update(), await update()], [true, false]);

  await state.transaction(store, [
    { operation: 'upsert', request: { key: key('order'), value: 'new' } },
    { operation: 'delete', request: { key: key('text') } },
  ]);
  expect(await state.get(store, key('order')), 'new');
  expect(await state.get(store, key('text')), '');
  ok(await client.metadata.get());

  await state.delete(store, key('order'));
  expect(await state.get(store, key('order')), '');
  await client.stop();
}

await tour(CommunicationProtocolEnum.HTTP, process.env.DAPR_HTTP_PORT);
await tour(CommunicationProtocolEnum.GRPC, process.env.DAPR_GRPC_PORT);
console.log(`javascript: Dapr's SDK works ${process.env.TOUR_SIDECAR ? 'through' : 'without'} a sidecar`);
