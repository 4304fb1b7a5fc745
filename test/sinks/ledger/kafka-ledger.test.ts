import { VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { LogMessage } from '../../../src/kafka/fetch/record-batches.ts';
import { accountLog } from '../../../src/sinks/ledger/kafka-ledger.ts';
import { CompactedView } from '../../../src/kafka/fetch/compacted-view.ts';
import type { FencedSink, Message } from '../../../src/sinks/sink.ts';

const TOPIC = 'wine.ledger';

/** The topic of ledgers: what is written to it stands there at once. */
function ledgerTopic() {
  const messages: LogMessage[] = [];
  const opened: string[] = [];
  let reads = 0;
  /** Called when the end is found, before anything is read. */
  let onBounds = () => undefined as void;
  const write = (key: string, text: string) => {
    messages.push({
      ...{ attributes: 0, leaderEpoch: 1, isAppendTime: true, headers: {} },
      offset: String(messages.length),
      timestamp: '1000',
      ...{ key: Buffer.from(key), value: Buffer.from(text) },
    });
  };
  const bounds = () => {
    onBounds();
    return Promise.resolve(new Map([[0, { low: 0n, high: BigInt(messages.length) }]]));
  };
  const open = (id: string): Promise<FencedSink> => {
    opened.push(id);
    return Promise.resolve({
      producer: { producerId: 1n, epoch: 0 },
      commit: (written: readonly Message[]) => {
        for (const { key, value } of written) write(key!, String(value));
        return Promise.resolve(new Map([[TOPIC, new Map([[0, BigInt(messages.length)]])]]));
      },
      awaitVisible: () => Promise.resolve(),
      bounds,
      close: () => Promise.resolve(),
    });
  };
  const known = new CompactedView<LogMessage>(({ low, high }, onMessages) => {
    reads += 1;
    onMessages(messages.slice(Number(low), Number(high)));
    return Promise.resolve();
  });
  const logOf = (account: string) =>
    accountLog({
      ...{
        log: { open, bounds },
        topic: TOPIC,
        ledgerTopic: known,
        account,
        transactionalId: account,
      },
      scheduler: new VirtualTimeScheduler(),
      recreateTopic: () => Promise.reject(new Error('it is there')),
      isOwnEntry: () => true,
      isOfApiKey: (text) => text.startsWith('with its key'),
    });
  return {
    ...{ write, logOf, opened },
    reads: () => reads,
    claims: () => messages.length,
    atBounds: (work: () => void) => (onBounds = work),
  };
}

describe('the ledgers of many accounts', () => {
  it('are read once: the next account reads what has come since', async () => {
    const topic = ledgerTopic();
    topic.write('east', 'of the one before');
    topic.write('west', 'of the one before in the west');
    const east = await topic.logOf('east').claim('claim');
    const west = await topic.logOf('west').claim('claim');
    expect(east.entries.map(({ text }) => text)).toEqual(['of the one before']);
    expect(west.entries.map(({ text }) => text)).toEqual(['of the one before in the west']);
    expect(topic.reads()).toBe(2);
  });

  it('tell of what was asked with the same key under another name', async () => {
    const topic = ledgerTopic();
    topic.write('old', 'with its key, once');
    topic.write('old', 'with its key');
    topic.write('west', 'with a key of its own');
    const { entries, guestEntries } = await topic.logOf('renamed').claim('claim');
    expect(entries).toEqual([]);
    expect(guestEntries.map(({ text }) => text)).toEqual(['with its key']);
  });

  it('are left to whoever has claimed them since, though it is read behind that claim', async () => {
    const topic = ledgerTopic();
    topic.atBounds(() => topic.write('east/', 'claim of another one'));
    await expect(topic.logOf('east').claim('claim')).rejects.toMatchObject({ code: 'FENCED' });
    expect(topic.opened).toEqual(['east']);
  });

  it('tell of what guests have declared since, once', async () => {
    const topic = ledgerTopic();
    const log = topic.logOf('east');
    topic.write('east/before', 'of a guest of before');
    expect((await log.claim('claim')).guestEntries).toHaveLength(1);
    topic.write('east/guest', 'of a guest');
    await log.append('declaration');
    // Behind the declaration: who is read too early is counted too early, and not a second time.
    topic.atBounds(() => topic.write('east/late', 'of a late guest'));
    const texts = async () => (await log.guests()).guestEntries.map(({ text }) => text);
    expect(await texts()).toEqual(['of a guest', 'of a late guest']);
    topic.atBounds(() => undefined);
    await log.append('another declaration');
    expect(await texts()).toEqual([]);
  });
});

describe('a ledger that is closed while it is taken over', () => {
  it('is closed when that has ended, and writes no claim', async () => {
    const topic = ledgerTopic();
    const log = topic.logOf('east');
    const ended: string[] = [];
    const taking = log.claim('claim').catch((error: unknown) => error);
    const closing = log.close().then(() => ended.push('closed'));
    void taking.then(() => ended.push('taken over'));
    await closing;
    expect(await taking).toMatchObject({ code: 'COMMIT_FAILED' });
    expect(ended).toEqual(['taken over', 'closed']);
    expect(topic.claims()).toBe(0);
  });
});
