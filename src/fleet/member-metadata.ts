import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { z } from 'zod';
import { KEY_DIGEST_BYTES } from '../config/key-digest.ts';

/** Metadata that a member sends when it joins the fleet's Kafka group. */
export interface MemberMetadata {
  /** Unique id of the process. */
  readonly instance: string;
  /** Human-readable name of the instance. */
  readonly name: string;
  /** Accounts of which the member has a valid configuration file; empty if the member is leaving the fleet. */
  readonly configured: readonly string[];
  /** Accounts that the member serves or that are assigned to it, by name. */
  readonly owned: ReadonlyMap<string, OwnedAccount>;
  /** Accounts whose images (records as published) are in the member's state folder, and accounts assigned to the member. */
  readonly warm: readonly string[];
  /**
   * API key digests of the accounts in `configured`, by account name. If the member is leaving, those of the accounts that have not stopped
   * at the member yet.
   */
  readonly apiKeyDigests: ReadonlyMap<string, string>;
}

export interface OwnedAccount {
  /** Newest generation in which the account was assigned to the member. */
  readonly generation: number;
  /** Current load of the account. */
  readonly weight: number;
}

/** Assignment that every member receives: the members, the member that serves each account, and the accounts that must not be served. */
export interface FleetAssignment {
  readonly members: readonly { readonly instance: string; readonly name: string }[];
  /** Id of the instance to which each account is assigned, by account. */
  readonly accounts: ReadonlyMap<string, string>;
  /** Accounts that must not be served, each mapped to the account that has the same API key and is served. */
  readonly apiKeyConflicts?: ReadonlyMap<string, string>;
}

// Kafka stores the data of all members in one record of at most one megabyte, so each name is written once and the JSON is deflated.

const INDEX = z.int().min(0);
const MEMBER_METADATA = z.object({
  instance: z.string(),
  name: z.string(),
  known: z.array(z.string()),
  held: z.array(z.tuple([INDEX, z.int(), z.number().positive()])),
  warm: z.array(INDEX),
  // Digests concatenated in the order of `known`.
  keys: z.base64(),
  // Account and digest of accounts whose files the member does not have any more.
  left: z.array(z.tuple([z.string(), z.string()])),
});
const FLEET_ASSIGNMENT = z.object({
  members: z.array(z.tuple([z.string(), z.string()])),
  accounts: z.array(z.tuple([z.string(), INDEX])),
  twins: z.array(z.tuple([z.string(), z.string()])).optional(),
});

export function packMemberMetadata(metadata: MemberMetadata): Buffer {
  const { instance, name, configured, owned, warm, apiKeyDigests } = metadata;
  const indexes = new Map(configured.map((account, index) => [account, index]));
  return deflated({
    instance,
    name,
    known: configured,
    // An account without a file is being stopped, so it is left out.
    held: [...owned]
      .filter(([account]) => indexes.has(account))
      .map(([account, { generation, weight }]) => [indexes.get(account), generation, weight]),
    warm: warm.flatMap((account) => indexes.get(account) ?? []),
    keys: packedKeys(configured, apiKeyDigests),
    left: [...apiKeyDigests].filter(([account]) => !indexes.has(account)),
  });
}

/**
 * Decodes a member's metadata.
 *
 * @throws if the bytes were not written by {@link packMemberMetadata}, or were written by an incompatible version of it.
 */
export function unpackMemberMetadata(bytes: Buffer): MemberMetadata {
  const { known, held, warm, keys, left, ...who } = MEMBER_METADATA.parse(inflated(bytes));
  const accountAt = (index: number) => known.slice(index, index + 1);
  return {
    ...who,
    configured: known,
    owned: new Map(
      held.flatMap(([index, generation, weight]) =>
        accountAt(index).map((account) => [account, { generation, weight }] as const),
      ),
    ),
    warm: warm.flatMap(accountAt),
    apiKeyDigests: new Map([...unpackedKeys(known, keys), ...left]),
  };
}

export function packFleetAssignment(assignment: FleetAssignment): Buffer {
  const { members, accounts, apiKeyConflicts } = assignment;
  const indexes = new Map(members.map(({ instance }, index) => [instance, index]));
  return deflated({
    members: members.map(({ instance, name }) => [instance, name]),
    accounts: [...accounts].map(([account, instance]) => [account, indexes.get(instance)!]),
    ...(apiKeyConflicts && apiKeyConflicts.size > 0 && { twins: [...apiKeyConflicts] }),
  });
}

/**
 * Decodes the assignment that every member of a fleet receives.
 *
 * @throws if the bytes were not written by {@link packFleetAssignment}.
 */
export function unpackFleetAssignment(bytes: Buffer): FleetAssignment {
  const { members, accounts, twins } = FLEET_ASSIGNMENT.parse(inflated(bytes));
  return {
    members: members.map(([instance, name]) => ({ instance, name })),
    accounts: new Map(
      accounts.flatMap(([account, index]) =>
        members.slice(index, index + 1).map(([instance]) => [account, instance] as const),
      ),
    ),
    ...(twins && { apiKeyConflicts: new Map(twins) }),
  };
}

/** Stands for a missing digest among the packed API key digests. */
const NO_KEY = '0'.repeat(2 * KEY_DIGEST_BYTES);

/** Joins the API key digests of the accounts `known`, in that order, and encodes them in base64, which is shorter than hex. */
function packedKeys(known: readonly string[], keys: ReadonlyMap<string, string>): string {
  const all = known.map((account) => keys.get(account) ?? NO_KEY);
  return Buffer.from(all.join(''), 'hex').toString('base64');
}

function unpackedKeys(known: readonly string[], packedText: string): ReadonlyMap<string, string> {
  const bytes = Buffer.from(packedText, 'base64');
  const keyAt = (index: number) =>
    bytes.toString('hex', index * KEY_DIGEST_BYTES, (index + 1) * KEY_DIGEST_BYTES);
  const all = known.map((account, index) => [account, keyAt(index)] as const);
  return new Map(all.filter(([, key]) => key.length === NO_KEY.length && key !== NO_KEY));
}

/**
 * Decodes a member's metadata or assignment. Returns an array with the decoded value, or an empty array if this version can't decode it.
 */
export function decodeIfPossible<T>(unpack: (bytes: Buffer) => T, bytes: Buffer): readonly T[] {
  try {
    return [unpack(bytes)];
  } catch {
    return []; // written by another version, or empty because the member is joining
  }
}

function deflated(data: unknown): Buffer {
  return deflateRawSync(JSON.stringify(data));
}

function inflated(bytes: Buffer): unknown {
  return JSON.parse(inflateRawSync(bytes).toString());
}
