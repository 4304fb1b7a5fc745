// A server as a JVM that can be started, killed, paused and stopped.

import { CellarstreamError } from '../core/errors.ts';
import { freeLoopbackPorts } from './loopback-ports.ts';
import type { StoppableControl } from './services.ts';
import type { Program, Tethered } from './tethered.ts';
import { untilReady, type Probe } from './tethered.ts';

/** How often a start on other ports is tried, when somebody takes one in between. */
const PORT_TRIES = 5;

/** The JVM in common: small, and quick to start rather than quick in the long run. */
export const JVM_FLAGS: readonly string[] = [
  '-XX:TieredStopAtLevel=1',
  '-XX:+UseSerialGC',
  // Else the JVM leaves a file in the system's temporary folder when it is killed.
  '-XX:-UsePerfData',
  '-XX:+ExitOnOutOfMemoryError',
];

/** One kind of server, on ports that are chosen at its first start. */
export interface JavaServerKind {
  /** As errors call it. */
  readonly title: string;
  /** Of its log file. */
  readonly name: string;
  readonly portCount: number;
  /** What its log says when a port is taken. */
  readonly portTaken: RegExp;
  /**
   * Done once before each first start on new ports: files the server needs.
   *
   * @param all The ports of all that are started together, this one's among them, in their order.
   */
  prepare(ports: readonly number[], all: readonly (readonly number[])[]): Promise<void>;
  /** Arguments of `java`. */
  args(ports: readonly number[]): readonly string[];
  /** Whether it is this very server, and no stranger on its port, that answers. */
  probe(ports: readonly number[], program: Program): Probe;
}

/** A server as a JVM in a tethered folder, with the controls that tests need. */
export class JavaServer implements StoppableControl {
  readonly #kind: JavaServerKind;
  readonly #java: string;
  readonly #tethered: Tethered;
  readonly #readyTimeoutMs: number;
  #ports: readonly number[] = [];
  #program: Program | undefined;

  /**
   * Resolves when the server answers.
   *
   * @param preferredPorts Its ports at the first try, those of them that are free. Default none.
   */
  static async start(
    kind: JavaServerKind,
    java: string,
    tethered: Tethered,
    readyTimeoutMs: number,
    preferredPorts: readonly number[] = [],
  ): Promise<JavaServer> {
    const servers = await JavaServer.startTogether(
      [kind],
      java,
      tethered,
      readyTimeoutMs,
      preferredPorts,
    );
    return servers[0]!;
  }

  /**
   * Servers of which each is told the ports of all. Resolves when each of them answers.
   *
   * @param preferredPorts As for {@link start}: the first one's first.
   */
  static async startTogether(
    kinds: readonly JavaServerKind[],
    java: string,
    tethered: Tethered,
    readyTimeoutMs: number,
    preferredPorts: readonly number[] = [],
  ): Promise<JavaServer[]> {
    const servers = kinds.map((kind) => new JavaServer(kind, java, tethered, readyTimeoutMs));
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

  private constructor(
    kind: JavaServerKind,
    java: string,
    tethered: Tethered,
    readyTimeoutMs: number,
  ) {
    this.#kind = kind;
    this.#java = java;
    this.#tethered = tethered;
    this.#readyTimeoutMs = readyTimeoutMs;
  }

  get ports(): readonly number[] {
    return this.#ports;
  }

  get pid(): number | undefined {
    return this.#program?.ended === undefined ? this.#program?.pid : undefined;
  }

  async start(): Promise<void> {
    const { title, name } = this.#kind;
    if (this.pid !== undefined) throw new CellarstreamError('SERVICES', `${title} runs already`);
    const args = [
      ...JVM_FLAGS,
      `-Djava.io.tmpdir=${this.#tethered.folder}`,
      ...this.#kind.args(this.#ports),
    ];
    const program = await this.#tethered.run(name, this.#java, args);
    this.#program = program;
    const probe = this.#kind.probe(this.#ports, program);
    await untilReady(title, program, probe, this.#readyTimeoutMs);
  }

  async kill(): Promise<void> {
    this.#signal('SIGKILL');
    await this.#program?.whenEnded;
  }

  async stop(): Promise<void> {
    this.#signal('SIGTERM');
    await this.#program?.whenEnded;
  }

  pause(): void {
    this.#signal('SIGSTOP');
  }

  resume(): void {
    this.#signal('SIGCONT');
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) process.kill(this.pid, signal);
  }
}
