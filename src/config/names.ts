import { SyncError } from '../contract/index.ts'

/**
 * Names become SQL identifiers and parts of paths and URLs. The allowed characters prevent injection and traversal: no
 * separator, no quote, no space, and no leading dot or dash.
 */
const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/

export function checkName(kind: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && NAME_PATTERN.test(name)) return
  throw new SyncError('NAME_INVALID', `${describeValue(name)} is not a valid name for a ${kind}.`)
}

/** Paths of the API below /agents/v1. */
const RESERVED_PATHS = ['auth', 'capabilities', 'changes', 'schema', 'sync-state']

/** A database is a table, a view and a path of the feed, so names that are reserved there are refused at declaration. */
export function checkDatabaseName(name: unknown): asserts name is string {
  checkName('database', name)
  const lower = name.toLowerCase()
  if (RESERVED_PATHS.includes(lower))
    throw new SyncError(
      'NAME_INVALID',
      `${describeValue(name)} is not a valid name for a database: /agents/v1/${lower} is a path of the feed.`,
    )
  if (/^(?:sqlite|tidemark)_/.test(lower))
    throw new SyncError(
      'NAME_INVALID',
      `${describeValue(name)} is not a valid name for a database: the prefixes sqlite_ and tidemark_ are reserved.`,
    )
}

/** Converts a text, such as a file name, to a valid name. */
export function toValidName(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9_.-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 63)
    .replace(/[-.]+$/, '')
  return name === '' ? 'worker' : name
}

/** Describes any value for a message: escaped and shortened. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value)
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean')
    return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'function' ? 'a function' : `a value of type ${typeof value}`
}
