import { lastValueFrom, Subject, toArray } from 'rxjs';
import { expect, it, vi } from 'vitest';
import { orderStatusChanges } from '../../src/consumers/order-status-changes.ts';
import { orderStatusChangeCodec } from '../../src/description/wine/order-status.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import { frame } from '../../src/schemas/registry/wire.ts';
import { change } from '../integration/support/written-topic.ts';
import { kafkaWith } from '../support/json-topic.ts';

const registry = {
  schemaById: () => Promise.resolve(orderStatusChangeCodec.schema),
} as Partial<Registry> as Registry;

it('hands the changes that are wanted to the handler, one after the other', async () => {
  const gates = new Map([1, 3].map((number) => [number, new Subject<string>()]));
  const begun: number[] = [];
  const { kafka, put } = await kafkaWith('wine.order-status-changes');
  const messages = [0, 1, 2, 3].map((number) => ({
    key: 'k',
    value: frame(1, orderStatusChangeCodec.encode(change(number))),
  }));
  put(0, ...messages);
  const handled = lastValueFrom(
    orderStatusChanges({ kafka, registry, where: { field: 'shipment_status' } }, ({ value }) => {
      begun.push(value!.order_number!);
      return gates.get(value!.order_number!)!;
    }).pipe(toArray()),
  );
  await vi.waitUntil(() => begun.length > 0);
  expect(begun).toEqual([1]);
  gates.get(1)!.next('one');
  gates.get(1)!.complete();
  expect(begun).toEqual([1, 3]);
  gates.get(3)!.next('three');
  gates.get(3)!.complete();
  expect(await handled).toEqual(['one', 'three']);
});
