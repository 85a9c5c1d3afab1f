import { SyncError, type SelectResult, type SelectOptions, type StoreLocation } from '../contract/index.ts'

/** Runs a user's statement on a read-only connection. */
export async function runSelect(location: StoreLocation, sql: string, options: SelectOptions): Promise<SelectResult> {
  // The comment pattern must not match across comments: ambiguity would cause exponential backtracking.
  const [, verb = ''] = /^(?:\s|--[^\n]*\n|\/\*(?:(?!\*\/)[\s\S])*\*\/)*([a-z]+)/i.exec(sql) ?? []
  if (!READ_STATEMENTS.has(verb.toLowerCase())) {
    throw new SyncError(
      'ARGUMENT_INVALID',
      `A query must start with ${[...READ_STATEMENTS].join(', ')}, but this one starts with ${JSON.stringify(verb || sql.slice(0, 20))}.`,
    )
  }
  if (options.asOf !== undefined && verb.toLowerCase() === 'explain')
    throw new SyncError('ARGUMENT_INVALID', 'EXPLAIN cannot be combined with --as-of.')
  if (options.only !== undefined && verb.toLowerCase() === 'explain')
    throw new SyncError('ARGUMENT_INVALID', 'EXPLAIN is not available here. Ask for the plan instead.')
  return location.select(sql, options)
}

/** Runs statements of persons with limited rights; undefined if the store cannot confine them. */
export function confinedSelectOf(location: StoreLocation): StoreLocation['select'] | undefined {
  if (location.confinesSelect !== true) return undefined
  return async (sql, options) => {
    if (options.only === undefined) throw new SyncError('ARGUMENT_INVALID', 'A confined query needs its databases.')
    return runSelect(location, sql, options)
  }
}

/** A read-only connection also permits statements that write to disk, such as VACUUM INTO; these do not. */
const READ_STATEMENTS = new Set(['select', 'with', 'values', 'explain'])
