import type { Status } from '../status-json.ts';
import type { Connection } from './connection.ts';
import { byId, html, setAttributes, setText, show } from './dom.ts';
import { keyedList } from './keyed-list.ts';
import { duration, plural, since, timeOfDay } from './words.ts';

type Tone = 'good' | 'busy' | 'bad' | 'lost';

/** What there is to say before anything else. */
interface Verdict {
  readonly tone: Tone;
  readonly headline: string;
  readonly subline: string;
  /** What is wrong, in words; the severest first. */
  readonly wrong: readonly Wrong[];
}

interface Wrong {
  readonly level: 'bad' | 'busy' | 'warning';
  readonly where: string;
  readonly text: string;
  readonly when: string;
}

/** Colours of the page's icon: they have to do on light and dark tabs alike. */
const ICONS: Readonly<Record<Tone, string>> = {
  good: '#2f9e68',
  busy: '#5a86c9',
  bad: '#d8453b',
  lost: '#8d8589',
};
const MARKS: Readonly<Record<Tone, string>> = { good: '✓', busy: '…', bad: '!', lost: '?' };

/** Further ones are a keystroke away. */
const MOST_LINES = 4;

/** Says first, and in words, what is wrong; or that nothing is. */
export function verdictView(): (status: Status | undefined, connection: Connection) => void {
  const section = byId('verdict');
  const headline = byId('headline');
  const subline = byId('subline');
  const mark = byId('mark');
  const icon = byId('icon');
  const said = byId('said');
  let told = '';
  const more = byId('more');
  const moreTitle = byId('more-title');
  const first = wrongList(byId('wrong'));
  const rest = wrongList(byId('more-wrong'));

  return (status, connection) => {
    const verdict = verdictOf(status, connection);
    const { tone } = verdict;
    setAttributes(section, { 'data-tone': tone });
    setText(headline, verdict.headline);
    setText(subline, verdict.subline);
    setText(mark, MARKS[tone]);
    first(verdict.wrong.slice(0, MOST_LINES));
    rest(verdict.wrong.slice(MOST_LINES));
    const hidden = verdict.wrong.length - MOST_LINES;
    show(more, hidden > 0);
    setText(moreTitle, plural(hidden, 'more line'));
    setAttributes(icon, { href: iconOf(ICONS[tone]) });
    setText(document.querySelector('title')!, `${MARKS[tone]} ${status?.account ?? ''} · Cellarstream`); // prettier-ignore

    // Read out once for each kind of trouble, not each second with its figures.
    const kinds = [
      verdict.headline,
      ...verdict.wrong.map(({ level, where }) => `${level} ${where}`),
    ].join();
    if (kinds === told) return;
    told = kinds;
    setText(said, [verdict.headline, ...verdict.wrong.map((one) => `${one.where} ${one.text}`)].join('. ')); // prettier-ignore
  };
}

function wrongList(parent: HTMLElement): (items: readonly Wrong[]) => void {
  return keyedList<Wrong>({
    parent,
    key: ({ level, where }, place) => `${level} ${where} ${place}`,
    make: ({ level, where }) => {
      const text = html('span', { class: 'what' });
      const when = html('span', { class: 'when' });
      const children = where === '' ? [text, when] : [html('strong', {}, where), ' ', text, when];
      const element = html('li', { 'data-level': level }, ...children);
      return {
        element,
        update: (wrong) => {
          setText(text, wrong.text);
          setText(when, wrong.when);
        },
      };
    },
  });
}

function verdictOf(status: Status | undefined, connection: Connection): Verdict {
  const wrong = status ? wrongOf(status) : [];
  if (!connection.isLive) {
    return {
      tone: 'lost',
      headline: `No word from the service since ${timeOfDay(connection.since)}`,
      subline: status
        ? `The connection is lost: every figure below is old, as of ${timeOfDay(status.at)}. It is tried again by itself.`
        : 'It is tried again by itself.',
      wrong,
    };
  }
  if (!status) return { tone: 'busy', headline: 'Listening', subline: '', wrong };
  if (!status.ready) {
    const isStarting = isOnlyStarting(status);
    return {
      tone: isStarting ? 'busy' : 'bad',
      headline: isStarting ? 'Starting: not caught up yet' : `Not ready: ${titleOf(status.causes)}`,
      subline: 'What is published may not be all that the API says.',
      wrong,
    };
  }
  const ages = status.resources.flatMap(({ lookedAt }) => (lookedAt === null ? [] : status.at - lookedAt)); // prettier-ignore
  const oldest = ages.length > 0 ? `; every list was looked through in the last ${duration(Math.max(1_000, ...ages))}` : ''; // prettier-ignore
  return {
    tone: 'good',
    headline: 'Ready: what is published is what the API says',
    subline: `${freshnessOf(status)}${oldest}.${firstReads(status)}`,
    wrong,
  };
}

function freshnessOf({ resources }: Status): string {
  const medians = resources.flatMap(({ resource, freshness }) =>
    freshness.p50Ms === null ? [] : [{ resource, ms: freshness.p50Ms }],
  );
  if (medians.length === 0) return 'Nothing has changed in the last five minutes';
  const orders = medians.find(({ resource }) => resource === 'orders') ?? medians[0]!;
  return `Half of all changes of ${orders.resource} are published within ${duration(orders.ms)}`;
}

function firstReads({ resources }: Status): string {
  const reading = resources.filter(({ firstRead }) => firstRead?.done === false);
  if (reading.length === 0) return '';
  return ` What is older is still being read: ${reading.map(({ resource }) => resource).join(', ')}.`;
}

const CAUSES: Readonly<Record<string, string>> = {
  login: 'no login',
  kafka: 'waiting for Kafka',
  registry: 'waiting for the schema registry',
  api: 'waiting for the API',
  state: 'waiting for the state folder',
  failed: "a resource can't go on",
  starting: 'not caught up yet',
  stale: 'data has gone stale',
};

function titleOf(causes: readonly string[]): string {
  return causes.map((cause) => CAUSES[cause] ?? cause).join(', ');
}

function isOnlyStarting({ causes, reasons }: Status): boolean {
  const isFirstLogin = reasons.join() === 'not logged in yet';
  return isFirstLogin || causes.every((cause) => cause === 'starting');
}

function wrongOf(status: Status): Wrong[] {
  const level = isOnlyStarting(status) ? 'busy' : 'bad';
  const reasons = status.reasons.map((text): Wrong => ({ level, where: '', text, when: '' }));
  const warnings = status.warnings.map(({ resource, text, at }): Wrong => ({
    level: 'warning',
    where: resource ?? '',
    text,
    when: ` ${since(at, status.at)}`,
  }));
  return [...reasons, ...warnings];
}

function iconOf(colour: string): string {
  const circle = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6" fill="${colour}"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(circle)}`;
}
