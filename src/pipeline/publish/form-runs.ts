import { crc32 } from 'node:zlib';
import { MAX_KEY_BYTES, runId } from '../../state/run-entries.ts';
import type { Run } from '../../state/store.ts';
import { PageRecord, payloadDigest } from '../../streams/records/page-record.ts';
import type { RecordBytes } from '../../streams/records/page-record.ts';
import type { PagePart } from '../../streams/records/page-records.ts';

type KeyedPageRecord = PageRecord & { readonly key: string };
/** A record that can be part of a run (group of adjacent records): it has a key, and bytes in its page. */
type RunCandidate = KeyedPageRecord & { readonly bytes: RecordBytes };

/**
 * Average distance between the beginnings of two neighbouring runs (groups of adjacent records), in records. If it is too small, many runs
 * have to be stored. If it is too large, one changed record invalidates a long run.
 */
const CUT_EVERY = 64;
/** Minimum number of records in a run (group of adjacent records). Fewer records are recognized one by one just as fast. */
const MIN_MEMBERS = 4;
/** Maximum number of records in a run. Reached only if no key among that many records begins a new run (see {@link CUT_EVERY}). */
const MAX_MEMBERS = 256;

/**
 * Returns the new runs of a page: groups of adjacent records, which later scans recognize as a unit by their bytes.
 *
 * @param page Records and recognized runs of the page, in order. New runs do not extend across a recognized run.
 * @param isKnown Whether a record will equal its stored image after this commit, and is not part of another run.
 * @param digestOf Returns the digest by which a run's bytes are recognized later.
 */
export function formRuns(
  page: readonly PagePart[],
  isKnown: (record: KeyedPageRecord) => boolean,
  digestOf: (bytes: Buffer) => string = payloadDigest,
): readonly Run[] {
  const runs: Run[] = [];
  let members: RunCandidate[] = [];
  const end = () => {
    if (members.length >= MIN_MEMBERS) runs.push(runOf(members, digestOf));
    members = [];
  };
  for (const record of page) {
    if (!(record instanceof PageRecord && isRunCandidate(record)) || !isKnown(record)) {
      end();
      continue;
    }
    // Runs are cut at certain keys, so that an inserted record does not change the later runs.
    const isCut = members.length === MAX_MEMBERS || crc32(record.key) % CUT_EVERY === 0;
    if (isCut || !followsInBytes(record, members.at(-1))) end();
    members.push(record);
  }
  end();
  return runs;
}

function isRunCandidate(record: PageRecord): record is RunCandidate {
  const { key, bytes } = record;
  if (key === undefined || bytes === undefined) return false;
  return Buffer.byteLength(key) <= MAX_KEY_BYTES && key.isWellFormed();
}

/**
 * Whether a record is in the same page buffer as the record `last`, and after it. False if `last` is undefined. Some page layouts give each
 * record a separate buffer.
 */
function followsInBytes(
  { bytes: { page, at } }: RunCandidate,
  last: RunCandidate | undefined,
): boolean {
  return page === last?.bytes.page && at >= last.bytes.end;
}

function runOf(members: readonly RunCandidate[], digestOf: (bytes: Buffer) => string): Run {
  const { page, at: from } = members[0]!.bytes;
  const to = members.at(-1)!.bytes.end;
  const digest = digestOf(page.bytes.subarray(from, to));
  return {
    id: runId(digest),
    digest,
    length: to - from,
    members: members.map(({ key, bytes: { at, end }, updatedAt }) => ({
      ...{ key, updatedAt },
      ...{ at: at - from, end: end - from },
    })),
  };
}
