import { expect, it } from 'vitest';
import { findingText } from '../../../src/schemas/events/topic-findings.ts';
import { registryStorageFindings } from '../../../src/sinks/topics/kafka-topics.ts';
import { ScriptedCluster, kafkaOf } from '../../support/scripted-cluster.ts';

async function findings(settings: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const cluster = await ScriptedCluster.start({ topics: { _schemas: 1, 'kafkasql-journal': 1 } });
  cluster.settings = settings;
  const found = await registryStorageFindings({ kafka: kafkaOf(cluster) });
  await cluster.close();
  return found.map(findingText);
}

const WEEK = { 'cleanup.policy': 'delete', 'retention.ms': '604800000', 'retention.bytes': '-1' };

it('warns of a storage topic whose messages are deleted after a time', async () => {
  expect(await findings(WEEK)).toEqual([
    expect.stringContaining(
      'kafkasql-journal has retention.ms=604800000, -1 is wanted: the schema registry',
    ),
    expect.stringContaining('_schemas has retention.ms=604800000, -1 is wanted'),
  ]);
});

it.each([
  ['are kept for ever', { ...WEEK, 'retention.ms': '-1' }],
  ['are compacted', { ...WEEK, 'cleanup.policy': 'compact' }],
])('has no warning for a storage topic whose messages %s', async (_, settings) => {
  expect(await findings(settings)).toEqual([]);
});
