import { createHash } from 'node:crypto';
import { parseCertificate } from '../../src/schemas/events/certificate.ts';
import type { Certificate } from '../../src/schemas/events/certificate.ts';
import { chainsOf } from './published.ts';
import type { SimApi } from './sim-api.ts';
import type { SimBroker, SimMessage } from './sim-broker.ts';
import type { SimList } from './sim-list.ts';
import type { SimRegistry } from './sim-registry.ts';

export const CERTIFICATES = 'sim.certificates';

export type Issued = Certificate & { readonly at: number; readonly transaction: number };

export function certificatesIn(broker: SimBroker): Issued[] {
  return broker.read(CERTIFICATES).map(({ value, at, transaction }) => {
    const certificate = parseCertificate(String(value));
    if (!certificate) throw new Error(`no certificate: ${String(value)}`);
    return { ...certificate, at, transaction };
  });
}

/**
 * Each certificate says what is in the topic before its positions, and none has the number of another. Where something was deleted
 * from the topic, and the service has not found that out, it says what was there and what has come since.
 */
export function checkCertificates(
  certificates: readonly Issued[],
  { broker, registry, topic }: { broker: SimBroker; registry: SimRegistry; topic: string },
): string[] {
  const violations: string[] = [];
  let newest = 0;
  for (const certificate of certificates) {
    const { number, at, partitions, records, proof } = certificate;
    if (number <= newest) violations.push(`certificate ${number} comes behind ${newest}`);
    newest = number;
    const there = (partition: string, position: number, time: number) =>
      broker.before(topic, Number(partition), position, time);
    const losses = broker.lossTimes(topic).filter((loss) => loss <= at);
    /** What a service may take the topic for, that has found all losses, or none from one of them on. */
    const views: ((partition: string, position: number) => SimMessage[])[] = [
      (partition, position) => there(partition, position, at),
      ...losses.flatMap((loss) => [
        (partition: string, position: number) => there(partition, position, loss - 1),
        (partition: string, position: number) => [
          ...there(partition, Infinity, loss - 1).filter((event) => event.at < loss),
          ...there(partition, position, at),
        ],
      ]),
    ];
    const isTrue = views.some((eventsOf) =>
      Object.entries(partitions).every(([partition, told]) => {
        const found = digestOf(eventsOf(partition, told.position), registry);
        return found.records === told.records && found.digest === told.digest;
      }),
    );
    if (!isTrue) violations.push(`certificate ${number} is not what is in the topic`);
    const all = Object.values(partitions);
    const sum = all.reduce((total, { digest }) => total + BigInt(`0x${digest}`), 0n);
    if (records !== all.reduce((total, each) => total + each.records, 0))
      violations.push(`certificate ${number} does not add up`);
    if (hex(sum) !== certificate.digest) violations.push(`the digest of ${number} does not add up`);
    const { read, rejected, total_records: total, undecided, held, unpublished } = certificate;
    const isExact = read + rejected === total && undecided + held + unpublished === 0;
    if (proof === 'exact' && !isExact) violations.push(`certificate ${number} is not exact`);
  }
  return violations;
}

/**
 * Rejects an exact certificate whose reading lay within the time in which a record of the list made its pages fail, and in which the index
 * showed that record: one that a wrong index neither shows nor counts is not missed (see {@link checkCut}).
 */
export function checkPoisoned(
  certificates: readonly Issued[],
  { poison, list, traits, dateSkewMs }: Pick<SimApi, 'poison' | 'list' | 'traits' | 'dateSkewMs'>,
): string[] {
  if (!poison || dateSkewMs !== traits.dateSkewMs) return [];
  const { key, from, to } = poison;
  const goneAt = list.history.get(String(key))?.find(({ json }) => json === null)?.at ?? Infinity;
  const skewMs = traits.sendsDate ? dateSkewMs : 0;
  const hidden = list.hidden(String(key));
  return certificates
    .filter(({ proof, at }) => proof === 'exact' && at < Math.min(to, goneAt))
    .filter(({ began_at }) => began_at - skewMs >= from)
    .filter(({ began_at, at }) => at < hidden.from || began_at - skewMs >= hidden.to)
    .map(({ number }) => `certificate ${number} is exact, and lacks ${key}`);
}

/**
 * Rejects an exact certificate whose reading ended while the API refused to show the end of the list, if the reading has fewer records than the
 * list showed and counted at any time of it. Records that a wrong index neither shows nor counts are not missed: "exact" compares the
 * records read with `total_records` (docs/certificates.md), and the index is wrong in both. Deletions guard against it by their second proof.
 */
export function checkCut(
  certificates: readonly Issued[],
  { list, traits, dateSkewMs }: Pick<SimApi, 'list' | 'traits' | 'dateSkewMs'>,
  limitedUntil: number,
): string[] {
  if (dateSkewMs !== traits.dateSkewMs) return [];
  const skewMs = traits.sendsDate ? dateSkewMs : 0;
  return certificates
    .filter(({ proof, at }) => proof === 'exact' && at < limitedUntil)
    .filter(({ read, began_at, at }) => read < list.leastShown(began_at - skewMs, at))
    .map(({ number }) => `certificate ${number} is exact, and lacks the end of the list`);
}

/**
 * Whether a certificate says of a list that stands still what it is: all of it, and nothing else. Where a field differs in every answer
 * two answers at once can't be told apart.
 */
export function isCertified(certificate: Issued, list: SimList, isRestless: boolean): boolean {
  const { records, read, undecided, held, unpublished } = certificate;
  const { size } = list.truth();
  const open = isRestless ? 0 : undecided;
  return records === size && read === size && open + held + unpublished === 0;
}

/** As the contract has it, in the plainest way. */
function digestOf(
  events: ReturnType<SimBroker['before']>,
  registry: SimRegistry,
): { records: number; digest: string } {
  let sum = 0n;
  let records = 0;
  for (const [key, chain] of chainsOf(events, registry)) {
    const newest = chain.at(-1)!;
    if (newest === 'tombstone' || newest.after === null) continue;
    const hash = createHash('sha256').update(`${key}\n${newest.sequence}`).digest();
    sum += hash.readBigUInt64BE();
    records += 1;
  }
  return { records, digest: hex(sum) };
}

function hex(sum: bigint): string {
  return BigInt.asUintN(64, sum).toString(16).padStart(16, '0');
}
