import { inFile, type PlantedBug } from './planted-bug.ts'

const BULK = ['test/sources/salesforce-bulk.test.ts']
const HUBSPOT = ['test/sources/hubspot-objects.test.ts']

export const VENDOR_BUGS: readonly PlantedBug[] = [
  ...inFile('src/sources/salesforce/bulk-listing.ts', BULK, [
    [
      'a job that contradicts its own count is swept',
      'if (progress.count === count) return',
      'if (progress.count >= 0) return',
    ],
    [
      'a contradiction is accepted the second time',
      'throw rejectJob(`its results have ${count} records, but it counts ${progress.count}; nothing was deleted`)',
      "return continueWith({ step: 'delete', job, untilMs })",
    ],
    [
      'an early end of the results is final',
      "return continueWith({ step: 'read', job, untilMs, locator, seen, last, isRepeated: true })",
      "throw rejectJob('the counts differ')",
    ],
    [
      'records of a set that broke off are accepted',
      'results.count !== null && results.count !== changes.length',
      'results.count !== null && results.count < 0',
    ],
    [
      'the set before is read as the next one',
      'results.next === locator ? locator !== null : lastKey !== null && lastKey === last',
      'results.next === locator && locator === null',
    ],
    [
      'results of a job count as read when they are requested',
      'return { ...continueWith(next), changes, isLog: true }',
      'return { ...continueWith(next), changes }',
    ],
    [
      'a job that failed is polled again',
      "case 'failed': throw rejectJob(progress.reason)",
      "case 'failed': return continueWith({ step: 'wait', job, untilMs, polls: polls + 1 })",
    ],
    ['the results of a finished job stay at the vendor', 'await deleteJob(client, step.job, context)\n', ''],
    [
      'auto creates a job for a small object',
      'return (await count(context)) > above',
      'return (await count(context)) >= above - 1',
    ],
    [
      'a count that times out ends every backfill',
      "if (isSyncError(error) && error.code === 'SOURCE_UNAVAILABLE') return true\n",
      '',
    ],
  ]),
  ...inFile('src/sources/salesforce/bulk-job.ts', BULK, [
    [
      'a lost job is an error of the connector',
      'const LOST_STATUSES = [400, 404, 409, 410]',
      'const LOST_STATUSES = [409]',
    ],
    ['the daily number of jobs is not respected', 'limit.Remaining !== 0', 'limit.Remaining !== -1'],
    [
      'an object without Bulk ends the backfill',
      'context, { answers: [400] })\n  if (status === 400) return null',
      'context, { answers: [] })\n  if (status === 400) return null',
    ],
    ['the reason of a failed job quotes values', '/^[A-Z][A-Z_]{2,60}/.exec(message)?.[0]', '/.*/.exec(message)?.[0]'],
  ]),
  ...inFile('src/sources/salesforce/bulk-records.ts', BULK, [
    [
      'a number beyond a double is rounded',
      'NUMBER_PATTERN.test(text) ? parseNumber(text)',
      'NUMBER_PATTERN.test(text) ? Number(text)',
    ],
    ['an empty value stays an empty text', "text === '' ? null : parseValue(text, type)", 'parseValue(text, type)'],
    ['a time is another text than that of the REST API', "text.replace(/Z$/, '+0000')", 'text'],
    [
      'values of other columns are read after a change of the fields',
      'header?.length === fields.length &&',
      'header?.length !== 0 ||',
    ],
  ]),
  ...inFile('src/sources/salesforce/source.ts', BULK, [
    [
      'the delta returns columns that Bulk does not have',
      'if (!omitsCompounds || records.length === 0)',
      'if (omitsCompounds || records.length === 0)',
    ],
    [
      'auto drops a compound field',
      'found.length === (wanted?.size ?? described.length) && found.every(isReadableInBulk)',
      'found.length === (wanted?.size ?? described.length)',
    ],
    ['the start date does not limit the backfill', "list('CreatedDate', changedSince)", "list('CreatedDate', [])"],
    ['the end of a range is included', '`SystemModstamp < ${formatSoqlTime', '`SystemModstamp <= ${formatSoqlTime'],
  ]),
  ...inFile('src/sources/hubspot/associations.ts', HUBSPOT, [
    ['an object without an answer has no associations', 'if (open.size > 0)', 'if (open.size < 0)'],
    [
      'associations of another object are accepted',
      "if (typeof id !== 'string' || !open.delete(id))",
      "if (typeof id !== 'string')",
    ],
    [
      'the rest of an object with many associations is not read',
      "if (typeof next === 'string') rest.push({ id: fromId, after: next })\n",
      '',
    ],
    [
      'the rest after the last page is not read',
      'hasMore: page.hasMore || rest.length > 0, nextState: next',
      'hasMore: page.hasMore, nextState: next',
    ],
  ]),
  ...inFile(
    'src/sources/hubspot/object-types.ts',
    ['test/sources/hubspot.test.ts'],
    [
      [
        'contacts are searched by the wrong property',
        "type === 'contacts' || type === '0-1' ? 'lastmodifieddate'",
        "type === '0-1' ? 'lastmodifieddate'",
      ],
      [
        'an object of two words is a pair',
        'Object.hasOwn(STANDARD_PROPERTIES, to) || isCustomType(to)',
        "to !== ''",
        HUBSPOT,
      ],
    ],
  ),
  ...inFile('src/sources/hubspot/archive-listing.ts', HUBSPOT, [
    [
      'a long archive is read as often as a short one',
      'Math.max(intervalMs, pages * MS_PER_REQUEST)',
      'Math.max(intervalMs, pages)',
    ],
    [
      'a resumed listing counts its last pages only',
      'const requests = (isResumed ? (state.requests ?? 0) : 0) + 1',
      'const requests = 1',
    ],
  ]),
  ...inFile('src/sources/hubspot/source.ts', HUBSPOT, [
    [
      'the properties of a custom object are not read',
      'given === undefined && isCustomType(type)',
      'given !== undefined && isCustomType(type)',
    ],
    [
      'a range reads on to the present',
      'untilMs: Math.min(query.untilMs, throughMs)',
      'untilMs: Math.max(query.untilMs, throughMs)',
    ],
    [
      'an object from before the start date is kept',
      "Date.parse(change.upstreamUpdatedAt ?? '') >= roundUpToMs(since)",
      "Date.parse(change.upstreamUpdatedAt ?? '') >= 0",
    ],
  ]),
]
