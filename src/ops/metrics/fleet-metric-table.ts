import type { FleetState } from '../../observe/fleet-view.ts';
import type { MetricType } from './metric-table.ts';

/** All states of an account in a fleet. */
export const FLEET_STATES = Object.keys({
  running: 0,
  starting: 0,
  moving: 0,
  'without-owner': 0,
  failed: 0,
  'wrong-file': 0,
  quarantined: 0,
} satisfies Record<FleetState, 0>) as readonly FleetState[];

/** A label of metrics of a fleet. */
export interface FleetLabel {
  /** What it says, in Markdown. */
  readonly help: string;
  /** All of them. Undefined: names of accounts and instances, of which there are as many as there are. */
  readonly values?: readonly string[];
}

export const FLEET_LABELS = {
  account: { help: 'the name of an account' },
  owner: {
    help: '`INSTANCE_NAME` of the instance that reports it. Prometheus sets `instance` itself, to the address that it asks',
  },
  version: { help: 'of Cellarstream' },
  node: { help: 'the version of Node' },
  state: {
    help: '`moving`: from one instance to another; `without-owner`: no instance runs it; `failed`: somebody has to do something; `wrong-file`: its file has wrong settings; `quarantined`: it took its instance down three times in ten minutes',
    values: FLEET_STATES,
  },
} as const satisfies Record<string, FleetLabel>;

/** A metric of a fleet, as one instance tells it. */
export interface FleetMetric {
  readonly type: MetricType;
  readonly name: string;
  readonly help: string;
  readonly labels: readonly (keyof typeof FLEET_LABELS)[];
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

/**
 * Every metric of a fleet. Series of a label `account` are those of the accounts that are known now: who is
 * forgotten has none any more.
 */
export const FLEET_METRICS = {
  instance: {
    type: 'gauge',
    name: 'cellarstream_fleet_instance_info',
    help: 'Always 1: the name of this instance, which version it runs, on which Node.',
    labels: ['owner', 'version', 'node'],
  },
  ready: {
    type: 'gauge',
    name: 'cellarstream_fleet_instance_ready',
    help: 'Whether this instance is ready, as /readyz says: 1 or 0.',
    labels: [],
  },
  inGroup: {
    type: 'gauge',
    name: 'cellarstream_fleet_in_group',
    help: 'Whether this instance is a member of the group: 1 or 0.',
    labels: [],
  },
  generation: {
    type: 'gauge',
    name: 'cellarstream_fleet_generation',
    help: 'Generation of the group that this instance is a member of. An instance whose generation lags behind was left out.',
    labels: [],
  },
  members: {
    type: 'gauge',
    name: 'cellarstream_fleet_members',
    help: 'Instances in the group, as this one knows it.',
    labels: [],
  },
  accounts: {
    type: 'gauge',
    name: 'cellarstream_fleet_accounts',
    help: 'Known accounts, by their state. Each instance reports the whole fleet: take the maximum, not the sum.',
    labels: ['state'],
  },
  running: {
    type: 'gauge',
    name: 'cellarstream_fleet_account_running',
    help: 'Always 1: an account that this instance runs. The sum over all instances is 1 for each account.',
    labels: ['account', 'owner'],
  },
  notRunning: {
    type: 'gauge',
    name: 'cellarstream_fleet_account_not_running',
    help: 'Always 1: an account that does not run just now, and why. Each instance reports it.',
    labels: ['account', 'state'],
  },
  moves: {
    type: 'counter',
    name: 'cellarstream_fleet_account_moves_total',
    help: 'How often an account came to another owner, as this instance saw it. Each instance reports the whole fleet.',
    labels: ['account'],
  },
  handoverSeconds: {
    type: 'histogram',
    name: 'cellarstream_fleet_handover_duration_seconds',
    help: 'Silence of an account that came to this instance: from when its owner was asked for it, released it, or was found to be lost, to the first answer to a list here.',
    labels: [],
    buckets: [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300],
  },
  fenced: {
    type: 'counter',
    name: 'cellarstream_fleet_fenced_total',
    help: 'How often this instance lost an account to another one without having released it.',
    labels: [],
  },
} as const satisfies Record<string, FleetMetric>;
