import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { z } from 'zod';
import { KEY_DIGEST_BYTES } from '../config/key-digest.ts';

/** What a member tells when it joins. */
export interface Told {
  /** Of this process alone. */
  readonly instance: string;
  /** As people know it. */
  readonly name: string;
  /** The accounts whose files it has. */
  readonly known: readonly string[];
  /** What it runs, or was given last. */
  readonly held: ReadonlyMap<string, Held>;
  /** Accounts of which it still has the images. */
  readonly warm: readonly string[];
  /** Digest of the API key of each account whose file it has, or which it still runs as it leaves. */
  readonly keys: ReadonlyMap<string, string>;
}

export interface Held {
  /** In which it was given. */
  readonly generation: number;
  /** What the account costs now. */
  readonly weight: number;
}

/** What every member is given: who they are, and which of them is to run each account. */
export interface SharedOut {
  readonly members: readonly { readonly instance: string; readonly name: string }[];
  /** By account, an instance. */
  readonly accounts: ReadonlyMap<string, string>;
  /** Accounts that nobody is to run: by each, the one that has its API key. */
  readonly twins?: ReadonlyMap<string, string>;
}

// All members' data are one record of Kafka, which takes a megabyte: names are there once, and deflated.

const PLACE = z.int().min(0);
const TOLD = z.object({
  instance: z.string(),
  name: z.string(),
  known: z.array(z.string()),
  held: z.array(z.tuple([PLACE, z.int(), z.number().positive()])),
  warm: z.array(PLACE),
  // In the order of the accounts, one behind the other.
  keys: z.base64(),
  // Of those whose files it has no more.
  left: z.array(z.tuple([z.string(), z.string()])),
});
const SHARED_OUT = z.object({
  members: z.array(z.tuple([z.string(), z.string()])),
  accounts: z.array(z.tuple([z.string(), PLACE])),
  twins: z.array(z.tuple([z.string(), z.string()])).optional(),
});

export function packTold({ instance, name, known, held, warm, keys }: Told): Buffer {
  const places = new Map(known.map((account, place) => [account, place]));
  const placeOf = (account: string) => places.get(account) ?? [];
  return packed({
    instance,
    name,
    known,
    // Of an account whose file is gone nothing is told: it is being stopped.
    held: [...held].flatMap(([account, { generation, weight }]) =>
      [placeOf(account)].flat().map((place) => [place, generation, weight]),
    ),
    warm: warm.flatMap(placeOf),
    keys: packedKeys(known, keys),
    left: [...keys].filter(([account]) => !places.has(account)),
  });
}

/** @throws when it is not what {@link packTold} has packed: of another version, perhaps. */
export function unpackTold(bytes: Buffer): Told {
  const { known, held, warm, keys, left, ...who } = TOLD.parse(unpacked(bytes));
  const accountAt = (place: number) => known.slice(place, place + 1);
  return {
    ...who,
    known,
    held: new Map(
      held.flatMap(([place, generation, weight]) =>
        accountAt(place).map((account) => [account, { generation, weight }] as const),
      ),
    ),
    warm: warm.flatMap(accountAt),
    keys: new Map([...unpackedKeys(known, keys), ...left]),
  };
}

export function packSharedOut({ members, accounts, twins }: SharedOut): Buffer {
  const places = new Map(members.map(({ instance }, place) => [instance, place]));
  return packed({
    members: members.map(({ instance, name }) => [instance, name]),
    accounts: [...accounts].map(([account, instance]) => [account, places.get(instance)!]),
    ...(twins && twins.size > 0 && { twins: [...twins] }),
  });
}

/** @throws when it is not what {@link packSharedOut} has packed. */
export function unpackSharedOut(bytes: Buffer): SharedOut {
  const { members, accounts, twins } = SHARED_OUT.parse(unpacked(bytes));
  return {
    members: members.map(([instance, name]) => ({ instance, name })),
    accounts: new Map(
      accounts.flatMap(([account, place]) =>
        members.slice(place, place + 1).map(([instance]) => [account, instance] as const),
      ),
    ),
    ...(twins && { twins: new Map(twins) }),
  };
}

/** Of an account whose key is not told. */
const NO_KEY = '0'.repeat(2 * KEY_DIGEST_BYTES);

/** As bytes: they can't be deflated. */
function packedKeys(known: readonly string[], keys: ReadonlyMap<string, string>): string {
  const all = known.map((account) => keys.get(account) ?? NO_KEY);
  return Buffer.from(all.join(''), 'hex').toString('base64');
}

function unpackedKeys(known: readonly string[], packedText: string): ReadonlyMap<string, string> {
  const bytes = Buffer.from(packedText, 'base64');
  const keyAt = (place: number) =>
    bytes.toString('hex', place * KEY_DIGEST_BYTES, (place + 1) * KEY_DIGEST_BYTES);
  const all = known.map((account, place) => [account, keyAt(place)] as const);
  return new Map(all.filter(([, key]) => key.length === NO_KEY.length && key !== NO_KEY));
}

function packed(data: unknown): Buffer {
  return deflateRawSync(JSON.stringify(data));
}

function unpacked(bytes: Buffer): unknown {
  return JSON.parse(inflateRawSync(bytes).toString());
}
