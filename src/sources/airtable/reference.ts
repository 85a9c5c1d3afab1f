import { AUTH_OPTION, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'A personal access token with `data.records:read`; `schema.bases:read` for `discover`.',
  types:
    '`id` is text, `createdTime` a timestamp, and `fields`, which has the fields of the table, is JSON. `id` is not null and unique.',
  streams: [['airtable(options).table(idOrName)', 'replace', 'the records of one table; its id survives a new name']],
  lag: 'None assumed.',
  retention: 'No limit: every cycle reads the whole list.',
  deletions: 'Yes, by the sweep.',
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
      },
    },
  ],
} satisfies SourceReference
