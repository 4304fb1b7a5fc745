import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';
import './scripts/build-transcoder.mjs';

/** Where a report in JSON goes, beside the one on the screen. */
const report = process.env.TEST_REPORT;

/** Vitest leaves one core to itself, which of two is half: too much where nothing but they is needed. */
const ALL_CORES = '100%';

const integrationTest = (name: string) => `test/integration/${name}.test.ts`;

const NOT_UNIT = [
  'test/integration/**',
  'test/chaos/**',
  'test/docker/**',
  'test/ecosystem/**',
  'test/apis/**',
  'test/sim/seeds-*',
  'test/sim/styles/seeds-*',
];
/** Integration tests that measure time: no other test may run beside them. `alerts` needs Prometheus, too. */
const ALONE = ['freshness', 'alerts'].map(integrationTest);
/**
 * Integration tests that `npm test` leaves out, slowest first: they start clusters or fleets, or kill processes. The gate runs them (`slow-all`).
 * CONTRIBUTING.md names the everyday tests of the same promises.
 */
const SLOW = [
  'deletes',
  'producer-cluster',
  'fleet-commands',
  'resync',
  'restart',
  'secured',
  'key-fields',
  'certificates',
  'dead-letters',
  'redaction',
  'managed',
  'fleet',
  'fleet-handover',
  'verify',
  'page-fleet',
  'group-kill',
  'growth',
  'shared-connections',
  'replay-outage',
].map(integrationTest);
/** Integration tests that take too long for `npm test` and the gate: `npm run test:long` runs them, and `test:versions` some of them. */
const LARGE = [
  'takeovers',
  'unknown-commit',
  'resume-quota',
  'permits',
  'outage',
  'kill',
  'initial-snapshot',
  'demo-fleet',
  'services',
  'beside',
  'resume',
  'replay-pressure',
  'cluster',
  'examples/shipping-notifier',
  'lost-topic',
  'fleet-apart',
  'managed-kafka',
  'state-damage',
].map(integrationTest);
/** Everyday integration tests that take longest: started last, they would be waited for. */
const LONG = ['lifecycle', 'resources', 'replay-cli', 'group', 'page', 'replay'].map(
  integrationTest,
);
const LONGEST = [...LARGE, ...SLOW, ...LONG];

/** The longest first, then as vitest knows them. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.findIndex((end) => moduleId.endsWith(end));
      return place < 0 ? LONGEST.length : place;
    };
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Those that read and write Kafka: what another version of it, or of the registry, could make fail. */
const ON_KAFKA = [
  ...['log-contract', 'kafka-producer', 'other-clients', 'unknown-commit', 'kill', 'outage'],
  ...['resync', 'dead-letters', 'registry', 'evolution'],
  ...['resume', 'written-since', 'compacted', 'secured'],
  ...['managed', 'managed-kafka'],
  ...['replay', 'replay-cli', 'replay-outage', 'replay-pressure', 'table', 'group', 'group-kill'],
].map(integrationTest);
/** Those that put something in the place of a module: what one file puts there is seen by no other. */
const MOCKED = ['test/**/*.mocked.test.ts'];
/** Unit tests of more than some two seconds: the gate runs them (`slow-unit-all`). CONTRIBUTING.md names the everyday tests of the same promises. */
const SLOW_UNIT = ['test/**/*.slow.test.ts'];

// JVMs of the tests live for a minute or two: compiled quickly is better than compiled well. Servers inherit it.
process.env.JDK_JAVA_OPTIONS ??= '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC';

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    ...(report && { reporters: ['default', 'json'], outputFile: { json: report } }),
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [...NOT_UNIT, ...MOCKED, ...SLOW_UNIT],
          isolate: false, // most of their time went into loading the same modules again
          testTimeout: 20_000, // for a busy machine
          maxWorkers: ALL_CORES,
        },
      },
      {
        test: {
          name: 'mocked',
          include: MOCKED,
          testTimeout: 20_000,
          maxWorkers: ALL_CORES,
        },
      },
      {
        test: {
          name: 'slow-unit-all',
          include: SLOW_UNIT,
          isolate: false,
          testTimeout: 60_000,
          maxWorkers: 3, // more than cores: some tests mostly wait
          sequence: { groupOrder: 4 },
        },
      },
      // Those that another version of Node could make fail.
      {
        test: {
          name: 'node-all',
          include: ['test/**/*.test.ts'],
          exclude: [
            ...NOT_UNIT,
            ...MOCKED,
            ...SLOW_UNIT,
            '**/*.property.test.ts',
            'test/{bench,docs,sandbox}/**',
            // Computing that does not depend on Node.
            'test/{sim,pipeline,account,fleet}/**',
            'test/streams/{decode,paging,quota,diff}/**',
            'test/{consumers/live-keys,schemas/avro/merge-schema,description/wine/*}.test.ts',
          ],
          isolate: false,
          testTimeout: 20_000,
          maxWorkers: Number(process.env.TEST_WORKERS) || ALL_CORES,
        },
      },
      // One seed, one run of the whole pipeline: 10 with the other tests, 100 in the gate, 10,000 in `npm run test:sim`.
      {
        test: {
          name: 'sim',
          include: ['test/sim/seeds-*.test.ts', 'test/sim/styles/seeds-*.test.ts'],
          env: {
            SIM_SEEDS: process.env.SIM_SEEDS ?? '10',
            FLEET_SEEDS: process.env.FLEET_SEEDS ?? process.env.SIM_SEEDS ?? '4', // each takes longer
            STYLE_SEEDS: process.env.STYLE_SEEDS ?? process.env.SIM_SEEDS ?? '20',
          },
          maxWorkers: ALL_CORES,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: 'sim-all',
          include: ['test/sim/seeds-*.test.ts', 'test/sim/styles/seeds-*.test.ts'],
          env: {
            SIM_SEEDS: process.env.SIM_SEEDS ?? '10000',
            STYLE_SEEDS: process.env.STYLE_SEEDS ?? process.env.SIM_SEEDS ?? '10000',
          },
          maxWorkers: ALL_CORES,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: [...LARGE, ...SLOW, ...ALONE],
          globalSetup: ['test/integration/services.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // They share one broker; each file has topics of its own. Three at once: most of them wait.
          maxWorkers: 3,
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'slow-all',
          include: SLOW,
          globalSetup: ['test/integration/services.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 3, // as for integration
          isolate: false,
        },
      },
      {
        test: {
          name: 'alone-all',
          include: ALONE,
          globalSetup: ['test/integration/services.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 1,
          sequence: { groupOrder: 1 }, // after slow-all
        },
      },
      // All integration tests on their full scale.
      {
        test: {
          name: 'integration-all',
          include: ['test/integration/**/*.test.ts'],
          exclude: ALONE,
          globalSetup: ['test/integration/services.ts'],
          env: { TEST_LONG: '1' },
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'unit-long-all',
          include: ['test/**/*.test.ts'],
          exclude: [...NOT_UNIT, ...MOCKED],
          env: { TEST_LONG: '1' },
          isolate: false,
          testTimeout: 60_000,
          maxWorkers: 2,
        },
      },
      // With servers of the versions that scripts/test-versions.mjs names.
      {
        test: {
          name: 'versions-all',
          include: ON_KAFKA,
          globalSetup: ['test/integration/services.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 3,
          isolate: false,
        },
      },
      // With an engine and images, as scripts/test-docker.sh provides them.
      {
        test: {
          name: 'docker-all',
          include: ['test/docker/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 300_000,
          maxWorkers: 1, // they use the same ports
        },
      },
      // Programs of others that read the topics.
      {
        test: {
          name: 'ecosystem-all',
          include: ['test/ecosystem/**/*.test.ts'],
          globalSetup: ['test/integration/services.ts'],
          testTimeout: 600_000,
          hookTimeout: 300_000,
          maxWorkers: 1,
        },
      },
      // APIs of other projects, read by the service while it is killed. `API_SECONDS` is how long each is written to.
      {
        test: {
          name: 'apis-all',
          include: ['test/apis/**/*.test.ts'],
          globalSetup: ['test/integration/services.ts'],
          env: { API_SECONDS: process.env.API_SECONDS ?? '60' },
          testTimeout: 1_200_000,
          hookTimeout: 600_000, // a download may come first
          maxWorkers: 1,
        },
      },
      // Servers of their own, which they break: one broker, then three.
      {
        test: {
          name: 'chaos-all',
          include: ['test/chaos/**/*.test.ts'],
          env: { CHAOS_SECONDS: process.env.CHAOS_SECONDS ?? '900' },
          hookTimeout: 120_000,
          maxWorkers: 1,
        },
      },
    ],
  },
});
