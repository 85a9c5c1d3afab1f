import { AUTH_OPTION, HTTP_PACE, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'A personal API key, or OAuth with the scope `read`.',
  streams: [
    ['linear(options).issues', 'replace', 'issues'],
    ['linear(options).teams', 'replace', 'teams'],
  ],
  lag: '15 seconds.',
  retention: 'No limit: every cycle reads the whole list.',
  deletions: 'Yes, by the sweep; archived records count as deleted.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'linear(options)',
      file: 'linear/source.ts',
      name: 'LinearOptions',
      members: {
        apiKey: secretOption('A personal API key'),
        auth: AUTH_OPTION,
        baseUrl: ['`https://api.linear.app`', 'Base URL of the API.'],
        limit: ['100', 'Records of a page, 1 to 250.'],
      },
    },
  ],
} satisfies SourceReference
