import { Agent } from 'undici';
import { onTestFinished } from 'vitest';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { login } from '../../src/streams/http/login.ts';
import { tokenSource } from '../../src/streams/http/token.ts';
import type { Login } from './client.ts';

const unlimited = <T>(source: T): T => source;

/** Tokens of a sandbox as a service has them, with the connections to it, until the test ends. */
export function liveTokens(sandbox: Login) {
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.destroy());
  const baseUrl = new URL(sandbox.url);
  const listOf = (name: string) => ({ baseUrl, list: listNamed(WINE, name) });
  const tokens = tokenSource({
    login: login({
      ...{ baseUrl, description: WINE, dispatcher, limit: unlimited },
      apiKey: () => sandbox.apiKey,
    }),
  });
  return { dispatcher, listOf, tokens, unlimited };
}
