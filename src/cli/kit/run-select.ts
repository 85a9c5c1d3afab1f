import { SyncError, type SelectResult, type SelectOptions, type StoreLocation } from '../../contract/index.ts'

/** One statement of the user's own, on a connection that cannot write. */
export async function runSelect(location: StoreLocation, sql: string, options: SelectOptions): Promise<SelectResult> {
  // A comment ends where it first can: were several to be read as one, forty of them could be read in a trillion ways.
  const [, verb = ''] = /^(?:\s|--[^\n]*\n|\/\*(?:(?!\*\/)[\s\S])*\*\/)*([a-z]+)/i.exec(sql) ?? []
  if (!READ_STATEMENTS.has(verb.toLowerCase())) {
    throw new SyncError('ARGUMENT_INVALID', `A query begins with ${[...READ_STATEMENTS].join(', ')}; this one begins with ${JSON.stringify(verb || sql.slice(0, 20))}.`)
  }
  if (options.asOf !== undefined && verb.toLowerCase() === 'explain') throw new SyncError('ARGUMENT_INVALID', 'EXPLAIN does not go with --as-of.')
  return location.select(sql, options)
}

/** Of the statements that a read-only connection lets through, those that also leave the disk alone: VACUUM INTO does not. */
const READ_STATEMENTS = new Set(['select', 'with', 'values', 'explain'])
