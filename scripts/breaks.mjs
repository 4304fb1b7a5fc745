// Breaks the product on purpose, one way after the other, in copies, and shows which tests notice.
// node scripts/breaks.mjs [part of a name] [--jobs 2]: exits with 1 when a break goes unnoticed.
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import ts from 'typescript';

/**
 * Each: what is broken, in which file, what stands there, and what comes in its place; where only a real
 * Kafka shows it, the integration tests that do.
 *
 * @type {[name: string, file: string, from: string, to: string, integration?: string[]][]}
 */
const BREAKS = [
  ['the cursor is committed before the events', 'src/pipeline/checkpoint/checkpoint.ts', 'const ends = await leftUndecided(() => sink.commit([...messages, saved]));', 'const first = await leftUndecided(() => sink.commit([saved]));\n      const ends = messages.length > 0 ? await leftUndecided(() => sink.commit(messages)) : first;'],
  ['the events are committed before the cursor', 'src/pipeline/checkpoint/checkpoint.ts', 'const ends = await leftUndecided(() => sink.commit([...messages, saved]));', 'if (messages.length > 0) await leftUndecided(() => sink.commit(messages));\n      const ends = await leftUndecided(() => sink.commit([saved]));'],
  ['a fenced commit ends the service before its cursor is asked', 'src/pipeline/checkpoint/ownership.ts', "if (!isEpochError(error)) throw error;\n    throw new CellarstreamError('COMMIT_FAILED'", "if (!isEpochError(error) || error) throw error;\n    throw new CellarstreamError('COMMIT_FAILED'"],
  ['a transaction that ran out of time is taken for one that was fenced', 'src/sinks/producer/fencing.ts', 'since(began) < SURELY_IN_TIME_MS', 'since(began) < Infinity'],
  ['the cursor is committed too far: an hour ahead', 'src/pipeline/resource-events.ts', 'cursor: { sequence, firstRead, since, keyFields }', 'cursor: { sequence, firstRead, since: since && since + 3_600_000, keyFields }'],
  ['images are stored before the commit', 'src/pipeline/checkpoint/checkpoint.ts', 'const next: Cursor = { ...cursor, ...progress, instance, ends: memory.ends };', 'await store.put(images, memory, notes);\n      const next: Cursor = { ...cursor, ...progress, instance, ends: memory.ends };'],
  ['a failed commit is tried again outside of its transaction', 'src/pipeline/checkpoint/checkpoint.ts', 'const sink = await openSink(options, before);', 'const first = await openSink(options, before);\n  const sink = { ...first, close: () => first.close(), commit: (all: readonly Message[]) => first.commit(all).catch(async () => {\n    const again = await broker.open(options.transactionalId);\n    return again.commit(all).finally(() => again.close());\n  }) };'],
  ['the cursor is not read back after a lost commit', 'src/pipeline/checkpoint/restore.ts', 'const found = seen ?? (await readCursor(options, known));', 'const found = known.cursor === null ? await readCursor(options, known) : known;'],
  ['any broker is believed where a topic ends', 'src/pipeline/checkpoint/ownership.ts', 'bounds: (topic: string) => sink.bounds(topic)', 'bounds: (topic: string) => place.broker.bounds(topic)'],
  ['a leader is asked without its epoch', 'src/sinks/producer/calls.ts', 'int32(partition), int32(leaderEpoch), int64', 'int32(partition), int32(Math.min(-1, leaderEpoch)), int64'],
  ['whoever is asked first says who leads', 'src/sinks/producer/bounds.ts', 'const { answer } = await coordinator.ask(metadata([topic]), {\n    patience,\n    codeOf: ({ topics }) => topics[0]?.errorCode ?? 0,\n    isRepeatable: true,\n  });', 'const answer = await brokers.askAny(metadata([topic]));\n  void [coordinator, patience];'],
  ['who leads is asked of the same broker again', 'src/sinks/producer/leaders.ts', "refresh: () => ask('others'),", 'refresh: () => ask(),'],
  ['the cursor is not looked at where a topic ends as the store knows', 'src/pipeline/checkpoint/restore.ts', 'const found = seen ?? (await readCursor(options, known));', 'const isAsKnown = known.cursor !== null && [...bounds].every(([at, { high }]) => BigInt(known.ends[at] ?? 0) === high);\n  const found = seen ?? (isAsKnown ? known : await readCursor(options, known));'],
  ['a topic that was made anew is waited for', 'src/sinks/fetch/kafka-reader.ts', 'const isShort = end !== undefined && lastStableOffset < end;', 'const isShort = end !== undefined && lastStableOffset < 0n;'],
  ['a topic that was made anew while it is read back stops its list', 'src/sinks/fetch/kafka-tail.ts', 'throw isGone(error) ? changed(topic, error) : error;', 'throw error;'],
  ['images that the store has not seen are not read back', 'src/pipeline/checkpoint/restore.ts', 'restored += images.length;', 'restored += images.length; images.length = 0;'],
  ['two accounts share a transactional id', 'src/pipeline/transactional-id.ts', "if (!`${prefix}${account}`.includes('.'))", "if (prefix !== '')"],
  ['a process of an older version goes on under its own id', 'src/pipeline/checkpoint/checkpoint.ts', 'await leaveFormerId(options, before, store.memory());', ''],
  ['who is fenced under a former id is not told by whom', 'src/pipeline/checkpoint/former-id.ts', 'await claim(async () => void (await sink.commit([{ topic: cursorTopic, key: task, value }])));', 'void [claim, value];'],
  ['a former id is opened at each start', 'src/pipeline/checkpoint/former-id.ts', 'writer.transactionalId !== transactionalId;', 'transactionalId !== instance;'],
  ['a cursor that an older version passed on is one of this version', 'src/pipeline/checkpoint/former-id.ts', 'writer?.instance !== instance || writer.transactionalId', 'instance === \'\' || writer?.transactionalId'],
  ['a replaced process takes the task back', 'src/pipeline/checkpoint/ownership.ts', 'if (instance !== predecessor && instance !== options.instance) throw fenced(lost);', 'if (instance === "nobody") throw fenced(lost);'],
  ['the sequence begins again with each process', 'src/pipeline/resource-events.ts', 'let { firstRead, since, sequence } = log.cursor;', 'let { firstRead, since } = log.cursor;\n  let sequence = 0;'],
  ['no lookback', 'src/streams/paging/poll.ts', 'window(since - options.lookbackMs, latest)', 'window(since - 0 * options.lookbackMs, latest)'],
  ['the next window begins at the newest record of this one', 'src/streams/paging/poll.ts', 'since = Math.min(mark ?? since, reached);', 'since = clock.newest() ?? reached;'],
  ['the window goes by the date header alone', 'src/streams/http/server-clock.ts', 'return Math.max(Math.min(then, date), date - MAX_BEHIND_MS - step);', 'return date;'],
  ['one record stamped in the future takes the allowance for a slow clock away', 'src/streams/http/server-clock.ts', 'if (date !== undefined && at > date) {', 'if (date !== undefined && at < -date) {'],
  ['polls wait for the end of the first read', 'src/pipeline/reads/resource-reads.ts', 'began$.next((startedAt', 'if (done) began$.next((startedAt'],
  ['a page counts without an anchor', 'src/streams/paging/anchors.ts', 'let anchored = at.offset === 0;', 'let anchored = true;'],
  ['pages do not overlap', 'src/streams/paging/anchors.ts', 'const step = Math.max(1, data.length - overlap);', 'const step = Math.max(1, data.length);'],
  ['a record that is no JSON may have swallowed others', 'src/streams/http/page-around.ts', 'if (page && isWhole(page, offset, pageSize))', 'if (page)'],
  ['what is no JSON once is never asked for again', 'src/streams/http/request.ts', 'asking(query, limit, TRIES)', 'asking(query, limit, 1)'],
  ['what is behind a record that is no JSON is taken for next to it', 'src/streams/http/across-broken.ts', 'if (beginning(answer) !== beginning(each)) throw failed();', 'void [beginning(answer), each];'],
  ['a record that is no JSON is tried out at every reading', 'src/streams/http/page-in.ts', 'const isTried = isLastTry() || (found !== undefined && isKnown(found, texts));', 'const isTried = isLastTry() || (found !== undefined && isKnown(found, texts) && false);'],
  ['a sweep that met what is no JSON proves what is gone', 'src/streams/paging/sweeps.ts', 'instanceof UnreadableRecord)) settled = false;', 'instanceof UnreadableRecord)) settled &&= true;'],
  ['what is no JSON is published though fields are hidden', 'src/streams/records/hiding-list.ts', 'sent instanceof UnreadableRecord ? sent.hidden() :', 'sent instanceof UnreadableRecord ? sent :'],
  ['an order that is no JSON bears witness', 'src/pipeline/reads/single-records.ts', 'return found.data.length > 0 && isReadable(found);', 'return found.data.length > 0;'],
  ['a field that differs in every answer keeps pages apart', 'src/streams/paging/pages.ts', 'leftOut.add(still.failed(data, leftOut.fields()));', 'still.failed(data, leftOut.fields());'],
  ['a record is known by its key alone', 'src/streams/paging/anchors.ts', 'if (left === record || !isKeyAlone(left, keyOf)) return digestOf(left);', 'return digestOf(left);'],
  ['what was changed passes for what differs in every answer', 'src/streams/paging/standstill.ts', 'if (stamp(was) === stamp(is)) differing', 'differing'],
  ['a volatile field makes events', 'src/streams/diff/diff.ts', 'const same = isEqual || isRefreshed(before, after);', 'const same = isEqual;'],
  ['what is published again has old volatile fields', 'src/pipeline/publish/resync-events.ts', 'refreshed.get(key) ?? image', 'image'],
  ['the last answer wins', 'src/streams/diff/newest.ts', "if (!last || span.begin > last.end) return 'newer';", "if (last || !last) return 'newer';"],
  ['a deletion is published without a look at who saw the key since', 'src/pipeline/resource-events.ts', '.filter((key) => log.isUnseen(key, reading.gone!.since))', ''],
  ['an order that a sweep has missed is gone, whatever the API says', 'src/pipeline/reads/sweep-batches.ts', 'return isGone ? { ...read, gone: { keys: [key], since } } : read;', 'return { ...read, gone: { keys: [key], since } };'],
  ['a folder that is older than what compaction has left is believed', 'src/pipeline/checkpoint/restore.ts', 'return whole + found < Math.max(cursor.sequence, sequence);', 'return whole + found < 0 * Math.max(cursor.sequence, sequence);'],
  ['what is read back after a death begins to be counted anew', 'src/pipeline/checkpoint/restore.ts', '        found,\n', ''],
  ['a topic that ends sooner than it did has lost nothing', 'src/pipeline/checkpoint/lost-events.ts', 'if (now < before) gaps.push', 'if (now < 0n) gaps.push'],
  ['a topic whose beginning was deleted has lost nothing', 'src/pipeline/checkpoint/lost-events.ts', 'if (now > before) gaps.push', 'if (now < 0n) gaps.push'],
  ['a topic that is made anew under the service is not noticed', 'src/pipeline/checkpoint/lost-events.ts', 'return passed < BigInt(count);', 'return passed < 0n;'],
  ['what a topic has lost stays known', 'src/pipeline/checkpoint/restore.ts', 'await store.clear();\n    memory = undefined;\n    known = { ...anew, lost: true };', 'known = { ...known, lost: true };'],
  ['a lost topic is not read anew', 'src/pipeline/checkpoint/restore.ts', 'firstRead: NOTHING_READ,\n      losses', 'losses'],
  ['images of a topic that was lost since stay known', 'src/pipeline/checkpoint/restore.ts', 'if (memory && (cursor.losses ?? 0) > losses) {', 'if (memory && losses < 0) {'],
  ['a first read that begins anew takes what was stamped ahead for new', 'src/pipeline/reads/resource-reads.ts', 'Math.max(serverTime, since ?? -Infinity)', 'serverTime'],
  ['one sweep is enough for all', 'src/streams/paging/sweep-progress.ts', 'return row.findLast((each) => each.number < number && isOldEnough(each, sweep, proofMs))?.number;', 'return number;'],
  ['a sweep that may have missed some proves that they are gone', 'src/streams/paging/sweep-progress.ts', "if (phase !== 'removing' || proof !== 'exact') return undefined;", "if (phase !== 'removing' || !AGREEING.has(proof)) return undefined;"],
  ['what is absent for a moment is gone', 'src/streams/paging/sweep-progress.ts', 'return at + proofMs <= beganAt;', 'return at <= beganAt + 0 * proofMs;'],
  ['an order is asked for a second time at once', 'src/streams/paging/sweep-progress.ts', 'return askedAt === null ? 0', 'return askedAt === null || now + proofMs > 0 ? 0'],
  ['a sweep begins when it is kept, not when it is asked for', 'src/streams/paging/sweeps.ts', 'return { kind: \'page\', page, settled, beganAt };', 'return { kind: \'page\', page, settled, beganAt: beganAt + 60_000 };'],
  ['an order that can not be told of the first time is asked for a second time', 'src/pipeline/reads/sweep-batches.ts', 'return isGone ? read : { ...read, spared: [key] };', 'return read;'],
  ['the time in which nobody had a list is time of a proof', 'src/streams/paging/sweep-progress.ts', 'const away = now - keptAt;', 'const away = 0 * (now - keptAt);'],
  ['what others have seen since is proven by a store of before', 'src/pipeline/checkpoint/checkpoint.ts', 'const byOthers = known.sweepGeneration !== cursor.generation;', 'const byOthers = known.sweepGeneration === -1;'],
  ['of a short list all may go', 'src/streams/paging/sweeps.ts', 'return isMuch || (gone > FEWEST && gone > known * MAX_OF_SHORT);', 'return isMuch;'],
  ['an empty list proves absence', 'src/streams/paging/sweep-progress.ts', "const proof = isEmpty ? 'nothing'", "const proof = isEmpty && false ? 'nothing'"],
  ['what sweeps saw is not marked', 'src/pipeline/resource-events.ts', "bySweep: step?.kind === 'page' };", "bySweep: false };"],
  ['topics are made before anybody has looked at the registry', 'src/sinks/topics/destination.ts', 'await registry.latest(valueSubject(names.deadLetters));', ''],
  ['who wrote a cursor before anybody looked is alive', 'src/pipeline/checkpoint/living-instance.ts', 'const begin = await endOf();', 'const begin = (await endOf()) - 1n;'],
  ['a table takes what comes late', 'src/consumers/in-sequence.ts', 'const isNewer = sequence > highest;', 'const isNewer = sequence > -1;'],
  ['no tombstone', 'src/pipeline/publish/messages.ts', "return change.op === 'd' ? [message, { topic, key: change.key, value: null }] : [message];", 'return [message];'],
  ['an image stays after a deletion', 'src/pipeline/publish/publisher.ts', 'images.push({ key, sequence, image });', 'if (image) images.push({ key, sequence, image });'],
  ['older images are compared without a look at their schema', 'src/pipeline/encode/schema-evolution.ts', 'if (schemaId === now) return bytes;', 'if (schemaId === now || true) return bytes;'],
  ['a schema does not grow', 'src/pipeline/encode/schema-evolution.ts', 'if (after === before) return;', 'if (after === before || before) return;'],
  ['events are stamped by what the clock said at the start', 'src/pipeline/resource-events.ts', 'now: Math.round(wallClock()),', 'now: Math.round(scheduler.now()),', ['lifecycle']],
  ['a token comes back after half of its window', 'src/streams/quota/token-bucket.ts', 'log: startLog(windowMs) };', 'log: startLog(windowMs / 2) };'],
  ['a token comes back a window after the request, not after its answer', 'src/streams/quota/token-bucket.ts', 'const told = lane.log.begin(at);', 'lane.log.add(at);\n      const told = (...ended: [number, boolean]) => void ended;'],
  ['what an answer takes is taken from each end at once', 'src/streams/quota/start-log.ts', 'confirmedUntil = Math.max(confirmedUntil, at - took);', 'confirmedUntil = at;'],
  ['an answer takes as long as the newest one did', 'src/streams/quota/start-log.ts', 'least - MARGIN * (tookTogether / answered.size() - least)', 'answered.last()!.took'],
  ['what failed says how long an answer takes', 'src/streams/quota/start-log.ts', 'if (isAnswered && isMeasured) answer', 'if (isAnswered !== undefined && isMeasured) answer'],
  ['slow answers cost the quota their time', 'src/streams/quota/start-log.ts', 'if (answered.size() < ENOUGH) return 0;', 'if (answered.size() < Infinity) return 0;'],
  ['the first read has nothing of what polls leave over', 'src/account/lanes.ts', 'return isKnown ? Math.max(least, perMinute - used - ready) : least;', 'return least;'],
  ['the first read has from the beginning what no poll has used yet', 'src/account/lanes.ts', 'return isKnown ? Math.max(least,', 'return isKnown || used < 2 ? Math.max(least,'],
  ['looking back far may use all that polls have', 'src/account/lanes.ts', 'Math.floor((perMinute - notPolls()) / 3)', 'Math.floor(perMinute - notPolls())'],
  ['polls do not pay for what looks back', 'src/streams/paging/poll.ts', '/ (1 - forBack());', '/ (1 - 0 * forBack());'],
  ['a restart does not look back again to where that was not done', 'src/streams/paging/poll.ts', 'const most = isOne ? Infinity : back.since() + lookbackMs;', 'const most = Infinity;'],
  ['what is new waits while polls look back', 'src/streams/paging/poll.ts', 'return isOne ? newest$ : merge(newest$, back$);', 'return isOne ? newest$ : merge(back$, newest$.pipe(repeat()), 1);'],
  ['a token bucket for each subscription', 'src/streams/quota/token-bucket.ts', 'return Object.assign(each, { during: held, used: usedNow });', "if ('own' in options) return Object.assign(each, { during: held, used: usedNow });\n    const fresh = () => tokenBucket({ ...options, own: true } as TokenBucketOptions);\n    return Object.assign(\n      <T>(source: Observable<T>) => new Observable<T>((subscriber) => fresh()(source).subscribe(subscriber)),\n      { during: <T>(work: Observable<T>) => new Observable<T>((subscriber) => fresh().during!(work).subscribe(subscriber)), used: usedNow },\n    );"],
  ['lanes do not share their tokens', 'src/streams/quota/token-bucket.ts', 'const isFull = waiting.length > 0 && used(now) >= capacity;', 'const isFull = waiting.length > 0 && unknown.used(now) >= capacity;'],
  ['a retry does not go back through the quota', 'src/streams/http/request.ts', 'return send(address, token, query, scheduler.now() - waitsSince, isLastTry);', 'return defer(() => send(address, tokens.current() ?? token, query, 0, isLastTry)).pipe(backoff({ scheduler }));'],
  ['an API that is not up yet ends a pipeline of fetch', 'src/core/errors.ts', 'return isNetworkError(error);', 'return isNetworkError(error) && false;'],
  ['a 404 of a gateway ends a list', 'src/streams/http/request.ts', 'canPass: isRetryableAtApi,', 'canPass: (error: unknown) => (error as { context?: { status?: unknown } }).context?.status !== 404 && isRetryableAtApi(error),'],
  ['a token past its end is still sent', 'src/streams/http/token.ts', 'scheduler.now() >= askedAt + lifeMs -', 'scheduler.now() >= askedAt + Infinity + lifeMs -'],
  ['a key that has worked is refused once, and that is final', 'src/streams/http/key-patience.ts', 'return key === known && scheduler.now() - refusedSince < patienceMs;', 'return key === known && scheduler.now() - refusedSince < 0 * patienceMs;'],
  ['a refused token is kept', 'src/streams/http/request.ts', 'tokens.refuse(token);', 'void token;'],
  ['a status change of a first read is published', 'src/streams/diff/order-status.ts', "if (change.op === 'r' || change.op === 'd') return [];", "if (change.op === 'd') return [];"],
  ['fulfilments are matched by their places', 'src/streams/diff/identity.ts', "fulfillment_info: 'fulfillment_id',", "fulfillment_info: 'nothing',"],
  ['the same bad record is reported at every read', 'src/streams/records/known-rejects.ts', 'if (told.has(digest) || isKnown(digest)) return false;', ''],
  ['a page of bad records is forgotten with the next', 'src/pipeline/resource-events.ts', 'knownRejects(log.isRejected)', 'knownRejects(() => false)'],
  ['all rejects are forgotten when there are too many', 'src/state/store.ts', 'if (isFull(newer)) older.clearSync();', 'if (isFull(newer)) for (const each of [newer, older]) each.clearSync();'],
  ['null and absent are the same', 'src/schemas/avro/residue.ts', 'this.nulls.push(this.pointer());', 'void this.pointer();'],
  ['a request to publish again is acknowledged before its events', 'src/pipeline/resource-events.ts', 'const messages = [...publication.messages, ...acknowledgement];', 'const messages = publication.messages;\n    if (acknowledgement.length > 0) await log.commit({ messages: acknowledgement, images: [], cursor: { sequence, firstRead, since, keyFields } });'],
  ['a task is given requests before it is known which are done', 'src/account/resync-requests.ts', 'if (inDoubt.has(resource)) await catchUp();', 'await Promise.resolve();'],
  ['what is published again is the image of before its change', 'src/pipeline/publish/resync-events.ts', 'change?.images.after ?? images.get(key)', 'images.get(key)'],
  ['what a field can not hold is dropped', 'src/schemas/avro/residue.ts', 'else this.noteValue(item);', 'else void item;'],
  ['a replay goes on behind its end', 'src/sinks/fetch/kafka-reader.ts', 'Number(offset) < Number(end)', 'Number(end) > 0'],
  ['a segment of headers is not passed', 'src/sinks/fetch/kafka-reader.ts', 'const last = batches.at(-1);', 'const last = batches.findLast(({ count }) => count > 0);'],
  ['a gap at the end is not passed', 'src/sinks/fetch/kafka-reader.ts', 'times === ENOUGH &&', 'times < 0 &&'],
  ['what had no room in an answer is passed over', 'src/sinks/fetch/kafka-reader.ts', 'hadRoom && lastStableOffset > at', 'lastStableOffset > at'],
  ['what stands before a position is handed over', 'src/sinks/fetch/kafka-reader.ts', 'Number(offset) >= first', 'Number(offset) >= -first'],
  ['a partition that was read is asked for first again', 'src/sinks/fetch/kafka-reader.ts', '    next.delete(partition);\n', ''],
  ['an older connection hands over, too', 'src/sinks/fetch/fetch-loops.ts', '          if (subscriber.closed) break;\n          take', '          take'],
  ['two leaders hand over the same', 'src/sinks/fetch/kafka-reader.ts', ' || at !== next.get(partition)', ''],
  ['an end of a topic that is not compacted is passed', 'src/sinks/fetch/kafka-reader.ts', '(await isCompacted())', '((await isCompacted()) || true)'],
  ['one empty answer is an end', 'src/sinks/fetch/kafka-reader.ts', 'const ENOUGH = 8;', 'const ENOUGH = 1;'],
  ['bytes that are no batch are passed over', 'src/sinks/fetch/kafka-reader.ts', 'if (!read && hadRoom) throw', 'if (!read && !hadRoom) throw'],
  ['a topic that is gone is waited for', 'src/sinks/fetch/fetch-loops.ts', 'if (type === NO_TOPIC) return missing <= MAX_TRIES;', 'if (type === NO_TOPIC) return true;'],
  ['nobody fetches from a new leader', 'src/sinks/fetch/fetch-loops.ts', 'wake(); // another', '// another'],
  ['what retention took is passed over', 'src/sinks/fetch/kafka-reader.ts', 'if (isOutOfRange(answer)) return refuseLoss({ kafka, topic, partition, at });', 'if (isOutOfRange(answer)) return { partition, at, messages: [], next: at + 1n };', ['replay-pressure']],
  ['what was aborted is handed over', 'src/sinks/fetch/record-batches.ts', 'return !(attributes & TRANSACTIONAL && under.has(producerId));', 'return true;'],
  ['an abort is never over', 'src/sinks/fetch/record-batches.ts', 'if (isAbort(batch)) under.delete(producerId);', ''],
  ['a batch that was cut short is read', 'src/sinks/fetch/record-batches.ts', 'if (end > bytes.length || end < at + RECORDS_AT) break;', ''],
  ['a time ends nothing', 'src/sinks/fetch/kafka-reader.ts', 'Number(timestamp) >= before', 'Number(timestamp) >= Infinity', ['replay']],
  ['fetching never pauses', 'src/sinks/fetch/read-batches.ts', 'const MAX_WAITING = 2;', 'const MAX_WAITING = 2_000_000;', ['replay-pressure']],
  ['a paused partition stays paused', 'src/sinks/fetch/read-batches.ts', 'reader.resume(batch.partition);', 'void batch;', ['replay-pressure']],
  ['nobody listens, and the reader goes on', 'src/sinks/fetch/read-batches.ts', 'reader.close().catch(() => undefined); // nobody', 'void reader; // nobody'],
  ['a connection is left behind', 'src/sinks/fetch/fetch-loops.ts', 'await fetcher.close().catch(() => undefined);', ''],
  ['a broker that restarts ends a replay', 'src/sinks/fetch/fetch-loops.ts', 'return isPatient && hasConnected', 'return false && hasConnected'],
  ['an instant begins at its offset', 'src/consumers/replay.ts', '&& Number(timestamp) >= since', '&& Number(timestamp) >= -Infinity * Math.abs(since)', ['replay']],
  ['a deletion stays in the table', 'src/consumers/table.ts', 'if (after === undefined) held.delete(key);\n    else held.set(key, after);', 'if (after !== undefined) held.set(key, after);', ['table']],
  ['a start that has written was not cut short', 'src/state/image-file.ts', 'performance.now() - openedAt < CUT_SHORT_MS', 'performance.now() < openedAt'],
  ['a copy of images that were open is believed', 'src/state/open-marker.ts', 'if (!(apart <= MAX_APART_MS))', 'if (apart < 0)'],
  ['images are believed that another start of the machine had open', 'src/state/open-marker.ts', "machine !== machineStart() || ", ''],
  ['what the disk did not take at the end is believed', 'src/state/image-file.ts', "mark('damaged'); // the system", '// the system'],
  ['a group commits what is not handled', 'src/sinks/group/kafka-group.ts', 'if (handled === committed) return;', 'handled = messages.length;\n    if (handled === committed) return;', ['group']],
  ['events of a key are handled at once', 'src/consumers/subscribe-group.ts', 'keyOf: ({ key }) => key?.toString(\'latin1\') ?? null,', 'keyOf: ({ offset }) => offset,', ['group']],
  ['a slow handler loses the membership', 'src/sinks/group/kafka-group.ts', 'await payload.heartbeat();\n      await commit();', 'await commit();', ['group']],
  ['answers come with their personal fields', 'src/pipeline/reads/resource-reads.ts', 'hidingList(asSent, options.personal)', 'asSent'],
  ['what was stored before it was to be hidden is published', 'src/pipeline/resource-events.ts', 'hidingChange(change, book.values, personal)', 'change'],
  ['a text in the place of an object is shown', 'src/streams/records/personal-fields.ts', 'return replaced(value, node.way ?? node.strictest, means);', 'return node.way ? replaced(value, node.way, means) : value;'],
  ['an HMAC from the API is believed', 'src/streams/records/personal-fields.ts', 'if (isStored && looksHidden) return value;', 'if (looksHidden) return value;'],
  ['a digest is not compared', 'src/streams/records/known-record.ts', 'if (digestOf(page.subarray(at, end)) === text.digest) {', 'if (end <= page.length) {'],
  ['a record is known by its first bytes', 'src/streams/records/known-record.ts', "hash('sha256', bytes, 'binary')", "hash('sha256', bytes.subarray(0, 40), 'binary')"],
  ['nothing is known by its bytes', 'src/streams/records/known-record.ts', 'if (key !== undefined && text && at', 'if (key === undefined && text && at'],
  ['each record without a key looks to the end of its page', 'src/streams/records/known-record.ts', 'if (exhausted.has(page)) return undefined;', ''],
  ['a known record is parsed whenever it is asked for', 'src/streams/records/sent-record.ts', '(this.#record ??= this.#parsed())', 'this.#parsed()'],
  ['an anchor by its bytes says nothing of them', 'src/streams/paging/anchors.ts', 'digest.startsWith(BY_BYTES) ? digest === bytes(place)', 'digest.startsWith(BY_BYTES) ? bytes(place) !== undefined'],
  ['no anchor is held against its content', 'src/streams/paging/anchors.ts', "isByContent ? 'content' : 'bytes'", "isByContent ? 'bytes' : 'bytes'"],
  ['what a schema has no field for is encoded at once', 'src/pipeline/encode/schema-evolution.ts', 'return !read || isLacking ? undefined : { ...read, values };', 'return read && { ...read, values };'],
  ['what was encoded as it arrived is right for any schema', 'src/pipeline/encode/encoded-batches.ts', '(each instanceof FreshRecord ? each.values : values) === book.values', '(each instanceof FreshRecord ? book.values : values) === book.values'],
  ['what the first read has missed is new', 'src/pipeline/resource-events.ts', 'if (done && caughtUp) return true;', 'if (done) return true;'],
  ['what turns up late is never new', 'src/pipeline/reads/resource-reads.ts', 'const catchesUp = isLast && isBehind;', 'const catchesUp = false;'],
  ['a poll that began beside the first read has what that has missed', 'src/pipeline/reads/resource-reads.ts', 'isBehind = firstReadDone();', 'isBehind = true;'],
  ['what is encoded as it arrives is new', 'src/pipeline/resource-events.ts', 'each.isNew = isNewSince(each.createdAt);', 'each.isNew = true;'],
  ['bytes are not kept of what was encoded as it arrived', 'src/streams/records/known-record.ts', 'freshRecords({ keyFields, keyOf, encode }, payloadDigest)', 'freshRecords({ keyFields, keyOf, encode })'],
  ['a long work goes on when nobody wants it', 'src/streams/http/stepwise.ts', 'return done ? of(value) : timer(0, scheduler).pipe(switchMap(goOn));', 'return done ? of(value) : goOn();'],
  ['a page is taken apart at one go', 'src/schemas/json/page-elements.ts', 'if (at < stop) continue;', 'if (at >= 0 * stop) continue;'],
  ['any number of a sweep counts as seen', 'src/state/entries.ts', 'return seen === since || seen === since + 1;', 'return seen >= since;'],
  ['pages are joined in the order of their answers', 'src/streams/paging/pages-ahead.ts', 'if (asked[0]?.offset !== offset) drop();', ''],
  ['what was asked ahead in vain goes on', 'src/streams/paging/pages-ahead.ts', 'asking.unsubscribe();\n      if (answer)', 'if (answer)'],
  ['another version of Kafka is the usual one', 'src/devstack/jar-cache.ts', '`-Dkafka.version=${kafkaVersion}`, ', '', ['jar-cache']],
  ['another version takes the place of the usual one', 'src/devstack/jar-cache.ts', 'kafka-${kafkaVersion}-', 'kafka-${version(\'kafka\')}-', ['jar-cache']],
  ['an empty header is left out', 'src/sinks/producer/record-batch.ts', 'Object.entries(headers).flatMap(', "Object.entries(headers).filter(([, text]) => text !== '').flatMap("],
  ['nobody is told of answers that nobody takes', 'src/streams/paging/pages-ahead.ts', 'if (answer) onDrop?.(answer, offset);', ''],
  ['pages are asked ahead however little answers take', 'src/streams/paging/pages-ahead.ts', 'Math.min(most, needed)', 'most + 0 * needed'],
  ['pages are asked for behind the end', 'src/streams/paging/pages-ahead.ts', '&& last + step < total', '&& total > 0'],
  ['bytes are kept of what is undecided', 'src/pipeline/encode/payload-digests.ts', 'const changed = new Set(changes.map(({ key }) => key).filter((key) => written.has(key)));', 'const changed = new Set([...changes.map(({ key }) => key), ...written]);'],
  ['bytes are kept of what is too large', 'src/pipeline/encode/payload-digests.ts', '.filter((key) => written.has(key)));', ');'],
  ['bytes are not kept of what is the same', 'src/pipeline/encode/payload-digests.ts', 'for (const each of [...same, ...read', 'for (const each of [...read'],
  ['what was known once is known for good', 'src/pipeline/encode/payload-digests.ts', 'asOf === generation || log.text(key)?.digest === text.digest', 'asOf >= 0 || log.text(key)?.digest === text.digest'],
  ['a change of images goes unnoticed', 'src/pipeline/encode/payload-digests.ts', 'void (generation += Number(images.length > 0))', 'void (generation += 0 * images.length)'],
  ['what is hidden is known by its bytes', 'src/pipeline/resource-events.ts', 'const fresh = personal ? undefined : {', 'const fresh = {'],
  ['a bug of ours is taken for an answer that is no JSON', 'src/streams/http/page-around.ts', 'return error instanceof SyntaxError || error instanceof RangeError;', 'return error instanceof Error;'],
  ['a record that is refused as a witness leaves a read open', 'src/pipeline/reads/single-records.ts', 'isOfOneResource(error) ? of(false) : throwError(() => error),', 'throwError(() => error),'],
  ['a damaged store is taken for an answer that is no JSON', 'src/pipeline/encode/payload-digests.ts', 'if (!isRetryable(error)) throw error;', 'throw error;'],
  ['a page waits in the bytes of an older schema', 'src/pipeline/encode/encoded-batches.ts', 'each.values : values) === book.values;', 'each.values : values) !== undefined;'],
  ['a change is decoded by the codec of another time', 'src/streams/diff/diff.ts', 'const decode = (bytes: Buffer) => codec.decode(bytes);', 'const decode = (bytes: Buffer) => (options.codec ?? jsonCodec).decode(bytes);'],
  ['what is the same is held to be, though its page has changed it', 'src/streams/diff/diff.ts', 'if (each.isSame && !page.has(key)) {', 'if (each.isSame) {'],
  ['nothing is learnt from what is known', 'src/streams/diff/diff.ts', 'if (read.span) newest?.saw(key, read.span, each.updatedAt ?? null, true);', ''],
  ['bytes stay with an image that is another one', 'src/state/store.ts', 'mark(key, { hasImage: true, text: texts?.get(key), ...(isSeen && sighting) });', 'const text = texts?.get(key);\n              mark(key, { hasImage: true, ...(text && { text }), ...(isSeen && sighting) });'],
  ['bytes are kept with an image that is newer', 'src/state/store.ts', 'if (isSeen) mark(key, sighting!);\n            } else if (image) {', 'if (isSeen) mark(key, { ...sighting!, text: texts?.get(key) });\n            } else if (image) {'],
  ['keys are stored as lmdb writes texts', 'src/state/store.ts', "keyEncoding: 'binary' ", ''],
  ['a write that failed leaves marks behind', 'src/state/store.ts', 'recentMarks.clear(); // some', 'void recentMarks; // some'],
  ['a deletion leaves its mark behind', 'src/state/store.ts', 'recentMarks.delete(key);', ''],
  ['a cleared store remembers marks', 'src/state/store.ts', '});\n        recentMarks.clear();', '});'],
  ['an encoder takes the other branch', 'src/schemas/avro/record-field-codec.ts', 'out.length = start;\n          out.byte(NULL_BRANCH);\n          odd', 'out.length = start;\n          out.byte(VALUE_BRANCH);\n          odd'],
  ['an encoder takes nothing back', 'src/schemas/avro/record-field-codec.ts', 'out.length = start;\n          out.byte(NULL_BRANCH);\n          odd', 'out.byte(NULL_BRANCH);\n          odd'],
  ['a name that comes twice counts the first time', 'src/schemas/avro/record-reader.ts', 'if (metIn[nth] === reads) return false; // the last of them counts', ''],
  ['fields are written as they come', 'src/schemas/avro/record-reader.ts', 'if (!isInOrder) putInOrder(start, out);', ''],
  ['fields that are put in order keep what stood there', 'src/schemas/avro/avro-output.ts', 'this.#bytes.copyWithin(from, to, this.length);', ''],
  ['a name in disguise has no field', 'src/schemas/avro/record-reader.ts', ' || byField.has(key)', ''],
  ['the first value of a name without a field counts', 'src/schemas/avro/record-reader.ts', ' || unknown?.has(key)', ''],
  ['what a part noted in vain stays noted', 'src/schemas/avro/field-codec.ts', 'odd.backTo(noted);', 'void noted;'],
  ['what a part wrote in vain stays written', 'src/schemas/avro/field-codec.ts', 'out.length = length;', 'void length;'],
  ['a count that takes more than a byte is written over what follows', 'src/schemas/avro/avro-output.ts', 'this.repeat(at + 1, end);\n      this.cut(at, end);', 'this.cut(at, at + 1);'],
  ['a text is written without room for it', 'src/schemas/avro/avro-output.ts', 'this.long(size);\n    this.#room(size);\n    const bytes', 'this.long(size);\n    const bytes'],
  ['fields are put in order without room for it', 'src/schemas/avro/avro-output.ts', 'this.#room(to - from);', ''],
  ['all records are parsed', 'src/schemas/avro/field-codec.ts', 'if (kind.read?.(source, out, odd)) return true;', ''],
  ['the fields of a key are not asked for', 'src/streams/records/fresh-record.ts', '[...keyFields, ', '['],
  ['escapes are copied', 'src/schemas/json/json-cursor.ts', ' || byte === BACKSLASH', ''],
  ['control characters are copied', 'src/schemas/json/json-cursor.ts', 'if (!(byte >= SPACE) ||', 'if (byte === undefined ||'],
  ['what is no UTF-8 is copied', 'src/schemas/json/json-cursor.ts', 'isUtf8(page.subarray(start, at))', 'at >= start'],
  ['a number of any length is read digit by digit', 'src/schemas/json/json-cursor.ts', 'digits > MAX_DIGITS || ', ''],
  ['a number may begin with zeros', 'src/schemas/json/json-cursor.ts', ' || (digits > 1 && page[start] === ZERO)', ''],
  ['a record that could not be encoded leaves a part behind', 'src/schemas/avro/record-codec.ts', 'out.length = 0; // what', '// what'],
  ['an inherited value is written', 'src/schemas/avro/record-field-codec.ts', '|| (isInherited && !Object.hasOwn(value, jsonName))', ''],
  ['a long is written as an int', 'src/schemas/avro/avro-output.ts', 'while (rest > MAX_SMALL) {', 'while (rest > MAX_SMALL * 4) {'],
  ['half a surrogate pair is written', 'src/schemas/avro/avro-output.ts', 'if (!text.isWellFormed()) return false;', ''],
  ['a buffer that grows forgets', 'src/schemas/avro/avro-output.ts', 'this.#bytes.copy(larger, 0, 0, this.length);', 'void larger;'],
  ['a path with half a surrogate pair is lost', 'src/schemas/events/envelope.ts', 'if (!out.string(value)) out.string(value.toWellFormed());', 'out.string(value);'],
  ['escapes end a string', 'src/schemas/json/json-bytes.ts', 'if (byte === BACKSLASH) at += 1;', ''],
  ['an escape in a name is no matter', 'src/schemas/json/page-elements.ts', 'if (name.includes(BACKSLASH)) return undefined;', ''],
  ['data may come twice', 'src/schemas/json/page-elements.ts', 'if (data || page[at]', 'if (page[at]'],
  ['any control character is white space', 'src/schemas/json/json-bytes.ts', 'byte <= SPACE && (byte === SPACE || byte === LF || byte === CR || byte === TAB);', 'byte <= SPACE;'],
  ['a key is made of a field that is hidden', 'src/pipeline/choose-key.ts', 'keyCandidates.filter(isFree)', 'keyCandidates'],
  ['a broker that is stopped gently is killed', 'src/devstack/java-server.ts', "this.#signal('SIGTERM');", "this.#signal('SIGKILL');", ['cluster']],
  ['topics on three brokers have one replica', 'src/devstack/kafka-server.ts', 'replicas(isOneOf, 2)', 'replicas(1, 1)', ['cluster']],
  ['a leader stays where it is, whatever the order of replicas', 'src/devstack/kafka-server.ts', "'auto.leader.rebalance.enable': 'true'", "'auto.leader.rebalance.enable': 'false'", ['cluster']],
  ['of three listeners one is told', 'src/devstack/kafka-nodes.ts', 'each.map((ways) => ways[name]!).join()', 'each[0]![name]!', ['cluster']],
  ['a cluster is there when one broker is', 'src/devstack/kafka-nodes.ts', 'ids });', 'ids: [1] });', ['cluster']],
  ['a retried batch has a new sequence', 'src/sinks/producer/delivery.ts', 'later.push(outgoing);', 'later.push(stamped(outgoing.batches, outgoing.place) ?? outgoing);'],
  ['a partition without an answer counts as written', 'src/sinks/producer/delivery.ts', 'if (!word) throw new Error(`an answer to Produce says nothing of ${topic} ${partition}`);', 'if (!word) {\n          delivered.push({ topic, partition, end: undefined });\n          continue;\n        }'],
  ['who leads no more is taken for having written', 'src/sinks/producer/protocol-errors.ts', '[6, [\'NOT_LEADER_OR_FOLLOWER\', \'leader\']],', '[6, [\'NOT_LEADER_OR_FOLLOWER\', \'done\']],'],
  ['who leads no more is asked again and again', 'src/sinks/producer/delivery.ts', 'if (troubles.some(({ hasMoved }) => hasMoved)) {', 'if (troubles.some(({ hasMoved }) => hasMoved && !hasMoved)) {'],
  ['a batch that is there already is taken for an error', 'src/sinks/producer/protocol-errors.ts', '[46, [\'DUPLICATE_SEQUENCE_NUMBER\', \'done\']]', '[46, [\'DUPLICATE_SEQUENCE_NUMBER\', \'abort\']]'],
  ['a partition is said to end where its batch begins', 'src/sinks/producer/delivery.ts', 'baseOffset + BigInt(outgoing.count);', 'baseOffset;'],
  ['the end of a commit is said to be before its marker', 'src/sinks/producer/kafka-producer.ts', 'ofTopic.set(partition, end + 1n)', 'ofTopic.set(partition, end)'],
  ['a checksum is of too much', 'src/sinks/producer/record-batch.ts', 'const CHECKED_FROM = 21;', 'const CHECKED_FROM = 17;'],
  ['a checksum forgets every eighth byte', 'src/sinks/producer/crc32c.ts', 't0[bytes[at + 7]!]!;', '0;'],
  ['a newer producer loses what it has open', 'src/sinks/producer/kafka-producer.ts', "if (own !== NOBODY) await end(own, 'abort', patiently());", ''],
  ['a batch of a topic with a small max.message.bytes is as large as any', 'src/sinks/producer/batches.ts', 'maxBatchBytes(maxMessageBytes.get(topic))', 'maxBatchBytes()'],
  ['a commit is over before readers can see it', 'src/sinks/producer/kafka-producer.ts', '        await visible();\n', '', ['kafka-producer']],
  ['a commit is asked for again when its answer is lost', 'src/sinks/producer/kafka-producer.ts', "isRepeatable: outcome === 'abort',", 'isRepeatable: true,'],
  ['a transaction after a lost answer keeps its epoch', 'src/sinks/producer/kafka-producer.ts', 'isInDoubt = addingStayedOut || stayedOut;', 'isInDoubt = addingStayedOut && stayedOut && false;'],
  ['a lost answer to Produce leaves no doubt', 'src/sinks/producer/delivery.ts', 'stayedOut ||= error instanceof NoAnswer;', ''],
  ['a lost answer to AddPartitionsToTxn leaves no doubt', 'src/sinks/producer/coordinator.ts', 'stayedOut = true;', 'stayedOut = false;'],
  ['partitions are added while they are written to', 'src/sinks/producer/kafka-producer.ts', '      added,\n      batchesOf(placed, options.maxMessageBytes),', '      leaders.learn(topics.map(({ topic }) => topic), limit).then(() => (added.catch(() => undefined), { stayedOut: false })),\n      batchesOf(placed, options.maxMessageBytes),'],
  ['one leader waits for the other', 'src/sinks/producer/delivery.ts', 'ready.map(([address, batches]) => send(address, batches)),', 'ready.map(async ([address, batches], n) => {\n        while (n > 0 && later.length + delivered.length < n) await new Promise(setImmediate);\n        return send(address, batches);\n      }),'],
  ['an abort does not wait for the other leaders', 'src/sinks/producer/delivery.ts', 'await Promise.allSettled(\n      ready.map(([address, batches]) => send(address, batches)),\n    );', '(await Promise.all(\n      ready.map(([address, batches]) => send(address, batches)),\n    )).map(() => ({ status: \'fulfilled\' }) as PromiseSettledResult<void>);'],
  ['a newer epoch is waited for', 'src/sinks/producer/protocol-errors.ts', '[47, [\'INVALID_PRODUCER_EPOCH\', \'epoch\']],', '[47, [\'INVALID_PRODUCER_EPOCH\', \'again\']],'],
  ['a batch that is missing is sent again', 'src/sinks/producer/protocol-errors.ts', '[45, [\'OUT_OF_ORDER_SEQUENCE_NUMBER\', \'abort\']],', '[45, [\'OUT_OF_ORDER_SEQUENCE_NUMBER\', \'again\']],'],
  ['sequences stand still', 'src/sinks/producer/sequences.ts', 'counts.set(name, (first + count) % ALL);', 'counts.set(name, first % ALL);'],
  ['sequences go on behind 31 bits', 'src/sinks/producer/sequences.ts', '(first + count) % ALL', 'first + count'],
  ['a transaction that failed stays open', 'src/sinks/producer/kafka-producer.ts', 'if (!isSent) {', 'if (!isSent && isSent) {'],
  ['a connection is kept whose answer is late', 'src/sinks/producer/brokers.ts', 'end(connection, cause as Error);', ''],
  ['a login is used until its end', 'src/sinks/producer/brokers.ts', 'const USED_UP_AT = 2 / 3;', 'const USED_UP_AT = 2;'],
  ['a connection that is being made outlasts its producer', 'src/sinks/producer/brokers.ts', 'const onClose = () => giveUp(isClosed());', 'const onClose = () => undefined;'],
  ['a header is as long as it has characters', 'src/sinks/producer/record-batch.ts', 'return typeof value === \'string\' ? Buffer.byteLength(value) : value.length;', 'return value.length;'],
  ['a length of 64 is a byte', 'src/sinks/producer/record-batch.ts', 'while (rest > 0x7f) {', 'while (rest > 0xff) {'],
  ['messages are as old as the epoch', 'src/sinks/producer/delivery.ts', 'const timestamp = Date.now();', 'const timestamp = Math.floor(Date.now() / 1_000);'],
  ['messages of a partition are no part of its transaction', 'src/sinks/producer/record-batch.ts', '(stamp.isTransactional ? TRANSACTIONAL : 0)', '(stamp.isTransactional ? 0 : TRANSACTIONAL)'],
  ['a batch is filled beyond what a broker takes', 'src/sinks/producer/batches.ts', 'filling.bytes + bytes > maxBatchBytes', 'filling.bytes > maxBatchBytes'],
  ['a topic that has grown gets its keys elsewhere', 'src/sinks/producer/leaders.ts', 'count !== undefined && count !== partitions.length', 'count !== undefined && count > partitions.length'],
  ['a coordinator that has moved is not looked for', 'src/sinks/producer/coordinator.ts', 'if (meaning === \'coordinator\') address = undefined;', 'if (meaning === \'coordinator\') void address;'],
  ['keys have a sign', 'src/sinks/producer/partition-of.ts', 'Buffer.from(key) : key) & 0x7fffffff) % partitions', 'Buffer.from(key) : key) >>> 0) % partitions'],
  ['a message that was refused leaves a gap behind', 'src/sinks/producer/plain-producer.ts', 'identity = undefined; // what', '// what'],
  ['what no later try changes is tried for ever', 'src/sinks/client/kafka-error.ts', '  INVALID_TRANSACTION_TIMEOUT:', '  INVALID_TRANSACTION_TIME_OUT:'],
  ['ledger: a block counts before it is committed', 'src/account/ledger/ledger.ts', 'await log?.append(ledgerText(record));\n    //', 'void log?.append(ledgerText(record)).catch(() => undefined);\n    //'],
  ['ledger: what was given up has arrived at once', 'src/account/ledger/ledger-record.ts', 'export const LATE_MS = 1_000;', 'export const LATE_MS = 0;'],
  ['ledger: the block after next is not counted', 'src/account/ledger/ledger.ts', 'const blockMs = BLOCK_MS + Math.min(AHEAD_MS, Math.max(0, Math.ceil(left())));\n    const record = recordOf(now, blockMs);', 'const ahead = Math.min(AHEAD_MS, Math.max(0, Math.ceil(left())));\n    const record = recordOf(now, ahead === 0 ? BLOCK_MS : ahead);\n    const blockMs = BLOCK_MS + ahead;'],
  ['ledger: what is left of the block before is not declared again', 'src/account/ledger/ledger.ts', 'Math.max(kept, wanted)', 'Math.max(kept * 0, wanted)'],
  ['ledger: it is read to the last stable offset', 'src/sinks/ledger/kafka-ledger.ts', "isolation: 'uncommitted', ", '', ['ledger']],
  ['ledger: history counts from the start of its second', 'src/account/ledger/used-requests.ts', 'const second = Math.ceil(at / SECOND_MS);', 'const second = Math.floor(at / SECOND_MS);'],
  ['ledger: what is under way is not told', 'src/account/ledger/ledger-record.ts', 'count: underWay + more }', 'count: more }'],
  ['ledger: what may still begin is not counted', 'src/account/ledger/ledger-record.ts', 'count: underWay + more }', 'count: underWay }'],
  ['ledger: a block ends by the monotonic clock alone', 'src/account/ledger/ledger.ts', 'Math.min(block.end - scheduler.now(), block.wallEnd - wallNow())', 'block.end - scheduler.now()'],
  ["ledger: a block ends by the machine's clock alone", 'src/account/ledger/ledger.ts', 'Math.min(block.end - scheduler.now(), block.wallEnd - wallNow())', 'block.wallEnd - wallNow()'],
  ['ledger: nobody looks whether a request may still be sent', 'src/streams/quota/leased.ts', 'if (!mayBeSent()) throw over();', 'void [mayBeSent, over];'],
  ["ledger: another writer's folder counts", 'src/account/quotas.ts', 'record !== undefined && record.instance === writer?.get()', 'record !== undefined'],
  ['ledger: requests of before the scope changed are forgotten', 'src/account/ledger/ledger-record.ts', 'other !== LOGIN && (name === ALL || other === ALL || other === name)', 'other === name'],
  ['ledger: ages are told between two clocks', 'src/sinks/ledger/ledger-entries.ts', 'entry.isAppendTime && at.isAppendTime && entry.leaderEpoch === at.leaderEpoch', 'entry.isAppendTime && at.isAppendTime'],
  ['ledger: all that is left is used up at once', 'src/account/ledger/pace.ts', 'const BURST = 2;', 'const BURST = 100;'],
  ['ledger: nothing is settled at the end', 'src/account/ledger/ledger.ts', 'await log?.append(ledgerText(recordOf(scheduler.now(), 0)));', ''],
  ['ledger: a fenced process is opened anew', 'src/sinks/ledger/kafka-ledger.ts', 'if (last && !isMine(String(last.value))) throw fenced(error);', 'void [last, isMine, fenced];', ['ledger']],
  ['ledger: claims take the place of what was declared', 'src/sinks/ledger/kafka-ledger.ts', 'await commit(own, claimKey(account), text)', 'await commit(own, claimKey(account).slice(0, -1), text)', ['ledger']],
  ['ledger: a folder is believed that lacks what was declared', 'src/account/quotas.ts', '(isOurs && hasAll(one, sent))', '(isOurs && (hasAll(one, sent) || true))'],
  ['ledger: a killed process leaves no permits in its folder', 'src/account/permits/permit-grants.ts', 'if (isTaken()) lane.keep([{ at: until, count: 1 }]);', 'if (isTaken()) void lane.keep;'],
  ['ledger: a successor is told of nothing', 'src/account/quotas.ts', 'else countOthers(one, arrivalsIn(one.name, sent));', 'else void countOthers;'],
  ['permits: they last longer than what the service has declared', 'src/account/permits/permit-grants.ts', 'Math.floor(ledger.leftMs())', 'Math.floor(ledger.leftMs() + 15_000)'],
  ['permits: those that are good when a service stops are forgotten', 'src/account/permits/permit-grants.ts', 'if (isTaken() && until > scheduler.now()) lane', 'if (isTaken() && until < 0) lane'],
  ['permits: a service does not look who came while it did not ask', 'src/account/ledger/ledger.ts', 'if (log && !isRunning()) guests$.next(heard(await log.guests()));', ''],
  ['permits: a successor counts no guests', 'src/account/quotas.ts', 'for (const guest of guests) countMore(one, arrivalsIn(one.name, guest));', 'void guests;'],
  ['permits: a guest asks beside a service whose declaration runs', 'src/account/permits/guest-declarations.ts', 'service.record.blockMs > at) return', 'service.record.blockMs < 0) return'],
  ['permits: a guest takes an earlier declaration for its own', 'src/account/permits/guest-declarations.ts', 'number: declared }', 'number: 1 }'],
  ['permits: what a guest did not get stays declared', 'src/account/permits/guest-declarations.ts', 'if (isShort) await append(shares, BLOCK_MS, counts ?? {});', 'void isShort;'],
  ['permits: a guest counts its requests as of its first try', 'src/account/permits/guest-permits.ts', 'return get(shares);', 'const first = shares();\n    return get(() => first);'],
  ['permits: what a guest has without Kafka has no end', 'src/account/permits/permit-source.ts', 'end: scheduler.now() + BLOCK_MS,\n    wallEnd', 'end: Infinity,\n    wallEnd'],
]; // prettier-ignore

const SIMULATION = ['run', '--project', 'sim'];
/** With time for tests that share their processor with the other copies. */
const UNIT = ['--project=unit', '--project=mocked', '--exclude=test/sim/**', '--testTimeout=60000'];
/**
 * The simulation first: a few seeds show what is badly broken; then the unit tests that what is
 * broken can reach, or all of them where nothing is.
 *
 * @type {{ name: string, args: (file?: string) => string[], env?: Record<string, string> }[]}
 */
const SUITES = [
  { name: 'simulation', args: () => SIMULATION, env: { SIM_SEEDS: '24' } },
  { name: 'simulation', args: () => SIMULATION, env: { SIM_FIRST: '25', SIM_SEEDS: '96' } },
  { name: 'unit tests', args: (file) => (file ? ['related', file, '--run', ...UNIT] : ['run', ...UNIT]) },
]; // prettier-ignore
/** @param {string[]} tests */
const onKafka = (tests) => ({
  name: 'integration',
  args: () => ['run', '--project', 'integration', ...tests.map((test) => `test/integration/${test}.test.ts`)],
  env: {},
}); // prettier-ignore
/** Longer than any suite takes: what is broken may go on for ever. */
const MAX_MS = 15 * 60_000;
/** Of what a suite prints, so many characters are kept. */
const MAX_OUTPUT = 100_000;
const LEFT_OUT = new Set(['node_modules', '.git', 'coverage', '.cellarstream']);

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { jobs: { type: 'string', default: '2' } },
});
const waiting = BREAKS.filter(([name]) => name.includes(positionals[0] ?? ''));
const work = mkdtempSync(join(tmpdir(), 'cellarstream-breaks-'));
/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
const count = { noticed: 0, unnoticed: 0 };
const began = performance.now();

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    cleanUp();
    process.exit(1);
  });
}
try {
  const jobs = Array.from({ length: Number(values.jobs) }, (_, job) => join(work, String(job)));
  jobs.forEach(copyTo);
  // Without it a test that fails by itself would notice everything.
  const failing = await noticed(/** @type {string} */ (jobs[0]));
  if (failing) throw new Error(`nothing is broken, and yet: ${failing.by}\n${failing.output}`);
  await Promise.all(jobs.map(takeTurns));
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  console.log(`${count.noticed} noticed, ${count.unnoticed} unnoticed, ${seconds} s`);
  process.exitCode = count.unnoticed > 0 ? 1 : 0;
} finally {
  cleanUp();
}

/** @param {string} copy */
function copyTo(copy) {
  cpSync(root, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
}

/**
 * One break after the other in a copy, for as long as there are any.
 *
 * @param {string} copy
 */
async function takeTurns(copy) {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const [name, file, from, to, integration] = next;
    const start = performance.now();
    const path = join(copy, file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, broken(text, file, from, to));
    const failing = await noticed(copy, file, integration);
    writeFileSync(path, text);
    count[failing ? 'noticed' : 'unnoticed'] += 1;
    const seconds = ((performance.now() - start) / 1_000).toFixed(0).padStart(4);
    const verdict = failing ? 'noticed  ' : 'UNNOTICED';
    console.log(`${verdict} ${seconds} s  ${name}${failing ? `  (${failing.by})` : ''}`);
  }
}

/**
 * A break that can't be parsed would be noticed by anybody: that is an error.
 *
 * @param {string} text
 * @param {string} file
 * @param {string} from
 * @param {string} to
 */
function broken(text, file, from, to) {
  if (text.split(from).length !== 2) throw new Error(`${file} has not just one: ${from}`);
  const source = text.replace(from, () => to);
  const { diagnostics } = ts.transpileModule(source, { reportDiagnostics: true });
  if (diagnostics?.length) throw new Error(`${file} can't be parsed with: ${to}`);
  return source;
}

/**
 * Which of the suites fails first in a copy, with which file of tests, and what it says; undefined
 * when all pass.
 *
 * @param {string} copy
 * @param {string} [file]
 * @param {string[]} [integration]
 */
async function noticed(copy, file, integration) {
  for (const { name, args, env } of integration ? [onKafka(integration)] : SUITES) {
    const { passed, output } = await run(copy, args(file), env);
    if (passed) continue;
    const test = /FAIL .*?(test\/\S+)/.exec(output)?.[1];
    return { by: `${name}: ${test ?? 'it did not end well'}`, output };
  }
  return undefined;
}

/**
 * @param {string} copy
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ passed: boolean, output: string }>} the last of what it printed.
 */
function run(copy, args, env) {
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, ...args, '--bail', '1'], {
    cwd: copy,
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // with its workers in a group of its own: one in a loop ends only by a signal
  });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (/** @type {Buffer} */ chunk) => {
      output = (output + chunk.toString()).slice(-MAX_OUTPUT);
    });
  }
  const late = setTimeout(() => end(child), MAX_MS);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(late);
      running.delete(child);
      resolve({ passed: code === 0, output });
    });
  });
}

/** @param {import('node:child_process').ChildProcess} child */
function end({ pid }) {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}

function cleanUp() {
  running.forEach(end);
  rmSync(work, { recursive: true, force: true });
}
