import { z } from 'zod';
import type { Message } from '../sinks/sink.ts';

const NAME = z.string().min(1).max(200);
const OWN = { account: NAME, instance: NAME, name: NAME, at: z.iso.datetime() };

/**
 * What instances say of an account in the fleet's topic, by the account's name. `runs` and `released` are written with the
 * transactional id of its ledger: who has lost the account can't write them.
 */
const RECORD = z.discriminatedUnion('type', [
  /** It is about to claim it, which takes a moment: whoever is given it meanwhile has to ask. */
  z.object({ type: z.literal('takes'), ...OWN, generation: z.int() }),
  /** It has claimed the account, as it was given it in this generation. */
  z.object({ type: z.literal('runs'), ...OWN, generation: z.int() }),
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
  readonly ask: Pick<Owner, 'instance' | 'generation'> | undefined;
  /** When that was said, ms since the epoch. */
  readonly at: number;
}

/** How an account is after a message more. */
export function heard(before: AccountWord | undefined, record: FleetRecord): AccountWord {
  const at = Date.parse(record.at);
  if (record.type === 'released') {
    // A late word of who had it before says nothing of who has it now.
    const isOwn = !before?.owner || before.owner.instance === record.instance;
    return isOwn ? { owner: undefined, ask: undefined, at } : before;
  }
  const { instance, name, generation } = record;
  if (record.type === 'runs') return { owner: { instance, name, generation }, ask: undefined, at };
  // Anybody can write these, however late.
  if (before?.owner && before.owner.generation > generation) return before;
  if (record.type === 'takes')
    return { owner: { instance, name, generation }, isAnnounced: true, ask: undefined, at };
  if (before && !before.owner) return before; // it was released meanwhile
  return { ...before, owner: before?.owner ?? record.owner, ask: { instance, generation }, at };
}
