import { AUTH_OPTION, HTTP_PACE, lagOption, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'The access token of a private app with read scopes of the objects.',
  streams: [
    ['hubspot(options).contacts', 'backfill and delta', 'contacts'],
    ['hubspot(options).companies', 'backfill and delta', 'companies'],
    ['hubspot(options).deals', 'backfill and delta', 'deals'],
    ['hubspot(options).tickets', 'backfill and delta', 'tickets'],
    [
      'hubspot(options).object(type)',
      'backfill and delta',
      'any other type of object, by its name or id: `products`, `line_items`, `quotes`, `calls`, `emails`, `meetings`, `notes`, `tasks`, … and custom objects',
    ],
    [
      'hubspot(options).associations(from, to)',
      'replace',
      'the associations from the objects of one type to those of another, with their labels; in a manifest `contacts_companies`',
    ],
  ],
  lag: '`lagMs`, 10 seconds by default.',
  retention: '90 days: archived objects are listed that long.',
  deletions: 'By the delta, from the list of archived objects (`archivedEveryMs`), and by the backfill.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'hubspot(options)',
      file: 'hubspot/source.ts',
      name: 'HubspotOptions',
      members: {
        accessToken: secretOption('The token of a private app'),
        auth: AUTH_OPTION,
        baseUrl: ['`https://api.hubapi.com`', 'Base URL of the API.'],
        properties: [
          'the usual ones of each type',
          'Additional properties to read, by object type. Of a custom object, all its own properties are read by default.',
        ],
        lagMs: lagOption('10000'),
        limit: ['100', 'Objects of a page, 1 to 100.'],
        archivedEveryMs: [
          '300000',
          'Minimum interval between listings of the archived objects; 0 for every cycle. The list can only be read whole, so the interval grows with it: 6 seconds for every page. The tidemark stays at the last listing.',
        ],
        since: [
          null,
          'A start date: objects that were last modified before it are not kept. The lists are read whole.',
        ],
      },
    },
  ],
} satisfies SourceReference
