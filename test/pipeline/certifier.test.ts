import { TestScheduler } from 'rxjs/testing';
import { describe, expect, it } from 'vitest';
import type { CertifyJob } from '../../src/account/signal-jobs.ts';
import { Certifier } from '../../src/pipeline/certifier.ts';
import type { CertifierOptions } from '../../src/pipeline/certifier.ts';
import type { Cursor } from '../../src/pipeline/checkpoint/cursor.ts';
import type { Plan } from '../../src/pipeline/publish/plan.ts';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import type { Certificate } from '../../src/schemas/events/certificate.ts';
import { KeyTally } from '../../src/schemas/events/key-tally.ts';
import type { Message } from '../../src/sinks/sink.ts';
import { fakeCheckpoint } from '../support/fake-checkpoint.ts';
import { NO_COUNTS } from '../../src/streams/paging/scan-counts.ts';
import { NO_SWEEP } from '../../src/streams/paging/sweep-progress.ts';

const INTERVAL_MS = 60_000;
const ASKED: CertifyJob = { id: 'fresh', resource: 'orders' };

/** A list whose readings end at these times, ms; what comes of each: the number of its certificate, or why it has none. */
async function outcomes(
  ends: readonly number[],
  {
    partitions = 1,
    asked = [] as readonly CertifyJob[],
    list = listNamed(WINE, 'orders'),
    sweep = { ...NO_SWEEP, counts: NO_COUNTS },
    images = 0,
  } = {},
) {
  let now = 0;
  let looks = 0;
  const found: (number | string)[] = [];
  let cursor = { sequence: 9 } as Cursor;
  const task = {
    account: { name: 'estate' },
    list,
    config: { certificateIntervalMs: INTERVAL_MS, poll: { deleteProofMs: 1_000 } },
    destination: { certificates: 'wine.certificates' },
    hooks: {
      onCertified: ({ certificate }: { certificate: Certificate }) =>
        found.push(certificate.number),
      onUncertified: ({ why }: { why: string }) => found.push(why),
    },
    scheduler: Object.assign(new TestScheduler(() => undefined), { now: () => now }),
  } as unknown as CertifierOptions['task'];
  const checkpoint = fakeCheckpoint(
    {
      get cursor() {
        return cursor;
      },
      sweep,
      liveKeys: { keys: [new KeyTally()], ends: {} },
      partitions: () => Promise.resolve(partitions),
    },
    {
      count: () => images,
      unseen: () => {
        looks += 1;
        return { keys: [], next: undefined };
      },
    },
  );
  const acknowledgeCertify = (
    { id: key }: CertifyJob,
    { status }: { status: string },
  ): Message => ({
    topic: 'wine.signals',
    key,
    value: Buffer.from(status),
  });
  const messages: Message[] = [];
  const certificates = new Certifier({
    ...{ task, checkpoint },
    resyncs: { certifyAck: acknowledgeCertify, ackCommitted: () => undefined },
    transact: (commit) => {
      cursor = { ...cursor, ...commit.cursor };
      messages.push(...commit.messages);
      return Promise.resolve();
    },
    hasEnded: () => false,
  });
  for (const end of ends) {
    now = end;
    const batch = { lane: 'sweep', step: { kind: 'end', held: 0 }, certifyJobs: asked };
    await certificates.certify({ batch, commit: { cursor } } as unknown as Plan);
  }
  return {
    found,
    looks,
    messages: messages.map(({ topic, value }) => [topic, String(value)] as const),
  };
}

describe('a complete reading', () => {
  it('is certified whenever it has taken longer than the interval', async () => {
    const { found } = await outcomes([90_000, 180_000, 270_000]);
    expect(found).toEqual([1, 2, 3]);
  });

  it('is said to come too soon behind a certificate, and the first that does not is certified', async () => {
    const often = Array.from({ length: 400 }, (_, nth) => nth * 700); // a list that is read again and again
    const { found } = await outcomes(often);
    const certified = often.filter((_, nth) => typeof found[nth] === 'number');
    expect(certified).toEqual([0, 60_200, 120_400, 180_600, 240_800]);
    expect(new Set(found)).toEqual(new Set([1, 2, 3, 4, 5, 'too-soon']));
  });

  it('is certified at any time where somebody has asked, and when a clock was set back', async () => {
    expect((await outcomes([0, 10, 20], { asked: [ASKED] })).found).toEqual([1, 2, 3]);
    expect((await outcomes([100_000, 5_000])).found).toEqual([1, 2]);
  });

  it('is said not to be certified where the topic has other partitions, and so is told who has asked', async () => {
    const nobody = await outcomes([0, 90_000], { partitions: 2 });
    expect(nobody).toEqual({ found: ['partitions', 'partitions'], looks: 0, messages: [] });
    const { found, messages } = await outcomes([0], { partitions: 2, asked: [ASKED] });
    expect([found, messages]).toEqual([['partitions'], [['wine.signals', 'failed']]]);
  });

  it.each([
    ['has read as many keys as there are images: nothing is looked for', 'inventory', 3, 0],
    ['has read fewer: what it has not seen is looked for', 'inventory', 4, 1],
    ['may have had a record deleted that it had read: likewise', 'orders', 3, 1],
  ] as const)('%s', async (_, resource, images, looks) => {
    const sweep = { ...NO_SWEEP, distinct: 3, counts: NO_COUNTS };
    const by = { list: listNamed(WINE, resource), sweep, images };
    expect(await outcomes([90_000], by)).toMatchObject({ found: [1], looks });
  });
});
