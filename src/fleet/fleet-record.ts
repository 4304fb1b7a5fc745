import { z } from 'zod';
import { objectIn } from '../core/http-text.ts';
import type { Message } from '../sinks/sink.ts';

const NAME = z.string().min(1).max(200);
/** An account's owner. `generation`: the newest generation when the owner claimed the account. */
const OWNER = z.object({ instance: NAME, name: NAME, generation: z.int() });
const COMMON_FIELDS = { account: NAME, instance: NAME, name: NAME, at: z.iso.datetime() };
const CLAIM_FIELDS = {
  ...COMMON_FIELDS,
  /** Newest generation when the message was created. */
  generation: z.int(),
  /** Times at which instances crashed shortly after they claimed the account. */
  losses: z.array(z.iso.datetime()).max(10),
};

/**
 * Messages about an account in the fleet's topic. The Kafka key is the account's name. A fenced instance can write all of them except
 * `runs`, which is part of the claim's transaction in the account's ledger.
 */
const RECORD = z.discriminatedUnion('type', [
  /** Announces a claim that is not committed yet, so that other instances ask for a release instead of claiming the account too. */
  z.object({ type: z.literal('takes'), ...CLAIM_FIELDS }),
  z.object({ type: z.literal('runs'), ...CLAIM_FIELDS }),
  /** Asks the account's owner for a release. Sent by the instance that the account is assigned to, once it has restored the images. */
  z.object({
    type: z.literal('asks'),
    ...COMMON_FIELDS,
    generation: z.int(),
    /** The owner that is asked for a release. Named in the message because compaction may have removed the owner's own message. */
    owner: OWNER,
  }),
  /**
   * Announces that the account has no owner: its owner has stopped serving it, a claim was abandoned, or a changed file has ended the
   * quarantine.
   */
  z.object({ type: z.literal('released'), ...COMMON_FIELDS }),
  /** Announces that the account is quarantined after several crashes: no instance serves it for a while. */
  z.object({ type: z.literal('quarantined'), ...COMMON_FIELDS }),
]);
export type FleetRecord = z.infer<typeof RECORD>;

export function fleetMessage(topic: string, record: FleetRecord): Message {
  return { topic, key: record.account, value: Buffer.from(JSON.stringify(record)) };
}

/**
 * Decodes a message about an account from the fleet's topic. Undefined for any other message, and for one that this version can't decode.
 */
export function parseFleetRecord(value: Buffer | null): FleetRecord | undefined {
  return value ? RECORD.safeParse(objectIn(value.toString())).data : undefined;
}

export type Owner = Readonly<z.infer<typeof OWNER>>;

/** State of an account according to the fleet's topic. */
export interface AccountTopicState {
  readonly owner: Owner | undefined;
  /** Whether the owner has announced its claim but not yet committed it. */
  readonly isClaimPending?: boolean;
  /** Id of the instance that released the account; undefined while the account has an owner or is quarantined. */
  readonly releasedBy?: string;
  readonly releaseRequest: Pick<Owner, 'instance' | 'generation'> | undefined;
  /** Time of the last message that changed this state, in epoch ms. */
  readonly updatedAt: number;
  /**
   * When the owner claimed the account, in epoch ms. Undefined if the account has no owner, or if only a request for its release is known.
   */
  readonly claimedAt: number | undefined;
  /**
   * Times at which instances crashed shortly after they claimed the account, in epoch ms, as stated by the newest claim. Empty before the
   * first claim, and from a quarantine until the next claim.
   */
  readonly crashTimes: readonly number[];
  /** When the account was last quarantined, in epoch ms; undefined if it never was, or if it was claimed or released since. */
  readonly quarantinedAt: number | undefined;
}

const NO_OWNER = {
  ...{ owner: undefined, releaseRequest: undefined, claimedAt: undefined, crashTimes: [] },
  quarantinedAt: undefined,
};

/** Returns the state of an account after one more message about the account. */
export function applyRecord(
  before: AccountTopicState | undefined,
  record: FleetRecord,
): AccountTopicState {
  const { instance, name, type } = record;
  const at = Date.parse(record.at);
  if (type === 'quarantined') return { ...NO_OWNER, updatedAt: at, quarantinedAt: at };
  if (type === 'released') {
    // A late `released` of a previous owner says nothing about the current one.
    if (before?.owner && before.owner.instance !== instance) return before;
    const crashTimes = before?.crashTimes ?? [];
    return { ...NO_OWNER, updatedAt: at, releasedBy: instance, crashTimes };
  }
  const { generation } = record;
  // Only `runs` is protected by fencing; other messages of older generations may arrive late.
  if (type !== 'runs' && before?.owner && before.owner.generation > generation) return before;
  if (type === 'asks') {
    if (before && !before.owner) return before; // it was released meanwhile
    const known = before ?? { ...NO_OWNER, owner: record.owner };
    return { ...known, updatedAt: at, releaseRequest: { instance, generation } };
  }
  if (type === 'takes' && before && isClaimKnown(before, record)) return before;
  return {
    ...NO_OWNER,
    owner: { instance, name, generation },
    isClaimPending: type === 'takes',
    ...{ updatedAt: at, claimedAt: at },
    crashTimes: record.losses.map((each) => Date.parse(each)),
  };
}

/**
 * Whether the claim that this message announces is already known to be committed. The announcement (`takes`) and the commit (`runs`) come
 * from different producers, so the commit may arrive first.
 */
function isClaimKnown(before: AccountTopicState, { instance, at }: FleetRecord): boolean {
  const { owner, isClaimPending, claimedAt = -Infinity } = before;
  const isClaimed = owner?.instance === instance && isClaimPending === false;
  return isClaimed && Date.parse(at) <= claimedAt;
}
