import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { RESOURCES, startSandbox } from '../../src/sandbox/index.ts';
import type { Resource, Sandbox } from '../../src/sandbox/index.ts';
import { RULES } from '../../src/sandbox/resources.ts';
import { Chance } from '../support/chance.ts';
import { runCli } from './support/cli.ts';
import type { Cli } from './support/cli.ts';
import { endsOf, readEvents } from './support/event-reader.ts';
import type { ReadEvent } from './support/event-reader.ts';
import { difference } from './support/json-model.ts';
import { oddRecord } from './support/odd-records.ts';
import { oddText } from './support/odd-text.ts';
import { rebuild } from './support/rebuild.ts';
import type { AvroSchemaObject } from './support/rebuild.ts';
import { scaled } from '../support/scale.ts';
import { connections } from './support/service.ts';

const RECORDS = scaled(1_500, 10_000);
const PREFIX = 'lossless';
const TOPICS = RESOURCES.map((resource) => `${PREFIX}.${resource}`);
const QUOTA = 10_000;
const DAY_MS = 86_400_000;
/** For a machine that has much else to do. */
const TIMEOUT_MS = 300_000;

const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });

/** Which record of its list each key is of, by the key that its topic must have. */
type Served = ReadonlyMap<Resource, Map<string, number>>;

/** What was read of one topic. */
interface Findings {
  readonly keys: Set<string>;
  /** Where what was rebuilt is not what was sent, and events that should not be. */
  readonly wrong: string[];
  /** Images that say something beside their fields. */
  nulls: number;
  unmapped: number;
}

/** Serves sixty thousand records that no schema foresees, word for word. */
function serveOddities(sandbox: Sandbox): Served {
  const served = new Map(RESOURCES.map((resource) => [resource, new Map<string, number>()]));
  for (const [resource, places] of served) {
    // The sandbox knows them by the keys that it gave them, whatever their texts say.
    const { firstNumber, keyPrefix } = RULES[resource];
    for (let place = 0; place < RECORDS; place++) {
      const number = firstNumber + place;
      const { key, record } = oddRecord(resource, place);
      const text = oddText(record, new Chance(place, 'texts', resource));
      sandbox.replaceText(resource, keyPrefix === null ? number : `${keyPrefix}${number}`, text);
      places.set(key, place);
    }
  }
  // As if all that was long ago: polls have nothing to read again.
  sandbox.skewClock(DAY_MS);
  return served;
}

/** Resolves when a line of that event has come for each resource. */
async function loggedOfEach(service: Cli, event: string): Promise<void> {
  await Promise.all(
    RESOURCES.map((resource) =>
      service.logged((line) => {
        return line.event === event && line.resource === resource && line.done !== false;
      }),
    ),
  );
}

/** Reads the topics to their end and holds each record against what was sent under its key. */
async function readAll(served: Served): Promise<ReadonlyMap<Resource, Findings>> {
  const findings = new Map(
    RESOURCES.map((resource): [Resource, Findings] => [
      resource,
      { keys: new Set(), wrong: [], nulls: 0, unmapped: 0 },
    ]),
  );
  const services = { brokers: inject('brokers'), registryUrl: inject('registryUrl') };
  await readEvents(services, TOPICS, (event) => {
    const resource = RESOURCES[TOPICS.indexOf(event.topic)]!;
    const found = findings.get(resource)!;
    const wrong = wrongIn(event, resource, served, found);
    if (wrong !== undefined) found.wrong.push(`${event.key}: ${wrong}`);
  });
  return findings;
}

function wrongIn(
  { key, value, schema }: ReadEvent,
  resource: Resource,
  served: Served,
  found: Findings,
): string | undefined {
  const place = key === null ? undefined : served.get(resource)!.get(key);
  if (key === null || place === undefined) return 'a key that nobody sent';
  if (found.keys.has(key)) return 'published twice';
  found.keys.add(key);
  if (!value || !schema || value.op !== 'r' || value.before !== null) return 'no initial snapshot';
  const image = value.after as Record<string, unknown>;
  found.nulls += Number((image.nulls as unknown[]).length > 0);
  found.unmapped += Number(Object.keys(image.unmapped as object).length > 0);
  return difference(oddRecord(resource, place).record, rebuild(image, imageSchema(schema)));
}

/** The record in an envelope: `before` is null or one, and `after` is of the same name. */
function imageSchema({ fields }: AvroSchemaObject): AvroSchemaObject {
  const before = fields!.find(({ name }) => name === 'before')!;
  return (before.type as readonly AvroSchemaObject[])[1]!;
}

async function registryAnswer(path: string): Promise<unknown> {
  const answer = await fetch(`${inject('registryUrl').replace(/\/$/, '')}${path}`);
  return answer.json();
}

describe(`${RECORDS} odd records of each resource`, () => {
  const state = mkdtempSync(join(tmpdir(), 'cellarstream-test-'));
  const began = performance.now();
  const secondsSince = (since: number) => ((performance.now() - since) / 1_000).toFixed(1);
  let sandbox: Sandbox;
  let service: Cli | undefined;
  let findings: ReadonlyMap<Resource, Findings>;

  const run = (more: Readonly<Record<string, string>>): Cli => {
    service = runCli(['run'], {
      ...connections(sandbox, PREFIX, state),
      QUOTA_PER_MINUTE: String(QUOTA),
      LOGIN_QUOTA_PER_MINUTE: String(QUOTA),
      LOG_LEVEL: 'debug',
      ...more,
    });
    return service;
  };

  beforeAll(async () => {
    const records = Object.fromEntries(RESOURCES.map((resource) => [resource, RECORDS]));
    sandbox = await startSandbox({ records, quotaPerMinute: QUOTA, loginQuotaPerMinute: QUOTA });
    const served = serveOddities(sandbox);
    const serving = secondsSince(began);

    const first = run({ POLL_INTERVAL_MS: '600000' }); // what is read again is read at the restart
    await loggedOfEach(first, 'first-read');
    expect(await first.end('SIGTERM')).toBe(0);
    const publishing = secondsSince(began);
    findings = await readAll(served);
    console.log(
      `served after ${serving} s, published ${publishing} s, read ${secondsSince(began)} s`,
    );
  }, TIMEOUT_MS);
  afterAll(async () => {
    await service?.end('SIGKILL');
    await sandbox.close();
    rmSync(state, { recursive: true, force: true });
    console.log(`${secondsSince(began)} s in all`);
  });

  it.each(RESOURCES)('rebuilds every one of the %s from its image alone', (resource) => {
    const { keys, wrong, nulls, unmapped } = findings.get(resource)!;
    expect({ count: wrong.length, first: wrong.slice(0, 5) }).toEqual({ count: 0, first: [] });
    expect(keys.size).toBe(RECORDS);
    // Else there was nothing to lose.
    expect(nulls).toBeGreaterThan(RECORDS / 2);
    expect(unmapped).toBeGreaterThan(RECORDS / 2);
  });

  it('needs a handful of schema versions for it, each of which can read all others', async () => {
    const versions = new Map<string, number>();
    for (const topic of TOPICS) {
      const all = (await registryAnswer(`/subjects/${topic}-value/versions`)) as number[];
      versions.set(topic, all.length);
      expect(await registryAnswer(`/config/${topic}-value`)).toMatchObject({
        compatibilityLevel: 'FULL_TRANSITIVE',
      });
    }
    console.log('versions', Object.fromEntries(versions));
    expect(Math.max(...versions.values())).toBeLessThanOrEqual(6);
    expect(Math.max(...versions.values())).toBeGreaterThan(1); // or nothing new has come late
  });

  it('sends none of them to dead letters, and makes no status changes of them', async () => {
    const others = [`${PREFIX}.dead-letters`, `${PREFIX}.order-status-changes`];
    expect(await endsOf(kafka, others)).toEqual(new Map());
  });

  it(
    'publishes nothing again when it is started anew and reads all of them once more',
    async () => {
      const before = await endsOf(kafka, TOPICS);
      const again = run({ POLL_INTERVAL_MS: '5000', SWEEP_INTERVAL_MS: '5000' });
      await loggedOfEach(again, 'ready');
      await loggedOfEach(again, 'swept');
      expect(await again.end('SIGTERM')).toBe(0);
      expect(await endsOf(kafka, TOPICS)).toEqual(before);
    },
    TIMEOUT_MS,
  );
});
