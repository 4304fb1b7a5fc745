import type { Dispatcher } from 'undici';
import { ignoreElements, merge, take, takeUntil } from 'rxjs';
import { openAccount } from '../../../src/account/account.ts';
import { openApi } from '../../../src/account/api.ts';
import { listHooks } from '../../../src/observe/list-hooks.ts';
import { listTask } from '../../../src/pipeline/list-task.ts';
import { warmUp } from '../../../src/pipeline/warm-account.ts';
import { taskId, transactionalId } from '../../../src/pipeline/task.ts';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Destination } from '../../../src/sinks/topics/destination.ts';
import { answering } from '../../support/answering.ts';
import { compile, registryOf } from '../sim-registry.ts';
import { storeOf } from '../sim-store.ts';
import type { SimData } from './sim-data.ts';
import type { Server } from './serve.ts';
import type { Traffic, TrafficOptions } from './traffic.ts';

/** As the existing simulation has them, for one account with a Kafka of its own. */
export const TOPICS = {
  records: 'sim.orders',
  cursors: 'sim.cursors',
  statusChanges: 'sim.order-status-changes',
  deadLetters: 'sim.dead-letters',
} as const;
const DESTINATION: Destination = {
  records: () => TOPICS.records,
  statusChanges: new Map([['orders', { topic: TOPICS.statusChanges, schemaId: 900 }]]),
  deadLetters: { topic: TOPICS.deadLetters, schemaId: 901 },
  cursors: TOPICS.cursors,
  ledger: 'sim.ledger',
  certificates: 'sim.certificates',
  partitions: new Map(),
  maxMessageBytes: new Map(),
  inspect: () => Promise.resolve([]),
};
const PREFIX = 'sim';
/** A request to an API that can't be reached is given up, ms. */
const GIVEN_UP_MS = 2_000;

/** The real task of one list, with records. */
export function tasks(data: SimData, options: TrafficOptions): Traffic {
  const { server, account, serving, ledger, quota } = options;
  const { instance, scheduler, chance, time } = server;
  const { config, stop$, pollNow$, hooks } = serving;
  const connections = data.api.dispatcher({
    name: instance,
    awake: server.awake,
    mayBeSent: () => ledger.isLeaseValid(),
    isReading: () => true,
  });
  const dropped = answering(async () => {
    await time.sleep(GIVEN_UP_MS);
    await server.awake();
    throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
  });
  const dispatch: Dispatcher['dispatch'] = (asked, handler) => {
    if (!ledger.isLeaseValid()) return connections.dispatch(asked, handler); // which refuses it
    const endpoint = String(asked.path).endsWith('/login') ? 'login' : 'orders';
    account.sent.push({ at: time.now(), endpoint, instance });
    return (server.isDropped() ? dropped : connections).dispatch(asked, handler);
  };
  const dispatcher = { dispatch, destroy: () => Promise.resolve() } as unknown as Dispatcher;
  const random = chance.next;
  const api = openApi({
    config: config.api,
    description: config.description,
    loginLimit: quota.login,
    ...{ scheduler, dispatcher, random }, // which sees to the lease itself
  });
  const task$ = listTask({
    task: {
      account: openAccount({ config, api, quotas: quota }),
      list: listNamed(WINE, 'orders'),
      config,
      destination: DESTINATION,
      hooks: listHooks(hooks, 'orders'),
      scheduler,
      wallClock: () => scheduler.now(),
      stop$,
      pollNow$,
    },
    instance,
    log: data.logOf(server.line),
    registry: registryOf(data.registry, server.line.step),
    store: storeOf(server.folder, server.line.step),
    ...{ random, compile },
  });
  const renewing$ = api.tokens.token$.pipe(ignoreElements(), takeUntil(stop$));
  return {
    loggedIn$: api.tokens.token$.pipe(take(1)),
    work$: merge(task$, renewing$),
    close: () => api.close(),
  };
}

/** Reads the account's images, as {@link warmUp} does. */
export async function warmTasks(data: SimData, server: Server, signal: AbortSignal): Promise<void> {
  const { instance, line, folder } = server;
  const task = taskId(server.account, 'orders');
  await warmUp({
    log: data.logOf(line),
    names: {
      ...{ task, topic: TOPICS.records, cursorTopic: TOPICS.cursors, isShared: true },
      transactionalId: transactionalId(PREFIX, server.account, 'orders'),
    },
    list: listNamed(WINE, 'orders'),
    registry: registryOf(data.registry, line.step),
    store: storeOf(folder, line.step).task(task),
    ...{ instance, signal },
  });
}
