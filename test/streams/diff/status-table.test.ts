import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listNamed } from '../../../src/description/description.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import type { Change, Operation } from '../../../src/streams/diff/change.ts';
import { statusChanges } from '../../../src/streams/diff/status-changes.ts';
import { timeFormat } from '../../../src/description/time-format.ts';
import { DESK } from '../../support/desk.ts';
import { scaled } from '../../support/scale.ts';

const TICKETS = listNamed(DESK, 'tickets');
const MACHINES = listNamed(DESK, 'big-machines');

function change(op: Operation, before: JsonObject | null, after: JsonObject | null): Change {
  return {
    key: '1',
    op,
    before,
    after,
    images: { before: null, after: null },
    changed: [],
    updatedAt: null,
  };
}
const updated = (before: JsonObject, after: JsonObject, list = TICKETS) =>
  statusChanges(change('u', before, after), list);
const inShort = (before: JsonObject, after: JsonObject, list = TICKETS) =>
  updated(before, after, list).map(
    ({ subject, subjectId, field, from, to }) =>
      `${subject} ${subjectId ?? '-'} ${field}: ${from ?? '-'} > ${to ?? '-'}`,
  );

const TICKET: JsonObject = {
  steps: [
    { no: 1, done: 'yes' },
    { no: 2, done: 'no' },
  ],
  open: true,
  phase: { name: 'new', code: 1 },
  service: { level: { state: 'fine' } },
};

describe('status changes of a list that a description names', () => {
  it('have the order of the subjects and fields in the description, not that of the record', () => {
    expect(statusChanges(change('c', null, TICKET), TICKETS)).toHaveLength(5);
    expect(inShort({}, TICKET)).toEqual([
      'sla - state: - > fine',
      'ticket - phase.name: - > new',
      'ticket - open: - > true',
      'step 1 done: - > yes',
      'step 2 done: - > no',
    ]);
  });

  it('are found in nested objects, nested fields and elements of arrays', () => {
    const after: JsonObject = {
      service: { level: { state: 'broken' } },
      phase: { name: 'done', code: 2 },
      open: true,
      steps: [
        { no: 3, done: 'no' },
        { no: 2, done: 'yes' },
      ],
    };
    expect(inShort(TICKET, after)).toEqual([
      'sla - state: fine > broken',
      'ticket - phase.name: new > done',
      'step 3 done: - > no',
      'step 2 done: no > yes',
      'step 1 done: yes > -',
    ]);
    expect(inShort(TICKET, { ...TICKET, service: null, phase: 'gone' })).toEqual([
      'sla - state: fine > -',
      'ticket - phase.name: new > -',
    ]);
  });

  it('are those of its own list, and of none without statuses', () => {
    const [off, on]: JsonObject[] = [
      { state: 'off', open: true },
      { state: 'on', open: false },
    ];
    expect(inShort(off!, on!, MACHINES)).toEqual(['machine - state: off > on']);
    expect(inShort(off!, on!, listNamed(DESK, 'people'))).toEqual([]);
  });

  it.each<[string, JsonValue]>([
    ['an array', [{ state: 'x' }]],
    ['a text', 'x'],
    ['null', null],
  ])('are none where an object is expected and %s came', (_, level) => {
    expect(inShort({}, { service: { level } })).toEqual([]);
    expect(inShort({}, { service: level })).toEqual([]);
    expect(inShort({}, { steps: 'x' })).toEqual([]);
  });

  describe('changedAt', () => {
    const iso = (hour: number) => new Date(Date.UTC(2026, 2, 5, hour)).toISOString();
    const hours = (before: JsonObject, after: JsonObject, list = TICKETS) =>
      updated(before, after, list).map(({ changedAt }) =>
        changedAt === null ? null : new Date(changedAt).getUTCHours(),
      );
    const level = (state: string, since?: string) => ({
      service: { level: { state, ...(since !== undefined && { since }) } },
    });

    it("is the object's own time, else that of the record", () => {
      const record = { changed: iso(9) };
      expect(hours({}, { ...record, ...level('x', iso(7)) })).toEqual([7]);
      expect(hours(level('w', iso(6)), { ...record, ...level('x', iso(7)) })).toEqual([7]);
      expect(hours({}, { ...record, ...level('x') })).toEqual([9]);
      expect(hours(level('x', iso(7)), record)).toEqual([9]); // the object was removed
      expect(hours({}, { state: 'on', state_since: iso(8), ...record }, MACHINES)).toEqual([8]);
    });

    it('is the record time in the first field that has one, and null without', () => {
      expect(hours({}, { open: 1, made: iso(3), changed: iso(4) })).toEqual([4]);
      expect(hours({}, { open: 1, made: iso(3), changed: null })).toEqual([3]);
      expect(hours({}, { open: 1, updated_at: iso(5) })).toEqual([null]);
    });

    it('is the time of a new element only while it is new', () => {
      const step = (done: string) => ({ changed: iso(9), steps: [{ no: 1, done, at: iso(2) }] });
      expect(hours({}, step('no'))).toEqual([2]);
      expect(hours(step('no'), step('yes'))).toEqual([9]);
    });
  });

  it('turn the statuses before into the statuses after', () => {
    const status = fc.constantFrom<JsonValue>('a', 'b', null, 7);
    const some = (model: Record<string, fc.Arbitrary<JsonValue>>) =>
      fc.record(model, { requiredKeys: [], noNullPrototype: true }) as fc.Arbitrary<JsonObject>;
    const ticket = some({
      open: status,
      phase: fc.oneof(some({ name: status }), status),
      service: fc.oneof(some({ level: fc.oneof(some({ state: status }), status) }), status),
      steps: fc.uniqueArray(
        fc.tuple(fc.integer({ min: 1, max: 4 }), status).map(([no, done]) => ({ no, done })),
        { selector: ({ no }) => no },
      ),
    });
    fc.assert(
      fc.property(ticket, ticket, (before, after) => {
        const statuses = statusesOf(before);
        for (const { subject, subjectId, field, from, to } of updated(before, after)) {
          const name = `${subject}/${subjectId ?? ''}/${field}`;
          expect(statuses[name] ?? null).toBe(from);
          if (to === null) delete statuses[name];
          else statuses[name] = to;
        }
        expect(statuses).toEqual(statusesOf(after));
      }),
      { numRuns: scaled(250, 1_000) },
    );
  });
});

/** The statuses of a ticket that are set, by subject, identity and field; worked out without the code at hand. */
function statusesOf(ticket: JsonObject): Record<string, string> {
  const { open, phase, service, steps } = ticket as {
    open?: JsonValue;
    phase?: { name?: JsonValue } | null;
    service?: { level?: { state?: JsonValue } | null } | null;
    steps?: { no: number; done: JsonValue }[];
  };
  const all: Record<string, JsonValue | undefined> = {
    'sla//state': service?.level?.state,
    'ticket//phase.name': phase?.name,
    'ticket//open': open,
  };
  for (const { no, done } of steps ?? []) all[`step/${no}/done`] = done;
  const set = Object.entries(all).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(
    set.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}

it("reads the record's and the objects' own times in the notation of the API", () => {
  const times = timeFormat('epoch-s');
  const list = { ...TICKETS, updated: ['modified'] };
  const after = { ...TICKET, modified: 1_772_714_096 };
  const found = statusChanges(change('c', null, after), list, times);
  expect(new Set(found.map(({ changedAt }) => changedAt))).toContain(1_772_714_096_000);
  const inIso = statusChanges(change('c', null, after), list);
  expect(inIso.every(({ changedAt }) => changedAt === null)).toBe(true);
});
