import { setTimeout as pause } from 'node:timers/promises';
import { CellarstreamError } from '../core/errors.ts';
import { lastLines, type Program } from './tethered.ts';

/** Between two tries, in ms. */
const TRY_EVERY_MS = 50;

/** Asks once; throws, or gives false, as long as there is no answer. */
export type Probe = () => Promise<boolean>;

/**
 * Asks again and again until a server answers.
 *
 * @param name What the server is called in errors.
 * @throws CellarstreamError `SERVICES`, with the end of its log, when the program ends before it
 * answers or takes longer than `timeoutMs`.
 */
export async function untilReady(
  name: string,
  program: Pick<Program, 'ended' | 'log'>,
  probe: Probe,
  timeoutMs: number,
): Promise<void> {
  const late = AbortSignal.timeout(timeoutMs);
  let lastError: unknown;
  for (;;) {
    try {
      if (await probe()) return;
    } catch (error) {
      lastError = error;
    }
    if (program.ended !== undefined) throw await failure(`ended (${program.ended})`);
    if (late.aborted) throw await failure(`did not answer within ${timeoutMs / 1000} s`);
    await pause(TRY_EVERY_MS);
  }

  async function failure(what: string): Promise<CellarstreamError> {
    const log = lastLines(await program.log());
    return new CellarstreamError('SERVICES', `${name} ${what}; its last words:\n${log}`, {
      cause: lastError,
    });
  }
}
