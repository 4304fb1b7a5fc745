import type { Dispatcher } from 'undici';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { answering } from '../../support/answering.ts';
import type { Given } from '../../support/answering.ts';
import type { Chance } from '../../support/chance.ts';
import { isOverQuota } from '../sim-api.ts';
import type { Arrival, SimClient } from '../sim-api.ts';
import type { SimTime } from '../sim-time.ts';
import type { StyleServer } from './style-server.ts';
import type { Style } from './style.ts';

/** How the network and the server behave beside the list itself. */
export interface StyleTraits {
  /** Name of the list. */
  readonly resource: string;
  /** Most that an answer takes, ms. */
  readonly latencyMs: number;
  readonly sendsDate: boolean;
  /** List requests in any 60 seconds. */
  readonly quotaPerMinute: number;
  readonly loginsPerMinute: number;
}

type Fault = 'drop' | '500' | '502' | '429' | '429-later' | '401' | 'truncated' | 'garbage';
const FAULTS: readonly Fault[] = [
  ...(['drop', '500', '502', '429', '429-later', '401', 'truncated', 'garbage'] as const),
];
/** Greatest difference between the times that two requests take on their way, ms: the headroom of the quota. */
const MAX_APART_MS = 900;

/** The API of one list with its network: token, quota as a server counts it, delays and faults. */
export class StyleApi {
  readonly traits: StyleTraits;
  readonly arrivals: Arrival[] = [];
  readonly #style: Style;
  readonly #server: StyleServer;
  readonly #chance: Chance;
  readonly #time: SimTime;
  #token = 0;
  /** How likely a request meets a fault. */
  faultiness = 0;
  isDown = false;

  constructor(
    traits: StyleTraits,
    ...[style, server, chance, time]: readonly [Style, StyleServer, Chance, SimTime]
  ) {
    this.traits = traits;
    this.#style = style;
    this.#server = server;
    this.#chance = chance;
    this.#time = time;
  }

  /** Connections of one process. A request arrives whatever becomes of the process; an answer only if the process is there. */
  dispatcher(client: SimClient): Dispatcher {
    const way = this.traits.latencyMs / 2;
    return answering(async (options) => {
      if (!client.mayBeSent()) throw new CellarstreamError('LEASE_OVER', 'it is over');
      await this.#time.sleep(this.#chance.below(Math.min(way, MAX_APART_MS)));
      const answer = this.#reply(client, options);
      await this.#time.sleep(this.#chance.below(way));
      await client.awake();
      if (answer === 'drop') throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      return answer;
    });
  }

  /** Which pages a process drops is of no interest here. */
  dropped(): void {
    // nothing is owed for a page that was read
  }

  #reply(client: SimClient, options: Dispatcher.DispatchOptions): Given | 'drop' {
    const target = String(options.path);
    const isLogin = this.#style.auth === 'login' && target.endsWith('/sign-in');
    const what = isLogin ? 'login' : 'list';
    this.arrivals.push({ at: this.#time.now(), what, client });
    if (this.isDown) return 'drop';
    const fault = this.#chance.is(this.faultiness) ? this.#chance.pick(FAULTS) : undefined;
    // A 401 to a login refuses the key, and to the first request without a login the credentials: both are final.
    const isFinal = fault === '401' && (isLogin || this.#style.auth === 'none');
    switch (isFinal ? undefined : fault) {
      case 'drop':
        return 'drop';
      case '500':
        return this.#dated({ status: 500, headers: {}, text: '{"error":"oops"}' });
      case '502':
        return this.#dated({ status: 502, headers: {}, text: '<h1>Bad Gateway</h1>' });
      case '429':
        return this.#dated(TOO_MANY);
      case '429-later':
        return this.#dated({ ...TOO_MANY, headers: { 'retry-after': '3' } });
      case '401':
        this.#token += 1; // no token that was issued is accepted from now on
        return this.#dated(REFUSED_TOKEN);
      case 'garbage':
        return this.#dated({ status: 200, headers: {}, text: '<html></html>' });
    }
    if (isOverQuota(what, this.arrivals, this.traits)) return this.#dated(TOO_MANY);
    const token = `token-${this.#token}`;
    if (isLogin) {
      const text = JSON.stringify({ bearer: token, lives: 1_800 });
      return this.#dated({ status: 200, headers: {}, text });
    }
    const { authorization } = options.headers as Record<string, string>;
    if (this.#style.auth === 'login' && authorization !== `Bearer ${token}`)
      return this.#dated(REFUSED_TOKEN);
    const { method, body } = options;
    const answer = this.#server.answer({
      method,
      target,
      body: typeof body === 'string' ? body : undefined,
    });
    if (fault !== 'truncated') return this.#dated(answer);
    const cutBy = Object.assign(new Error('closed'), { code: 'UND_ERR_SOCKET' });
    return this.#dated({ ...answer, text: answer.text.slice(0, answer.text.length / 2), cutBy });
  }

  #dated(answer: Given): Given {
    if (!this.traits.sendsDate) return answer;
    const date = new Date(this.#time.now()).toUTCString();
    return { ...answer, headers: { ...answer.headers, date } };
  }
}

const TOO_MANY: Given = { status: 429, headers: {}, text: '{}' };
const REFUSED_TOKEN: Given = { status: 401, headers: {}, text: '{}' };
