import { firstValueFrom, timer } from 'rxjs';
import type { CertifyJob, TaskJobs } from '../account/signal-jobs.ts';
import type { Message } from '../sinks/sink.ts';
import { hasReadAll } from '../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../streams/paging/sweep-progress.ts';
import type { Checkpoint, TaskBatch } from './checkpoint/checkpoint.ts';
import { certificateOf, MAX_NAMED } from './publish/certificate-of.ts';
import type { Plan } from './publish/plan.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import { taskId } from './task.ts';
import type { Task } from './task.ts';

export interface CertifierOptions {
  readonly task: Pick<Task, 'account' | 'rules' | 'config' | 'destination' | 'hooks' | 'scheduler'>;
  readonly checkpoint: Pick<
    Checkpoint,
    'cursor' | 'sweep' | 'liveKeys' | 'partitions' | 'unseen' | 'count'
  >;
  /** Acknowledges requests for certificates. Default: there are no requests. */
  readonly resyncs?: Pick<TaskJobs, 'certifyAck' | 'ackCommitted'> | undefined;
  readonly transact: (batch: TaskBatch) => Promise<void>;
  /** Whether the task has ended; no certificate is committed after that. */
  readonly hasEnded: () => boolean;
}

/** Issues certificates of full scans. */
export interface Certifier {
  /** Whether the batch completes a full scan whose certificate is due or requested. The certificate is committed with the cursor. */
  readonly willCertify: (batch: ReadBatch) => boolean;
  /**
   * Commits the certificate of a full scan that the plan's batch completes, if one is due or requested. To be called after the batch's own
   * commit: the certificate describes the topic including every change that the scan found.
   */
  readonly certify: (plan: Plan) => Promise<void>;
}

export function certifier(options: CertifierOptions): Certifier {
  const { task, checkpoint, resyncs, transact, hasEnded } = options;
  const { account, rules, config, destination, hooks, scheduler } = task;
  const { resource } = rules;

  const isDue = (now: number): boolean => {
    const at = checkpoint.cursor.certificate?.at ?? -Infinity;
    return now - at >= config.certificateIntervalMs || at > now; // `at > now`: the clock was set back
  };
  const unseen = async (sweep: SweepProgress) => {
    // Without requests by key, nothing is deleted that the same sweep has read: if it read as many keys as there are images, none is
    // unseen.
    if (!rules.byKey && hasReadAll(sweep, checkpoint.count())) return { count: 0, keys: [] };
    let count = 0;
    const keys: string[] = [];
    for (let after: string | undefined; ;) {
      const stretch = checkpoint.unseen(sweep.number, after);
      count += stretch.keys.length;
      keys.push(...stretch.keys.slice(0, MAX_NAMED - keys.length));
      if (stretch.next === undefined) return { count, keys };
      after = stretch.next;
      await firstValueFrom(timer(0, scheduler));
    }
  };

  const willCertify = (batch: ReadBatch): boolean => {
    const reading = endedScan(batch);
    return reading !== undefined && (reading.asked.length > 0 || isDue(scheduler.now()));
  };
  const certify = async ({ batch, commit: { cursor } }: Plan): Promise<void> => {
    const reading = endedScan(batch);
    if (!reading || hasEnded()) return;
    const { asked, held } = reading;
    const now = scheduler.now();
    const isAsked = asked.length > 0;
    if (!willCertify(batch)) return hooks.onUncertified({ why: 'too-soon' });
    const { sweep } = checkpoint;
    const live = checkpoint.liveKeys();
    const isSplit = (await checkpoint.partitions()) !== live.keys.length;
    const number = (checkpoint.cursor.certificate?.number ?? 0) + 1;
    const certificate = isSplit
      ? undefined // opening the checkpoint again reports what is wrong
      : certificateOf({
          ...{ account: account.name, resource, number, sweep, heldBack: held, live, now },
          sequence: cursor.sequence,
          unseen: await unseen(sweep),
        });
    const message: Message[] = certificate
      ? [
          {
            topic: destination.certificates,
            key: taskId(account.name, resource),
            value: Buffer.from(JSON.stringify(certificate)),
          },
        ]
      : [];
    const answer = certificate
      ? ({ status: 'done', number, message: null } as const)
      : ({ status: 'failed', number: null, message: PARTITIONS_CHANGED } as const);
    const acks = asked.flatMap((each) => resyncs?.certifyAck(each, answer) ?? []);
    const progress = certificate ? { ...cursor, certificate: { number, at: now } } : cursor;
    if (hasEnded()) return;
    if (certificate || isAsked) {
      await transact({ messages: [...message, ...acks], images: [], cursor: progress });
    }
    for (const each of asked) resyncs?.ackCommitted(each);
    if (certificate) hooks.onCertified({ certificate });
    else hooks.onUncertified({ why: 'partitions' });
  };
  return { willCertify, certify };
}

const PARTITIONS_CHANGED =
  'the number of partitions of the topic has changed since its events were written: a record may have events in two partitions, so no certificate is possible';

/**
 * Returns the certificate requests and the number of held-back deletions of the full scan that the batch completes; undefined if it
 * completes none.
 */
function endedScan(
  batch: ReadBatch,
): { readonly asked: readonly CertifyJob[]; readonly held: number } | undefined {
  if (batch.lane === 'first-read')
    return batch.isFullScan && batch.snapshot.done ? { asked: [], held: 0 } : undefined;
  if (batch.lane !== 'sweep' || batch.step.kind !== 'end') return undefined;
  return { asked: batch.certifyJobs ?? [], held: batch.step.held };
}
