import type { KafkaMessage } from 'kafkajs';
import { lastValueFrom, NEVER, of, Subject, throwError } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { handling } from '../../src/consumers/handling.ts';
import type { GroupRetry, HandlingOptions } from '../../src/consumers/handling.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { PAUSES } from '../../src/core/retries.ts';
import type { RegisteredSchema, Registry } from '../../src/schemas/registry/registry.ts';
import type { GivenUp } from '../../src/sinks/producer/plain-producer.ts';
import { hurriedTime } from '../support/hurried-time.ts';

const MESSAGE = { offset: '41', key: Buffer.from('k'), value: Buffer.from('v') } as KafkaMessage;
const EVENT = {
  topic: 't',
  partition: 3,
  offset: '41',
  timestamp: 0,
  key: 'k',
  headers: {},
  value: 'v',
};

const error = (
  code: 'REGISTRY_UNREACHABLE' | 'REGISTRY_REFUSED' | 'KAFKA_UNREACHABLE' | 'VALUE_UNREADABLE',
) => new CellarstreamError(code, code.toLowerCase());

/** One try with fakes around it, in hurried time. */
function tried(options: Partial<HandlingOptions<string, unknown>> = {}, tries = 1, halt$ = NEVER) {
  const time = hurriedTime();
  const letters: GivenUp[] = [];
  const retries: GroupRetry[] = [];
  const one = handling<string, unknown>({
    topic: 't',
    registry: registryWith(undefined),
    reader: readerOf(),
    handle: () => of('result'),
    retry: { tries: 3, firstMs: 100, maxMs: 250 },
    deadLetters: {
      write: (letter) => Promise.resolve(void letters.push(letter)),
      close: () => Promise.resolve(),
    },
    scheduler: time.scheduler,
    random: () => 0.5,
    hooks: { onRetry: (retry) => retries.push(retry) },
    ...options,
  });
  const outcome = lastValueFrom(one(3, MESSAGE, tries, halt$), { defaultValue: 'nothing' });
  return { outcome, letters, retries, waits: time.waits };
}

/** Fails with these first. */
function readerOf(...errors: CellarstreamError[]): HandlingOptions<string, never>['reader'] {
  return {
    prepare: () => {
      const error = errors.shift();
      return error ? Promise.reject(error) : Promise.resolve();
    },
    read: () => EVENT,
  };
}

function registryWith(latest: RegisteredSchema | undefined): Registry {
  return { latest: () => Promise.resolve(latest) } as Partial<Registry> as Registry;
}

describe('an event of a group', () => {
  it.each([
    ['a promise', () => Promise.resolve('result'), 'result'],
    ['an Observable, its last value', () => of('first', 'result'), 'result'],
    ['nothing', () => undefined, undefined],
    ['an Observable without values', () => of<string>(), undefined],
  ])('is handled by %s', async (_, handle, result) => {
    const { outcome } = tried({ handle });
    expect(await outcome).toEqual({ done: true, result: { event: EVENT, result } });
  });

  it.each([
    [
      'thrown',
      () => {
        throw new Error('no');
      },
    ],
    ['rejected', () => Promise.reject(new Error('no'))],
    ['an error notification', () => throwError(() => new Error('no'))],
  ])(
    'whose handler fails (%s) is tried again after a part of a pause that doubles',
    async (_, handle) => {
      for (const [tries, againMs] of [
        [1, 50],
        [2, 100],
      ] as const) {
        const { outcome, retries } = tried({ handle }, tries);
        expect(await outcome).toEqual({ done: false, retryAfterMs: againMs });
        expect(retries).toMatchObject([
          { count: tries, delayMs: againMs, event: { partition: 3, offset: '41' } },
        ]);
      }
    },
  );

  it('has a most for its pauses', async () => {
    const options = { handle: () => Promise.reject(new Error('no')) };
    const { outcome } = tried({ ...options, retry: { tries: 9, firstMs: 100, maxMs: 250 } }, 8);
    expect(await outcome).toEqual({ done: false, retryAfterMs: 125 });
  });

  it('goes to the dead letters after the last try, and then only is done', async () => {
    const failure = new Error('no');
    const written = new Subject<void>();
    const write = vi.fn(() => lastValueFrom(written, { defaultValue: undefined }));
    const deadLetters = { write, close: () => Promise.resolve() };
    const { outcome } = tried({ handle: () => Promise.reject(failure), deadLetters }, 3);
    const settled = vi.fn();
    void outcome.then(settled);
    await vi.waitUntil(() => write.mock.calls.length === 1);
    expect(settled).not.toHaveBeenCalled();
    written.complete();
    expect(await outcome).toEqual({ done: true });
    expect(write).toHaveBeenCalledWith({
      topic: 't',
      partition: 3,
      message: MESSAGE,
      error: failure,
      tries: 3,
    });
  });

  it('waits for Kafka to take a dead letter', async () => {
    const write = vi
      .fn<(letter: GivenUp) => Promise<void>>()
      .mockRejectedValueOnce(error('KAFKA_UNREACHABLE'))
      .mockRejectedValueOnce(error('KAFKA_UNREACHABLE'))
      .mockResolvedValue();
    const deadLetters = { write, close: () => Promise.resolve() };
    const handle = () => Promise.reject(new Error('no'));
    const { outcome, retries } = tried({ handle, deadLetters }, 3);
    expect(await outcome).toEqual({ done: true });
    expect(retries.map(({ event }) => event)).toEqual([undefined, undefined]);
  });

  it('waits for the registry at most as long as other calls of the consumer between two tries', async () => {
    const outage = Array.from({ length: 9 }, () => error('REGISTRY_UNREACHABLE'));
    const { outcome, retries } = tried({ reader: readerOf(...outage), random: () => 1 });
    expect(await outcome).toMatchObject({ done: true });
    const { firstMs, maxMs } = PAUSES.restart;
    expect(retries.at(0)?.delayMs).toBe(firstMs);
    expect(retries.at(-1)?.delayMs).toBe(maxMs);
  });

  it('without dead letters is an error after the last try', async () => {
    const failure = new Error('no');
    const { outcome } = tried({ handle: () => Promise.reject(failure), deadLetters: undefined }, 3);
    await expect(outcome).rejects.toBe(failure);
  });

  it('that can not be read goes to the dead letters at once', async () => {
    const unreadable = error('VALUE_UNREADABLE');
    const handle = vi.fn();
    const { outcome, letters } = tried({ handle, reader: readerOf(unreadable) });
    expect(await outcome).toEqual({ done: true });
    expect(letters).toMatchObject([{ error: unreadable, tries: 0 }]);
    expect(handle).not.toHaveBeenCalled();
  });

  it('waits for a registry that is away, and is then handled with its first try', async () => {
    const away = error('REGISTRY_UNREACHABLE');
    const { outcome, retries, waits } = tried({ reader: readerOf(away, away, away) });
    expect(await outcome).toMatchObject({ done: true, result: { event: EVENT } });
    expect(retries).toHaveLength(3);
    expect(waits).toEqual([125, 250, 500]);
  });

  it('is left as it is when the group halts while the registry is away', async () => {
    const { outcome } = tried(
      { reader: readerOf(error('REGISTRY_UNREACHABLE')) },
      1,
      of(1) as never,
    );
    expect(await outcome).toBe('nothing');
  });

  it('whose schema the registry has not is unreadable where the registry has the topic', async () => {
    const refused = error('REGISTRY_REFUSED');
    const known = registryWith({} as RegisteredSchema);
    const { outcome, letters } = tried({ reader: readerOf(refused), registry: known });
    expect(await outcome).toEqual({ done: true });
    expect(letters).toMatchObject([{ tries: 0, error: { code: 'VALUE_UNREADABLE' } }]);

    const other = tried({ reader: readerOf(refused) });
    await expect(other.outcome).rejects.toBe(refused);
    expect(other.letters).toEqual([]);
  });

  it('is not tried again for what only looks as if it could pass', async () => {
    const failure = error('KAFKA_UNREACHABLE'); // the handler's own, after its last try
    const { outcome } = tried({ handle: () => Promise.reject(failure), deadLetters: undefined }, 3);
    await expect(outcome).rejects.toBe(failure);
  });
});
