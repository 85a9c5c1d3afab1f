/** What is known of an API. Each member answers the question of the same name in `questions.ts`. */
export interface Answers {
  /** One that has a source of its own here, or `other`. */
  readonly api?: KnownApi | 'other'
  readonly changes?: 'events' | 'timestamp' | 'sync-token' | 'newest-first' | 'none'
  readonly deletes?: 'told' | 'elsewhere' | 'matter' | 'ignore'
  readonly paging?: 'none' | 'token' | 'graphql' | 'page' | 'offset' | 'time'
  readonly nested?: 'yes' | 'no'
  readonly ties?: 'yes' | 'no'
  readonly order?: 'time-and-id' | 'one-field' | 'unique' | 'unsorted'
  readonly http?: 'plain' | 'other'
  readonly size?: 'small' | 'large'
  readonly lagSeconds?: number
}

export type KnownApi = 'airtable' | 'bookmarks' | 'github' | 'github-stars' | 'hubspot' | 'linear' | 'salesforce' | 'servicenow' | 'stripe'

/** What the answers amount to, as far as it decides which questions are left. */
export function chooseMode({ changes, deletes, paging, order }: Answers): 'pair' | 'replace' {
  if (changes === undefined || changes === 'none' || deletes === 'matter') return 'replace'
  return order === 'unsorted' && !canUseWindow(paging) ? 'replace' : 'pair'
}

/** A window of changes in no order is safe only where its pages are chained: by number, one that changes again moves another out of sight. */
function canUseWindow(paging: Answers['paging']): boolean {
  return paging === 'none' || paging === 'token'
}

/** By which time the list is read: of the last change, or of creation where changes leave no trace. */
export function chooseTimestamp({ changes, paging }: Answers): 'updated' | 'created' | null {
  if (changes === 'newest-first') return null
  if (changes !== 'none') return 'updated'
  return paging === 'time' ? 'created' : null
}
