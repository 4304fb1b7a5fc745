import { z } from 'zod';
import type { Message } from '../sinks/sink.ts';

const NAME = z.string().min(1).max(200);
/** When instances were lost that had just taken the account. */
const TIMES = z.array(z.iso.datetime()).max(10);
const OWN = { account: NAME, instance: NAME, name: NAME, at: z.iso.datetime() };

/**
 * What instances say of an account in the fleet's topic, by the account's name. `runs` and `released` are written with the
 * transactional id of its ledger: who has lost the account can't write them.
 */
const RECORD = z.discriminatedUnion('type', [
  /** It is about to claim it, which takes a moment: whoever is given it meanwhile has to ask. */
  z.object({ type: z.literal('takes'), ...OWN, generation: z.int(), losses: TIMES }),
  /** It has claimed the account, as it was given it in this generation. */
  z.object({ type: z.literal('runs'), ...OWN, generation: z.int(), losses: TIMES }),
  /** It was given an account that another instance runs, has its images, and wants it. */
  z.object({
    type: z.literal('asks'),
    ...OWN,
    generation: z.int(),
    /** Whom: only the newest message of an account is sure to be there. */
    owner: z.object({ instance: NAME, name: NAME, generation: z.int() }),
  }),
  /** It runs it no more, and its ledger is settled. */
  z.object({ type: z.literal('released'), ...OWN }),
  /** It has taken down so many instances that nobody runs it for a while. */
  z.object({ type: z.literal('quarantined'), ...OWN }),
]);
export type FleetRecord = z.infer<typeof RECORD>;

export function fleetMessage(topic: string, record: FleetRecord): Message {
  return { topic, key: record.account, value: Buffer.from(JSON.stringify(record)) };
}

/** Undefined for what is none. */
export function parseFleetRecord(value: Buffer | null): FleetRecord | undefined {
  if (!value) return undefined;
  try {
    return RECORD.safeParse(JSON.parse(value.toString())).data;
  } catch {
    return undefined; // no JSON
  }
}

/** Who runs an account. */
export interface Owner {
  readonly instance: string;
  readonly name: string;
  /** In which the account was given to it. */
  readonly generation: number;
}

/** How an account is, as the topic has it. */
export interface AccountWord {
  readonly owner: Owner | undefined;
  /** Whether the owner has said that it takes it, and not yet that it has. */
  readonly isAnnounced?: boolean;
  /** The instance that had it last; undefined while there is an owner. */
  readonly releasedBy?: string;
  readonly ask: Pick<Owner, 'instance' | 'generation'> | undefined;
  /** When that was said, ms since the epoch. */
  readonly at: number;
  /** When the owner took it; undefined where there is none, or only a question is left of it. */
  readonly takenAt: number | undefined;
  /** When instances were lost that had just taken it. */
  readonly losses: readonly number[];
  /** When it was quarantined; undefined where it is not. */
  readonly quarantinedAt: number | undefined;
}

const NOBODY = {
  ...{ owner: undefined, ask: undefined, takenAt: undefined, losses: [] },
  quarantinedAt: undefined,
};

/** How an account is after a message more. */
export function heard(before: AccountWord | undefined, record: FleetRecord): AccountWord {
  const { instance, name, type } = record;
  const at = Date.parse(record.at);
  if (type === 'quarantined') return { ...NOBODY, at, quarantinedAt: at };
  if (type === 'released') {
    // A late word of who had it before says nothing of who has it now.
    const isOwn = !before?.owner || before.owner.instance === instance;
    if (!isOwn) return before;
    return { ...NOBODY, at, releasedBy: instance, losses: before?.losses ?? [] };
  }
  const { generation } = record;
  // Anybody can write what is no claim, however late.
  if (type !== 'runs' && before?.owner && before.owner.generation > generation) return before;
  if (type === 'asks') {
    if (before && !before.owner) return before; // it was released meanwhile
    const known = before ?? { ...NOBODY, owner: record.owner };
    return { ...known, at, ask: { instance, generation } };
  }
  if (type === 'takes' && before && hasCome(before, record)) return before;
  const losses = record.losses.map((each) => Date.parse(each));
  const isAnnounced = type === 'takes';
  return { ...NOBODY, owner: { instance, name, generation }, isAnnounced, at, takenAt: at, losses };
}

/** Whether the claim that is announced is known already: the two are written by different producers, and each may be late. */
function hasCome({ owner, isAnnounced, takenAt }: AccountWord, { instance, at }: FleetRecord) {
  const isClaimed = owner?.instance === instance && isAnnounced === false;
  return isClaimed && takenAt !== undefined && Date.parse(at) <= takenAt;
}
