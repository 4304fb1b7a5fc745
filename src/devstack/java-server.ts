// A server as a JVM, which can be killed, paused and stopped.

import { CellarstreamError } from '../core/errors.ts';
import { freeLoopbackPorts } from './loopback-ports.ts';
import { untilReady, type Probe, type Program, type Tethered } from './tethered.ts';

/**
 * Maximum number of attempts to start a set of servers. If another process has taken one of their ports, all of them are started again on
 * other ports.
 */
const PORT_TRIES = 5;

/** JVM flags of all Java servers that are started here: little memory and a fast start, at the cost of peak speed. */
export const JVM_FLAGS: readonly string[] = [
  '-XX:TieredStopAtLevel=1',
  '-XX:+UseSerialGC',
  // Without this flag a JVM that is killed leaves a file in the system's temporary folder.
  '-XX:-UsePerfData',
  '-XX:+ExitOnOutOfMemoryError',
];

/** Describes a kind of server (Kafka or the registry) and how to run it as a JVM. Its ports are chosen at the first start. */
export interface JavaServerKind {
  readonly title: string;
  readonly name: string;
  readonly portCount: number;
  /** Matches the line in the server's log that shows that a port is in use. */
  readonly portTaken: RegExp;
  /**
   * Creates the files that the server needs. Called before each start on new ports.
   *
   * @param ports The ports of this server.
   * @param all The ports of all servers that are started together, one array for each server.
   */
  prepare(ports: readonly number[], all: readonly (readonly number[])[]): Promise<void>;
  /** Returns the arguments of `java` that run the server. */
  args(ports: readonly number[]): readonly string[];
  /** Returns a probe that is true once this server answers; a response of another process on the server's port does not count. */
  probe(ports: readonly number[], program: Program): Probe;
}

/** Settings for starting JVMs. */
export interface JvmLaunch {
  /** Path of the `java` program. */
  readonly java: string;
  /** The temporary folder, and the process that ends the JVMs and deletes it. */
  readonly tethered: Tethered;
  /** Limit for the time until a started server answers, in ms. */
  readonly readyTimeoutMs: number;
}

/**
 * A server that runs as a JVM. Its files are in a temporary folder, which is deleted when the services are stopped or this process ends.
 */
export class JavaServer {
  readonly #kind: JavaServerKind;
  readonly #launch: JvmLaunch;
  #ports: readonly number[] = [];
  #program: Program | undefined;

  /**
   * Starts a server; resolves once it answers.
   *
   * @param preferredPorts Ports to use at the first attempt. A port that is in use is replaced by a free one.
   */
  static async start(
    kind: JavaServerKind,
    launch: JvmLaunch,
    preferredPorts?: readonly number[],
  ): Promise<JavaServer> {
    const servers = await JavaServer.startTogether([kind], launch, preferredPorts);
    return servers[0]!;
  }

  /**
   * Starts several servers, each configured with the ports of all of them; resolves once all servers answer.
   *
   * @param preferredPorts Ports to use at the first attempt, in the order of the servers. A port that is in use is replaced by a free one.
   */
  static async startTogether(
    kinds: readonly JavaServerKind[],
    launch: JvmLaunch,
    preferredPorts: readonly number[] = [],
  ): Promise<JavaServer[]> {
    const servers = kinds.map((kind) => new JavaServer(kind, launch));
    const count = kinds.reduce((sum, { portCount }) => sum + portCount, 0);
    for (let tries = 1; ; tries++) {
      const ports = await freeLoopbackPorts(count, tries === 1 ? preferredPorts : []);
      for (const server of servers) server.#ports = ports.splice(0, server.#kind.portCount);
      const all = servers.map((server) => server.#ports);
      await Promise.all(kinds.map((kind, k) => kind.prepare(all[k]!, all)));
      const started = await Promise.allSettled(servers.map((server) => server.start()));
      const failed = started.find((one) => one.status === 'rejected');
      if (!failed) return servers;
      if (tries === PORT_TRIES || !(await anyLostItsPort(servers))) throw failed.reason;
      await Promise.all(servers.map((server) => server.kill()));
    }

    async function anyLostItsPort(servers: readonly JavaServer[]): Promise<boolean> {
      const found = servers.map(async (server) =>
        server.#kind.portTaken.test((await server.#program?.log()) ?? ''),
      );
      return (await Promise.all(found)).includes(true);
    }
  }

  private constructor(kind: JavaServerKind, launch: JvmLaunch) {
    this.#kind = kind;
    this.#launch = launch;
  }

  get ports(): readonly number[] {
    return this.#ports;
  }

  /** Process id of the JVM; undefined while it is not running. */
  get pid(): number | undefined {
    return this.#program?.ended === undefined ? this.#program?.pid : undefined;
  }

  /**
   * Starts the server, with the data of its earlier runs if there are any. Resolves once it answers.
   *
   * @throws CellarstreamError `SERVICES` if it is already running or does not start.
   */
  async start(): Promise<void> {
    const { title, name } = this.#kind;
    if (this.pid !== undefined) throw new CellarstreamError('SERVICES', `${title} runs already`);
    const { java, tethered } = this.#launch;
    const folder = `-Djava.io.tmpdir=${tethered.folder}`;
    const args = [...JVM_FLAGS, folder, ...this.#kind.args(this.#ports)];
    this.#program = await tethered.run(name, java, args);
    await this.untilReady(this.#kind.probe(this.#ports, this.#program));
  }

  /**
   * Repeats `probe` until it is true; resolves then.
   *
   * @throws CellarstreamError `SERVICES`, with the end of this server's log, if the server ends first or takes too long.
   */
  untilReady(probe: Probe): Promise<void> {
    return untilReady(this.#kind.title, this.#program!, probe, this.#launch.readyTimeoutMs);
  }

  /** Sends SIGKILL; resolves once the process has ended. Port and data are retained for the next start. */
  async kill(): Promise<void> {
    this.#signal('SIGKILL');
    await this.#program?.whenEnded;
  }

  /**
   * Shuts the server down with SIGTERM, and resolves once its process has ended. Port and data are retained for the next start. A paused
   * server ends only after `resume`.
   */
  async stop(): Promise<void> {
    this.#signal('SIGTERM');
    await this.#program?.whenEnded;
  }

  /** Sends SIGSTOP: connections stay open, but the server does not respond. */
  pause(): void {
    this.#signal('SIGSTOP');
  }

  /** Sends SIGCONT: the server continues after `pause`. */
  resume(): void {
    this.#signal('SIGCONT');
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) process.kill(this.pid, signal);
  }
}
