import type { ApiFacts } from '../sources/kit/source-advice.ts'
import type { KnownApi } from './known-apis.ts'

/** The known facts about an API. Each field answers the question of the same name in `questions.ts`. */
export interface Answers extends ApiFacts {
  /** An API with a built-in source, or `other`. */
  readonly api?: KnownApi | 'other'
}

/** The sync mode that the answers lead to. It decides which questions remain. */
export function chooseMode({ changes, deletes, paging, order }: Answers): 'pair' | 'replace' {
  if (changes === undefined || changes === 'none' || deletes === 'matter') return 'replace'
  return order === 'unsorted' && !canUseWindow(paging) ? 'replace' : 'pair'
}

/** An unsorted window is safe only with chained pages. With numbered pages, a new change can shift a record past the reader. */
function canUseWindow(paging: Answers['paging']): boolean {
  return paging === 'none' || paging === 'token'
}

/** The timestamp to read the list by: of the last update, or of creation if updates are not visible. */
export function chooseTimestamp({ changes, paging }: Answers): 'updated' | 'created' | null {
  if (changes === 'newest-first') return null
  if (changes !== 'none') return 'updated'
  return paging === 'time' ? 'created' : null
}
