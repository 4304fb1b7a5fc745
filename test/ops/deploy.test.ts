import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { accountNames, loadAccounts } from '../../src/config/accounts.ts';
import { settingsFor } from '../../src/config/settings.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { FLEET_METRICS } from '../../src/ops/metrics/fleet-metrics.ts';
import { LABELS } from '../../src/ops/metrics/metric-labels.ts';
import { METRICS } from '../../src/ops/metrics/metric-table.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { pathOf, text } from '../docs/texts.ts';

const SETTINGS = settingsFor(WINE).names;

/** Node's own, and the C library's. */
const NODE = ['NODE_ENV', 'NODE_OPTIONS', 'MALLOC_MMAP_THRESHOLD_'];
/** Kafka's names of errors, in the pages for operators. */
const KAFKA_ERRORS = [
  'COORDINATOR_NOT_AVAILABLE',
  'INVALID_CONFIG',
  'INVALID_PARTITIONS',
  'LEADER_NOT_AVAILABLE',
  'NOT_ENOUGH_REPLICAS',
  'POLICY_VIOLATION',
  'THROTTLING_QUOTA_EXCEEDED',
];
/** A stop takes so long at most, in seconds. */
const STOP_S = 8;
/** An instance of a fleet hands its accounts over so long at most, in seconds; then it stops. */
const HAND_OVER_S = 20;

type Env = Record<string, string>;

/** Whether these settings are ones that `run` starts with; files that they name hold what they should. */
function checkSettings(settings: Env): void {
  const names = Object.keys(settings).filter((name) => !NODE.includes(name));
  for (const name of names) expect(SETTINGS).toContain(name);
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-deploy-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'secret');
  writeFileSync(file, 'a-key');
  const env = names.map((name) => [name, name.endsWith('_FILE') ? file : settings[name]] as const);
  const needs = ['api', 'kafka', 'registry'] as const;
  const config = loadConfig({ env: Object.fromEntries(env), cwd: folder, needs: [...needs] });
  expect(config.api.credentials.api_key!.reveal()).toBe('a-key');
}

/** Whether an instance of a fleet starts with these settings, and can serve an account whose file has nothing but a key. */
function checkFleetSettings(settings: Env): void {
  for (const name of Object.keys(settings)) {
    if (!NODE.includes(name)) expect(SETTINGS).toContain(name);
  }
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-deploy-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'accounts'));
  writeFileSync(join(folder, 'accounts', 'east.env'), 'API_KEY=a-key\n');
  const accountsDir = join(folder, 'accounts');
  const env = { ...settings, ACCOUNTS_DIR: accountsDir };
  const config = loadConfig({ env, cwd: folder, needs: ['kafka', 'registry'] });
  const accounts = loadAccounts({ env, cwd: folder, config: { ...config, accountsDir } });
  expect(accounts.get('east')).toMatchObject({ config: { account: 'east' } });
  expect(config.instanceName).toBeDefined();
}

describe('the manifest of Kubernetes', () => {
  interface Container {
    readonly args: readonly string[];
    readonly image: string;
    readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
    readonly livenessProbe: Probe;
    readonly readinessProbe: Probe;
    readonly securityContext: object;
    readonly resources: { readonly limits: { readonly memory: string } };
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  }
  interface Probe {
    readonly httpGet: { readonly path: string; readonly port: string };
  }
  interface Part {
    readonly kind: string;
    readonly apiVersion: string;
    readonly metadata: { readonly name: string; readonly labels: Env };
    readonly data: Env;
    readonly spec: {
      readonly replicas: number;
      readonly serviceName: string;
      readonly selector: { readonly matchLabels: Env } & Env;
      readonly podSelector: { readonly matchLabels: Env };
      readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
      readonly podManagementPolicy: string;
      readonly template: {
        readonly metadata: { readonly labels: Env };
        readonly spec: {
          readonly terminationGracePeriodSeconds: number;
          readonly securityContext: object;
          readonly containers: readonly [Container];
          readonly volumes: readonly { readonly name: string }[];
        };
      };
      readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
    };
  }
  const source = text('deploy/kubernetes/cellarstream.yaml');
  const documents = parseAllDocuments(source);
  const parts = documents.map((one) => one.toJS() as Part);
  const part = (kind: string) => parts.find((one) => one.kind === kind)!;
  const { spec } = part('StatefulSet');
  const pod = spec.template.spec;
  const [container] = pod.containers;

  it('is YAML, with each part once', () => {
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    const kinds = ['ConfigMap', 'StatefulSet', 'Service', 'NetworkPolicy'];
    expect(parts.map(({ kind }) => kind)).toEqual(kinds);
  });

  it('names settings that there are, with values that are taken', () => {
    const own = container.env.map(({ name, value }) => [name, value] as const);
    checkSettings({ ...part('ConfigMap').data, ...Object.fromEntries(own) });
    for (const [, name] of source.matchAll(/^ *# ([A-Z_]+): /gm)) expect(SETTINGS).toContain(name);
    expect(container.envFrom).toEqual([
      { configMapRef: { name: part('ConfigMap').metadata.name } },
    ]);
  });

  it('is one process, with a folder that stays, which is given time to stop', () => {
    expect([spec.replicas, container.args]).toEqual([1, ['run']]);
    // With OrderedReady a pod that is not ready is not replaced by its own mended version.
    expect(spec.podManagementPolicy).toBe('Parallel');
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(STOP_S + 5);
    const state = container.env.find(({ name }) => name === 'STATE_DIR')?.value;
    const mounts = new Map(container.volumeMounts.map(({ name, mountPath }) => [name, mountPath]));
    expect(mounts.get(spec.volumeClaimTemplates[0]!.metadata.name)).toBe(state);
    const secrets = mounts.get(pod.volumes[0]!.name)!;
    const files = [...source.matchAll(/_FILE(?:: |, value: )(\S+?)[ }\n]/g)].map(
      ([, path]) => path!,
    );
    expect(files.length).toBeGreaterThan(2);
    for (const path of files) expect(path.startsWith(`${secrets}/`)).toBe(true);
  });

  it('asks for health where it is told', () => {
    const { name, containerPort } = container.ports[0]!;
    expect(container.livenessProbe.httpGet).toEqual({ path: '/healthz', port: name });
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: name });
    const port = container.env.find((one) => one.name === 'HTTP_PORT')?.value;
    expect([String(containerPort), part('Service').spec.ports[0]!.targetPort]).toEqual([
      port,
      name,
    ]);
  });

  it('finds its own pods', () => {
    const { labels } = spec.template.metadata;
    expect(spec.selector.matchLabels).toEqual(labels);
    expect(part('Service').spec.selector).toEqual(labels);
    expect(part('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels);
    expect(spec.serviceName).toBe(part('Service').metadata.name);
  });

  it('gives the process no rights', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('is of the version that there is', () => {
    const { version } = JSON.parse(text('package.json')) as { version: string };
    expect(container.image.split(':').at(-1)).toBe(version);
  });
});

describe('the manifest of a fleet', () => {
  interface Probe {
    readonly httpGet: { readonly path: string; readonly port: string };
  }
  interface Container {
    readonly args: readonly string[];
    readonly image: string;
    readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
    readonly env: readonly {
      readonly name: string;
      readonly value?: string;
      readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } };
    }[];
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
    readonly livenessProbe: Probe;
    readonly readinessProbe: Probe;
    readonly securityContext: object;
    readonly volumeMounts: readonly {
      readonly name: string;
      readonly mountPath: string;
      readonly subPath?: string;
    }[];
  }
  interface Part {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly labels: Env };
    readonly data: Env;
    readonly spec: {
      readonly replicas: number;
      readonly minReplicas: number;
      readonly maxUnavailable: number;
      readonly minReadySeconds: number;
      readonly serviceName: string;
      readonly selector: { readonly matchLabels: Env } & Env;
      readonly podSelector: { readonly matchLabels: Env };
      readonly scaleTargetRef: { readonly kind: string; readonly name: string };
      readonly metrics: readonly {
        readonly pods: { readonly metric: { readonly name: string } };
      }[];
      readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
      readonly template: {
        readonly metadata: { readonly labels: Env };
        readonly spec: {
          readonly automountServiceAccountToken: boolean;
          readonly terminationGracePeriodSeconds: number;
          readonly containers: readonly [Container];
          readonly volumes: readonly {
            readonly name: string;
            readonly secret: { readonly secretName: string };
          }[];
        };
      };
      readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
    };
  }
  const source = text('deploy/kubernetes/fleet.yaml');
  const documents = parseAllDocuments(source);
  const parts = documents.map((one) => one.toJS() as Part);
  const part = (kind: string) => parts.find((one) => one.kind === kind)!;
  const { spec } = part('StatefulSet');
  const pod = spec.template.spec;
  const [container] = pod.containers;
  const valueOf = (name: string) => container.env.find((one) => one.name === name)?.value;

  it('is YAML, with each part once', () => {
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    expect(parts.map(({ kind }) => kind)).toEqual([
      ...['ConfigMap', 'StatefulSet', 'Service', 'NetworkPolicy'],
      ...['PodDisruptionBudget', 'HorizontalPodAutoscaler'],
    ]);
  });

  it('names settings that there are, with values that are taken', () => {
    const own = container.env.map(({ name, value = 'cellarstream-0' }) => [name, value] as const);
    checkFleetSettings({ ...part('ConfigMap').data, ...Object.fromEntries(own) });
    for (const [, name] of source.matchAll(/^ *# ([A-Z_]+): /gm)) expect(SETTINGS).toContain(name);
    const name = container.env.find((one) => one.name === 'INSTANCE_NAME');
    expect(name?.valueFrom?.fieldRef.fieldPath).toBe('metadata.name');
    expect(container.envFrom).toEqual([
      { configMapRef: { name: part('ConfigMap').metadata.name } },
    ]);
  });

  it('mounts accounts, secrets and state where the settings say', () => {
    const mounts = new Map(container.volumeMounts.map(({ name, mountPath }) => [name, mountPath]));
    const secrets = new Map(pod.volumes.map(({ name, secret }) => [secret.secretName, name]));
    expect(mounts.get(secrets.get('cellarstream-accounts')!)).toBe(valueOf('ACCOUNTS_DIR'));
    expect(mounts.get(spec.volumeClaimTemplates[0]!.metadata.name)).toBe(valueOf('STATE_DIR'));
    expect(container.volumeMounts.filter(({ subPath }) => subPath !== undefined)).toEqual([]);
    for (const [, path] of source.matchAll(/_FILE: (\S+)/g)) {
      expect(path!.startsWith(`${mounts.get(secrets.get('cellarstream')!)}/`)).toBe(true);
    }
  });

  it('gives an instance time to hand its accounts over, one at a time', () => {
    expect(container.args).toEqual(['run']);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(HAND_OVER_S + STOP_S + 5);
    expect(spec.minReadySeconds).toBeGreaterThan(HAND_OVER_S);
    expect(part('PodDisruptionBudget').spec.maxUnavailable).toBe(1);
    expect(spec.replicas).toBeGreaterThan(1);
  });

  it('is scaled by a metric of each pod that there is, which the docs make known', () => {
    const { scaleTargetRef, minReplicas, metrics } = part('HorizontalPodAutoscaler').spec;
    expect([scaleTargetRef.kind, scaleTargetRef.name]).toEqual([
      'StatefulSet',
      part('StatefulSet').metadata.name,
    ]);
    expect(minReplicas).toBe(spec.replicas);
    const names = metrics.map(({ pods }) => pods.metric.name);
    expect(names).toEqual([FLEET_METRICS.running.name]);
    const blocks = [...text('docs/fleet.md').matchAll(/```yaml\n(.*?)```/gs)].map(
      ([, yaml]) => parse(yaml!) as { rules?: { seriesQuery: string }[] },
    );
    const [rule] = blocks.flatMap(({ rules = [] }) => rules);
    expect(rule!.seriesQuery).toContain(`${names[0]}{`);
  });

  it('asks for health where it is told, and finds its own pods', () => {
    const { name, containerPort } = container.ports[0]!;
    expect(container.livenessProbe.httpGet).toEqual({ path: '/healthz', port: name });
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: name });
    expect(String(containerPort)).toBe(valueOf('HTTP_PORT'));
    expect(part('Service').spec.ports[0]!.targetPort).toBe(name);
    const { labels } = spec.template.metadata;
    for (const each of [spec, part('PodDisruptionBudget').spec]) {
      expect(each.selector.matchLabels).toEqual(labels);
    }
    expect(part('Service').spec.selector).toEqual(labels);
    expect(part('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels);
    expect(spec.serviceName).toBe(part('Service').metadata.name);
  });

  it('gives the process no rights, and is as that of one account else', () => {
    const [alone] = parseAllDocuments(text('deploy/kubernetes/cellarstream.yaml'))
      .map((one) => one.toJS() as Part)
      .filter(({ kind }) => kind === 'StatefulSet');
    const other = alone!.spec.template;
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(container.securityContext).toEqual(other.spec.containers[0].securityContext);
    expect(container.image).toBe(other.spec.containers[0].image);
    expect(spec.template.metadata).toEqual(other.metadata); // one job of Prometheus finds both
  });
});

describe('the Compose file of a fleet', () => {
  interface Service {
    readonly command?: readonly string[];
    readonly profiles?: readonly string[];
    readonly ports?: readonly string[];
    readonly environment?: Env;
    readonly volumes?: readonly string[];
    readonly stop_grace_period?: string;
  }
  interface Compose {
    readonly services: Readonly<Record<string, Service>>;
    readonly volumes: object;
  }
  const read = (file: string) => parse(text(file), { merge: true }) as Compose;
  const { services, volumes } = read('deploy/compose/fleet.yml');
  const beside = read('docker-compose.yml');
  const instances = Object.entries(services).filter(([, { environment }]) => environment);

  it('has instances that differ in name, port and state', () => {
    expect(instances.length).toBeGreaterThan(2);
    for (const [name, { environment, ports, stop_grace_period }] of instances) {
      checkFleetSettings(environment!);
      expect(environment!.INSTANCE_NAME).toBe(name);
      expect(ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+:9464$/)]);
      expect(Number.parseInt(stop_grace_period!)).toBeGreaterThan(HAND_OVER_S + STOP_S + 5);
    }
    expect(new Set(instances.flatMap(([, { ports }]) => ports)).size).toBe(instances.length);
    const mounted = instances.map(([, each]) => each.volumes!.map((one) => one.split(':')));
    expect(mounted.map(([, state]) => state![0])).toEqual(Object.keys(volumes));
    for (const [nth, [accounts, state]] of mounted.entries()) {
      const { ACCOUNTS_DIR, STATE_DIR } = instances[nth]![1].environment!;
      expect([accounts![1], state![1]]).toEqual([ACCOUNTS_DIR, STATE_DIR]);
    }
  });

  it('connects them as the service beside it, which does not start', () => {
    expect(services.service?.profiles).toHaveLength(1);
    for (const name of ['API_BASE_URL', 'KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL', 'STATE_DIR']) {
      for (const [, { environment }] of instances)
        expect(environment![name]).toBe(beside.services.service!.environment![name]);
    }
  });

  it('has the files of the accounts that its sandbox has', async () => {
    const command = services.sandbox!.command!;
    const count = Number(command[command.indexOf('--accounts') + 1]);
    expect(command.slice(0, -2)).toEqual(beside.services.sandbox!.command);
    const sandbox = await startSandbox({ accounts: count, records: { orders: 1 } });
    onTestFinished(() => sandbox.close());
    const folder = 'deploy/compose/accounts';
    expect(accountNames(pathOf(folder))).toEqual(sandbox.accounts.map(({ name }) => name));
    for (const { name, apiKey } of sandbox.accounts)
      expect(text(`${folder}/${name}.env`)).toBe(`API_KEY=${apiKey}\n`);
  });
});

describe('the unit of systemd', () => {
  const source = text('deploy/systemd/cellarstream.service');
  const entries = (name: string, where = source) =>
    [...where.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value!);
  const everything = source.replace(/^#(LoadCredential|Environment)=/gm, '$1=');

  it('names settings that there are, and secrets that are loaded', () => {
    const env: Env = {};
    for (const entry of entries('Environment', everything)) {
      const at = entry.indexOf('=');
      env[entry.slice(0, at)] = entry.slice(at + 1);
    }
    const credentials = entries('LoadCredential', everything).map((one) => one.split(':')[0]);
    for (const [name, value] of Object.entries(env)) {
      if (!NODE.includes(name)) expect(SETTINGS).toContain(name);
      if (name.endsWith('_FILE')) expect(credentials).toContain(value.replace('%d/', ''));
    }
    const [, settings = ''] =
      /settings\.env <<'END'\n(.*?)END/s.exec(text('docs/operating.md')) ?? [];
    const inFile = settings
      .trim()
      .split('\n')
      .map((line) => line.split('=') as [string, string]);
    const { API_KEY_FILE, STATE_DIR } = env;
    checkSettings({
      ...Object.fromEntries(inFile),
      API_KEY_FILE: API_KEY_FILE!,
      STATE_DIR: STATE_DIR!,
    });
  });

  it('gives it time to stop, and does not try wrong settings again', () => {
    expect(Number.parseInt(entries('TimeoutStopSec')[0]!)).toBeGreaterThan(STOP_S + 5);
    expect(entries('RestartPreventExitStatus')).toEqual(['2']);
    expect(entries('Restart')).toEqual(['on-failure']);
  });

  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
  it.runIf(hasSystemd)('is found to be right by systemd-analyze', () => {
    const folder = mkdtempSync(join(tmpdir(), 'cellarstream-unit-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const unit = join(folder, 'cellarstream.service');
    // The program has to be there.
    writeFileSync(unit, source.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  });
});

describe('the unit of systemd of a fleet', () => {
  const alone = text('deploy/systemd/cellarstream.service');
  const source = text('deploy/systemd/cellarstream@.service');
  const entriesOf = (where: string, name: string) =>
    [...where.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value!);
  const entries = (name: string) => entriesOf(source, name);

  it('names settings that there are, and has a port, a name and a folder for each instance', () => {
    const env: Env = {};
    for (const entry of entries('Environment')) {
      const at = entry.indexOf('=');
      env[entry.slice(0, at)] = entry
        .slice(at + 1)
        .replace('%i', '9464')
        .replace('%H', 'host');
    }
    const [, settings = ''] = /fleet\.env <<'END'\n(.*?)END/s.exec(text('docs/fleet.md')) ?? [];
    const inFile = settings
      .trim()
      .split('\n')
      .map((line) => line.split('=') as [string, string]);
    checkFleetSettings({ ...Object.fromEntries(inFile), ...env });
    expect(env).toMatchObject({ HTTP_PORT: '9464', INSTANCE_NAME: 'host-9464' });
    expect(env.STATE_DIR).toBe(`%S/${entries('StateDirectory')[0]!.replace('%i', '9464')}`);
    expect(text('docs/fleet.md')).toContain(`-g cellarstream ${env.ACCOUNTS_DIR}\n`);
    expect(entries('SupplementaryGroups')).toEqual(['cellarstream']);
  });

  it('gives an instance time to hand its accounts over, and does not try wrong settings again', () => {
    expect(Number.parseInt(entries('TimeoutStopSec')[0]!)).toBeGreaterThan(
      HAND_OVER_S + STOP_S + 5,
    );
    expect(entries('RestartPreventExitStatus')).toEqual(['2']);
    expect(entries('Restart')).toEqual(['on-failure']);
  });

  it('gives the process no more rights than that of one account', () => {
    const rights = (where: string) => where.slice(where.indexOf('# Nothing but its folder'));
    const ofFleet = rights(source).replace('cellarstream/%i', 'cellarstream');
    expect(ofFleet).toBe(rights(alone));
  });

  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
  it.runIf(hasSystemd)('is found to be right by systemd-analyze', () => {
    const folder = mkdtempSync(join(tmpdir(), 'cellarstream-unit-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const unit = join(folder, 'cellarstream@9464.service');
    // The program has to be there.
    writeFileSync(unit, source.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  });
});

describe('docs/operating.md', () => {
  const operating = text('docs/operating.md');

  it('lists every event of the log, and none that is gone', () => {
    const sources = readdirSync(pathOf('src'), { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts'),
    );
    const logged = sources.flatMap((file) => {
      const code = readFileSync(pathOf(`src/${file}`), 'utf8');
      return /\blogger\b/.test(code)
        ? [...code.matchAll(/\{\s*event: '([a-z-]+)'/g)].map(([, event]) => event!)
        : [];
    });
    const section = operating.slice(operating.indexOf('## Logs'), operating.indexOf('## Exit'));
    const listed = [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, event]) => event!);
    expect([...listed].sort()).toEqual([...new Set(logged)].sort());
  });

  interface Job {
    readonly job_name: string;
    readonly relabel_configs?: readonly {
      readonly regex?: string;
      readonly target_label?: string;
    }[];
  }
  const jobs = [...operating.matchAll(/```yaml\n(.*?)```/gs)].flatMap(
    ([, yaml]) => (parse(yaml!) as { scrape_configs: Job[] }).scrape_configs,
  );

  it('shows jobs of Prometheus whose name the alerts go by', () => {
    const names = [...text('deploy/prometheus/alerts.yml').matchAll(/job="(\w+)"/g)];
    expect(jobs).toHaveLength(2);
    expect(new Set(names.map(([, name]) => name))).toEqual(
      new Set(jobs.map(({ job_name }) => job_name)),
    );
  });

  it('shows one that finds the pod of the manifest, under a name that stays', () => {
    const [set] = parseAllDocuments(text('deploy/kubernetes/cellarstream.yaml'))
      .map((one) => one.toJS() as { kind: string; spec: { template: PodTemplate } })
      .filter(({ kind }) => kind === 'StatefulSet');
    const { metadata, spec } = set!.spec.template;
    const wanted = `${metadata.labels['app.kubernetes.io/name']};${spec.containers[0].ports[0].name}`;
    const [keep, rename] = jobs[1]!.relabel_configs!;
    expect([keep!.regex, rename!.target_label]).toEqual([wanted, 'instance']);
    expect(Object.keys(metadata)).toEqual(['labels']); // by annotations it would be found by a job of another name
  });

  it('and the runbook name metrics that there are', () => {
    const all = [...Object.values(METRICS), ...Object.values(FLEET_METRICS)];
    const known = new Set<string>(all.map(({ name }) => name));
    for (const file of ['docs/operating.md', 'docs/runbook.md', 'docs/fleet.md'])
      for (const [, name] of text(file).matchAll(/`(cellarstream_\w+)/g)) {
        expect([file, name, known.has(name!)]).toEqual([file, name, true]);
      }
  });

  it('and the runbook name settings that there are', () => {
    for (const file of ['docs/operating.md', 'docs/runbook.md'])
      for (const [, name] of text(file).matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)) {
        const known = [...SETTINGS, ...NODE, ...LABELS.code.values, ...KAFKA_ERRORS];
        expect([file, known]).toEqual([file, expect.arrayContaining([name])]);
      }
  });
});

interface PodTemplate {
  readonly metadata: { readonly labels: Env };
  readonly spec: {
    readonly containers: readonly [{ readonly ports: readonly [{ readonly name: string }] }];
  };
}
