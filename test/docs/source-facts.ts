import type { SourceTimes } from '../../src/sources/kit/define-source.ts'
import type { SourceReference } from '../../src/sources/kit/source-reference.ts'
import { SOURCES as DESCRIPTORS } from '../../src/sources/registry.ts'

export interface SourceFacts extends SourceReference {
  /** Its folder in src/sources, which is also the import path. */
  readonly folder: string
  readonly title: string
  readonly times: SourceTimes
}

/** The content of docs/reference/sources.md beyond the types, from `reference.ts` of each source. */
export const SOURCES: readonly SourceFacts[] = await Promise.all(
  Object.values(DESCRIPTORS).map(async ({ name, title, times }) => {
    const { default: reference } = (await import(`../../src/sources/${name}/reference.ts`)) as {
      readonly default: SourceReference
    }
    return { folder: name, title, times, ...reference }
  }),
)
