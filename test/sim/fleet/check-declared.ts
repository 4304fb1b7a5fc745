import type { SimAccount, SimDeclaration, SimRequest } from './sim-account.ts';

interface Declared {
  readonly blockMs: number;
  readonly quotas: Readonly<Record<string, { readonly underWay: number; readonly more: number }>>;
}

/**
 * Whoever sends a request has an acknowledged declaration whose block runs, and sends no more than it says: what was under way
 * when it was sent, and what was to begin. So two instances together never send more than the ledger tells a third one.
 */
export function checkDeclared({ name, sent, declarations }: SimAccount): string[] {
  const instances = new Set(sent.map(({ instance }) => instance));
  return [...instances].flatMap((instance) => {
    const own = declarations.filter((each) => each.instance === instance);
    const requests = sent.filter((each) => each.instance === instance);
    return [...unleased(requests, own), ...tooMany(requests, own)].map(
      (problem) => `${name}: ${instance} ${problem}`,
    );
  });
}

function unleased(requests: readonly SimRequest[], own: readonly SimDeclaration[]): string[] {
  return requests.flatMap(({ at, endpoint }) => {
    const isLeased = own.some(
      ({ sentAt, ackedAt, text }) => ackedAt <= at && at < sentAt + declared(text).blockMs,
    );
    return isLeased ? [] : [`asks ${endpoint} at ${at} without a lease`];
  });
}

/** What is sent behind a declaration is in it, until there is another. */
function tooMany(requests: readonly SimRequest[], own: readonly SimDeclaration[]): string[] {
  const acked = own.filter(({ ackedAt }) => ackedAt < Infinity);
  return acked.flatMap(({ sentAt, text }, place) => {
    const until = acked[place + 1]?.sentAt ?? Infinity;
    return Object.entries(declared(text).quotas).flatMap(([endpoint, { underWay, more }]) => {
      const behind = requests.filter(
        (each) => each.endpoint === endpoint && each.at > sentAt && each.at <= until,
      );
      return behind.length > underWay + more
        ? [`sends ${behind.length} for ${endpoint} behind ${sentAt}, not ${underWay} and ${more}`]
        : [];
    });
  });
}

function declared(text: string): Declared {
  return JSON.parse(text) as Declared;
}
