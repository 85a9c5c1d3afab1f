import type { Answers, KnownApi } from './answers.ts'
import type { StateShape, StrategyName } from './state-shapes.ts'

/** An API with a built-in source: the answers from its documentation, and how to declare it. */
export interface KnownApiProfile {
  readonly answers: Answers
  /** A TypeScript expression for the stream. */
  readonly stream: string
  readonly database: string
  /** The function that creates the source, if its name differs from the API. */
  readonly factoryName?: string
  /** The strategy for deletions from a separate endpoint, if it is not keyset. */
  readonly deletesBy?: StrategyName
  /** Fields that the backfill state has in addition to those of the strategy. */
  readonly backfillExtraState?: StateShape
  /** Overrides the default schedule. */
  readonly schedule?: string
}

export const KNOWN_APIS: Readonly<Record<KnownApi, KnownApiProfile>> = {
  salesforce: {
    // Deleted rows stay in the recycle bin, where the delta sees their flag.
    answers: { changes: 'timestamp', deletes: 'reported', paging: 'time', ties: 'yes', http: 'other', lagSeconds: 15 },
    stream:
      "salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'SALESFORCE_TOKEN' }).object('Account')",
    database: 'accounts',
  },
  stripe: {
    answers: { changes: 'events', deletes: 'reported', paging: 'token', http: 'other', lagSeconds: 10 },
    stream: "stripe({ apiKey: 'STRIPE_KEY' }).customers",
    database: 'customers',
  },
  hubspot: {
    answers: { changes: 'timestamp', deletes: 'elsewhere', paging: 'token', order: 'one-field', lagSeconds: 10 },
    stream: "hubspot({ accessToken: 'HUBSPOT_TOKEN' }).contacts",
    database: 'contacts',
    // The archive has no order and no time filter, so all of it is read every other cycle.
    deletesBy: 'archive',
  },
  github: {
    answers: { changes: 'none', paging: 'graphql', nested: 'yes', size: 'small' },
    stream: "github({ token: 'GITHUB_TOKEN' }).issues",
    database: 'issues',
    schedule: '1h',
  },
  servicenow: {
    answers: { changes: 'timestamp', deletes: 'elsewhere', paging: 'time', ties: 'yes', http: 'other', lagSeconds: 15 },
    stream:
      "servicenow({ instanceUrl: 'https://example.service-now.com', user: 'SERVICENOW_USER', password: 'SERVICENOW_PASSWORD' }).table('incident')",
    database: 'incidents',
  },
  linear: {
    answers: { changes: 'none', paging: 'graphql', nested: 'no', size: 'small' },
    stream: "linear({ apiKey: 'LINEAR_KEY' }).issues",
    database: 'issues',
  },
  airtable: {
    answers: { changes: 'none', paging: 'token', http: 'other', size: 'small' },
    stream: "airtable({ baseId: 'app0000000000000', token: 'AIRTABLE_TOKEN' }).table('tbl0000000000000')",
    database: 'tasks',
  },
  bookmarks: {
    answers: { changes: 'newest-first', deletes: 'ignore' },
    stream: "bookmarks({ userId: '2244994945', token: 'X_TOKEN' })",
    database: 'posts',
  },
  'github-stars': {
    answers: { changes: 'newest-first', deletes: 'ignore' },
    stream: "githubStars({ token: 'GITHUB_TOKEN' })",
    database: 'stars',
    factoryName: 'githubStars',
  },
}
