import { fleetSeeds } from './fleet/seeds.ts';

fleetSeeds(2, 2);
