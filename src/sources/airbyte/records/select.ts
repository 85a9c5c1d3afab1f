import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { toPython, type Names } from '../jinja/interpolation.ts'
import { components, isComponent, isRecord, type Component } from '../manifest/component.ts'
import type { Run } from '../requests/run.ts'
import { extractRecords } from './extract.ts'
import { transformRecord } from './transform.ts'

export interface SelectedRecords {
  readonly records: JsonObject[]
  /** Records before the filter: they decide whether the page was full. */
  readonly extracted: number
}

/** Extracts, filters and transforms the records of a page. */
export function selectRecords(
  bodies: readonly JsonValue[],
  { selector, transformations }: { readonly selector: Component; readonly transformations: JsonValue | undefined },
  run: Run,
  names: Names,
): SelectedRecords {
  const { extractor, record_filter: filter } = selector
  const found = bodies.flatMap((body) => (isComponent(extractor) ? extractRecords(body, extractor, run) : []))
  // A value that is not an object is quarantined by the engine, so that it is seen.
  const candidates = found.map((record) => (isRecord(record) ? structuredClone(record) : { value: record }))
  const steps = components(transformations)
  const transform = (record: JsonObject): JsonObject => {
    for (const step of steps) transformRecord(record, step, run, names)
    return record
  }
  const isKept = (record: JsonObject): boolean => {
    if (!isComponent(filter)) return true
    const { condition } = filter
    return condition === undefined || run.test(condition, filter, { ...names, record: toPython(record) })
  }
  const records =
    selector.transform_before_filtering === true
      ? candidates.map(transform).filter(isKept)
      : candidates.filter(isKept).map(transform)
  return { records, extracted: found.length }
}
