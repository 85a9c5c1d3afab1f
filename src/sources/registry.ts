// Generated from the folders by `npm run sources`. Do not edit.
import airbyte from './airbyte/descriptor.ts'
import airtable from './airtable/descriptor.ts'
import bookmarks from './bookmarks/descriptor.ts'
import evm from './evm/descriptor.ts'
import files from './files/descriptor.ts'
import github from './github/descriptor.ts'
import githubStars from './github-stars/descriptor.ts'
import hubspot from './hubspot/descriptor.ts'
import kafka from './kafka/descriptor.ts'
import kraken from './kraken/descriptor.ts'
import linear from './linear/descriptor.ts'
import odata from './odata/descriptor.ts'
import postgresCdc from './postgres-cdc/descriptor.ts'
import rest from './rest/descriptor.ts'
import salesforce from './salesforce/descriptor.ts'
import servicenow from './servicenow/descriptor.ts'
import singer from './singer/descriptor.ts'
import sql from './sql/descriptor.ts'
import stripe from './stripe/descriptor.ts'

/** Every source, by name. */
export const SOURCES = {
  airbyte,
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
}

export type SourceName = keyof typeof SOURCES
