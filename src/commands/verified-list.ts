import { lastValueFrom, Subject, tap } from 'rxjs';
import {
  checkCertificate,
  certifiedTopic,
  whyUncheckable,
} from '../consumers/check-certificate.ts';
import type {
  CertifiedTopic,
  CheckedCertificate,
  TallyUnavailable,
} from '../consumers/check-certificate.ts';
import type { PublishedCertificate } from '../consumers/certificates.ts';
import { CopyCheck } from '../consumers/copy-check.ts';
import { eventSummaries } from '../consumers/live-key-tracker.ts';
import type { TopicPosition } from '../consumers/position.ts';
import { replay } from '../consumers/replay.ts';
import type { Topic } from '../consumers/topic.ts';
import type { TallyText } from '../schemas/events/key-tally.ts';
import type { KafkaClients } from '../sinks/open-kafka.ts';
import { copyRows } from './copy-rows.ts';

/** Keys with one kind of error in a copy of a list: the number of all these keys (`count`), and the first few of them (`keys`). */
export type KeyList = Readonly<Pick<FirstKeys, 'count' | 'keys'>>;

/**
 * Result of checking a user's copy of a list: how many rows it has, which keys are missing or outdated, and which keys or rows should not
 * be there.
 */
export interface CheckedCopy {
  readonly file: string;
  readonly rows: number;
  readonly missing: KeyList;
  readonly stale: KeyList;
  readonly tooMany: KeyList;
}

/** Result of checking a list's topic, and of checking a copy of the list, if one is given and the topic is correct. */
export interface VerifiedList {
  readonly checked: CheckedCertificate;
  readonly copy: CheckedCopy | undefined;
}

export interface ListToVerify extends Pick<KafkaClients, 'kafka' | 'registry'> {
  readonly topic: string;
  readonly published: PublishedCertificate;
  /** Path of the CSV file with the user's copy of the list, to be compared with the topic. Undefined: no copy is compared. */
  readonly file: string | undefined;
}

/** Maximum number of keys that are listed for each kind of error in a copy. */
const MAX_KEYS_NAMED = 20;

/**
 * Reads a list's topic and compares it with the certificate of a full scan. If they agree and a user's copy is given, also compares the
 * copy with the topic and the certificate.
 *
 * @throws CellarstreamError `POSITION` if there is no such topic; also the errors of {@link replay} and {@link copyRows}.
 */
export async function verifyList(list: ListToVerify): Promise<VerifiedList> {
  const { kafka, registry, topic, published, file } = list;
  const now = Date.now();
  const facts = await certifiedTopic(kafka, topic);
  const positions = positionsOf(published);
  const check = new CopyCheck(positions);
  const ends = endsOf(positions, facts);
  if (whyUncheckable(published, facts, now) === undefined) {
    const to = file === undefined ? ends : 'latest';
    const events$ = replay({ kafka, registry, topic: { name: topic, values: eventSummaries }, to });
    await lastValueFrom(
      events$.pipe(
        tap(({ partition, offset, key, value: event }) => {
          if (key !== null) check.event({ partition, offset: Number(offset), key, event });
        }),
      ),
      { defaultValue: undefined },
    );
  }
  const checked = checkCertificate(published, facts, now, (partition, position) =>
    tallyAt(facts, partition, position, () => check.certified.tally(partition).toJSON()),
  );
  const isSound = checked.checked === 'agrees';
  const copy = file !== undefined && isSound ? await checkCopy(list, check, file, ends) : undefined;
  return { checked, copy };
}

function positionsOf({ certificate }: PublishedCertificate): Map<number, number> {
  return new Map(
    Object.entries(certificate.partitions).map(([at, { position }]) => [Number(at), position]),
  );
}

/** Returns the certificate's position in each partition. A position outside the topic is replaced by the first or the end offset. */
function endsOf(positions: ReadonlyMap<number, number>, { bounds }: CertifiedTopic): TopicPosition {
  const ends = [...bounds].map(([partition, { low, high }]) => {
    const position = BigInt(positions.get(partition) ?? 0);
    return [partition, String(position < low ? low : position > high ? high : position)];
  });
  return Object.fromEntries(ends) as TopicPosition;
}

function tallyAt(
  { bounds }: CertifiedTopic,
  partition: number,
  position: number,
  tally: () => TallyText,
): TallyText | TallyUnavailable {
  const { low, high } = bounds.get(partition) ?? { low: 0n, high: 0n };
  const place = `after the certificate's position, ${position}`;
  if (position < low) {
    const why = `partition ${partition} begins at ${low}, ${place}: events were deleted, by retention or by hand`;
    return { checked: 'not checked', why };
  }
  if (position <= high) return tally();
  const why = `partition ${partition} ends at ${high}, before the certificate's position, ${position}: events are missing, or the topic was recreated`;
  return { checked: 'disagrees', why };
}

async function checkCopy(
  list: ListToVerify,
  check: CopyCheck,
  file: string,
  ends: TopicPosition,
): Promise<CheckedCopy> {
  const wrong = { stale: new FirstKeys(), 'too many': new FirstKeys() };
  let rows = 0;
  for await (const { key, sequence } of copyRows(file)) {
    rows += 1;
    const finding = check.row(key, sequence);
    if (finding !== 'right') wrong[finding].add(key);
  }
  const count = check.missing();
  const keys = count === 0 ? [] : await missingCopyKeys(list, check, ends);
  const { stale, 'too many': tooMany } = wrong;
  return { file, rows, missing: { count, keys }, stale, tooMany };
}

class FirstKeys {
  count = 0;
  readonly keys: string[] = [];

  add(key: string): void {
    this.count += 1;
    if (this.keys.length < MAX_KEYS_NAMED) this.keys.push(key);
  }
}

/** Value decoder that decodes nothing, for reading only the keys of a topic. */
const onlyKeys: Topic<true>['values'] = () => () => true;

/** Lists the first keys that are missing from the copy. The topic is read a second time, because only hashes of its keys were stored. */
async function missingCopyKeys(
  { kafka, registry, topic }: ListToVerify,
  check: CopyCheck,
  to: TopicPosition,
): Promise<string[]> {
  const names = new Set<string>();
  const stop$ = new Subject<void>();
  const read$ = replay({ kafka, registry, topic: { name: topic, values: onlyKeys }, to, stop$ });
  await lastValueFrom(
    read$.pipe(
      tap(({ key }) => {
        if (names.size < MAX_KEYS_NAMED && key !== null && check.isMissing(key)) names.add(key);
        if (names.size === MAX_KEYS_NAMED) stop$.next();
      }),
    ),
    { defaultValue: undefined },
  );
  return [...names];
}
