import { createHash } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import type { JsonObject, Sandbox } from '../../src/sandbox/index.ts';
import { topicEnds } from './support/topic-ends.ts';
import { canonical, checkRecords, envelopeOf, truthOf } from './support/checker.ts';
import type { Cli } from './support/cli.ts';
import { follow } from './support/follow.ts';
import { requested, swept } from './support/rounds.ts';
import { besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import { cliForTest, folderForTest, sandboxForTest, settings } from './support/service.ts';
import type { Read } from './support/topic-reader.ts';

const KEY_FIELD = { orders: 'order_number', inventory: 'sku' } as const;
type Tested = keyof typeof KEY_FIELD;

const RECORDS = 30;
const PATIENCE = { timeout: PATIENCE_MS };
const NO_OBJECT = 'a text of ida.lind@example.com';
/** 2 MB in which parts could be cut within a character. */
const LONG_TEXT = Array.from({ length: 90_000 }, (_, n) => `${n}🍷🍾🍇🥂é`).join(' ');

besideEachOther();

/** How far the partitions of a topic go, the markers of transactions included. */
async function endsOf(topic: string): Promise<readonly number[]> {
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  const ends = [...(await topicEnds(kafka, topic))].sort(([a], [b]) => a - b);
  return ends.map(([, end]) => Number(end));
}

const lettersIn = (service: Cli) => service.lines().filter(({ event }) => event === 'dead-letter');

/**
 * Spoils a list all at once. One record is no object, one has no key, one is too large; two are
 * changed as ever. From the beginning each record comes twice; from then on the copy of one, which
 * is changed as ever too, has other content.
 */
function spoiler(sandbox: Sandbox, resource: Tested) {
  const keys = [...sandbox.truth.keys(resource)];
  const [textual, keyless, doubled, large, ...fine] = [3, 7, 11, 15, 19, 23].map(
    (n) => keys[n]!,
  ) as [string, string, string, string, ...string[]];
  const original = sandbox.truth.get(resource, textual) as JsonObject;
  let isSpoilt = false;
  const dedupe = sandbox.fault({
    endpoint: resource,
    kind: 'repeat',
    records: RECORDS,
    patch: (record) =>
      isSpoilt && record[KEY_FIELD[resource]] === doubled
        ? { ...record, notes: 'not as ever' }
        : record,
  });
  let find: () => void;
  return {
    doubled: String(doubled),
    large: String(large),
    fine: fine.map(String),
    /** Those of which nothing can be published. */
    bad: [textual, keyless, large].map(String),
    spoil: () => {
      isSpoilt = true;
      sandbox.replaceText(resource, textual, JSON.stringify(NO_OBJECT));
      find = sandbox.loseKey(resource, keyless);
      sandbox.change(resource, large, { notes: LONG_TEXT });
      for (const key of [doubled, ...fine]) sandbox.change(resource, key, { notes: 'as ever' });
      return {
        keyless: sandbox.truth.get(resource, keyless),
        doubled: { ...(sandbox.truth.get(resource, doubled) as object), notes: 'not as ever' },
        large: sandbox.truth.get(resource, large),
      };
    },
    heal: () => {
      dedupe();
      find();
      const healed: JsonObject = { ...original, notes: 'healed' };
      delete healed.updated_at; // the sandbox sets it
      sandbox.change(resource, textual, () => healed);
      sandbox.change(resource, keyless, { notes: 'healed' });
      sandbox.change(resource, large, { notes: 'healed' });
    },
  };
}

describe.concurrent.each([
  { resource: 'orders', by: 'polls' },
  { resource: 'inventory', by: 'sweeps' },
] as const)('dead letters of $resource, met by $by', TIMEOUT, ({ resource }) => {
  it('tell once of each record that no topic can hold; the rest of the page goes on with them', async () => {
    const prefix = `dead-letters-${resource}`;
    const sandbox = await sandboxForTest({ records: { [resource]: RECORDS } });
    const env = {
      ...settings(sandbox, prefix, folderForTest()),
      RESOURCES: resource,
      POLL_INTERVAL_MS: '200', // leaves more of the quota to sweeps
      SWEEP_INTERVAL_MS: '300',
      LOG_LEVEL: 'debug',
    };
    const { spoil, heal, bad, ...keys } = spoiler(sandbox, resource);
    const service = cliForTest(['run'], env);
    await service.logged(({ event }) => event === 'ready');
    const [events, letters] = [follow(`${prefix}.${resource}`), follow(`${prefix}.dead-letters`)];
    const tell = (truth: ReadonlyMap<string, unknown>) =>
      vi.waitFor(() => expect(checkRecords(events, truth).violations).toEqual([]), PATIENCE);
    await tell(truthOf(sandbox, resource));
    await swept(service, resource);
    expect(letters).toEqual([]); // records that come twice alike are one
    const before = truthOf(sandbox, resource);
    const [eventEnds, cursorEnds] = [
      await endsOf(`${prefix}.${resource}`),
      await endsOf(`${prefix}.cursors`),
    ];

    const spoilt = spoil();
    const reasons = () => new Set(letters.map(({ value }) => value!.reason));
    await vi.waitUntil(() => reasons().size === 4, PATIENCE);
    // What can't be published stays as it was.
    const stale = [...before].filter(([key]) => bad.includes(key));
    const shown = new Map([...truthOf(sandbox, resource), ...stale]);
    await tell(shown);
    const news = events.slice(RECORDS);
    const changed = [keys.doubled, ...keys.fine].sort();
    expect(news.map(({ key }) => key).sort()).toEqual(changed);
    for (const event of news) expect(envelopeOf(event).op).toBe('u');

    expect(letterOf(letters, 'not-an-object')).toEqual({
      ...{ key: null, resource, offset: 0, sha256: null, length: null, part: null, parts: null },
      reason: 'not-an-object',
      raw: JSON.stringify(NO_OBJECT),
    });
    const keyless = letterOf(letters, 'no-key');
    expect(keyless).toMatchObject({ key: null, resource, offset: 0, parts: null });
    expect(canonicalText(keyless.raw)).toBe(canonical(spoilt.keyless));
    const doubled = letterOf(letters, 'conflicting-duplicate');
    expect(doubled).toMatchObject({ key: keys.doubled, resource, offset: 0, parts: null });
    expect(canonicalText(doubled.raw)).toBe(canonical(spoilt.doubled));

    const parts = letters.filter(({ value }) => value!.reason === 'too-large');
    const text = parts.map(({ value }) => value!.raw as string).join('');
    expect(canonicalText(text)).toBe(canonical(spoilt.large));
    const sha256 = createHash('sha256').update(text).digest('hex');
    const whole = { sha256, length: Buffer.byteLength(text), parts: parts.length };
    expect(whole.length).toBeGreaterThan(2_000_000);
    expect(parts.length).toBeGreaterThan(1);
    parts.forEach(({ key, value }, place) => {
      expect(key).toBe(keys.large);
      expect(value).toMatchObject({ resource, offset: 0, part: place + 1, ...whole });
      expect((value!.raw as string).isWellFormed()).toBe(true);
      expect(Buffer.byteLength(value!.raw as string)).toBeLessThan(900_000);
    });

    // A transaction leaves one marker in each partition that it has written to. Here was one.
    const letterEnds = await endsOf(`${prefix}.dead-letters`);
    expect(letterEnds).toEqual([letters.length + 1]);
    const grown = news.map(({ partition }) => partition);
    expect(await endsOf(`${prefix}.${resource}`)).toEqual(
      eventEnds.map((end, partition) => {
        const count = grown.filter((place) => place === partition).length;
        return end + (count > 0 ? count + 1 : 0);
      }),
    );
    // The cursor of a list with dates moves by itself, now and then.
    if (resource === 'inventory') {
      expect(await endsOf(`${prefix}.cursors`)).toEqual(cursorEnds.map((end) => end + 2));
    }

    // What is known is not told again: not at later polls or sweeps, nor after a restart.
    const known = events.length;
    await Promise.all([swept(service, resource), requested(sandbox, resource, 10)]);
    expect(await service.end('SIGTERM')).toBe(0);
    const again = cliForTest(['run'], env);
    await Promise.all([swept(again, resource), requested(sandbox, resource, 10)]);
    expect(await endsOf(`${prefix}.dead-letters`)).toEqual(letterEnds);
    expect(events).toHaveLength(known);
    expect(
      lettersIn(service)
        .map(({ reason }) => reason)
        .sort(),
    ).toEqual(['conflicting-duplicate', 'no-key', 'not-an-object', 'too-large']);
    expect(lettersIn(again)).toEqual([]);

    heal();
    await tell(truthOf(sandbox, resource));
    await swept(again, resource);
    expect(
      events
        .slice(known)
        .map(({ key }) => key)
        .sort(),
    ).toEqual([...bad].sort());
    expect(checkRecords(events, truthOf(sandbox, resource))).toMatchObject({
      violations: [],
      ops: { r: RECORDS, u: changed.length + bad.length },
    });
    expect(await endsOf(`${prefix}.dead-letters`)).toEqual(letterEnds);
    for (const { stderr } of [service, again]) {
      expect(stderr()).not.toContain('ida.lind@example.com');
      expect(stderr()).not.toContain('🍷');
    }
    expect(await again.end('SIGTERM')).toBe(0);
  });
});

/** The one letter for that reason, without the text for people and the time. */
function letterOf(letters: readonly Read[], reason: string): Record<string, unknown> {
  const [letter, ...more] = letters.filter(({ value }) => value!.reason === reason);
  expect(more).toEqual([]);
  const { message, observed_at, ...fields } = letter!.value!;
  expect(message).not.toBe('');
  expect(Date.now() - Date.parse(observed_at as string)).toBeLessThan(60_000);
  return { key: letter!.key, ...fields };
}

function canonicalText(text: unknown): string {
  return canonical(JSON.parse(text as string));
}
