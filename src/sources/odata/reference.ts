import { HTTP_PACE, lagOption, SAFETY_WINDOW_OPTION, type SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'odata.md',
  auth: '`auth`, as the service requires; none for a public one.',
  streams: [
    ['odata(options).entitySet(name, options)', 'backfill and delta', 'an entity set by its `cursor`'],
    [
      'odata(options).tracked(name, options)',
      'backfill and delta',
      'an entity set by the delta links of the service (version 4)',
    ],
    ['odata(options).listing(name, options)', 'replace', 'all rows of an entity set'],
  ],
  lag: '`lagMs`, 30 seconds by default, and one second more.',
  retention: 'No limit by the cursor; a delta link as long as the service accepts it.',
  deletions: '`tracked` and `listing`; `entitySet` with `deleted`, else by the backfill.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'odata(options)',
      file: 'odata/source.ts',
      name: 'ODataOptions',
      members: {
        url: [null, 'Root of the service, the parent of `$metadata`.'],
        auth: ['none', 'Credentials.'],
        headers: ['none', 'Sent with every request.'],
        query: ['none', "Added to every query: `{ 'sap-client': '100' }`."],
        since: ['none', 'The start date of every entity set; each then needs a `cursor`.'],
      },
    },
    {
      title: 'entitySet, tracked (without `deleted`, `cursor` and `since`) and listing',
      file: 'odata/source.ts',
      name: 'EntitySetOptions',
      members: {
        key: ['as `$metadata` declares', 'Properties that identify an entity.'],
        select: ['all', 'Properties to read.'],
        filter: ['none', "Filter for all reads: `CompanyCode eq '1010'`."],
        deleted: ['none', "Property that marks a deleted entity: true, or anything but null, false, 0 and ''."],
        cursor: [
          'none',
          'Property that every change increases: a timestamp or a date. A listing needs it for `since`.',
        ],
        since: [
          'none',
          'The start date, such as `2024-01-31`: entities whose `cursor` is before it, or null, are not read.',
        ],
        pageSize: ['1000', 'Entities of a page; the service may give fewer.'],
      },
    },
    {
      title: 'entitySet, additional options',
      file: 'odata/source.ts',
      name: 'CursorOptions',
      members: {
        cursor: [null, 'As above; needed here.'],
        lagMs: lagOption('30000'),
        safetyWindow: SAFETY_WINDOW_OPTION,
        exactCursor: ['as `$metadata` says', 'Whether responses show every digit of the cursor.'],
        strict: [
          'false',
          'Queries with `gt` and without an upper bound. Entities with the value of the last cursor, or visible late, are never read. Not with `deleted` or `safetyWindow`.',
        ],
      },
    },
  ],
} satisfies SourceReference
