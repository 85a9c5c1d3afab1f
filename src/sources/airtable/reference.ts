import { AUTH_OPTION, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'A personal access token with `data.records:read`; `schema.bases:read` for `discover`, `webhook:manage` for `tracked`.',
  types:
    '`id` is text, `createdTime` a timestamp, and `fields`, which has the fields of the table, is JSON. `id` is not null and unique.',
  streams: [
    ['airtable(options).table(idOrName)', 'replace', 'the records of one table; its id survives a new name'],
    [
      'airtable(options).tracked(tableId, webhookId)',
      'backfill and delta',
      'the same, followed by a webhook of the base that reports `tableData` and `tableFields`; in a manifest with the option `webhook`',
    ],
  ],
  lag: 'None assumed.',
  retention: '7 days: the payloads of a webhook. A list has no limit.',
  deletions: 'By the delta, from payloads, and by the sweep.',
  pace: 'No pacer of its own. Waits 30 seconds after a 429, as Airtable requires; declare a pacer of 5 requests a second for each base.',
  groups: [
    {
      title: 'airtable(options)',
      file: 'airtable/source.ts',
      name: 'AirtableOptions',
      members: {
        baseId: [null, 'The base, `app…`.'],
        token: secretOption('A personal access token'),
        auth: AUTH_OPTION,
        baseUrl: ['`https://api.airtable.com/v0`', 'Base URL of the API.'],
        since: [
          'everything',
          'A date or RFC 3339: records that last changed before it are not read. Changes of computed fields do not count.',
        ],
      },
    },
  ],
} satisfies SourceReference
