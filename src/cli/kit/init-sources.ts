import type { SourceDescriptor } from '../../sources/kit/define-source.ts'
import type { SourceTemplate } from '../../sources/kit/source-template.ts'
import { SOURCES, type SourceName } from '../../sources/registry.ts'

/** A source that `init` can create a project for. */
export interface InitSource extends SourceTemplate {
  readonly label: string
  readonly sync: string
  readonly simulated: string
}

export type InitSourceName = 'harbour' | SourceName

const HARBOUR: InitSource = {
  rank: 0,
  label: 'No API yet: a small harbour inside the worker',
  settings: { HARBOUR_TOKEN: 'the token of your API' },
  database: 'vessels',
  sync: 'vessel-moves',
  simulated: 'a harbour inside the worker',
}

/** In the order of the prompt. */
export const INIT_SOURCES = Object.fromEntries([
  ['harbour', HARBOUR],
  ...Object.values<SourceDescriptor>(SOURCES)
    .toSorted((a, b) => a.template.rank - b.template.rank)
    .map(({ name, title, template }) => [
      name,
      { label: title, sync: template.database, simulated: 'a simulated account', ...template },
    ]),
]) as Readonly<Record<InitSourceName, InitSource>>
