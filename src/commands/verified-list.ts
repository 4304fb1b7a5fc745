import { lastValueFrom, Subject, tap } from 'rxjs';
import {
  checkCertificate,
  certifiedTopic,
  whyUncheckable,
} from '../consumers/check-certificate.ts';
import type {
  CertifiedTopic,
  CheckedCertificate,
  NotFound,
} from '../consumers/check-certificate.ts';
import type { PublishedCertificate } from '../consumers/certificates.ts';
import { CopyCheck } from '../consumers/copy-check.ts';
import { briefEvents } from '../consumers/live-keys.ts';
import type { TopicPosition } from '../consumers/position.ts';
import { replay } from '../consumers/replay.ts';
import type { Topic } from '../consumers/topic.ts';
import type { TallyText } from '../schemas/events/key-tally.ts';
import type { Links } from '../sinks/client/open-kafka.ts';
import { copyRows } from './copy-rows.ts';

/** Keys of one kind: how many, and the first of them. */
export interface NamedKeys {
  readonly count: number;
  readonly keys: readonly string[];
}

/** What was found of somebody's own copy. */
export interface CheckedCopy {
  readonly file: string;
  readonly rows: number;
  readonly missing: NamedKeys;
  readonly stale: NamedKeys;
  readonly tooMany: NamedKeys;
}

/** What was found of a list, and of a copy of it where that was asked for and the topic is right. */
export interface VerifiedList {
  readonly checked: CheckedCertificate;
  readonly copy: CheckedCopy | undefined;
}

export interface ListToVerify extends Pick<Links, 'kafka' | 'registry'> {
  /** Of the list's events. */
  readonly topic: string;
  readonly published: PublishedCertificate;
  /** A copy of it. */
  readonly file: string | undefined;
  /** ms since 1970. */
  readonly now: number;
}

/** Keys that are named. */
const NAMED = 20;

/**
 * Reads a list's topic and holds it against a certificate; then a copy against both.
 *
 * @throws CellarstreamError `POSITION` when there is no such topic; what {@link replay} and {@link copyRows} throw.
 */
export async function verifyList(list: ListToVerify): Promise<VerifiedList> {
  const { kafka, topic, published, file, now } = list;
  const facts = await certifiedTopic(kafka, topic);
  const positions = positionsOf(published);
  const check = new CopyCheck(positions);
  const ends = endsOf(positions, facts);
  if (whyUncheckable(published, facts, now) === undefined) {
    await take(list, check, file === undefined ? ends : 'latest');
  }
  const checked = checkCertificate(published, facts, now, (partition, position) =>
    foundAt(facts, partition, position, () => check.certified.tally(partition).toJSON()),
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

/** Where reading ends: at the positions, as far as the topic has them. */
function endsOf(positions: ReadonlyMap<number, number>, { bounds }: CertifiedTopic): TopicPosition {
  const ends = [...bounds].map(([partition, { low, high }]) => {
    const position = BigInt(positions.get(partition) ?? 0);
    return [partition, String(position < low ? low : position > high ? high : position)];
  });
  return Object.fromEntries(ends) as TopicPosition;
}

async function take(
  { kafka, registry, topic }: ListToVerify,
  check: CopyCheck,
  to: TopicPosition | 'latest',
): Promise<void> {
  const read$ = replay({ kafka, registry, topic: { name: topic, values: briefEvents }, to }).pipe(
    tap(({ partition, offset, key, value: event }) => {
      if (key !== null) check.event({ partition, offset: Number(offset), key, event });
    }),
  );
  await lastValueFrom(read$, { defaultValue: undefined });
}

function foundAt(
  { bounds }: CertifiedTopic,
  partition: number,
  position: number,
  tally: () => TallyText,
): TallyText | NotFound {
  const { low, high } = bounds.get(partition) ?? { low: 0n, high: 0n };
  const place = `after the certificate's position, ${position}`;
  if (position < low) {
    const why = `partition ${partition} begins at ${low}, ${place}: events were deleted, by retention or by hand`;
    return { checked: 'not checked', why };
  }
  if (position <= high) return tally();
  const why = `partition ${partition} ends at ${high}, before the certificate's position, ${position}: events are gone, or the topic was made anew`;
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
  const keys = count === 0 ? [] : await missingKeys(list, check, ends);
  const { stale, 'too many': tooMany } = wrong;
  return { file, rows, missing: { count, keys }, stale, tooMany };
}

class FirstKeys implements NamedKeys {
  count = 0;
  readonly keys: string[] = [];

  add(key: string): void {
    this.count += 1;
    if (this.keys.length < NAMED) this.keys.push(key);
  }
}

/** A topic of which the keys are read alone. */
const onlyKeys: Topic<true>['values'] = () => () => true;

/** The topic is read again for them: of its keys only hashes were held. */
async function missingKeys(
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
        if (names.size < NAMED && key !== null && check.isMissing(key)) names.add(key);
        if (names.size === NAMED) stop$.next();
      }),
    ),
    { defaultValue: undefined },
  );
  return [...names];
}
