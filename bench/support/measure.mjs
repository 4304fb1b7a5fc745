// @ts-check
// The shape of a row of the table, and of what it is run with.

/**
 * What a figure has to come to: the machine's half of the table in the documents.
 *
 * @typedef {{ readonly atMost: number } | { readonly atLeast: number }} Target
 */

/**
 * A number that a row gives at each run. Without a target it is told beside the others.
 *
 * @typedef {object} Figure
 * @property {string} name Unique within its row.
 * @property {string} what In words.
 * @property {string} unit As it is printed behind the number: `ms`, `x`, `%`, or nothing.
 * @property {number} [digits] After the point. Default 0.
 * @property {Target} [target] Default none.
 * @property {boolean} [isPromise] Each run has to meet the target, where it is enough for others that their median does.
 */

/**
 * A row: something that is measured, by itself.
 *
 * @typedef {object} Measure
 * @property {string} name As `--only` takes it.
 * @property {string} what In words.
 * @property {string} limit What it is held against, measured in the same run; or nothing.
 * @property {'short' | 'full' | 'named'} form `short`: in either form; `full`: in the full one alone; `named`: where
 * `--only` names it, as it needs what is not always there.
 * @property {readonly Figure[]} figures
 * @property {(context: Context) => Promise<Readonly<Record<string, number>>>} run Figures by their names;
 * one that could not be measured is left out.
 */

/**
 * What one run of the rows has. The rows of a run share what takes long, by `once`.
 *
 * @typedef {object} Context
 * @property {string} cli The command that is measured: `dist/cli.js` of a revision.
 * @property {import('../../dist/devstack/services.js').Services} services Kafka's settings are its defaults
 * where they concern time.
 * @property {boolean} isShort Sizes for CI.
 * @property {number | undefined} orders `--orders`, where it is given.
 * @property {import('./scope.mjs').Scope} scope Ends with the run whatever was started in it.
 * @property {(line: string) => void} tell Progress, for whoever waits.
 * @property {(note: string, value: unknown) => void} keep What is to be found in the JSON beside the figures.
 * @property {() => string} prefix A new one for topics.
 * @property {<T>(work: (context: Context) => Promise<T>) => Promise<T>} once The same work, done by the
 * first row that asks.
 */

export {};
