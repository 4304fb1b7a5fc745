import { toArray, lastValueFrom } from 'rxjs';
import { expect, it, vi } from 'vitest';
import { table } from '../../src/consumers/table.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import { clientsForTest, writtenOrders } from './support/written-orders.ts';

it('holds the newest image of each record, and keeps it up to date', async () => {
  const clients = clientsForTest();
  const topic = topicsUnder('table').orders;
  const orders = await writtenOrders(clients, topic.name);
  await orders.write('1', { order_number: 1, payment_status: 'Pending' });
  await orders.write('2', { order_number: 2, payment_status: 'Pending' });
  await orders.write('1', { order_number: 1, payment_status: 'Paid' });
  await orders.write('3', { order_number: 3 });
  await orders.write('2', null); // and a tombstone behind it

  const held = table({ ...clients, topic });
  const changes = lastValueFrom(held.changes$.pipe(toArray()));
  expect(held.get('1')).toBeUndefined();
  await held.ready;
  expect([...held.entries()].map(([key]) => key).sort()).toEqual(['1', '3']);
  expect(held.get('1')).toMatchObject({ order_number: 1, payment_status: 'Paid', email: null });
  expect(held.size).toBe(2);

  await orders.write('3', { order_number: 3, payment_status: 'Refunded' });
  await orders.write('1', null);
  await vi.waitUntil(() => held.size === 1 && held.get('3')?.payment_status === 'Refunded', {
    timeout: 20_000,
  });
  held.close();
  const ofThree = (await changes).filter(({ key }) => key === '3');
  expect(
    ofThree.map(({ before, after }) => [before?.payment_status, after?.payment_status]),
  ).toEqual([
    [undefined, null],
    [null, 'Refunded'],
  ]);
  const ofTwo = (await changes).filter(({ key }) => key === '2');
  expect(ofTwo.map(({ before, after }) => [before !== undefined, after !== undefined])).toEqual([
    [false, true],
    [true, false],
  ]);
  expect(held.get('3')?.payment_status).toBe('Refunded');
});

it('keeps of each image what is asked for', async () => {
  const clients = clientsForTest();
  const topic = topicsUnder('table-some').orders;
  const orders = await writtenOrders(clients, topic.name);
  await orders.write('7', { order_number: 7, payment_status: 'Paid' });
  const held = table(
    { ...clients, topic },
    ({ payment_status }, key) => `${key} ${payment_status}`,
  );
  await held.ready;
  expect([...held.entries()]).toEqual([['7', '7 Paid']]);
  held.close();
});

it('takes a topic by its name, with images as JSON', async () => {
  const clients = clientsForTest();
  const topic = topicsUnder('table-named').orders.name;
  const orders = await writtenOrders(clients, topic);
  await orders.write('7', { order_number: 7, payment_status: 'Paid' });
  const held = table({ ...clients, topic });
  await held.ready;
  expect(held.get('7')).toMatchObject({ order_number: 7, payment_status: 'Paid' });
  held.close();
});

it('says that there is no such topic', async () => {
  const held = table({ ...clientsForTest(), topic: topicsUnder('table-nowhere').orders });
  await expect(held.ready).rejects.toMatchObject({ code: 'POSITION' });
});
