import { from, Observable, Subject } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import type { SignalBatch, SignalTopic } from '../../../src/sinks/signals/kafka-signals.ts';
import { sharedSignals } from '../../../src/sinks/signals/kafka-signals.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A topic of one partition, and how often it is followed. */
class Topic implements SignalTopic {
  readonly name = 'wine.signals';
  readonly #values: string[] = [];
  readonly #added$ = new Subject<number>();
  following = 0;
  failing = new Subject<never>();

  add(value: string): void {
    this.#values.push(value);
    this.#added$.next(this.#values.length - 1);
  }

  #batch(at: number): SignalBatch {
    const value = Buffer.from(this.#values[at]!);
    const messages = [{ offset: String(at), key: null, value }];
    return { partition: 0, messages, next: BigInt(at + 1) };
  }

  ends = () => Promise.resolve(new Map([[0, BigInt(this.#values.length)]]));
  send = () => Promise.resolve();
  close = () => Promise.resolve();
  read: SignalTopic['read'] = ({ from: offsets, follow }) => {
    const first = Number(offsets.get(0) ?? 0);
    const there = this.#values.map((_, at) => this.#batch(at)).slice(first);
    if (!follow) return from(there);
    return new Observable((subscriber) => {
      this.following += 1;
      subscriber.add(() => (this.following -= 1));
      subscriber.add(this.failing.subscribe(subscriber));
      subscriber.add(this.#added$.subscribe((at) => subscriber.next(this.#batch(at))));
    });
  };
}

describe('a topic that many follow', () => {
  let topic: Topic;
  let shared: SignalTopic;
  const follow = (offset = 0n) => {
    const seen = new Set<string>();
    const errors: unknown[] = [];
    const subscription = shared.read({ from: new Map([[0, offset]]), follow: true }).subscribe({
      next: ({ messages }) => messages.forEach(({ value }) => seen.add(String(value))),
      error: (error: unknown) => errors.push(error),
    });
    return { seen, errors, subscription };
  };
  beforeEach(() => {
    topic = new Topic();
    shared = sharedSignals(topic);
    topic.add('a');
  });

  it('is read once, and nobody misses anything', async () => {
    const one = follow();
    topic.add('b');
    await turn();
    topic.add('c');
    const two = follow(1n);
    topic.add('d');
    await turn();
    topic.add('e');
    expect([...one.seen]).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect([...two.seen].sort()).toEqual(['b', 'c', 'd', 'e']);
    expect(topic.following).toBe(1);
    one.subscription.unsubscribe();
    expect(topic.following).toBe(1);
    two.subscription.unsubscribe();
    expect(topic.following).toBe(0);
  });

  it('says to all when it fails, and begins again', async () => {
    const one = follow();
    const two = follow();
    await turn();
    const { failing } = topic;
    topic.failing = new Subject();
    failing.error(new Error('away'));
    expect([one.errors.length, two.errors.length]).toEqual([1, 1]);
    const again = follow(1n);
    await turn();
    topic.add('b');
    expect([...again.seen]).toEqual(['b']);
    expect(topic.following).toBe(1);
    again.subscription.unsubscribe();
  });

  it('hands on what comes while the rest is being read', async () => {
    const before$ = new Subject<SignalBatch>();
    const live$ = new Subject<SignalBatch>();
    const batch = (next: bigint): SignalBatch => ({ partition: 0, messages: [], next });
    const slow = sharedSignals({
      ...topic,
      ends: topic.ends,
      read: ({ follow: isLive }) => (isLive ? live$ : before$),
    });
    const nexts: bigint[] = [];
    const subscription = slow
      .read({ from: new Map(), follow: true })
      .subscribe(({ next }) => nexts.push(next));
    await turn();
    live$.next(batch(3n));
    before$.next(batch(1n));
    before$.complete();
    live$.next(batch(4n));
    expect(nexts).toEqual([1n, 3n, 4n]);
    subscription.unsubscribe();
  });
});
