import { expect, it } from 'vitest';
import { FleetScene } from '../../src/commands/fleet-scene.ts';

const step = (scene: FleetScene, instance: string, account: string, name: string) =>
  scene.linesFor(instance, { event: 'account', account, step: name });
const ready = (scene: FleetScene, instance: string, account: string) =>
  scene.linesFor(instance, { event: 'ready', account });

it('says once who shares the accounts out, though each of them tells it', () => {
  const scene = new FleetScene(2);
  const instances = ['two', 'one'];
  const told = { event: 'generation', instances };
  expect(scene.linesFor('one', told)).toEqual(['the accounts are assigned to one, two']);
  expect(scene.linesFor('two', { ...told, instances: ['one', 'two'] })).toEqual([]);
});

it('is whole when each account is read, and not while one is on its way', () => {
  const scene = new FleetScene(2);
  expect(step(scene, 'one', 'a', 'claim')).toEqual(['one claims a']);
  step(scene, 'one', 'b', 'claim');
  expect(ready(scene, 'one', 'a')).toEqual([]);
  expect(scene.isFullyServed).toBe(false);
  expect(ready(scene, 'one', 'b')).toEqual([
    'all 2 accounts are served; accounts of each instance: one 2',
  ]);
  expect(ready(scene, 'one', 'b')).toEqual([]); // its next list

  expect(step(scene, 'two', 'b', 'warm')).toEqual([]);
  expect(step(scene, 'two', 'b', 'ask')).toEqual([
    'two has restored the images of b, and asks one to release it',
  ]);
  expect(scene.isFullyServed).toBe(true);
  expect(step(scene, 'one', 'b', 'release')).toEqual(['one releases b']);
  expect(scene.isFullyServed).toBe(false);
  expect(step(scene, 'two', 'b', 'claim')).toEqual(['two claims b from one']);
  expect(ready(scene, 'two', 'b')).toEqual([
    'all 2 accounts are served; accounts of each instance: one 1, two 1',
  ]);
});

it('takes a late line of who had an account for nothing', () => {
  const scene = new FleetScene(1);
  step(scene, 'one', 'a', 'claim');
  step(scene, 'two', 'a', 'claim');
  ready(scene, 'two', 'a');
  step(scene, 'one', 'a', 'release');
  ready(scene, 'one', 'a');
  expect(scene.isFullyServed).toBe(true);
});

it('counts the accounts of an instance that is lost as not read', () => {
  const scene = new FleetScene(2);
  for (const account of ['b', 'a']) {
    step(scene, 'one', account, 'claim');
    ready(scene, 'one', account);
  }
  expect(scene.instanceEnded('two')).toEqual([]);
  expect(scene.isFullyServed).toBe(true);
  expect(scene.instanceEnded('one')).toEqual(['a', 'b']);
  expect(scene.isFullyServed).toBe(false);
});
