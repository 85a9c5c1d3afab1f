import { RawPostgres } from './postgres.mjs'
import { RawSqlite } from './sqlite.mjs'

/** A bare table of the same typed columns, without the store's guarantees: the raw limit. */
export function openRaw(url) {
  return url.startsWith('sqlite:') ? RawSqlite.open(`${url.slice('sqlite:'.length)}.raw`) : RawPostgres.open(url)
}
