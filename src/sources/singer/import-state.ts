import { SyncError, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { isObject } from '../kit/classify-response.ts'

/**
 * The state of a tap as a Singer target or Meltano stored it: the value itself, a STATE message, or an object with
 * `singer_state`. Only the bookmarks of the sync's streams are kept, because the tap runs with these streams alone.
 */
export function importTapState(document: JsonValue, streams: readonly string[], named?: string): JsonObject {
  const state = unwrap(document)
  if (state === null || Object.keys(state).length === 0)
    throw invalidState('The file is not the state of a Singer tap: it has no members.')
  const { bookmarks, currently_syncing: _, ...rest } = state
  // Taps without bookmarks have a state of their own form, which only the tap understands.
  if (!isObject(bookmarks)) return state
  const names = named === undefined ? streams : [named]
  const found = names.filter((name) => Object.hasOwn(bookmarks, name))
  if (found.length === 0) {
    const known = Object.keys(bookmarks)
    const hint = didYouMean(names[0] ?? '', known)
    throw invalidState(
      `The state has no bookmark of ${names.join(', ')}. Its bookmarks are ${known.join(', ') || 'none'}.${hint} Name one with --stream.`,
    )
  }
  return { ...rest, bookmarks: Object.fromEntries(found.map((name) => [name, bookmarks[name] as JsonValue])) }
}

function unwrap(document: JsonValue): JsonObject | null {
  if (!isObject(document)) return null
  if (document['type'] === 'STATE') return unwrap(document['value'] as JsonValue)
  return 'singer_state' in document ? unwrap(document['singer_state'] as JsonValue) : document
}

function invalidState(message: string): SyncError {
  return new SyncError('ARGUMENT_INVALID', message)
}
