import { VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { DatedPatience, giveUpReason } from '../../../src/streams/decode/dated-patience.ts';

const SECOND = 1_000;

const status = (status: number) => () =>
  new CellarstreamError('API_STATUS', `answered ${status}`, { context: { status } });

/** Fails every two seconds until the query is given up: time from the first failure, in ms, and the reason. */
function givenUp(failure: () => Error, everyMs = 2 * SECOND) {
  const scheduler = new VirtualTimeScheduler();
  const patience = new DatedPatience(scheduler, 'http://api/v1/orders');
  for (let failures = 1; failures <= 100; failures += 1) {
    scheduler.frame = (failures - 1) * everyMs;
    const error = failure();
    const isOver = patience.recordFailure(error);
    expect(patience.recordFailure(error), 'the same error, reported by another stage').toBe(isOver);
    if (!isOver) expect(patience.errorOf(error)).toBe(error);
    else return { failures, afterMs: scheduler.frame, why: giveUpReason(patience.errorOf(error)) };
  }
  return undefined;
}

describe('a query with modification dates', () => {
  it.each([302, 400, 403, 404, 410, 414, 422, 431])(
    'that is answered with %i is given up as refused after three failures in five seconds',
    (code) => {
      expect(givenUp(status(code))).toEqual({ failures: 4, afterMs: 6_000, why: 'refused' });
      expect(givenUp(status(code), 10 * SECOND)?.failures).toBe(3);
    },
  );

  it('whose token is refused is given up after four failures in fifteen seconds', () => {
    const failure = () => new CellarstreamError('TOKEN_REJECTED', 'answered 401');
    expect(givenUp(failure)).toEqual({ failures: 9, afterMs: 16_000, why: 'refused' });
    expect(givenUp(failure, 10 * SECOND)?.failures).toBe(4);
  });

  it.each<[string, () => Error]>([
    ...[408, 409, 423, 425, 429, 500, 502, 503, 504].map(
      (code) => [`is answered with ${code}`, status(code)] as [string, () => Error],
    ),
    ['gets no answer', () => new CellarstreamError('API_UNREACHABLE', 'no answer')],
    ['gets no page', () => new CellarstreamError('API_ANSWER', 'no page')],
  ])('that %s is given up as unanswered after two failures in a minute', (_, failure) => {
    expect(givenUp(failure)).toEqual({ failures: 31, afterMs: 60_000, why: 'unanswered' });
    expect(givenUp(failure, 90 * SECOND)?.failures).toBe(2);
  });

  it('that is answered once is not given up for the failures before', () => {
    const scheduler = new VirtualTimeScheduler();
    const patience = new DatedPatience(scheduler, 'http://api/v1/orders');
    for (let failures = 0; failures < 2; failures += 1) {
      expect(patience.recordFailure(status(400)())).toBe(false);
      scheduler.frame += 10 * SECOND;
    }
    patience.recordSuccess();
    expect(patience.recordFailure(status(400)())).toBe(false);
  });
});
