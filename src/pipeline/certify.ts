import { firstValueFrom, timer } from 'rxjs';
import type { CertifyAsked, TaskResyncs } from '../account/resync-requests.ts';
import type { Message } from '../sinks/sink.ts';
import { hasReadAll } from '../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../streams/paging/sweep-progress.ts';
import type { Checkpoint, TaskBatch } from './checkpoint/checkpoint.ts';
import { certificateOf, MAX_NAMED } from './publish/certificate-of.ts';
import type { Plan } from './publish/plan.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import { taskId } from './task.ts';
import type { Task } from './task.ts';

export interface CertifyingOptions {
  readonly task: Pick<Task, 'account' | 'rules' | 'config' | 'destination' | 'hooks' | 'scheduler'>;
  readonly checkpoint: Pick<
    Checkpoint,
    'cursor' | 'sweep' | 'live' | 'partitions' | 'unseen' | 'count'
  >;
  /** Default: nobody asks. */
  readonly resyncs?: Pick<TaskResyncs, 'acknowledgeCertify' | 'acknowledged'> | undefined;
  readonly transact: (batch: TaskBatch) => Promise<void>;
  /** Whether the task has ended meanwhile: from then on it begins to commit nothing. */
  readonly isOver: () => boolean;
}

/** Certificates of complete readings. */
export interface Certifying {
  /** Whether a batch brings one, whose commit has the cursor too. */
  readonly isComing: (batch: ReadBatch) => boolean;
  /**
   * Commits the certificate of a complete reading that has just ended, where one is due or was asked for. It speaks of the topic as the
   * newest commit has left it: all that the reading has found is in that.
   */
  readonly certify: (plan: Plan) => Promise<void>;
}

export function certifying(options: CertifyingOptions): Certifying {
  const { task, checkpoint, resyncs, transact, isOver } = options;
  const { account, rules, config, destination, hooks, scheduler } = task;
  const { resource } = rules;

  const isDue = (now: number): boolean => {
    const at = checkpoint.cursor.certificate?.at ?? -Infinity;
    return now - at >= config.certificateIntervalMs || at > now; // a clock was set back
  };
  const unseen = async (sweep: SweepProgress) => {
    // Only single reads delete what the same sweep has read: without them as many keys as images are the same keys.
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

  const isComing = (batch: ReadBatch): boolean => {
    const reading = readingEnded(batch);
    return reading !== undefined && (reading.asked.length > 0 || isDue(scheduler.now()));
  };
  const certify = async ({ batch, commit: { cursor } }: Plan): Promise<void> => {
    const reading = readingEnded(batch);
    if (!reading || isOver()) return;
    const { asked, held } = reading;
    const now = scheduler.now();
    const isAsked = asked.length > 0;
    if (!isComing(batch)) return hooks.onUncertified({ why: 'too-soon' });
    const { sweep } = checkpoint;
    const live = checkpoint.live();
    const isSplit = (await checkpoint.partitions()) !== live.keys.length;
    const number = (checkpoint.cursor.certificate?.number ?? 0) + 1;
    const certificate = isSplit
      ? undefined // the next opening says what is wrong
      : certificateOf({
          ...{ account: account.name, resource, number, sweep, held, live, now },
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
      : ({ status: 'failed', number: null, message: SPLIT } as const);
    const acks = asked.flatMap((each) => resyncs?.acknowledgeCertify(each, answer) ?? []);
    const progress = certificate ? { ...cursor, certificate: { number, at: now } } : cursor;
    if (isOver()) return;
    if (certificate || isAsked) {
      await transact({ messages: [...message, ...acks], images: [], cursor: progress });
    }
    for (const each of asked) resyncs?.acknowledged(each);
    if (certificate) hooks.onCertified({ certificate });
    else hooks.onUncertified({ why: 'partitions' });
  };
  return { isComing, certify };
}

const SPLIT =
  'the topic has another number of partitions than its events were written with: nobody can tell what is in which of them';

/** Of a complete reading whose last step this is. */
function readingEnded(
  batch: ReadBatch,
): { readonly asked: readonly CertifyAsked[]; readonly held: number } | undefined {
  if (batch.lane === 'first-read')
    return batch.isWhole && batch.snapshot.done ? { asked: [], held: 0 } : undefined;
  if (batch.lane !== 'sweep' || batch.step.kind !== 'end') return undefined;
  return { asked: batch.asked ?? [], held: batch.step.held };
}
