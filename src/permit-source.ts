import { firstValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryable } from './errors.ts';
import type { GuestDeclarations } from './guest-declarations.ts';
import type { Batch, Share } from './guest-permits.ts';

export interface PermitSourceOptions {
  /** Permits of whoever runs the account; undefined where nobody answers. */
  readonly ask: (wanted: Readonly<Record<string, number>>) => Promise<Batch | undefined>;
  readonly declarations: GuestDeclarations;
  readonly account: string;
  /** How long permits are waited for that others have used up, ms. */
  readonly patienceMs: number;
  readonly scheduler: SchedulerLike;
  /** Kafka can't be had, and why: requests go on, counted by nobody else. */
  readonly onUncounted: (error: unknown) => void;
}

/** How long somebody may be silent who runs the account, ms: longer than a block, so that one who has died is over. */
const SILENCE_MS = 20_000;
const PAUSE_MS = 1_000;

/**
 * Where permits come from: whoever runs the account gives them. Where nobody does they are declared. Where there is no
 * topic for either nobody has ever run it, and where there is no Kafka nothing can be declared, by nobody: a service that
 * is alive goes on then for what is left of its block, 11 s at most, and that alone is not counted.
 *
 * @throws CellarstreamError `NO_PERMITS`; what Kafka says when it goes away later on.
 */
export function permitSource(
  options: PermitSourceOptions,
): (shares: Readonly<Record<string, Share>>) => Promise<Batch> {
  const { ask, declarations, account, patienceMs, scheduler, onUncounted } = options;
  /** Whether Kafka has ever been there. */
  let isCounted = false;
  /** Whether nobody has run the account so far: then it is not asked in vain. */
  let isAlone = false;

  /** Undefined where nobody answers. */
  const asked = async (shares: Readonly<Record<string, Share>>) => {
    if (isAlone) return undefined;
    const wanted = Object.entries(shares).filter(([, share]) => share.wanted > 0);
    const counts = Object.fromEntries(wanted.map(([name, share]) => [name, share.wanted]));
    return ask(counts).catch((error: unknown) => {
      if (isNoTopic(error)) return undefined;
      throw error;
    });
  };
  const tried = async (shares: Readonly<Record<string, Share>>): Promise<Tried> => {
    const granted = await asked(shares);
    if (granted) return { batch: granted, who: 'service' };
    const declared = await declarations.declare(shares);
    isAlone = declared !== undefined;
    return declared ? { batch: declared, who: 'nobody' } : { batch: undefined, who: 'silent' };
  };

  return async (shares) => {
    const begun = scheduler.now();
    for (;;) {
      let found: Tried;
      try {
        found = await tried(shares);
        isCounted = true;
      } catch (error) {
        if (!isCounted) {
          if (!isNoTopic(error)) onUncounted(error);
          return uncounted(shares);
        }
        if (!isRetryable(error) || scheduler.now() - begun > SILENCE_MS) throw error;
        found = { batch: undefined, who: 'silent' };
      }
      const { batch, who } = found;
      if (batch && Object.values(batch.counts).some((count) => count > 0)) return batch;
      const waited = scheduler.now() - begun;
      if (waited > (who === 'silent' ? SILENCE_MS : patienceMs)) throw none(account, who);
      await firstValueFrom(timer(PAUSE_MS, scheduler));
    }
  };
}

interface Tried {
  readonly batch: Batch | undefined;
  /** Who runs the account: a service that answers, nobody, or one that does not answer. */
  readonly who: 'service' | 'nobody' | 'silent';
}

const WHY: Readonly<Record<Tried['who'], string>> = {
  service: 'its service has no permits left for others: try again in a minute',
  nobody: 'what others have asked in the last minute leaves none: try again in a minute',
  silent:
    'a service runs it that does not answer: try again when it does, or stop it (and are the clocks of both machines right?)',
};

function none(account: string, who: Tried['who']): CellarstreamError {
  return new CellarstreamError('NO_PERMITS', `no permits for requests of ${account}: ${WHY[who]}`, {
    context: { account },
  });
}

function uncounted(shares: Readonly<Record<string, Share>>): Batch {
  const counts = Object.fromEntries(Object.keys(shares).map((name) => [name, Infinity]));
  return { counts, end: Infinity, wallEnd: Infinity };
}

function isNoTopic(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'POSITION';
}
