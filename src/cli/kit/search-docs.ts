import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SyncError } from '../../contract/index.ts'
import { findBuiltFolder } from '../../server/static-folder.ts'

/** A section of the documentation that contains the words of a search. */
export interface DocsHit {
  /** Relative to the first page, such as `guides/tables.html#types`. */
  readonly href: string
  readonly page: string
  readonly title: string
  readonly excerpt: string
}

/** Searches with the index and the code of the documentation site. */
export async function searchDocs(query: string): Promise<readonly DocsHit[]> {
  const folder = findBuiltFolder('docs')
  if (folder === '') throw new SyncError('PACKAGE_UNFIT', 'The documentation is not built. Run `npm run build`.')
  const load = (name: string): Promise<unknown> => import(pathToFileURL(join(folder, 'assets', name)).href)
  const [{ openIndex }, miniSearch] = (await Promise.all([load('search.js'), load('minisearch.js')])) as [
    SearchModule,
    { default: unknown },
  ]
  return openIndex(miniSearch.default, readFileSync(join(folder, 'search.json'), 'utf8'))(query)
}

interface SearchModule {
  openIndex(miniSearch: unknown, serialized: string): (query: string) => DocsHit[]
}
