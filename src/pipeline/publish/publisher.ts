import { canProveAbsence, readingRules } from '../../description/levels.ts';
import type { Committed, Published } from '../../observe/hooks.ts';
import { isEpochError } from '../../kafka/client/kafka-error.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import { isStale } from '../../streams/http/response-age.ts';
import type { Difference } from '../../streams/diff/diff.ts';
import { levelOf } from '../../streams/paging/sweep-progress.ts';
import { listedOffset } from '../../streams/records/records.ts';
import type { TaskJobs } from '../../account/signal-jobs.ts';
import { Certifier } from '../certifier.ts';
import type { TaskBatch } from '../checkpoint/checkpoint.ts';
import type { ComparedBatch } from '../compare-batches.ts';
import { completesScan, listOffsetOf } from '../reads/read-batch.ts';
import type { ReadBatch } from '../reads/read-batch.ts';
import { planner } from './plan.ts';
import type { Plan, PlannerOptions, TaskProgress } from './plan.ts';

export interface PublisherOptions extends PlannerOptions {
  /** The task's progress when the task was opened. The first batch continues from it. */
  readonly progress: TaskProgress;
  readonly resyncs: TaskJobs | undefined;
}

/**
 * Time since the last commit, in ms, after which the next batch is committed even if it has no messages. If it is too small, there are
 * needless transactions. If it is too large, a restart repeats more polls.
 */
const COMMIT_CURSOR_EVERY_MS = 60_000;
/**
 * Time added to {@link COMMIT_CURSOR_EVERY_MS} for a batch that does not complete a scan, in ms, so that the cursor can be committed
 * together with the certificate of a scan that ends soon.
 */
const SCAN_END_GRACE_MS = 10_000;

/**
 * Plans the effects of each batch, carries the plan out, and reports it to the hooks. Batches are published one after another, because a
 * plan depends on the progress after the previous batch.
 */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #planOf: ReturnType<typeof planner>;
  readonly #certificates: Certifier;
  #progress: TaskProgress;
  /** Time of the last commit, in ms on the scheduler's clock; before the first commit, the time at which this object was created. */
  #committedAt: number;
  #hasEnded = false;

  constructor(options: PublisherOptions) {
    const { task, checkpoint, resyncs, progress } = options;
    this.#options = options;
    this.#planOf = planner(options);
    this.#progress = progress;
    this.#committedAt = task.scheduler.now();
    this.#certificates = new Certifier({
      ...{ task, checkpoint, resyncs },
      transact: (batch) => this.#transact(batch),
      hasEnded: () => this.#hasEnded,
    });
  }

  /** Progress of the task as it will be once the newest planned batch is committed. */
  get progress(): TaskProgress {
    return this.#progress;
  }

  async publish(
    difference: Difference<ComparedBatch>,
  ): Promise<Pick<Plan, 'undecided' | 'unconfirmed'> & { readonly published: Published }> {
    const isDue = this.#isCommitDue(difference.read.batch);
    const plan = this.#planOf(difference, this.#progress, isDue);
    this.#progress = plan.commit.cursor;
    await this.#carryOut(plan);
    const { undecided, unconfirmed } = plan;
    return { undecided, unconfirmed, published: this.#report(plan) };
  }

  /** Marks the task as ended: no certificate is committed after that. */
  end(): void {
    this.#hasEnded = true;
  }

  /** Whether a batch has to be committed even if it has no messages, because the last commit is too long ago. */
  #isCommitDue(batch: ReadBatch): boolean {
    const graceMs = completesScan(batch) ? 0 : SCAN_END_GRACE_MS;
    const dueAt = this.#committedAt + COMMIT_CURSOR_EVERY_MS + graceMs;
    // A certificate that is committed right after the batch includes the cursor.
    return this.#options.task.scheduler.now() >= dueAt && !this.#certificates.willCertify(batch);
  }

  async #carryOut(plan: Plan): Promise<void> {
    const { task, checkpoint, resync } = this.#options;
    const { batch, action } = plan;
    if (action === 'commit') await this.#transact(plan.commit);
    if (action === 'keep') await checkpoint.storeNotes(plan.notes);
    const held = plan.unconfirmed.filter(({ isReversion }) => isReversion).length;
    if (held > 0 || isStale(batch.age))
      task.hooks.onStale({ held, ageMs: batch.age?.staleMs ?? 0 });
    await this.#certificates.certify(plan);
    if (batch.lane === 'resync') resync?.stepCommitted(batch.step);
  }

  /** Commits a batch to the checkpoint, and reports the commit to the hooks. */
  async #transact(batch: TaskBatch): Promise<void> {
    const { hooks, scheduler } = this.#options.task;
    const beganAt = scheduler.now();
    const ended = (outcome: Committed['outcome']) => {
      const elapsedMs = scheduler.now() - beganAt;
      hooks.onCommitted({ outcome, elapsedMs, messages: batch.messages.length });
    };
    hooks.onCommit({});
    try {
      await this.#options.checkpoint.commit(batch);
    } catch (error) {
      ended(isEpochError(error) ? 'fenced' : 'failed');
      throw error;
    }
    ended('committed');
    this.#committedAt = scheduler.now();
  }

  /** Calls the hooks after a plan has been carried out, and returns what was published. */
  #report({ batch, changes, statusChanges, unchanged, rejected, notes }: Plan): Published {
    const { task, checkpoint } = this.#options;
    const { list, hooks, scheduler } = task;
    for (const each of rejected) {
      hooks.onRejected({ reason: each.reason, offset: listedOffset(each, listOffsetOf(batch)) });
    }
    if (batch.lane === 'first-read') {
      const { answer, offset } = batch.page;
      const end = offset + recordsOf(answer).length;
      const total = answer.total ?? end;
      hooks.onProgress({ read: Math.min(total, end), total, done: batch.snapshot.done });
    }
    if (batch.lane === 'sweep' && batch.step.kind === 'end') {
      const { number, distinct: records, proof, keyOrder } = notes.sweep;
      const level =
        levelOf(notes.sweep, readingRules(list), task.config.poll.deleteProofMs) ?? null;
      const canProve = canProveAbsence(list, keyOrder !== 'none');
      const canBeAsked = list.one !== undefined;
      hooks.onSwept({ number, records, proof, level, canProve, canBeAsked });
    }
    const published = {
      lane: batch.lane,
      changes,
      statusChanges,
      unchanged,
      known: checkpoint.store.count(),
      at: scheduler.now(),
      completes: completesScan(batch),
    };
    hooks.onPublished(published);
    return { resource: list.name, ...published };
  }
}
