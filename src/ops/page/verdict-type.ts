export type Tone = 'good' | 'warn' | 'busy' | 'bad' | 'lost';

/** What there is to say before anything else. */
export interface Verdict {
  readonly tone: Tone;
  readonly headline: string;
  readonly subline: string;
  /** What is wrong, in words; the severest first. */
  readonly wrong: readonly Wrong[];
}

export interface Wrong {
  readonly level: 'bad' | 'busy' | 'warning';
  readonly where: string;
  readonly text: string;
  readonly when: string;
}
