import './language.ts'; // first: it is for what the others import
import type { Status } from '../status-json.ts';
import { changesView } from './changes.ts';
import { connect } from './connection.ts';
import type { Connection } from './connection.ts';
import { deadLettersView } from './dead-letters.ts';
import { byId, setAttributes, setText } from './dom.ts';
import { flowView } from './flow.ts';
import { lifeCycleView } from './life-cycle.ts';
import { quotasView } from './quotas.ts';
import { resourcesView } from './resources.ts';
import { verdictView } from './verdict.ts';
import { ago, timeOfDay } from './words.ts';

const views = [
  flowView(),
  quotasView(),
  resourcesView(),
  lifeCycleView(),
  changesView(),
  deadLettersView(),
];
const verdict = verdictView();
const who = byId('who');
const heard = byId('heard');

let status: Status | undefined;
let connection: Connection | undefined;
/** Of which the figures are: not brought up to date while nobody can see them. */
let shown: Status | undefined;

const render = () => {
  if (connection) verdict(status, connection); // also the tab's title and icon
  if (document.visibilityState === 'hidden') return;
  const isLive = connection?.isLive === true;
  setAttributes(document.body, { 'data-live': String(isLive) });
  if (!status) return;
  setText(heard, isLive ? `live, ${timeOfDay(status.at)}` : `as of ${timeOfDay(status.at)}, old`);
  if (status === shown) return;
  shown = status;
  const { account, prefix, version, since, at } = status;
  const running = ago(at - since).replace(' ago', '');
  setText(who, `account ${account}, topics ${prefix}.*, version ${version}, up for ${running}`);
  for (const update of views) update(status);
};

connect({
  url: 'status/events', // beside this page, wherever a proxy has put it
  onStatus: (told) => {
    status = told;
    render();
  },
  onConnection: (told) => {
    connection = told;
    render();
  },
});
document.addEventListener('visibilitychange', render);
