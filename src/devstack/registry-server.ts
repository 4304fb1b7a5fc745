// Apicurio Registry as a JVM.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sharedClasses } from './jar-cache.ts';
import type { JavaServerKind } from './java-server.ts';
import type { Tethered, Probe } from './tethered.ts';

/** The root of the Confluent API of an Apicurio Registry. */
export function registryUrlOf(host: string, port: number): string {
  return `http://${host}:${port}/apis/ccompat/v7`;
}

/**
 * Apicurio Registry. Its database lies in the tethered folder, so that it outlives a kill.
 *
 * @param folder The unpacked distribution.
 * @param javaOptions Options of its JVM. Default: its archive of classes, if there is one.
 */
export function registryServer(
  folder: string,
  version: string,
  tethered: Tethered,
  javaOptions = sharedClasses(folder),
): JavaServerKind {
  // WRITE_DELAY=0: else H2 keeps what was committed in the last half second in memory alone.
  const database = `jdbc:h2:file:${join(tethered.folder, 'registry-data')};WRITE_DELAY=0`;
  return {
    title: 'The schema registry',
    name: 'registry',
    portCount: 1,
    portTaken: /in use by another process/,
    prepare: () => Promise.resolve(),
    args: ([port]) => [
      '-Xmx256m',
      ...javaOptions,
      '-Dquarkus.http.host=127.0.0.1',
      `-Dquarkus.http.port=${port!}`,
      `-Dapicurio.datasource.url=${database}`,
      `-DREGISTRY_DATASOURCE_URL=${database}`, // its name before version 3
      '-Dquarkus.banner.enabled=false',
      '-Dquarkus.log.level=WARN',
      '-Dquarkus.log.category."io.apicurio".level=WARN',
      '-Dquarkus.http.access-log.enabled=false',
      // Some versions have a second port, by default the same on all interfaces.
      '-Dquarkus.management.host=127.0.0.1',
      '-Dquarkus.management.port=0',
      // For the one line that says where it listens.
      '-Dquarkus.log.category."io.quarkus".level=INFO',
      '-jar',
      jarOf(folder, version),
    ],
    probe: ([port], program) => {
      const answers = registryAnswers(registryUrlOf('127.0.0.1', port!));
      // Until it has said so, it may be another's registry that answers there.
      return async () => (await program.log()).includes('Listening on') && (await answers());
    },
  };
}

/** What `java -jar` starts: newer distributions are laid out as Quarkus does it by default. */
export function jarOf(folder: string, version: string): string {
  const byDefault = join(folder, 'quarkus-run.jar');
  return existsSync(byDefault)
    ? byDefault
    : join(folder, `apicurio-registry-app-${version}-runner.jar`);
}

/** Asks for the subjects. */
export function registryAnswers(registryUrl: string): Probe {
  return async () => {
    const answer = await fetch(`${registryUrl}/subjects`, { signal: AbortSignal.timeout(5_000) });
    await answer.arrayBuffer();
    return answer.status === 200;
  };
}
