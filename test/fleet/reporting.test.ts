import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { fleetMessage } from '../../src/fleet/fleet-record.ts';
import { FleetTopicTable } from '../../src/fleet/fleet-log.ts';
import { reportTombstone, reportMessage } from '../../src/fleet/report.ts';
import type { Report } from '../../src/fleet/report.ts';
import { FleetAnnouncements } from '../../src/fleet/fleet-announcements.ts';
import type { Message } from '../../src/sinks/sink.ts';
import { SimTime } from '../sim/sim-time.ts';

const START = Date.parse('2026-06-01T12:00:00Z');
const of = (instance: string, accounts: Report['accounts']): Report => ({
  ...{ type: 'reports', instance, name: `${instance}-host`, at: '2026-06-01T12:00:00.000Z' },
  accounts,
});
const read = ({ key, value }: Message) => ({ key: Buffer.from(key!), value });

describe('the fleet as its topic has it', () => {
  const heard = (...messages: readonly Message[]) => {
    const words = new FleetTopicTable();
    words.apply(messages.map(read));
    return words;
  };
  const report = of('i1', { east: { weight: 1.5 } });

  it('knows what each instance told last, until that is taken back', () => {
    const older = of('i1', { west: { weight: 1 } });
    const other = of('i2', { north: { weight: 1 } });
    const messages = [older, report, other].map((each) => reportMessage('wine.fleet', each));
    expect(heard(...messages).reports).toEqual(
      new Map([
        ['i1', report],
        ['i2', other],
      ]),
    );
    const gone = heard(...messages, reportTombstone('wine.fleet', 'i1'));
    expect([...gone.reports.keys()]).toEqual(['i2']);
  });

  it('takes no account for an instance of its name', () => {
    const released = { type: 'released', account: 'i1', instance: 'i1', name: 'i1' } as const;
    const word = fleetMessage('wine.fleet', { ...released, at: report.at });
    const words = heard(reportMessage('wine.fleet', report), word);
    expect([[...words.accounts.keys()], [...words.reports.keys()]]).toEqual([['i1'], ['i1']]);
  });

  it('is not disturbed by what a later version says', () => {
    const later = [
      { ...of('i2', {}), mood: 'good', accounts: { east: { weight: 1, mood: 'good' } } },
      { ...report, instance: 'i3', accounts: 'as before' },
      { type: 'sings', instance: 'i4' },
    ].map((said) => ({
      ...reportMessage('wine.fleet', of(said.instance, {})),
      value: Buffer.from(JSON.stringify(said)),
    }));
    const song = { topic: 'wine.fleet', key: 'choir/i4', value: later[2]!.value };
    const words = heard(reportMessage('wine.fleet', report), ...later, song);
    expect(words.reports).toEqual(
      new Map([
        ['i1', report],
        ['i2', of('i2', { east: { weight: 1 } })],
      ]),
    );
    expect(words.accounts.size).toBe(0);
  });
});

describe('an instance', () => {
  function instance() {
    const time = new SimTime(START);
    const words = new FleetTopicTable();
    let accounts: Report['accounts'] = {};
    const sent: Message[] = [];
    const errors: unknown[] = [];
    let isCutOff = false;
    const announcements = new FleetAnnouncements({
      ...{ instance: 'i1', name: 'i1-host', topic: 'wine.fleet', scheduler: time.scheduler },
      log: {
        accounts: words.accounts,
        reports: words.reports,
        following$: NEVER,
        catchUp: () => Promise.resolve(),
        send: (message) => {
          if (isCutOff) return Promise.reject(new Error('cut off'));
          sent.push(message);
          words.apply([read(message)]);
          return Promise.resolve();
        },
        close: () => undefined,
      },
    });
    announcements
      .reporting(
        () => accounts,
        (error) => errors.push(error),
      )
      .subscribe();
    return {
      ...{ time, words, sent, errors },
      set: (next: Report['accounts']) => (accounts = next),
      cutOff: (isSo: boolean) => (isCutOff = isSo),
    };
  }

  it('reports seldom, and only what the topic does not say yet', async () => {
    const { time, sent, set } = instance();
    await time.pass(60_000);
    expect(sent).toEqual([]); // it runs nothing
    set({ east: { weight: 4 } });
    await time.pass(60_000);
    expect(sent).toHaveLength(1);
    for (let k = 0; k < 60; k++) {
      set({ east: { weight: 1 + (k % 7) } });
      await time.pass(1_000);
    }
    expect(sent).toHaveLength(5);
    set({});
    await time.pass(60_000);
    expect(sent).toHaveLength(6);
  });

  it('reports again what was lost, taken back, or did not come through', async () => {
    const { time, words, sent, errors, set, cutOff } = instance();
    set({ east: { weight: 4 } });
    cutOff(true);
    await time.pass(31_000);
    expect([sent.length, errors.length]).toEqual([0, 2]);
    cutOff(false);
    await time.pass(15_000);
    words.apply([read(reportTombstone('wine.fleet', 'i1'))]);
    await time.pass(30_000);
    words.clear();
    await time.pass(30_000);
    expect(sent).toHaveLength(3);
  });
});
