// Generated from the folders by `npm run sources`. Do not edit.
import duckdb from './duckdb/descriptor.ts'
import http from './http/descriptor.ts'
import kafka from './kafka/descriptor.ts'
import lake from './lake/descriptor.ts'
import mariadb from './mariadb/descriptor.ts'
import postgres from './postgres/descriptor.ts'

/** Every destination, by name. */
export const DESTINATIONS = {
  duckdb,
  http,
  kafka,
  lake,
  mariadb,
  postgres,
}

export type DestinationName = keyof typeof DESTINATIONS
