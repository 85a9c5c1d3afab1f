import { AUTH_OPTION, HTTP_PACE, lagOption, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'An access token, or OAuth (`clientCredentials`, `refreshToken`); the user needs "API Enabled" and read access to the objects.',
  types:
    'From the description of the object, requested once in each cycle that has records: `int` and `long` are `bigint`; `double`, `currency` and `percent` are `double`; `boolean`, `date` and `datetime` (`timestamp`) are of these types; `address`, `location`, `complexvalue` and `anyType` are `json`; all others are texts, also `time` and `base64` (the path of the blob). `Id` is not null and unique. If the description is refused, the types are inferred from the values, with a log message.',
  streams: [
    [
      'salesforce(options).object(name, options)',
      'backfill and delta',
      'the records of an object; `fields` (all) and `safetyWindow` (none) as options',
    ],
  ],
  lag: '`lagMs`, 15 seconds by default, and one second more.',
  retention: '15 days: the recycle bin keeps deleted records that long.',
  deletions: 'By the delta, from the recycle bin, and by the backfill.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'salesforce(options)',
      file: 'salesforce/source.ts',
      name: 'SalesforceOptions',
      members: {
        instanceUrl: [null, 'Of the org: `https://example.my.salesforce.com`.'],
        accessToken: secretOption('An access token'),
        auth: AUTH_OPTION,
        apiVersion: ['`60.0`', 'Version of the API.'],
        limit: [
          '2,000, or 200 when all fields are read',
          'Records of a page, 1 to 2,000; at most 200 when all fields are read. Also of a set of results of a job, 5,000 by default.',
        ],
        bulk: [
          '`auto`',
          'Whether the backfill reads by a query job of Bulk API 2.0. `auto` creates a job for more than `bulkAbove` records, if Bulk returns all fields as the REST API does. `true` always creates one; without `fields`, compound fields (addresses, locations) and blobs, which Bulk does not have, are then left out of all reads, and their parts are fields of their own. Without a description of the object, or with none of the daily query jobs left, the backfill reads page by page.',
        ],
        bulkAbove: ['50,000', 'The number of records above which `auto` creates a job.'],
        since: [null, 'A start date: records that were last modified before it are not read.'],
        lagMs: lagOption('15000'),
        metadata: ['true', 'Whether the types of fields are requested.'],
      },
    },
  ],
} satisfies SourceReference
