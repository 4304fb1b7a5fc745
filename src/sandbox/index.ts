/**
 * A local server that behaves like the API, with records that change and with faults on demand, for tests and experiments.
 * `docs/sandbox.md` describes its behaviour.
 *
 * @module cellarstream/sandbox
 */

// Start here
export { startSandbox } from './sandbox.ts';

// The sandbox
export type { Sandbox } from './sandbox.ts';
export type { SandboxAccount } from './account.ts';
export type { Readings, SandboxOptions, Sort, Zone } from './options.ts';

// The served data
export { RESOURCES } from './resources.ts';
export type { Endpoint, JsonObject, JsonValue, RecordKey, Resource } from './resources.ts';
export type { Pagination } from './list-page.ts';

// Changes and faults
export type { DriftOptions } from './drift.ts';
export type { FaultKind, FaultSpec, PageFault } from './faults.ts';
export type { Patch } from './resources.ts';

// The truth
export type { Truth } from './account.ts';
export type { Arrival } from './arrivals.ts';
export type { Change } from './store.ts';
export type { StatusChange } from './status-changes.ts';
