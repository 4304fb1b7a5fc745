import { Subject } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { replay } from '../../src/consumers/replay.ts';
import type { ReplayOptions } from '../../src/consumers/replay.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import type { Retry } from '../../src/streams/flow/backoff.ts';
import {
  AWAY,
  fakeRegistry,
  jsonMessage,
  jsonTopic,
  kafkaWith,
  UNRESOLVED,
} from '../support/json-topic.ts';
import type { PutMessage } from '../support/json-topic.ts';

/** A replay under way of a topic that holds these values: what it has emitted, and how it ends. */
async function replaying(
  messages: readonly PutMessage[],
  options: Partial<ReplayOptions<string>> = {},
  given = kafkaWith(),
) {
  const { cluster, kafka, put } = await given;
  if (messages.length > 0) put(0, ...messages);
  const values: (string | null)[] = [];
  const replayed$ = replay({
    kafka,
    registry: fakeRegistry,
    topic: jsonTopic<string>(),
    ...options,
  });
  const ended = new Promise<void>((complete, error) => {
    replayed$.subscribe({ next: ({ value }) => values.push(value), complete, error });
  });
  ended.catch(() => undefined); // for who awaits it
  const reading = () => vi.waitUntil(() => cluster.of('Fetch').length > 0);
  return { values, ended, reading };
}

it('hands over what is before a schema that can not be resolved', async () => {
  const bad = jsonMessage('c', { schemaId: UNRESOLVED });
  const { values, ended } = await replaying([jsonMessage('a'), jsonMessage('b'), bad]);
  await expect(ended).rejects.toMatchObject({ code: 'VALUE_UNREADABLE', context: { offset: '2' } });
  expect(values).toEqual(['a', 'b']);
});

/** The registry is away as the first batch is to be read. */
async function withoutRegistry(stop$: Observable<unknown>, onCaughtUp = () => undefined) {
  const retries: Retry[] = [];
  const onRetry = (retry: Retry) => retries.push(retry);
  const message = jsonMessage('a', { schemaId: AWAY });
  const replayed = await replaying([message], { to: 'never', stop$, onRetry, onCaughtUp });
  await vi.waitUntil(() => retries.length > 0);
  return { ...replayed, retries };
}

/** What stop$ may come in the midst of. */
const MIDST = {
  'the first question to Kafka': async (stop$: Observable<unknown>) => {
    const given = kafkaWith();
    const { cluster } = await given;
    cluster.fault({ api: 'ApiVersions', times: Infinity, deed: 'lose request' });
    return replaying([], { stop$ }, given);
  },
  'an outage of the registry': (stop$: Observable<unknown>) => withoutRegistry(stop$),
  'the reading': async (stop$: Observable<unknown>) => {
    const replayed = await replaying([], { to: 'never', stop$ });
    await replayed.reading();
    return replayed;
  },
};

describe.each(Object.entries(MIDST))('stop$ in the midst of %s', (_, midst) => {
  it('ends the replay', async () => {
    const stop$ = new Subject<void>();
    const { ended, values } = await midst(stop$);
    stop$.next();
    await ended;
    expect(values).toEqual([]);
  });

  it('is the error of the replay where it fails', async () => {
    const stop$ = new Subject<void>();
    const { ended } = await midst(stop$);
    const failure = new Error('no signal');
    stop$.error(failure);
    await expect(ended).rejects.toBe(failure);
  });
});

it('ends where stop$ comes while the registry is asked, and the answer is that it is away', async () => {
  const stop$ = new Subject<void>();
  let fail: ((error: unknown) => void) | undefined;
  const schemaById = () => new Promise<never>((_, reject) => (fail = reject));
  const registry = { schemaById } as Partial<Registry> as Registry;
  const options = { registry, to: 'never', stop$ } as const;
  const { ended, values } = await replaying([jsonMessage('a')], options);
  await vi.waitUntil(() => fail);
  stop$.next();
  fail?.(new CellarstreamError('REGISTRY_UNREACHABLE', 'the registry is away'));
  await ended;
  expect(values).toEqual([]);
});

it('has not caught up where it was stopped while the registry is away', async () => {
  const stop$ = new Subject<void>();
  const onCaughtUp = vi.fn();
  const { ended } = await withoutRegistry(stop$, onCaughtUp);
  stop$.next();
  await ended;
  expect(onCaughtUp).not.toHaveBeenCalled();
});

it('tells of each pause while the registry is away', async () => {
  const stop$ = new Subject<void>();
  const { retries, ended } = await withoutRegistry(stop$);
  expect(retries[0]).toMatchObject({ error: { code: 'REGISTRY_UNREACHABLE' }, count: 1 });
  await vi.waitUntil(() => retries.length > 1);
  stop$.next();
  await ended;
});

it('fails where the registry is away and the end is known', async () => {
  const { ended } = await replaying([jsonMessage('a', { schemaId: AWAY })]);
  await expect(ended).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE' });
});
