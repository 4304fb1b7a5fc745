import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sharedClasses } from './jar-cache.ts';
import type { JavaServerKind } from './java-server.ts';
import type { Tethered, Probe } from './tethered.ts';

/** Returns the base URL of the Confluent-compatible API of an Apicurio Registry. */
export function registryUrlOf(host: string, port: number): string {
  return `http://${host}:${port}/apis/ccompat/v7`;
}

/**
 * Describes how to run an Apicurio Registry. Its database is a file in the temporary folder, so the data survives a kill of the JVM.
 *
 * @param folder Folder of the unpacked distribution.
 * @param tethered The temporary folder, and the process that deletes it.
 */
export function registryServer(
  folder: string,
  version: string,
  tethered: Tethered,
  javaOptions = sharedClasses(folder),
): JavaServerKind {
  // WRITE_DELAY=0: by default H2 holds commits of the last half second only in memory.
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
      `-DREGISTRY_DATASOURCE_URL=${database}`, // the variable's name before version 3
      '-Dquarkus.banner.enabled=false',
      '-Dquarkus.log.level=WARN',
      '-Dquarkus.log.category."io.apicurio".level=WARN',
      '-Dquarkus.http.access-log.enabled=false',
      // Some versions open a management port, by default the same port on all interfaces.
      '-Dquarkus.management.host=127.0.0.1',
      '-Dquarkus.management.port=0',
      // Enables the log line "Listening on", which the probe below waits for.
      '-Dquarkus.log.category."io.quarkus".level=INFO',
      '-jar',
      jarOf(folder, version),
    ],
    probe: ([port], program) => {
      const answers = registryProbe(registryUrlOf('127.0.0.1', port!));
      // Before this log line, another registry may be answering on the port.
      return async () => (await program.log()).includes('Listening on') && (await answers());
    },
  };
}

/** Returns the path of the registry's jar: `quarkus-run.jar`, or in older distributions a jar with the version in its name. */
export function jarOf(folder: string, version: string): string {
  const byDefault = join(folder, 'quarkus-run.jar');
  return existsSync(byDefault)
    ? byDefault
    : join(folder, `apicurio-registry-app-${version}-runner.jar`);
}

/** Returns a probe that requests the list of the registry's subjects: the registry is ready if it answers with status 200. */
export function registryProbe(registryUrl: string): Probe {
  return async () => {
    const answer = await fetch(`${registryUrl}/subjects`, { signal: AbortSignal.timeout(5_000) });
    await answer.arrayBuffer();
    return answer.status === 200;
  };
}
