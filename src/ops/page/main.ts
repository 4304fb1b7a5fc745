import './language.ts'; // first: it has to run before uPlot is loaded
import type { Status } from '../status/status-json.ts';
import { changesView, deadLettersView } from './recent.ts';
import { byId, setText } from './dom.ts';
import { flowView, quotasView } from './flow.ts';
import { verdictOf } from './status-verdict.ts';
import { LifeCycleView } from './life-cycle.ts';
import { livePage } from './live-page.ts';
import { resourcesView } from './resources.ts';
import { ago } from './words.ts';

// The status page of one account: the only account of a service, or one of a fleet.

const who = byId('who');
const whoView = ({ account, prefix, version, since, at }: Status) => {
  const running = ago(at - since).replace(' ago', '');
  setText(who, `account ${account}, topics ${prefix}.*, version ${version}, up for ${running}`);
};
livePage<Status>({
  verdictOf,
  nameOf: ({ account }) => account,
  views: [
    whoView,
    flowView(),
    quotasView(),
    resourcesView(),
    new LifeCycleView().update,
    changesView(),
    deadLettersView(),
  ],
});
