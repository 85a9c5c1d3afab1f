import { compaction } from './compaction.mjs'
import { destinations } from './destinations.mjs'
import { disk } from './disk.mjs'
import { embed } from './embed.mjs'
import { explorer } from './explorer.mjs'
import { feed } from './feed.mjs'
import { fleet } from './fleet.mjs'
import { http } from './http.mjs'
import { postgres, sqlite } from './landing.mjs'
import { long } from './long.mjs'
import { partitions } from './partitions.mjs'
import { queries } from './queries.mjs'
import { replica } from './replica.mjs'
import { scheduler } from './scheduler.mjs'
import { tables } from './tables.mjs'
import { tenants } from './tenants.mjs'

/** By the name that `--only` takes. Each has a title and runs to `{ measures, … }`; see measures.mjs. */
export const CASES = {
  sqlite,
  postgres,
  tables,
  http,
  partitions,
  queries,
  feed,
  disk,
  long,
  scheduler,
  embed,
  explorer,
  destinations,
  tenants,
  replica,
  compaction,
  fleet,
}

/** Run only when named: they take from minutes to a quarter of an hour. */
export const SLOW = ['destinations', 'tenants', 'replica', 'compaction', 'fleet']
