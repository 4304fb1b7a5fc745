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
    const own = declarations
      .filter((each) => each.instance === instance && each.ackedAt < Infinity)
      .map((each) => ({ ...each, ...(JSON.parse(each.text) as Declared) }));
    const requests = sent.filter((each) => each.instance === instance);
    return [...unleased(requests, own), ...tooMany(requests, own)].map(
      (problem) => `${name}: ${instance} ${problem}`,
    );
  });
}

type Acked = SimDeclaration & Declared;

function unleased(requests: readonly SimRequest[], own: readonly Acked[]): string[] {
  return requests.flatMap(({ at, endpoint }) => {
    const isLeased = own.some(
      ({ sentAt, ackedAt, blockMs }) => ackedAt <= at && at < sentAt + blockMs,
    );
    return isLeased ? [] : [`asks ${endpoint} at ${at} without a lease`];
  });
}

/** What is sent behind a declaration is in it, until there is another. */
function tooMany(requests: readonly SimRequest[], own: readonly Acked[]): string[] {
  return own.flatMap(({ sentAt, quotas }, place) => {
    const until = own[place + 1]?.sentAt ?? Infinity;
    return Object.entries(quotas).flatMap(([endpoint, { underWay, more }]) => {
      const behind = requests.filter(
        (each) => each.endpoint === endpoint && each.at > sentAt && each.at <= until,
      );
      return behind.length > underWay + more
        ? [`sends ${behind.length} for ${endpoint} behind ${sentAt}, not ${underWay} and ${more}`]
        : [];
    });
  });
}
