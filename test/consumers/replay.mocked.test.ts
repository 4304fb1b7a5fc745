import { Subject } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { replay } from '../../src/consumers/replay.ts';
import type { ReplayOptions } from '../../src/consumers/replay.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import type { Retry } from '../../src/streams/flow/backoff.ts';
import { fakeReaders } from '../support/fake-reader.ts';
import {
  AWAY,
  fakeRegistry,
  jsonMessage,
  jsonTopic,
  kafkaUpTo,
  UNRESOLVED,
} from '../support/fake-topic.ts';

vi.mock(import('../../src/sinks/fetch/kafka-reader.ts'), async (original) => ({
  ...(await original()),
  openReader: (await import('../support/fake-reader.ts')).openFakeReader,
}));

/** A replay under way: what it has emitted, and how it ends. */
function replaying(options: Partial<ReplayOptions<string>> = {}) {
  const opened = fakeReaders.length;
  const values: (string | null)[] = [];
  const replayed$ = replay({
    kafka: kafkaUpTo(10),
    registry: fakeRegistry,
    topic: jsonTopic<string>(),
    ...options,
  });
  const ended = new Promise<void>((complete, error) => {
    replayed$.subscribe({ next: ({ value }) => values.push(value), complete, error });
  });
  ended.catch(() => undefined); // for who awaits it
  const reader = () => vi.waitUntil(() => fakeReaders[opened]);
  return { values, ended, reader };
}

it('hands over what is before a schema that can not be resolved', async () => {
  const { values, ended, reader } = replaying();
  const bad = jsonMessage(2, 'c', { schemaId: UNRESOLVED });
  (await reader()).give(0, [jsonMessage(0, 'a'), jsonMessage(1, 'b'), bad], 3n);
  await expect(ended).rejects.toMatchObject({ code: 'VALUE_UNREADABLE', context: { offset: '2' } });
  expect(values).toEqual(['a', 'b']);
});

/** The registry is away as the first batch is to be read. */
async function withoutRegistry(stop$: Observable<unknown>, onCaughtUp = () => undefined) {
  const retries: Retry[] = [];
  const onRetry = (retry: Retry) => retries.push(retry);
  const replayed = replaying({ to: 'never', stop$, onRetry, onCaughtUp, kafka: kafkaUpTo(1) });
  const message = jsonMessage(0, 'a', { schemaId: AWAY });
  (await replayed.reader()).give(0, [message], 1n);
  await vi.waitUntil(() => retries.length > 0);
  return { ...replayed, retries };
}

/** What stop$ may come in the midst of. */
const MIDST = {
  'the first question to Kafka': (stop$: Observable<unknown>) => {
    const unanswered = new Promise<never>(() => undefined);
    return Promise.resolve(replaying({ kafka: kafkaUpTo(10, 't', unanswered), stop$ }));
  },
  'an outage of the registry': (stop$: Observable<unknown>) => withoutRegistry(stop$),
  'the reading': async (stop$: Observable<unknown>) => {
    const replayed = replaying({ to: 'never', stop$ });
    await replayed.reader();
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
  const { ended, values, reader } = replaying({ registry, to: 'never', stop$ });
  (await reader()).give(0, [jsonMessage(0, 'a')], 1n);
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
  const { ended, reader } = replaying();
  (await reader()).give(0, [jsonMessage(0, 'a', { schemaId: AWAY })], 1n);
  await expect(ended).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE' });
});
