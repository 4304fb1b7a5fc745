import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { SimLedger } from '../account/ledger/sim-ledger.ts';
import { Chance } from './chance.ts';
import { SAFE } from './draw.ts';
import { SimApi } from './sim-api.ts';
import { SimBroker } from './sim-broker.ts';
import { SimProcess } from './sim-process.ts';
import { SimRegistry } from './sim-registry.ts';
import { SimFolder } from './sim-store.ts';
import { SimTime } from './sim-time.ts';

const MINUTE_MS = 60_000;
const MINUTES = 20;

const env = {
  API_BASE_URL: 'http://sim',
  API_KEY: 'key',
  KAFKA_BROKERS: 'sim:9092',
  SCHEMA_REGISTRY_URL: 'http://sim',
  TOPIC_PREFIX: 'sim.eu',
  POLL_INTERVAL_MS: '10000',
};

it('commits a list that is read whole, and does not change, once a minute: certificate and cursor together', async () => {
  const chance = new Chance(1);
  const time = new SimTime(Date.parse('2026-06-01T12:00:00Z'));
  const traits = {
    resource: 'inventory',
    sort: 'key-asc',
    resolutionMs: 1,
    lateMs: 0,
    stampSkewMs: 0,
    isBulk: false,
    boundsInclude: true,
    dateSkewMs: 0,
    sendsDate: true,
    latencyMs: 20,
    quotaPerMinute: 100,
    loginsPerMinute: 10,
  } as const;
  const broker = new SimBroker((topic) => (topic === 'sim.cursors' ? 1 : 3));
  const { state } = new SimProcess(
    'p1',
    {
      config: loadConfig({ env, cwd: '/nonexistent', needs: ['api', 'kafka', 'registry'] }),
      isScarce: false,
      ...{ chance, time, broker },
      ledger: new SimLedger(time),
      api: new SimApi(traits, chance, time, 80),
      registry: new SimRegistry(),
      destination: {
        records: () => 'sim.inventory',
        statusChanges: { topic: 'sim.order-status-changes', schemaId: 900 },
        deadLetters: { topic: 'sim.dead-letters', schemaId: 901 },
        ...{ cursors: 'sim.cursors', ledger: 'sim.ledger', certificates: 'sim.certificates' },
        ...{ partitions: new Map(), maxMessageBytes: new Map(), look: () => Promise.resolve([]) },
      },
      trace: undefined,
    },
    new SimFolder(),
    SAFE,
  );
  const written = () =>
    ['sim.cursors', 'sim.certificates'].map((topic) => broker.read(topic).length);

  await time.pass(3 * MINUTE_MS);
  const [cursors, certificates] = written();
  await time.pass(MINUTES * MINUTE_MS);
  const [moreCursors, moreCertificates] = written();

  expect(state).toBe('running');
  // Readings begin every ten seconds: a minute may have become 70.
  expect(moreCertificates! - certificates!).toBeGreaterThanOrEqual((MINUTES * 60) / 71);
  expect(moreCursors! - cursors!).toBe(moreCertificates! - certificates!);
});
