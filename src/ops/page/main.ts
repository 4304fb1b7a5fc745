import './language.ts'; // first: it is for what the others import
import type { Status } from '../status/status-json.ts';
import { changesView } from './changes.ts';
import { connect } from './connection.ts';
import type { ConnectionState } from './connection-state.ts';
import { deadLettersView } from './dead-letters.ts';
import { byId, setAttributes, setText } from './dom.ts';
import { flowView } from './flow.ts';
import { lifeCycleView } from './life-cycle.ts';
import { newVersion } from './new-version.ts';
import { quotasView } from './quotas.ts';
import { resourcesView } from './resources.ts';
import { updateAll } from './update-all.ts';
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
let connection: ConnectionState | undefined;
/** Of which the figures are: not brought up to date while nobody can see them. */
let shown: Status | undefined;
/** Whether each part shows it. */
let isWhole = true;

const whoView = ({ account, prefix, version, since, at }: Status) => {
  const running = ago(at - since).replace(' ago', '');
  setText(who, `account ${account}, topics ${prefix}.*, version ${version}, up for ${running}`);
};
const verdictOf = (now: ConnectionState) => verdict(status, now);
const render = () => {
  // Also the tab's title and icon.
  const isToldWell = !connection || updateAll([verdictOf], connection, reportError);
  if (document.visibilityState === 'hidden') return;
  const isLive = connection?.isLive === true;
  setAttributes(document.body, { 'data-live': String(isLive) });
  if (!status) return;
  if (status !== shown) isWhole = updateAll([whoView, ...views], status, reportError);
  shown = status;
  const time = timeOfDay(status.at);
  const broken = isWhole && isToldWell ? '' : '; a part of this page fails: reload it';
  setText(heard, (isLive ? `live, ${time}` : `as of ${time}, old`) + broken);
};

const versionTold = newVersion(() => location.reload());
connect({
  // Beside this page, wherever a proxy has put it.
  url: 'status/events',
  statusUrl: 'status',
  onStatus: (told) => {
    status = told;
    versionTold(told.version);
    render();
  },
  onConnection: (told) => {
    connection = told;
    render();
  },
});
document.addEventListener('visibilitychange', render);
