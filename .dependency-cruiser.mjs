// The layers of `src`, and which of them may import which: an allow-list. DESIGN.md says why.

/** From the lowest to the highest. Those of a row know nothing of each other. */
const LAYERS = [
  ['core'],
  ['schemas', 'state', 'sandbox', 'devstack'],
  ['description'],
  ['streams'],
  ['resources'],
  ['config'],
  ['kafka'],
  ['sinks', 'observe'],
  ['account', 'consumers', 'ops'],
  ['pipeline'],
  ['fleet', 'measure'],
  ['app'],
  ['index', 'exports'],
  ['commands'],
  ['cli'],
];
/** These stand beside the others: what they import of ours is core alone. */
const ON_THEIR_OWN = ['state', 'sandbox', 'devstack'];
/** What no layer below this one knows of. */
const KNOWN_FROM = { state: 'account', sandbox: 'commands', devstack: 'commands' };

const rankOf = (layer) => LAYERS.findIndex((layers) => layers.includes(layer));
const below = (layer) =>
  LAYERS.slice(0, rankOf(layer))
    .flat()
    .filter((other) => rankOf(layer) >= rankOf(KNOWN_FROM[other] ?? other));
/** Files of layers: each is a folder, or a file. */
const within = (layers) => `^src/(${layers.join('|')})(/|\\.ts$)`;

const allowed = LAYERS.flat().map((layer) => {
  const others = ON_THEIR_OWN.includes(layer) ? ['core'] : below(layer);
  return { from: { path: within([layer]) }, to: { path: within([layer, ...others]) } };
});

/** Folders of `src/streams`, from the lowest to the highest: the same one level down. */
const STREAMS = ['flow', 'quota', 'http', 'records', 'decode', 'paging', 'diff'];
const streamsUpwards = STREAMS.slice(0, -1).map((folder, rank) => ({
  name: `streams-${folder}`,
  comment: 'A page goes one way.',
  severity: 'error',
  from: { path: `^src/streams/${folder}/` },
  to: { path: `^src/streams/(${STREAMS.slice(rank + 1).join('|')})/` },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  allowed: [...allowed, { from: {}, to: { pathNot: '^src/' } }],
  allowedSeverity: 'error',
  forbidden: [
    ...streamsUpwards,
    { name: 'no-circle', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'streams-stand-alone',
      comment: 'Streams know no Kafka and no store.',
      severity: 'error',
      from: { path: '^src/streams/' },
      to: { path: '^(kafkajs|lmdb)$|node_modules/(kafkajs|lmdb)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true, // imports of types count
  },
};
