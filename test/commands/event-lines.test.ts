import { expect, it } from 'vitest';
import { changeLines, eventLine } from '../../src/commands/event-lines.ts';
import { listNamed } from '../../src/description/description.ts';
import type { Published } from '../../src/observe/hooks.ts';
import type { StatusChange } from '../../src/streams/diff/status-changes.ts';
import { DESK } from '../support/desk.ts';
import { ORDERS } from '../support/orders.ts';

const plain = (text: string) => text;
const COLORS = new Proxy({}, { get: () => plain }) as Parameters<typeof eventLine>[2];
const TICKETS = listNamed(DESK, 'tickets');
const status = (subject: string, subjectId: string | null, field: string): StatusChange => ({
  ...{ subject, subjectId, field, from: 'a', to: 'b', changedAt: null },
});

/** The line of an update with these changed paths and status changes. */
function line(resource: string, list: typeof ORDERS, changed: string[], all: StatusChange[]) {
  const changes = [{ key: '1', op: 'u', changed }] as unknown as Published['changes'];
  const statusChanges = all.map((change) => ({ key: '1', change }));
  const published = { resource, changes, statusChanges } as unknown as Published;
  return changeLines(published, list, COLORS, 'now').join('\n');
}

it('a status is named by its subject, and its path is not repeated', () => {
  const changed = ['open', 'service.level.state', 'steps[7].done', 'title'];
  const all = [
    status('sla', null, 'state'),
    status('ticket', null, 'open'),
    status('step', '7', 'done'),
  ];
  expect(line('tickets', TICKETS, changed, all)).toBe(
    'now updated tickets 1  sla.state a → b, open a → b, step[7].done a → b, title',
  );
});

it('a status of an order has the line that it always had', () => {
  const changed = [
    'club_package_info.package_status',
    'fulfillment_info[F-1].status',
    'payment_status',
  ];
  const all = [
    status('order', null, 'payment_status'),
    status('fulfillment', 'F-1', 'status'),
    status('club_package', null, 'package_status'),
  ];
  expect(line('orders', ORDERS, changed, all)).toBe(
    'now updated orders 1  payment_status a → b, fulfillment[F-1].status a → b, club_package.package_status a → b',
  );
});

it.each([
  ['order-status-changes', ORDERS, 'order', 'payment_status', 'order 1  payment_status a → b'],
  ['tickets-status-changes', TICKETS, 'sla', 'state', 'ticket 1  sla.state a → b'],
] as const)('a replayed status change of %s names the record', (of, list, subject, field, text) => {
  const value = {
    ...{ event_id: 'e', key: '1', subject, subject_id: null, field, from: 'a', to: 'b' },
    ...{ changed_at: null, observed_at: 0 },
  };
  const message = {
    topic: of,
    key: '1',
    partition: 0,
    offset: '5',
    timestamp: 0,
    headers: {},
    value,
  };
  const shown = eventLine(message, of, COLORS, list.statuses);
  expect(shown.split('  ').slice(-2).join('  ').trim()).toBe(text);
});
