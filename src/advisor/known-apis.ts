import type { SourceAdvice } from '../sources/kit/source-advice.ts'
import type { SourceDescriptor } from '../sources/kit/define-source.ts'
import { SOURCES, type SourceName } from '../sources/registry.ts'

/** The sources with `advice`. */
export type KnownApi = {
  [Name in SourceName]: (typeof SOURCES)[Name]['advice'] extends SourceAdvice ? Name : never
}[SourceName]

/** An API with a built-in source: the facts from its documentation, and how to declare it. */
export interface KnownApiProfile extends SourceAdvice {
  readonly name: KnownApi
  readonly title: string
}

/** In the order of the prompt. */
export const KNOWN_APIS: readonly KnownApiProfile[] = Object.values<SourceDescriptor>(SOURCES)
  .flatMap(({ name, title, advice }) => (advice === undefined ? [] : [{ ...advice, name: name as KnownApi, title }]))
  .toSorted((a, b) => a.rank - b.rank)
