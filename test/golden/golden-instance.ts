import {
  concatMap,
  defer,
  delay,
  ignoreElements,
  lastValueFrom,
  merge,
  ReplaySubject,
  Subject,
  switchMap,
  take,
  takeUntil,
  timer,
} from 'rxjs';
import type { Kafka } from 'kafkajs';
import { openAccount } from '../../src/account/account.ts';
import { openApi } from '../../src/account/api.ts';
import { openLedger } from '../../src/account/ledger/ledger.ts';
import { isOfApiKey, parseLedger } from '../../src/account/ledger/ledger-record.ts';
import { quotas } from '../../src/account/quotas.ts';
import { SignalJobs } from '../../src/account/signal-jobs.ts';
import type { ConfigWith } from '../../src/config/config.ts';
import { keyDigest } from '../../src/config/key-digest.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { CompactedView } from '../../src/kafka/fetch/compacted-view.ts';
import type { CompactedTopics } from '../../src/kafka/fetch/kafka-tail.ts';
import { clusterFacts } from '../../src/kafka/client/topic-facts.ts';
import type { LogMessage } from '../../src/kafka/fetch/record-batches.ts';
import type { Offsets } from '../../src/kafka/log.ts';
import { listHooks } from '../../src/observe/list-hooks.ts';
import { listTask } from '../../src/pipeline/list-task.ts';
import { listNamed } from '../../src/description/description.ts';
import { topicNames } from '../../src/schemas/events/topics.ts';
import { accountLog } from '../../src/sinks/ledger/kafka-ledger.ts';
import { kafkaTransactionalLog } from '../../src/sinks/open-kafka.ts';
import type { KafkaClients } from '../../src/sinks/open-kafka.ts';
import type { SignalBatch, SignalTopic } from '../../src/sinks/signals/kafka-signals.ts';
import type { FencedSink, TransactionalLog } from '../../src/sinks/sink.ts';
import { openDestination, topicsOf } from '../../src/sinks/topics/destination.ts';
import { openTopics } from '../../src/sinks/topics/kafka-topics.ts';
import { Chance } from '../support/chance.ts';
import { compile, registryOf } from '../sim/sim-registry.ts';
import type { SimRegistry } from '../sim/sim-registry.ts';
import { startsIn, storeOf, writerIn } from '../sim/sim-store.ts';
import type { SimFolder } from '../sim/sim-store.ts';
import type { SimTime } from '../sim/sim-time.ts';
import type { GoldenApi } from './golden-api.ts';
import type { GoldenKafka } from './golden-kafka.ts';

/** Everything outside the service's processes. */
export interface GoldenWorld {
  readonly seed: number;
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly time: SimTime;
  readonly kafka: GoldenKafka;
  readonly registry: SimRegistry;
  readonly api: GoldenApi;
  /** Runs commits one after the other, so that their order does not depend on threads. */
  readonly inTurn: <T>(job: () => Promise<T>) => Promise<T>;
  /** Failures that a process reported. */
  readonly reports: string[];
}

/** How often the signals topic is read, in ms. */
const SIGNALS_EVERY_MS = 3_000;
/** Time between the openings of two lists, in ms. */
const OPENING_MS = 11;
/** Same limit as in `serve-account.ts`, in ms. */
const STOP_TIMEOUT_MS = 8_000;

/**
 * A process of the service: what `serveAccount` and `claimAccount` compose, with a store in memory, the API and the readers of Kafka
 * replaced. Topics, schemas, ledger and commits go through the service's own code, as bytes.
 */
export class GoldenInstance {
  readonly folder: SimFolder;
  /** Error that ended the process. */
  error: unknown;
  isOver = false;
  readonly #stop$ = new ReplaySubject<void>(1);
  readonly #crash$ = new Subject<void>();
  #isAlive = true;

  constructor(name: string, world: GoldenWorld, folder: SimFolder) {
    this.folder = folder;
    void this.#serve(name, world).then(
      () => void (this.isOver = true),
      (error: unknown) => {
        this.error = error;
        this.isOver = true;
      },
    );
  }

  get isFenced(): boolean {
    return this.error instanceof CellarstreamError && this.error.code === 'FENCED';
  }

  /** Ends the process in the middle of its work. */
  crash(): void {
    this.#isAlive = false;
    this.#crash$.next();
  }

  /** Stops the process as a signal does: it commits what it has read, and writes its final declaration. */
  stop(): void {
    this.#stop$.next();
  }

  async #serve(name: string, world: GoldenWorld): Promise<void> {
    const { seed, config, time, kafka, registry, api: server, reports } = world;
    const { account, resources, topics } = config;
    const isAlive = () => this.#isAlive;
    const whileAlive = (): Promise<void> =>
      isAlive() ? Promise.resolve() : new Promise(() => undefined);
    const stop$ = this.#stop$;
    const scheduler = time.timersOf(() => (isAlive() ? -Infinity : Infinity));
    const random = new Chance(seed, 'jitter', name).next;
    const connections = kafka.connections();
    const asked = { kafka: undefined as unknown as Kafka, connections };
    const clients: KafkaClients = {
      ...asked,
      compactedTopics: compactedTopicsOf(kafka, () => time.now()),
      cluster: clusterFacts(asked),
      registry: registryOf(registry, whileAlive),
      compile, // shared by all runs: compiling takes a third of their time
    };
    const hooks = {
      onRetry: ({ what, error }: { what: string; error: unknown }) =>
        void reports.push(`${name}: ${what}: ${String(error)}`),
      onFailed: ({ error }: { error: unknown }) => void reports.push(`${name}: ${String(error)}`),
      onSignalsFailed: ({ error }: { error: unknown }) =>
        void reports.push(`${name}: signals: ${String(error)}`),
    };

    const ledger = openLedger({
      ...{ instance: name, scheduler, hooks, random },
      wallNow: () => time.now(),
      apiKeyDigest: keyDigest(config.api),
    });
    const quota = quotas({
      ...{ config, scheduler, ledger, instance: name },
      storedStartsOf: startsIn(this.folder),
      writer: writerIn(this.folder),
    });
    const api = openApi({
      ...{ config: config.api, description: config.description, loginLimit: quota.login },
      ...{ scheduler, random, hooks },
      dispatcher: server.dispatcher({ isAlive, maySend: () => ledger.isLeaseValid() }),
    });
    const lists = openAccount({ config, api, quotas: quota });
    const signals = signalsOf(kafka, topicNames(topics.sharedPrefix).signals, scheduler);
    const jobs = new SignalJobs({ topic: signals, account, resources, scheduler, hooks });

    const claimed$ = defer(async () => {
      const destination = await openDestination(config, clients);
      const log = this.#logOf(world, kafkaTransactionalLog(clients, destination));
      const key = keyDigest(config.api);
      const inherited = await ledger.claim(
        accountLog({
          ...{ log, account, scheduler },
          topic: destination.ledger,
          ledgerTopic: clients.compactedTopics(destination.ledger, 'uncommitted'),
          transactionalId: `cellarstream.${topics.sharedPrefix}.ledger/${account}`,
          recreateTopic: () => openTopics(topicsOf(config, clients)),
          isOwnEntry: (text) => parseLedger(text)?.instance === name,
          isOfApiKey: (text) => isOfApiKey(text, key),
        }),
      );
      quota.inherit(inherited);
      ledger.activate(inherited);
      return { destination, log };
    });
    const store = storeOf(this.folder, whileAlive);
    const service$ = claimed$.pipe(
      takeUntil(stop$),
      switchMap(({ destination, log }) => {
        const tasks = resources.map((resource, nth) =>
          listTask({
            task: {
              account: lists,
              list: listNamed(config.description, resource),
              ...{ config, destination, scheduler, stop$ },
              hooks: listHooks(hooks, resource),
              wallClock: () => time.now(),
              phase: 1 - nth / resources.length,
            },
            instance: name,
            ...{ log, store, random },
            registry: clients.registry,
            compile: clients.compile,
            resyncs: jobs.task(resource),
            opening: async (open) => {
              await lastValueFrom(timer(nth * OPENING_MS, scheduler));
              return open();
            },
          }),
        );
        const loggedIn$ = api.tokens.token$.pipe(take(1), takeUntil(stop$));
        return merge(
          loggedIn$.pipe(switchMap(() => merge(...tasks))),
          jobs.following$.pipe(takeUntil(stop$)),
        );
      }),
    );
    const renewing$ = api.tokens.token$.pipe(ignoreElements(), takeUntil(stop$));
    const over$ = merge(stop$.pipe(delay(STOP_TIMEOUT_MS, scheduler)), this.#crash$);
    try {
      const failed$ = ledger.failed$.pipe(takeUntil(stop$));
      await lastValueFrom(merge(service$, renewing$, failed$).pipe(takeUntil(over$)), {
        defaultValue: undefined,
      });
    } finally {
      if (isAlive()) {
        await ledger.declareFinal().catch(() => undefined); // fenced
        await ledger.close();
      }
      this.#isAlive = false;
    }
  }

  /** The log, with readers of its own: the service's need a network. A process that has crashed gets no response. */
  #logOf({ kafka, time, inTurn }: GoldenWorld, log: TransactionalLog): TransactionalLog {
    const alive = async <T>(call: () => Promise<T>): Promise<T> => {
      if (!this.#isAlive) await new Promise(() => undefined);
      const response = await call();
      if (!this.#isAlive) await new Promise(() => undefined);
      return response;
    };
    const sinkOf = (sink: FencedSink): FencedSink => ({
      get producer() {
        return sink.producer;
      },
      commit: (messages) => alive(() => inTurn(() => time.outside(() => sink.commit(messages)))),
      awaitVisible: () => alive(() => sink.awaitVisible()),
      bounds: (...of) => alive(() => sink.bounds(...of)),
      close: () => sink.close(),
    });
    return {
      ...log,
      open: (...of) => alive(async () => sinkOf(await log.open(...of))),
      readTail: async ({ topic, from, to, onMessages }) => {
        for (const [partition, end] of to) {
          const range = { from: Number(from.get(partition) ?? 0n), to: Number(end) };
          const found = kafka.read(topic, partition, { ...range, isolation: 'committed' });
          await onMessages(found.map((message) => ({ ...message, partition })));
        }
      },
    };
  }
}

function compactedTopicsOf(kafka: GoldenKafka, now: () => number): CompactedTopics {
  const views = new Map<string, ReturnType<CompactedTopics>>();
  return (topic, isolation) => {
    const name = `${topic} ${isolation}`;
    const view =
      views.get(name) ??
      new CompactedView<LogMessage>(({ low, high }, onMessages) => {
        const range = { from: Number(low), to: Number(high), isolation };
        onMessages(kafka.read(topic, 0, range));
        return Promise.resolve();
      }, now);
    views.set(name, view);
    return view;
  };
}

function signalsOf(
  kafka: GoldenKafka,
  name: string,
  scheduler: Parameters<typeof timer>[2],
): SignalTopic {
  const end = () => kafka.known(0, name, 0).stableEnd;
  const look = (from: Offsets): SignalBatch => {
    const next = end();
    const range = { from: Number(from.get(0) ?? 0n), to: next, isolation: 'committed' } as const;
    return { partition: 0, messages: kafka.read(name, 0, range), next: BigInt(next) };
  };
  return {
    name,
    ends: () => Promise.resolve(new Map([[0, BigInt(end())]])),
    read: ({ from, follow }) => {
      if (!follow) return defer(() => Promise.resolve(look(from)));
      let at = from;
      return timer(SIGNALS_EVERY_MS, SIGNALS_EVERY_MS, scheduler).pipe(
        concatMap(() => {
          const batch = look(at);
          at = new Map([[0, batch.next]]);
          return [batch];
        }),
      );
    },
    send: () => Promise.reject(new Error('there is nothing to refuse')),
    close: () => Promise.resolve(),
  };
}
