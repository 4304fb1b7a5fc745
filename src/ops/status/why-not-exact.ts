import type { Certificate } from '../../schemas/events/certificate.ts';

/** What keeps a certificate from being exact, in words; null where it is. */
export function whyNotExact(certificate: Certificate): string | null {
  const { proof, total_records: total, read, rejected, unpublished, held, undecided } = certificate;
  if (proof === 'exact') return null;
  const counts: readonly [number, string][] = [
    [undecided, 'undecided'],
    [held, held === 1 ? 'deletion held back' : 'deletions held back'],
    [unpublished, 'too large'],
  ];
  const whys = counts.flatMap(([n, what]) => (n > 0 ? [`${text(n)} ${what}`] : []));
  const met = read + rejected;
  if (total === null) whys.push('the total moved');
  else if (met !== total) whys.push(`${text(met)} of ${text(total)} read`);
  return whys.length > 0 ? whys.join(', ') : 'the list did not add up';
}

const text = (count: number) => count.toLocaleString('en-US');
