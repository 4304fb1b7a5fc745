import { expect, it } from 'vitest';
import { STATUS_FIELDS } from '../../../src/description/wine/order-status.ts';
import { topicNames } from '../../../src/description/wine/topic-names.ts';
import { statusFieldName } from '../../../src/description/description.ts';
import { ORDERS } from '../../support/orders.ts';

it('the types of status changes name the subjects and fields of wine.yaml', () => {
  const fields = ORDERS.statuses!.subjects.map((each) => [
    each.name,
    each.fields.map(statusFieldName),
  ]);
  expect(fields).toEqual(Object.entries(STATUS_FIELDS));
});

it('the topic of status changes is that of wine.yaml', () => {
  const { orderStatusChanges, statusChanges } = topicNames('wine');
  expect(orderStatusChanges).toBe(statusChanges(ORDERS.statuses!));
});
