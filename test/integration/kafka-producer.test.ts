import { inject } from 'vitest';
import { producerContract } from './support/producer-contract.ts';

producerContract('the Kafka of all tests', () => inject('brokers'));
