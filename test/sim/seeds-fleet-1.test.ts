import { fleetSeeds } from './fleet/seeds.ts';

fleetSeeds(1, 2);
