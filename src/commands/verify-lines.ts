import type { Certificate } from '../schemas/events/certificate.ts';
import type { CheckedCertificate } from '../consumers/check-certificate.ts';
import type { CheckedCopy, KeyList, VerifiedList } from './verified-list.ts';
import { stdoutColors, tableLines } from './terminal.ts';

/** Result of the command `verify` for one requested list, or the reason why the list was not checked. */
export interface ListFinding {
  readonly account: string;
  readonly resource: string;
  readonly result: VerifiedList | { readonly why: string };
}

/** Whether everything requested for the list was checked and is correct. */
export function isRight({ result }: ListFinding): boolean {
  if ('why' in result) return false;
  const { checked, copy } = result;
  return checked.checked === 'agrees' && (copy === undefined || isRightCopy(copy));
}

/** Formats the results of `verify`: a line for each list. A checked copy adds a line for each kind of error in it, or an `ok` line. */
export function verifyTable(findings: readonly ListFinding[]): string {
  const { green, red } = stdoutColors();
  const lines = tableLines(findings.map(cellsOf), VERDICT_COLUMN, (text) =>
    text.startsWith('ok') ? green(text) : red(text),
  );
  return lines
    .flatMap((line, nth) => {
      const { result } = findings[nth]!;
      return [line, ...('checked' in result && result.copy ? copyLines(result.copy) : [])];
    })
    .map((line) => `${line}\n`)
    .join('');
}

export function verifyJson(findings: readonly ListFinding[]): string {
  return findings
    .map(({ account, resource, result }) => {
      const line =
        'why' in result
          ? { account, resource, checked: 'not checked', why: result.why, certificate: null }
          : { account, resource, ...jsonOf(result) };
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
    records: topicRecordCount(checked),
    partitions: checked.partitions.map(({ found = null, why = null, ...partition }) => {
      return { ...partition, found, why };
    }),
    copy: copy ? { ...copy, checked: isRightCopy(copy) ? 'agrees' : 'disagrees' } : null,
  };
}

const VERDICT_COLUMN = 1;

/** Returns the cells of a list's line: name, verdict, counts, proof, time, details. */
function cellsOf({ resource, result }: ListFinding): string[] {
  if ('why' in result) return [resource, 'not checked', '', '', '', result.why];
  const { checked } = result;
  const { certificate } = checked;
  const verdict = checked.checked === 'agrees' ? 'ok' : checked.checked;
  const total = certificate.total_records;
  return [
    resource,
    verdict,
    `${numberText(topicRecordCount(checked))} of ${numberText(total)}`,
    certificate.proof,
    new Date(certificate.ended_at).toISOString(),
    [...reasonsOf(checked), ...remarksOf(certificate)].join('; '),
  ];
}

/** Returns the number of live keys in the topic; null if not all partitions were checked. */
function topicRecordCount({ partitions }: Pick<CheckedCertificate, 'partitions'>): number | null {
  if (partitions.length === 0) return null;
  const counts = partitions.map(({ found }) => found?.records ?? NaN);
  const sum = counts.reduce((all, one) => all + one, 0);
  return Number.isNaN(sum) ? null : sum;
}

function reasonsOf({ why, partitions }: CheckedCertificate): string[] {
  const all = [why, ...partitions.map((each) => each.why)];
  return all.filter((each) => each !== undefined);
}

/** Returns remarks on a certificate, such as `3 too large to publish`: one for each count of exceptional records that is not 0. */
function remarksOf(certificate: Certificate): string[] {
  const { rejected, unpublished, left_out, held, undecided, undecided_keys } = certificate;
  const named = undecided_keys.slice(0, 3).join(', ');
  const remarks: [number, string][] = [
    [rejected, 'without a usable key'],
    [unpublished, 'too large to publish'],
    [left_out, 'left out (older than START_FROM, or marked as deleted by the API)'],
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
  const line = (what: string, { count, keys }: KeyList) => {
    if (count === 0) return [];
    const more = count > keys.length ? ', ...' : '';
    return [`${file}: ${numberText(count)} ${what}: ${keys.map(printableKey).join(', ')}${more}`];
  };
  return [...line('missing', missing), ...line('stale', stale), ...line('too many', tooMany)];
}

/** Returns the key unchanged, or as a JSON string if it is empty or contains white space, commas, double quotes or control characters. */
function printableKey(key: string): string {
  return /^[^\s,"\p{C}]+$/u.test(key) ? key : JSON.stringify(key);
}

function numberText(value: number | null): string {
  return value === null ? '?' : value.toLocaleString('en-US');
}
