import { expect, it } from 'vitest';
import type { Token } from '../../../src/streams/http/login.ts';
import { LoginPace, TokenLife } from '../../../src/streams/http/token-life.ts';
import type { RequestTimes } from '../../../src/streams/http/token-life.ts';

const SECOND = 1_000;
/**
 * Tries a list that answers 400 until its failure is final, while `beside` says when another list answers with a page. Gives the number of tokens that
 * were tried.
 */
function tokensUntilFinal(beside: 'before each token is refused' | 'all the time'): number {
  const life = new TokenLife(new LoginPace());
  let now = 0;
  let tokens = 0;
  const logIn = (): Token => {
    tokens += 1;
    const token = { text: `t${tokens}`, askedAt: now, lifeMs: 1e9, serverTime: undefined };
    life.loginBegins();
    life.loggedIn(token, now);
    return token;
  };
  let token = logIn();
  const works = () => {
    now += SECOND;
    life.report({ token, list: 'other', sentAt: now - 1 }, 'worked', now);
  };
  works();
  let lastTry: RequestTimes | undefined;
  let pauseMs = 0;
  for (let tries = 0; tries < 100; tries += 1) {
    if (beside === 'all the time') works();
    now += pauseMs + SECOND;
    const times = { sentAt: now - 100, answeredAt: now };
    const verdict = life.report(
      { token, list: 'refused', sentAt: times.sentAt, lastTry },
      'failed-for-good',
      now,
    );
    if (verdict.isFinal) return tokens;
    lastTry = times;
    pauseMs = verdict.pauseMs ?? 0;
    if (life.isLoginWanted) {
      token = logIn();
      works();
      lastTry = undefined;
    }
  }
  throw new Error('the failure is never final');
}

it('a list that refuses a token which another list accepted before and after is refused itself', () => {
  expect(tokensUntilFinal('all the time')).toBe(1);
});

it('without that proof, a failure is final with the third token in a row', () => {
  expect(tokensUntilFinal('before each token is refused')).toBe(3);
});
