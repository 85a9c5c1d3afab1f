import { inFile, type PlantedBug } from './planted-bug.ts'

const AIRTABLE = ['test/sources/airtable-tracked.test.ts']
const GITHUB = ['test/sources/github-repository.test.ts']
const LINEAR = ['test/sources/linear-tracked.test.ts']
const STRIPE = ['test/sources/stripe-streams.test.ts']

/** Streams, start dates and ranges of Stripe, GitHub, Linear and Airtable. */
export const PAGED_VENDOR_BUGS: readonly PlantedBug[] = [
  ...inFile('src/sources/stripe/created-range.ts', STRIPE, [
    ['the second before the start is read', 'Math.ceil(instantToMs', 'Math.floor(-1 + instantToMs'],
    ['the end of a range is included', 'created >= from && created < to', 'created >= from && created <= to'],
    ['the start of a range is left out', 'created >= from && created < to', 'created > from && created < to'],
    [
      'a list without the filter is filtered by it',
      'if (isWithoutCreatedFilter === true) return {}',
      'if (to === -Infinity && isWithoutCreatedFilter === true) return {}',
    ],
  ]),
  ...inFile('src/sources/stripe/event-scan.ts', STRIPE, [
    ['an invoice without an id fails the delta', "type === 'invoice.upcoming'", "type === 'invoice.upcoming.never'"],
    ['a change of an object before the start date arrives', '(type === own && !isCreatedIn(object, range))', 'false'],
  ]),
  ...inFile('src/sources/stripe/source.ts', STRIPE, [
    [
      'a row before a new start date is kept',
      'complete === null || !isCreatedIn(complete.object, created)',
      'complete === null',
    ],
  ]),
  ...inFile(
    'src/sources/stripe/descriptor.ts',
    ['test/config/manifest-connectors.test.ts'],
    [
      [
        'the databases of nested objects are not declared',
        'databases: [...new Set(Object.values(nested))]',
        'databases: []',
      ],
    ],
  ),
  ...inFile('src/sources/linear/source.ts', LINEAR, [
    ['the border of two windows is left out', "'gte: $from '", "'gt: $from '"],
    ['the end of a range is included', "'lt: $to '", "'lte: $to '"],
    [
      'an archived record stays',
      'const toChange = includeArchived ? toUpsert : toChangeOrDelete',
      'const toChange = toUpsert',
    ],
    [
      'an archived record is not noticed',
      'includeArchived: true, after: token ?? null',
      'includeArchived, after: token ?? null',
    ],
    ['the delta begins before the start date', 'since: from = since, token', 'since: from, token'],
  ]),
  ...inFile('src/sources/linear/source.ts', LINEAR, [
    [
      'a page of the complete list is taken for the changes',
      'if (from !== undefined) rejectOtherAnswer(connection.nodes, from)',
      '',
    ],
  ]),
  ...inFile('src/strategies/kit/time-window.ts', LINEAR, [
    [
      'only the first page of a window is doubted',
      'isUnproven && !isConfirmed',
      'state?.token === undefined && isUnproven && !isConfirmed',
    ],
    [
      'an earlier answer ends a window',
      'isUnproven && !isConfirmed',
      'changes.length !== 1 && isUnproven && !isConfirmed',
    ],
  ]),
  ...inFile('src/strategies/kit/timestamp-paging.ts', GITHUB, [
    [
      'a page that does not begin at the cursor is believed at once',
      'hasMoved ? isAtCursor(ordered[0], since) : bounded && !(isEmptyAnswer && !hasAnswered(state))',
      'hasMoved ? true : bounded && !(isEmptyAnswer && !hasAnswered(state))',
    ],
    [
      'the end of a complete list is believed at once',
      'hasMoved ? isAtCursor(ordered[0], since) : bounded && !(isEmptyAnswer && !hasAnswered(state))',
      'hasMoved ? isAtCursor(ordered[0], since) : true',
    ],
  ]),
  ...inFile(
    'src/sources/odata/timestamp-ties.ts',
    ['test/sources/odata/following.test.ts'],
    [['an empty answer ends a tie at once', 'if (isEmpty && isEmptyBefore) return rows', 'if (isEmpty) return rows']],
  ),
  ...inFile('src/sources/linear/entities.ts', LINEAR, [
    ['disabled users are left out', "{ users: 'includeDisabled: true' }", '{}'],
  ]),
  ...inFile('src/sources/github/repository.ts', GITHUB, [
    [
      'a page of another request ends the list',
      'if (cursor !== undefined) rejectEarlierPage(',
      'if (page < 0) rejectEarlierPage(',
    ],
    [
      'a repeated page of pull requests is taken for the next one',
      'if (last !== undefined && requireId(last) === lastSeen) throw createRepeatedPageError()',
      '',
    ],
    [
      'a repeated page of commits is taken for the next one',
      'if (lastSha === lastSeen) throw createRepeatedPageError()',
      '',
    ],
    ['pull requests in another order are taken for the newest', 'requireNewestFirst(records)', ''],
    [
      'the pages of commits follow the newest commit',
      'const query = { sha: head, ...toCommitTimes(range) }',
      'const query = toCommitTimes(range)',
    ],
    [
      'only open issues are read',
      "followUpdates(settings, 'issues', { state: 'all' })",
      "followUpdates(settings, 'issues', {})",
    ],
    [
      'the start date is not applied to pull requests',
      'since: from = since, token: place',
      'since: from, token: place',
    ],
    ['the end of a range of commits is included', '/ 1_000) * 1_000 - 1_000', '/ 1_000) * 1_000'],
    [
      'a window of pull requests ends with its first page',
      'const isEnd = last === undefined || !isInRange(last, range)',
      'const isEnd = true',
    ],
  ]),
  ...inFile('src/sources/airtable/payloads.ts', AIRTABLE, [
    [
      'a gap in the numbers of the payloads is accepted',
      'first > Number(cursor)',
      'first > Number(cursor) + 1_000_000',
    ],
    ['the payloads of another request are accepted', 'first !== Number(cursor)', 'first < 0'],
    [
      'a deleted record stays',
      "if (isDeleted) return [{ type: 'delete', key, upstreamUpdatedAt: at }]",
      'if (isDeleted) return []',
    ],
    [
      'a new name of a field is not noticed',
      'isObject(change.changedFieldsById) || Array.isArray(change.destroyedFieldIds)',
      'Array.isArray(change.destroyedFieldIds)',
    ],
    ['the delta ends with its first page', 'next: page.mightHaveMore ? page.cursor : null', 'next: null'],
    [
      'the delta begins with the oldest payload',
      'String(webhook.cursorForNextPayload)',
      'String(Math.min(1, webhook.cursorForNextPayload))',
    ],
  ]),
  ...inFile(
    'src/sources/rest/field-path.ts',
    ['test/sources/rest/listing.test.ts'],
    [['a path of several names is one name', "path === '' ? [] : path.split('.')", "path === '' ? [] : [path]"]],
  ),
]
