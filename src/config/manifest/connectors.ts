import type { Connector } from './connector.ts'
import { evm } from './evm.ts'
import { files } from './files.ts'
import { kafka } from './kafka.ts'
import { odata } from './odata.ts'
import { postgresCdc } from './postgres-cdc.ts'
import { rest } from './rest.ts'
import { singer } from './singer.ts'
import { sql } from './sql.ts'
import {
  airtable,
  bookmarks,
  github,
  githubStars,
  hubspot,
  kraken,
  linear,
  salesforce,
  servicenow,
  stripe,
} from './vendors.ts'

/** The values of `connector` in a manifest. */
export const CONNECTORS = {
  airtable,
  bookmarks,
  evm,
  files,
  github,
  'github-stars': githubStars,
  hubspot,
  kafka,
  kraken,
  linear,
  odata,
  'postgres-cdc': postgresCdc,
  rest,
  salesforce,
  servicenow,
  singer,
  sql,
  stripe,
} as const satisfies Readonly<Record<string, Connector>> as Readonly<Record<ConnectorName, Connector>>

export type ConnectorName =
  | 'airtable'
  | 'bookmarks'
  | 'evm'
  | 'files'
  | 'github'
  | 'github-stars'
  | 'hubspot'
  | 'kafka'
  | 'kraken'
  | 'linear'
  | 'odata'
  | 'postgres-cdc'
  | 'rest'
  | 'salesforce'
  | 'servicenow'
  | 'singer'
  | 'sql'
  | 'stripe'
