import type { JsonValue, StateText } from '../../contract/index.ts'
import { parseJson, stringifyJson } from '../../values/json.ts'

export interface StateDifference {
  /** Field names only: they come from the connector's code, whereas values may contain source data. */
  readonly path: string
  readonly change: 'added' | 'removed' | 'changed'
  readonly from?: string
  readonly to?: string
}

const DIFFERENCES_MAX = 1_000

/** Lists the fields that differ between two states, recursing into objects. Includes values only with `reveal`. */
export function diffStates(from: StateText, to: StateText, reveal: boolean): StateDifference[] {
  const differences: StateDifference[] = []
  const add = (path: string, change: StateDifference['change'], before?: JsonValue, after?: JsonValue): void => {
    if (differences.length >= DIFFERENCES_MAX) return
    const values = reveal
      ? {
          ...(before !== undefined && { from: stringifyJson(before) }),
          ...(after !== undefined && { to: stringifyJson(after) }),
        }
      : {}
    differences.push({ path: path === '' ? '(all)' : path, change, ...values })
  }
  const compare = (path: string, before: JsonValue | undefined, after: JsonValue | undefined): void => {
    if (before === undefined) return add(path, 'added', undefined, after)
    if (after === undefined) return add(path, 'removed', before)
    if (isObject(before) && isObject(after)) {
      for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
        compare(
          path === '' ? name : `${path}.${name}`,
          Object.hasOwn(before, name) ? before[name] : undefined,
          Object.hasOwn(after, name) ? after[name] : undefined,
        )
      }
    } else if (stringifyJson(before) !== stringifyJson(after)) add(path, 'changed', before, after)
  }
  compare('', from === null ? undefined : parseJson(from), to === null ? undefined : parseJson(to))
  return differences
}

function isObject(value: JsonValue): value is { [name: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
