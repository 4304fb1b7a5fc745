import { Subject, lastValueFrom, firstValueFrom } from 'rxjs';
import { expect, it, vi } from 'vitest';
import { replay } from '../../src/consumers/replay.ts';
import type { ReplayOptions } from '../../src/consumers/replay.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import type { OrderStatusChange } from '../../src/description/wine/order-status.ts';
import { deleteRecords } from './support/deleted-records.ts';
import { clientsForTest, countingKafka, numbers, writtenTopic } from './support/written-topic.ts';
import type { Clients } from './support/written-topic.ts';

const EVENTS = 120_000; // of 80 bytes or so: 10 MB in one partition
const BATCH = 4_000;
const MB = 2 ** 20;

/** One topic for all tests, of which the last deletes something. */
const topic = topicsUnder('pressure').orderStatusChanges;
let filled: Promise<void> | undefined;

/** Clients of the topic, once it is filled. */
async function clientsOfIt(): Promise<Clients> {
  const clients = clientsForTest();
  await (filled ??= fill(clients));
  return clients;
}

async function fill(clients: Clients): Promise<void> {
  const written = await writtenTopic(clients, topic.name, 1);
  for (let first = 0; first < EVENTS; first += BATCH) {
    await written.write(0, numbers(first, first + BATCH - 1));
  }
}

it.each(['arrival', 'time'] as const)(
  'fetches no further while what was fetched is not handled: order of %s',
  async (order) => {
    const { registry } = await clientsOfIt();
    const { kafka, received } = countingKafka();
    const goOn = new Subject<void>();
    const first = firstValueFrom(goOn);
    const options: ReplayOptions<OrderStatusChange> = { kafka, registry, topic, order };
    let count = 0;
    const replayed = lastValueFrom(
      replay(options, ({ value }) => {
        expect(value?.order_number).toBe(count);
        count += 1;
        return count === 1 ? first : []; // the first takes its time
      }),
      { defaultValue: undefined },
    );

    await vi.waitUntil(() => count === 1, { timeout: 30_000 });
    const atRest = await restingAt(received);
    expect(count).toBe(1);
    // A few batches wait; one that was under way as fetching paused is thrown away.
    expect(atRest).toBeLessThan(6 * MB);
    goOn.next();
    await replayed;
    expect(count).toBe(EVENTS);
    expect(received()).toBeGreaterThan(9 * MB);
  },
);

it('fetches nothing more once it is unsubscribed from', async () => {
  const { registry } = await clientsOfIt();
  const { kafka, received } = countingKafka();
  let count = 0;
  const listening = replay({ kafka, registry, topic }).subscribe(() => {
    if (++count === 10) listening.unsubscribe();
  });
  await vi.waitUntil(() => listening.closed, { timeout: 30_000 });
  expect(await restingAt(received)).toBeLessThan(5 * MB);
  expect(count).toBe(10);
});

it('says so when what is to come was deleted meanwhile', async () => {
  const clients = await clientsOfIt();
  const goOn = new Subject<void>();
  const first = firstValueFrom(goOn);
  let count = 0;
  const replayed = lastValueFrom(
    replay({ ...clients, topic }, () => (++count === 1 ? first : [])),
    { defaultValue: undefined },
  );
  await vi.waitUntil(() => count === 1, { timeout: 30_000 });
  const most = String(EVENTS - 5_000);
  await deleteRecords(clients.kafka, topic.name, 0, most);
  goOn.next();
  await expect(replayed).rejects.toMatchObject({
    code: 'POSITION',
    message: expect.stringContaining(`begin at ${most} or later`),
  });
  expect(count).toBeLessThan(EVENTS - 5_000);
});

/** The count once it has stood still for two seconds, but for the empty answers of pauses. */
async function restingAt(received: () => number): Promise<number> {
  let since = performance.now();
  let last = received();
  await vi.waitUntil(
    () => {
      if (received() - last > 20_000) [since, last] = [performance.now(), received()];
      return performance.now() - since > 2_000;
    },
    { timeout: 60_000 },
  );
  return received();
}
