import type { MetricType } from '../../../src/ops/metrics/metric-table.ts';

/**
 * Metrics of the process that prom-client collects and that dashboards and alerts use. Outside of a fleet they also have the label
 * `account`.
 */
export const PROCESS_METRICS = [
  ['process_start_time_seconds', 'gauge', 'When the process was started.'],
  ['process_cpu_seconds_total', 'counter', 'Time of processors used.'],
  ['process_resident_memory_bytes', 'gauge', 'Memory of the process.'],
  ['process_open_fds', 'gauge', 'Open files and connections.'],
  ['process_max_fds', 'gauge', 'Highest number of open files and connections that is allowed.'],
  ['nodejs_heap_size_used_bytes', 'gauge', "Memory of JavaScript's objects."],
  ['nodejs_heap_size_total_bytes', 'gauge', 'Memory reserved for JavaScript objects.'],
  ['nodejs_external_memory_bytes', 'gauge', 'Memory of buffers.'],
  [
    'nodejs_eventloop_lag_p99_seconds',
    'gauge',
    'Delay of the event loop: 99th percentile, since the last scrape, of the time that a timer of 50 ms took.',
  ],
  ['nodejs_gc_duration_seconds', 'histogram', 'Pauses for the collection of garbage, by `kind`.'],
] as const satisfies readonly (readonly [name: string, type: MetricType, help: string])[];
