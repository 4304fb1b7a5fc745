import type { CommitEnds, Message, TransactionalLog } from '../../src/sinks/sink.ts';
import { withOthers } from './with-others.ts';

type Commit = (messages: readonly Message[]) => Promise<CommitEnds>;

/** A log whose sinks commit in another way. */
export function withCommit(
  log: TransactionalLog,
  other: (commit: Commit) => Commit,
): TransactionalLog {
  return withOthers(log, {
    open: async (transactionalId, own) => {
      const sink = await log.open(transactionalId, own);
      return withOthers(sink, { commit: other((messages) => sink.commit(messages)) });
    },
  });
}

/** Commits messages of a topic before or behind the others, in a transaction of their own. */
export function apart(topic: string, place: 'before' | 'behind'): (commit: Commit) => Commit {
  return (commit) => async (messages) => {
    const own = messages.filter((each) => each.topic === topic);
    const others = messages.filter((each) => each.topic !== topic);
    const parts = place === 'before' ? [own, others] : [others, own];
    let ends: CommitEnds = new Map();
    for (const part of parts) {
      if (part.length > 0) ends = new Map([...ends, ...(await commit(part))]);
    }
    return ends;
  };
}
