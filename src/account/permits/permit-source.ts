import { firstValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import type { GuestDeclarations } from './guest-declarations.ts';
import type { Batch, Shares } from './guest-permits.ts';
import { BLOCK_MS } from '../ledger/ledger.ts';

export interface PermitSourceOptions {
  /** Permits of whoever runs the account; undefined where nobody answers. */
  readonly ask: (wanted: Readonly<Record<string, number>>) => Promise<Batch | undefined>;
  readonly declarations: GuestDeclarations;
  readonly account: string;
  /** How long permits are waited for that others have used up, ms. */
  readonly patienceMs: number;
  /** How long Kafka is looked for before the first requests go on without it, ms. */
  readonly kafkaPatienceMs: number;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, ms. Default `Date.now`. */
  readonly wallNow?: () => number;
  /** Uniform in [0, 1). Default Math.random. */
  readonly random?: () => number;
  /** Kafka can't be had, and why: requests go on, counted by nobody else. Told once. */
  readonly onUncounted: (error: unknown) => void;
}

/** How long somebody may be silent who runs the account, ms: longer than a block, so that one who has died is over. */
const SILENCE_MS = 20_000;
/** Between two tries, from half of it to half as much again: guests that met once need not meet each time, ms. */
const PAUSE_MS = 1_000;

/**
 * Where permits come from: whoever runs the account gives them. Where nobody does they are declared. Where there is no
 * topic for either nobody has ever run it, and where there is no Kafka nothing can be declared, by nobody: a service that
 * is alive goes on then for what is left of its block, 11 s at most. So what is not counted is a batch at a time, and for
 * a block: Kafka is asked again for the next one.
 *
 * @throws CellarstreamError `NO_PERMITS`; what Kafka says when it goes away later on.
 */
export function permitSource(
  options: PermitSourceOptions,
): (shares: () => Shares) => Promise<Batch> {
  const { ask, declarations, account, patienceMs, scheduler, onUncounted } = options;
  const { kafkaPatienceMs, wallNow = () => Date.now(), random = Math.random } = options;
  /** Whether Kafka has ever been there; and whether it was looked for in vain. */
  let isCounted = false;
  let isMissed = false;
  /** Whether nobody has run the account so far: then it is not asked in vain. */
  let isAlone = false;

  /** Undefined where nobody answers. */
  const asked = async (shares: Shares) => {
    if (isAlone) return undefined;
    return ask(wantedIn(shares)).catch((error: unknown) => {
      if (isNoTopic(error)) return undefined;
      throw error;
    });
  };
  const tried = async (shares: () => Shares): Promise<Tried> => {
    const granted = await asked(shares());
    if (granted) return { batch: granted, who: 'service' };
    const declared = await declarations.declare(shares());
    isAlone = declared !== undefined;
    return declared ? { batch: declared, who: 'nobody' } : SILENT;
  };
  /** What comes of an error so far into a search; throws what it can't go on from. */
  const failed = (error: unknown, waitedMs: number): 'again' | 'uncounted' => {
    const canPass = isRetryable(error) && waitedMs <= (isCounted ? SILENCE_MS : kafkaPatienceMs);
    if (isCounted && !canPass) throw error;
    if (isCounted || (canPass && !isMissed)) return 'again';
    if (!isMissed && !isNoTopic(error)) {
      isMissed = true;
      onUncounted(error);
    }
    return 'uncounted';
  };
  const uncounted = (shares: Shares): Batch => ({
    counts: wantedIn(shares),
    end: scheduler.now() + BLOCK_MS,
    wallEnd: wallNow() + BLOCK_MS,
  });

  return async (shares) => {
    const begun = scheduler.now();
    for (;;) {
      let found = SILENT;
      try {
        found = await tried(shares);
        isCounted = true;
      } catch (error) {
        if (failed(error, scheduler.now() - begun) === 'uncounted') return uncounted(shares());
      }
      const { batch, who } = found;
      if (batch && Object.values(batch.counts).some((count) => count > 0)) return batch;
      const waited = scheduler.now() - begun;
      if (waited > (who === 'silent' ? SILENCE_MS : patienceMs)) throw none(account, who);
      await firstValueFrom(timer(PAUSE_MS * (0.5 + random()), scheduler));
    }
  };
}

interface Tried {
  readonly batch: Batch | undefined;
  /** Who runs the account: a service that answers, nobody, or one that does not answer. */
  readonly who: 'service' | 'nobody' | 'silent';
}

const SILENT: Tried = { batch: undefined, who: 'silent' };

const WHY: Readonly<Record<Tried['who'], string>> = {
  service: 'its service has no permits left for others: try again in a minute',
  nobody: 'the requests of the last minute have used up the quota: try again in a minute',
  silent:
    'its service runs, but does not answer: try again when it does, or stop it; also compare the clocks of both machines',
};

function none(account: string, who: Tried['who']): CellarstreamError {
  return new CellarstreamError('NO_PERMITS', `no permits for requests of ${account}: ${WHY[who]}`, {
    context: { account },
  });
}

function wantedIn(shares: Shares): Record<string, number> {
  const wanted = Object.entries(shares).filter(([, share]) => share.wanted > 0);
  return Object.fromEntries(wanted.map(([name, share]) => [name, share.wanted]));
}

function isNoTopic(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'POSITION';
}
