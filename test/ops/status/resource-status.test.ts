import { expect, it } from 'vitest';
import { whyNotExact } from '../../../src/ops/status/resource-status.ts';
import type { Certificate } from '../../../src/schemas/events/certificate.ts';
import { certificateOf } from '../../support/certificate.ts';

const READ = { total_records: 300, read: 300, proof: 'complete' } as const;

it.each<[string | null, Partial<Certificate>]>([
  [null, { ...READ, proof: 'exact' }],
  [null, { ...READ, read: 298, rejected: 2, proof: 'exact' }],
  ['the total moved', { ...READ, total_records: null }],
  ['298 of 300 read', { ...READ, read: 297, rejected: 1 }],
  ['2 undecided', { ...READ, undecided: 2 }],
  ['1 deletion held back', { ...READ, held: 1 }],
  [
    '1 undecided, 3 too large, the total moved',
    { undecided: 1, unpublished: 3, total_records: null, proof: 'complete' },
  ],
  ['the list did not add up', { ...READ, proof: 'unsettled' }],
])('a certificate is not exact for a reason: %s', (why, more) => {
  expect(whyNotExact(certificateOf({}, more), true)).toBe(why);
});

it('a list without a total has no exact certificates', () => {
  const complete = certificateOf({}, { ...READ, total_records: null });
  expect(whyNotExact(complete, false)).toBe('the list has no total');
});
