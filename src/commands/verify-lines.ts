import pc from 'picocolors';
import type { Certificate } from '../schemas/events/certificate.ts';
import type { CheckedCertificate } from '../consumers/check-certificate.ts';
import type { CheckedCopy, NamedKeys, VerifiedList } from './verified-list.ts';

/** A list that was asked for: what was found, or why there is nothing. */
export interface ListFinding {
  readonly account: string;
  readonly resource: string;
  readonly found: VerifiedList | { readonly why: string };
}

/** Whether all that was asked for was checked, and is right. */
export function isRight({ found }: ListFinding): boolean {
  if ('why' in found) return false;
  const { checked, copy } = found;
  return checked.checked === 'agrees' && (copy === undefined || isRightCopy(copy));
}

/** A line for each list, and for what is wrong with a copy. */
export function verifyTable(findings: readonly ListFinding[]): string {
  const colors = pc.createColors(process.stdout.isTTY && pc.isColorSupported);
  const rows = findings.map((finding) => ({ finding, cells: cellsOf(finding) }));
  const widths = [0, 1, 2, 3, 4].map((nth) =>
    Math.max(...rows.map(({ cells }) => cells[nth]!.length)),
  );
  return rows
    .map(({ finding, cells }) => {
      const padded = cells.map((cell, nth) => cell.padEnd(widths[nth] ?? 0));
      const color = padded[1]!.startsWith('ok') ? colors.green : colors.red;
      const line = padded.with(1, color(padded[1])).join('  ').trimEnd();
      const { found } = finding;
      const copy = 'checked' in found && found.copy ? copyLines(found.copy) : [];
      return [line, ...copy].map((text) => `${text}\n`).join('');
    })
    .join('');
}

/** A JSON object for each list. */
export function verifyJson(findings: readonly ListFinding[]): string {
  return findings
    .map(({ account, resource, found }) => {
      const line =
        'why' in found
          ? { account, resource, checked: 'not checked', why: found.why, certificate: null }
          : { account, resource, ...jsonOf(found) };
      return `${JSON.stringify(line)}\n`;
    })
    .join('');
}

function jsonOf({ checked: { certificate, publishedAt, ...checked }, copy }: VerifiedList) {
  return {
    checked: checked.checked,
    why: checked.why ?? null,
    published_at: new Date(publishedAt).toISOString(),
    certificate,
    records: recordsOf(checked),
    partitions: checked.partitions.map(({ found = null, why = null, ...partition }) => ({
      ...partition,
      found,
      why,
    })),
    copy: copy ? { ...copy, checked: isRightCopy(copy) ? 'agrees' : 'disagrees' } : null,
  };
}

/** Name, verdict, counts, proof, time, details. */
function cellsOf({ resource, found }: ListFinding): string[] {
  if ('why' in found) return [resource, 'not checked', '', '', '', found.why];
  const { checked } = found;
  const { certificate } = checked;
  const verdict = checked.checked === 'agrees' ? 'ok' : checked.checked;
  const total = certificate.total_records;
  return [
    resource,
    verdict,
    `${numberText(recordsOf(checked))} of ${numberText(total)}`,
    certificate.proof,
    new Date(certificate.ended_at).toISOString(),
    [...whysOf(checked), ...remarksOf(certificate)].join('; '),
  ];
}

/** In the topic; null where not all partitions were checked. */
function recordsOf({ partitions }: Pick<CheckedCertificate, 'partitions'>): number | null {
  if (partitions.length === 0) return null;
  const counts = partitions.map(({ found }) => found?.records ?? NaN);
  const sum = counts.reduce((all, one) => all + one, 0);
  return Number.isNaN(sum) ? null : sum;
}

function whysOf({ why, partitions }: CheckedCertificate): string[] {
  const all = [why, ...partitions.map((each) => each.why)];
  return all.filter((each) => each !== undefined);
}

/** What the certificate itself says is not in the topic, or not known. */
function remarksOf(certificate: Certificate): string[] {
  const { rejected, unpublished, left_out, held, undecided, undecided_keys } = certificate;
  const named = undecided_keys.slice(0, 3).join(', ');
  const remarks: [number, string][] = [
    [rejected, 'without a usable key'],
    [unpublished, 'too large to publish'],
    [left_out, 'older than START_FROM'],
    [held, 'deletions held back'],
    [undecided, `undecided${named === '' ? '' : ` (${named}${undecided > 3 ? ', ...' : ''})`}`],
  ];
  return remarks.flatMap(([count, what]) => (count > 0 ? [`${numberText(count)} ${what}`] : []));
}

function isRightCopy({ missing, stale, tooMany }: CheckedCopy): boolean {
  return missing.count + stale.count + tooMany.count === 0;
}

function copyLines(copy: CheckedCopy): string[] {
  const { file, rows, missing, stale, tooMany } = copy;
  if (isRightCopy(copy)) return [`${file}: ok, ${numberText(rows)} rows`];
  const line = (what: string, { count, keys }: NamedKeys) => {
    if (count === 0) return [];
    const more = count > keys.length ? ', ...' : '';
    return [`${file}: ${numberText(count)} ${what}: ${keys.map(keyText).join(', ')}${more}`];
  };
  return [...line('missing', missing), ...line('stale', stale), ...line('too many', tooMany)];
}

/** As it is, unless that would not be one word. */
function keyText(key: string): string {
  return /^[^\s,"\p{C}]+$/u.test(key) ? key : JSON.stringify(key);
}

function numberText(value: number | null): string {
  return value === null ? '?' : value.toLocaleString('en-US');
}
