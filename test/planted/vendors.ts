import { inFile, type PlantedBug } from './planted-bug.ts'

const LINEAR = ['test/sources/linear-tracked.test.ts']
const STRIPE = ['test/sources/stripe-streams.test.ts']

/** Streams, start dates and ranges of Stripe, GitHub, Linear and Airtable. */
export const VENDOR_BUGS: readonly PlantedBug[] = [
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
      'a window is listed in the order of changes',
      'after: $after, orderBy: createdAt',
      'after: $after, orderBy: updatedAt',
    ],
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
  ...inFile('src/sources/linear/entities.ts', LINEAR, [
    ['disabled users are left out', "{ users: 'includeDisabled: true' }", '{}'],
  ]),
]
