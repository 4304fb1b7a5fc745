import { describe, expect, it } from 'vitest';
import { CompactedView } from '../../../src/kafka/fetch/compacted-view.ts';
import type { KeyedMessage } from '../../../src/kafka/log.ts';

/** A topic whose messages stand at the offsets 0, 1, 2, ...; and who knows the newest of each key. */
class Topic {
  messages: [key: string, value: string | null][] = [];
  low = 0;
  now = 0;
  /** What has been read, as `from-to`. */
  readonly readings: string[] = [];
  /** Waited for before a reading hands anything over; an error of it is the reading's. */
  gate: Promise<unknown> = Promise.resolve();

  readonly known = new CompactedView<KeyedMessage>(
    async ({ low, high }, onMessages) => {
      this.readings.push(`${low}-${high}`);
      await this.gate;
      if (high > this.messages.length) throw new Error('the topic ends sooner');
      onMessages(
        this.messages.slice(Number(low), Number(high)).map(([key, value], place) => ({
          offset: String(Number(low) + place),
          key: Buffer.from(key),
          value: value === null ? null : Buffer.from(value),
        })),
      );
    },
    () => this.now,
  );

  readonly bounds = () =>
    Promise.resolve({ low: BigInt(this.low), high: BigInt(this.messages.length) });

  async newest(bounds = this.bounds): Promise<Record<string, string>> {
    const { newest } = await this.known.asOf(bounds);
    return Object.fromEntries([...newest].map(([key, { value }]) => [key, value.toString()]));
  }
}

/** A topic that begins with these. */
function topicOf(...messages: Topic['messages']): Topic {
  const topic = new Topic();
  topic.messages = messages;
  return topic;
}

describe('the newest message of each key', () => {
  it('is that of all before the end, and none where that is a tombstone', async () => {
    const topic = topicOf(['a', '1'], ['b', '1'], ['a', '2'], ['b', null]);
    expect(await topic.newest()).toEqual({ a: '2' });
  });

  it('is read once for all who ask, and read on where something was added', async () => {
    const topic = topicOf(['a', '1'], ['b', '1']);
    await topic.newest();
    await Promise.all([topic.newest(), topic.newest()]);
    topic.messages.push(['a', '2']);
    expect(await topic.newest()).toEqual({ a: '2', b: '1' });
    expect(topic.readings).toEqual(['0-2', '2-3']);
  });

  it('is no older one for who asks while something is read: what has come since is read for it', async () => {
    const topic = topicOf(['a', '1']);
    let open!: () => void;
    topic.gate = new Promise<void>((resolve) => (open = resolve));
    const first = topic.newest();
    await expect.poll(() => topic.readings).toEqual(['0-1']);
    topic.messages.push(['a', '2']);
    const [second, third] = [topic.newest(), topic.newest()];
    open();
    await first;
    expect(await Promise.all([second, third])).toEqual([{ a: '2' }, { a: '2' }]);
    expect(topic.readings).toEqual(['0-1', '1-2']);
  });

  it('is read from where the topic begins', async () => {
    const topic = topicOf(['a', '1'], ['b', '1'], ['c', '1']);
    topic.low = 2;
    expect(await topic.newest()).toEqual({ c: '1' });
  });

  it('is that of the topic that is there: one that was made anew is read anew', async () => {
    const topic = topicOf(['a', '1'], ['a', '2'], ['b', '1']);
    await topic.newest();
    topic.messages = [['a', 'of the new one']];
    expect(await topic.newest()).toEqual({ a: 'of the new one' });
  });

  it('is not taken for one of a topic made anew where others have read on meanwhile', async () => {
    const topic = topicOf(['a', '1'], ['b', '1']);
    let answer!: () => void;
    const late = topic.newest(async () => {
      const found = await topic.bounds();
      await new Promise<void>((resolve) => (answer = resolve));
      return found;
    });
    topic.messages.push(['a', '2']);
    await topic.newest();
    answer();
    expect(await late).toEqual({ a: '2', b: '1' });
    expect(topic.readings).toEqual(['0-3']);
  });

  it('is asked for in vain where the reading fails; whoever asks next reads on', async () => {
    const topic = topicOf(['a', '1']);
    await topic.newest();
    topic.messages.push(['a', '2']);
    topic.gate = Promise.reject(new Error('Kafka is away'));
    const [first, second] = [topic.newest(), topic.newest()];
    await expect(first).rejects.toThrow('Kafka is away');
    await expect(second).rejects.toThrow('Kafka is away');
    topic.gate = Promise.resolve();
    expect(await topic.newest()).toEqual({ a: '2' });
    expect(topic.readings).toEqual(['0-1', '1-2', '1-2']);
  });

  it('is not waited for as far as a topic of before went', async () => {
    const topic = topicOf(['a', '1']);
    const old = topic.newest(() => Promise.resolve({ low: 0n, high: 9n }));
    await expect(old).rejects.toThrow('the topic ends sooner');
    expect(await topic.newest()).toEqual({ a: '1' });
  });

  it('is forgotten when nobody has asked for ten minutes, or at once where it is wrong', async () => {
    const topic = topicOf(['a', '1']);
    await topic.newest();
    topic.now += 600_000;
    await topic.newest();
    topic.now += 600_001;
    await topic.newest();
    topic.known.invalidate();
    await topic.newest();
    expect(topic.readings).toEqual(['0-1', '0-1', '0-1']);
  });
});
