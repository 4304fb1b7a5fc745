import { firstValueFrom, timer } from 'rxjs';
import type { CertifyJob, TaskJobs } from '../account/signal-jobs.ts';
import { readingRules } from '../description/levels.ts';
import { hasReadAll, levelOf } from '../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../streams/paging/sweep-progress.ts';
import type { Checkpoint, TaskBatch } from './checkpoint/checkpoint.ts';
import { certificateOf, MAX_NAMED } from './publish/certificate-of.ts';
import type { CompletedScan } from './publish/certificate-of.ts';
import type { Plan } from './publish/plan.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import { taskId } from './task.ts';
import type { Task } from './task.ts';

export interface CertifierOptions {
  readonly task: Pick<Task, 'account' | 'list' | 'config' | 'destination' | 'hooks' | 'scheduler'>;
  readonly checkpoint: Checkpoint;
  /** Functions that acknowledge signals which request a certificate. Undefined if the task receives no such signals. */
  readonly resyncs?: Pick<TaskJobs, 'certifyAck' | 'ackCommitted'> | undefined;
  readonly transact: (batch: TaskBatch) => Promise<void>;
  /** Whether the task has ended. A task that has ended commits no certificates. */
  readonly hasEnded: () => boolean;
}

/** Issues certificates: messages that say how many records a full scan read, and count and digest of the topic's live keys. */
export class Certifier {
  readonly #options: CertifierOptions;

  constructor(options: CertifierOptions) {
    this.#options = options;
  }

  /**
   * Whether the batch completes a full scan for which a certificate has to be issued: a signal requests one, or the list's newest
   * certificate is missing or too old.
   */
  willCertify(batch: ReadBatch): boolean {
    const scan = endedScan(batch);
    return scan !== undefined && (scan.asked.length > 0 || this.#isDue());
  }

  /**
   * Commits a certificate for the full scan that the plan's batch completes, or calls `onUncertified` if the scan gets none. To be called
   * after the batch is committed, so that the certificate describes the topic with every change that the scan detected.
   */
  async certify({ batch, commit: { cursor } }: Plan): Promise<void> {
    const { task, checkpoint, resyncs, transact, hasEnded } = this.#options;
    const { account, list, destination, hooks, scheduler } = task;
    const scan = endedScan(batch);
    if (!scan || hasEnded()) return;
    if (!this.willCertify(batch)) return hooks.onUncertified({ why: 'too-soon' });
    const { asked, held } = scan;
    const { sweep, liveKeys: live } = checkpoint;
    const now = scheduler.now();
    const number = (checkpoint.cursor.certificate?.number ?? 0) + 1;
    const isSplit = (await checkpoint.partitions()) !== live.keys.length;
    const rules = readingRules(list);
    const proofMs = task.config.poll.deleteProofMs;
    const certificate = isSplit
      ? undefined // opening the checkpoint again reports what is wrong
      : certificateOf({
          ...{ account: account.name, resource: list.name, number, sweep, live, now },
          heldBack: held,
          ...{ rules, proofMs },
          sequence: cursor.sequence,
          unseen: await this.#unseen(sweep),
        });
    const level = levelOf(sweep, rules, proofMs) ?? null;
    const answer = certificate
      ? ({ status: 'done', number, message: null } as const)
      : ({ status: 'failed', number: null, message: PARTITIONS_CHANGED } as const);
    const acks = asked.flatMap((each) => resyncs?.certifyAck(each, answer) ?? []);
    if (hasEnded()) return;
    const message = certificate && {
      ...{ topic: destination.certificates, key: taskId(account.name, list.name) },
      value: Buffer.from(JSON.stringify(certificate)),
    };
    const messages = message ? [message, ...acks] : acks;
    const progress = certificate ? { ...cursor, certificate: { number, at: now } } : cursor;
    if (messages.length > 0) await transact({ messages, images: [], cursor: progress });
    for (const each of asked) resyncs?.ackCommitted(each);
    if (certificate) hooks.onCertified({ certificate, level });
    else hooks.onUncertified({ why: 'partitions' });
  }

  #isDue(): boolean {
    const { task, checkpoint } = this.#options;
    const now = task.scheduler.now();
    const at = checkpoint.cursor.certificate?.at ?? -Infinity;
    return now - at >= task.config.certificateIntervalMs || at > now; // `at > now`: the clock was set back
  }

  /** Counts the live keys that no read has shown since the full scan `sweep` began, and lists up to {@link MAX_NAMED} of them. */
  async #unseen(sweep: SweepProgress): Promise<CompletedScan['unseen']> {
    const { task, checkpoint } = this.#options;
    const { store } = checkpoint;
    // Without requests by key, nothing is deleted that the same sweep has read: if it read as many keys as there are images, none is
    // unseen.
    if (!task.list.one && hasReadAll(sweep, store.count())) return { count: 0, keys: [] };
    let count = 0;
    const keys: string[] = [];
    for (let after: string | undefined; ;) {
      const slice = store.unseen(sweep.number, after);
      count += slice.keys.length;
      keys.push(...slice.keys.slice(0, MAX_NAMED - keys.length));
      if (slice.next === undefined) return { count, keys };
      after = slice.next;
      await firstValueFrom(timer(0, task.scheduler));
    }
  }
}

const PARTITIONS_CHANGED =
  'the number of partitions of the topic has changed since its events were written: a record may have events in two partitions, so no certificate is possible';

/**
 * Returns facts about the full scan that the batch completes; undefined if it completes none. `asked`: the signals that request a
 * certificate of the scan. `held`: the number of deletions that the scan detected but that are held back.
 */
function endedScan(
  batch: ReadBatch,
): { readonly asked: readonly CertifyJob[]; readonly held: number } | undefined {
  if (batch.lane === 'first-read')
    return batch.isFullScan && batch.snapshot.done ? { asked: [], held: 0 } : undefined;
  if (batch.lane !== 'sweep' || batch.step.kind !== 'end') return undefined;
  return { asked: batch.certifyJobs ?? [], held: batch.step.held };
}
