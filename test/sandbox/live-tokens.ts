import { Agent } from 'undici';
import { onTestFinished } from 'vitest';
import { login } from '../../src/streams/http/login.ts';
import { tokenSource } from '../../src/streams/http/token.ts';
import type { Login } from './client.ts';

const unlimited = <T>(source: T): T => source;

/** Tokens of a sandbox as a service has them, with the connections to it, until the test ends. */
export function liveTokens(sandbox: Login) {
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.destroy());
  const url = (path: string) => new URL(`${sandbox.url}/v1/${path}`);
  const tokens = tokenSource({
    login: login({
      ...{ url: url('auth/public/login'), dispatcher, limit: unlimited },
      apiKey: () => sandbox.apiKey,
    }),
  });
  return { dispatcher, url, tokens, unlimited };
}
