/** A message on its way to a topic. */
export interface Message {
  readonly topic: string;
  readonly key: string | null;
  /** Null is a tombstone. */
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a commit wrote: by topic and partition, the offset after the commit's own marker. */
export type Ends = ReadonlyMap<string, ReadonlyMap<number, bigint>>;

/**
 * Where messages go. All messages of one commit become readable at once, or none does; the cursor
 * that says how far the source was read is one of them.
 */
export interface TransactionalSink {
  /**
   * One commit at a time. An error means that the outcome is not known: the sink is of no more use,
   * and what was committed has to be read back.
   */
  commit(messages: readonly Message[]): Promise<Ends>;
  /** Gives its connections back. */
  close(): Promise<void>;
}
