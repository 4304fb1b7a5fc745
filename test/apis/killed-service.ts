import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, vi } from 'vitest';
import { readDescription } from '../../src/description/read-description.ts';
import type { ListDescription } from '../../src/description/description.ts';
import { checkRecords, envelopeOf, repeatedSequences } from '../integration/support/checker.ts';
import { atEnd, atFailure } from '../integration/support/running-test.ts';
import { cliForTest, folderForTest } from '../integration/support/service.ts';
import type { Env } from '../integration/support/service.ts';
import { readTopic } from '../integration/support/topic-reader.ts';
import type { Read } from '../integration/support/topic-reader.ts';
import { Chance } from '../support/chance.ts';
import type { ApiServer, ServedRecord } from '../support/servers/api-server.ts';
import { mostIn, startCountingProxy } from '../support/servers/counting-proxy.ts';
import { Writer } from '../support/servers/writer.ts';
import { wrongCertificates, wrongStatuses } from './check-topics.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/apis');
const SECONDS = Number(process.env.API_SECONDS ?? 60);
/** Time between two kills on the average, in s: three kills in a short test. */
const KILL_EVERY = Math.min(30, SECONDS / 3);
const RECORDS = 250;
/** How long the last writes may take until they are published, on a busy machine. */
const PUBLISHED = { timeout: 240_000, interval: 1_000 };

export interface KilledService {
  /** Prefix of the topics. */
  readonly prefix: string;
  readonly server: ApiServer;
  /** File of examples/apis. */
  readonly example: string;
  readonly env: Env;
  /** Writes a second to each list. */
  readonly rate: number;
  /** Greatest number of requests in a window of `ms`. */
  readonly quota: { readonly most: number; readonly ms: number };
  /** Record of the server's database as the service's account reads it. Default: as it is. */
  readonly seen?: (record: ServedRecord) => ServedRecord;
  /** Requests that the quota does not count, such as logins. Default: none. */
  readonly isFree?: (path: string) => boolean;
}

/**
 * Runs the service on a real server that is written to, kills it again and again, and compares its topics with the server's database once
 * the writes have stopped. Returns everything that breaks a promise, in words.
 */
export async function killWhileWritten(options: KilledService): Promise<readonly string[]> {
  const { prefix, server, example, rate, quota, seen = (record) => record } = options;
  const description = join(EXAMPLES, example);
  const { lists } = readDescription(description);
  const proxy = await startCountingProxy(server.url);
  atEnd(() => proxy.close());
  const writers = server.lists.map(
    (list) => new Writer(list, { rate, seed: 44, records: RECORDS }),
  );
  for (const writer of writers) await writer.fill();
  atEnd(() => Promise.allSettled(writers.map((writer) => writer.stop())));

  const state = folderForTest();
  const env = {
    API_BASE_URL: proxy.url,
    API_DESCRIPTION: description,
    KAFKA_BROKERS: inject('brokers').join(','),
    SCHEMA_REGISTRY_URL: inject('registryUrl'),
    TOPIC_PREFIX: prefix,
    TOPIC_PARTITIONS: '2',
    STATE_DIR: state,
    POLL_INTERVAL_MS: '1000',
    SWEEP_INTERVAL_MS: '2000',
    DELETE_PROOF_MS: '1000',
    DELETE_LIMIT_PERCENT: '100', // of a few hundred records, many are deleted during a kill
    CERTIFICATE_INTERVAL_MS: '1000',
    ...options.env,
  };
  const start = () => cliForTest(['run'], env);
  let service = start();
  atFailure(() => console.log(`what the service said:\n${service.stderr().slice(-6_000)}`));
  for (const writer of writers) writer.start();
  const chance = new Chance(44, prefix);
  const until = performance.now() + SECONDS * 1_000;
  let kills = 0;
  while (performance.now() < until) {
    // Some kills come while it starts.
    if (chance.is(0.8)) await service.logged(({ event }) => event === 'ready');
    await sleep(KILL_EVERY * (0.5 + chance.next()) * 1_000);
    await service.end('SIGKILL');
    kills += 1;
    service = start();
  }
  await service.logged(({ event }) => event === 'ready');
  for (const writer of writers) await writer.stop();

  const read = (topic: string) =>
    readTopic(inject('brokers'), inject('registryUrl'), `${prefix}.${topic}`);
  for (const writer of writers) {
    const truth = await truthAs(seen, writer);
    await vi.waitFor(async () => {
      const { violations } = checkRecords(await read(writer.name), truth);
      expect(violations.slice(0, 3)).toEqual([]);
    }, PUBLISHED);
  }
  // A certificate that was made when nothing was written any more.
  const certified = Date.now();
  await vi.waitFor(async () => {
    const certificates = await read('certificates');
    for (const { name } of writers) {
      const isOf = ({ key, timestamp }: Read) =>
        key?.endsWith(`/${name}`) === true && timestamp > certified;
      expect(certificates.some(isOf)).toBe(true);
    }
  }, PUBLISHED);
  expect(await service.end('SIGTERM')).toBe(0);

  const certificates = await read('certificates');
  const violations: string[] = [];
  for (const writer of writers) {
    const events = await read(writer.name);
    const { violations: wrong, ops } = checkRecords(events, await truthAs(seen, writer));
    const list = lists.find(({ name }) => name === writer.name)!;
    console.log(`${prefix}.${writer.name} after ${kills} kills`, writer.counts, ops);
    violations.push(
      ...wrong,
      ...repeatedSequences(events),
      ...falseDeletions(events, writer),
      ...wrongCertificates(certificates, events, list),
      ...(await statusViolations(list, events, read)),
    );
  }
  const counted = proxy.requests.filter(({ path }) => !(options.isFree?.(path) ?? false));
  const most = mostIn(counted, quota.ms);
  console.log(`${counted.length} requests, at most ${most} in ${quota.ms} ms`);
  if (most > quota.most) {
    violations.push(`${most} requests in ${quota.ms} ms, with a quota of ${quota.most}`);
  }
  return violations;
}

async function truthAs(seen: (record: ServedRecord) => ServedRecord, writer: Writer) {
  const truth = await writer.truth();
  return new Map([...truth].map(([key, record]) => [key, seen(record)]));
}

/** Deletions of records that were not deleted by then, and events of records that never were. */
function falseDeletions(events: readonly Read[], writer: Writer): string[] {
  return events.flatMap((event) => {
    const { key, value, timestamp } = event;
    if (key === null || value === null) return [];
    if (!writer.inserted.has(key)) return [`${key}: an event of a record that never was`];
    if (envelopeOf(event).op !== 'd') return [];
    const deletedAt = writer.deletedAt.get(key);
    return deletedAt === undefined || timestamp < deletedAt ? [`${key}: a false deletion`] : [];
  });
}

async function statusViolations(
  { statuses }: ListDescription,
  events: readonly Read[],
  read: (topic: string) => Promise<readonly Read[]>,
): Promise<string[]> {
  if (!statuses) return [];
  return wrongStatuses(await read(statuses.topic), events, statuses);
}
