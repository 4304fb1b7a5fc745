import { crc32 } from 'node:zlib';
import { MAX_KEY_BYTES, runId } from '../../state/run-entries.ts';
import type { Run } from '../../state/store.ts';
import { PageRecord, payloadDigest } from '../../streams/records/page-record.ts';
import type { RecordBytes } from '../../streams/records/page-record.ts';
import type { PagePart } from '../../streams/records/page-records.ts';

type Keyed = PageRecord & { readonly key: string };
/** A record that a run can be made of. */
type Member = Keyed & { readonly bytes: RecordBytes };

/** One key in so many begins a run, whatever stands before it: an insertion shifts those behind it, and changes none. */
const CUT_EVERY = 64;
/** Fewer are looked at one by one as quickly. */
const MIN_MEMBERS = 4;
/** Keys may be such that none begins a run. */
const MAX_MEMBERS = 256;

/**
 * The runs that a page's records make, where they stand side by side.
 *
 * @param page What is in a run already ends one before it.
 * @param isKnown Whether a record is from now on what its image was made of, and in no other run.
 * @param digestOf What they are known again by.
 */
export function formedRuns(
  page: readonly PagePart[],
  isKnown: (record: Keyed) => boolean,
  digestOf: (bytes: Buffer) => string = payloadDigest,
): readonly Run[] {
  const runs: Run[] = [];
  let members: Member[] = [];
  const end = () => {
    if (members.length >= MIN_MEMBERS) runs.push(runOf(members, digestOf));
    members = [];
  };
  for (const record of page) {
    if (
      !(record instanceof PageRecord) ||
      !hasKey(record) ||
      !isKnown(record) ||
      !isMember(record)
    ) {
      end();
      continue;
    }
    const isCut = members.length === MAX_MEMBERS || crc32(record.key) % CUT_EVERY === 0;
    if (isCut || !isBehind(record, members.at(-1))) end();
    members.push(record);
  }
  end();
  return runs;
}

function hasKey(record: PageRecord): record is Keyed {
  return record.key !== undefined;
}

function isMember(record: Keyed): record is Member {
  const { key, bytes } = record;
  return bytes !== undefined && Buffer.byteLength(key) <= MAX_KEY_BYTES && key.isWellFormed();
}

/** In the same bytes: those of a page of another layout stand each in bytes of their own. */
function isBehind({ bytes: { page, at } }: Member, last: Member | undefined): boolean {
  return page === last?.bytes.page && at >= last.bytes.end;
}

function runOf(members: readonly Member[], digestOf: (bytes: Buffer) => string): Run {
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
